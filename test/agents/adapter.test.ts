import { expect, test } from "vitest";
import { adapterOf } from "../../src/agents/adapter.ts";
import { requireAgent } from "../../src/agents/command.ts";
import { agents } from "../../src/agents/table.ts";

test("an agent that is a server by itself needs no adapter", () => {
  for (const agent of agents) expect(adapterOf(agent) === null).toBe(agent.acp.program === agent.program);
});

test("an adapter uses the agent that is there already", () => {
  expect(adapterOf(requireAgent("codex"))).toEqual({
    name: "codex-acp",
    title: "Codex for editors",
    program: "codex-acp",
    version: ["--version"],
    package: { name: "@agentclientprotocol/codex-acp", version: "2.6.0", scripts: false, debian: [] },
    uses: { variable: "CODEX_PATH", program: "codex" },
  });
  expect(adapterOf(requireAgent("claude"))?.uses).toEqual({ variable: "CLAUDE_CODE_EXECUTABLE", program: "claude" });
});

test("an adapter that knows no variable for it brings an agent of its own", () => {
  const codex = requireAgent("codex");
  expect(adapterOf({ ...codex, acp: { ...codex.acp, agentVariable: null } })?.uses).toBeNull();
});
