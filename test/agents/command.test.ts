import { describe, expect, test } from "vitest";
import { type AgentForm, agentCommand, installCommand, requireAgent, serverOf } from "../../src/agents/command.ts";
import { agents } from "../../src/agents/table.ts";
import { ConfigError, UsageError } from "../../src/errors.ts";
import { failure } from "../failure.ts";

const none = { command: undefined, args: [], extra: [], permissive: true };
const bypass = "--dangerously-bypass-approvals-and-sandbox";

/** All words but what every start of the agent has. */
function wordsOf(kind: string, extra: readonly string[], permissive = true): readonly string[] {
  const { argv } = agentCommand({ ...none, kind, extra, permissive });
  const { program, quiet } = requireAgent(kind);
  expect(argv.slice(0, 1 + quiet.flags.length)).toEqual([program, ...quiet.flags]);
  return argv.slice(1 + quiet.flags.length);
}

describe("the command of a known agent", () => {
  test.each(agents)("is, for $name, its program, its flags and the caller's words", (agent) => {
    const { name, interactive, permissive } = agent;
    expect(wordsOf(name, [])).toEqual([...permissive.flags, ...interactive]);
    expect(wordsOf(name, ["--model", "a b"])).toEqual([...permissive.flags, "--model", "a b"]);
    const configured = { ...none, command: "other", args: ["--ignored"], kind: name };
    expect(agentCommand(configured)).toEqual(agentCommand({ ...none, kind: name }));
    expect(agentCommand(configured).name).toBe(name);
  });

  test.each(agents)("has, for $name, no such flags where the owner wants its questions", (agent) => {
    const { name, interactive, headless } = agent;
    expect(wordsOf(name, [], false)).toEqual(interactive);
    expect(wordsOf(name, headless, false)).toEqual(headless);
  });

  test.each([
    ["claude", ["-p", "hi"], ["--dangerously-skip-permissions", "-p", "hi"]],
    ["codex", ["exec", "hi"], [bypass, "exec", "hi"]],
    ["opencode", ["run", "hi"], ["run", "--auto", "hi"]],
    ["gemini", ["-p", "hi"], ["--yolo", "-p", "hi"]],
    ["goose", ["run", "-t", "hi"], ["run", "-t", "hi"]],
    ["qwen", ["-p", "hi"], ["--yolo", "-p", "hi"]],
  ])("has the flags of %s where it understands them: %j is %j", (kind, extra, words) => {
    expect(wordsOf(kind, extra)).toEqual(words);
  });

  test.each([
    ["claude", ["--dangerously-skip-permissions"]],
    ["codex", ["exec", bypass, "hi"]],
    ["opencode", ["--auto"]],
    ["opencode", ["run", "hi", "--auto"]],
    ["gemini", ["-p", "hi", "--yolo"]],
  ])("repeats no flag that the caller has given to %s: %j", (kind, extra) => {
    expect(wordsOf(kind, extra)).toEqual(extra);
  });

  test.each([
    ["claude", ["--permission-mode", "plan"]],
    ["claude", ["--permission-mode=plan"]],
    ["codex", ["-a", "on-request"]],
    ["codex", ["exec", "--sandbox=read-only", "hi"]],
    ["gemini", ["-y"]],
    ["gemini", ["--approval-mode", "plan"]],
    ["qwen", ["--approval-mode=plan", "hi"]],
  ])("leaves the decision to the caller where he has made one for %s: %j", (kind, extra) => {
    expect(wordsOf(kind, extra)).toEqual(extra);
  });

  test.each([
    ["opencode", ["auth", "login"]],
    ["opencode", ["models"]],
    ["gemini", ["mcp", "list"]],
    ["qwen", ["sessions", "list"]],
  ])("puts nothing before a subcommand of %s that knows no such flags: %j", (kind, extra) => {
    expect(wordsOf(kind, extra)).toEqual(extra);
  });

  test("keeps Codex from looking for updates and sending statistics, before all else", () => {
    const quiet = ["analytics.enabled=false", "features.plugins=false", "check_for_update_on_startup=false"];
    expect(agentCommand({ ...none, kind: "codex", extra: ["exec", "hi"] }).argv).toEqual([
      "codex",
      ...quiet.flatMap((setting) => ["-c", setting]),
      bypass,
      "exec",
      "hi",
    ]);
  });

  test.each(["cluade", "", "toString", "custom"])("does not exist for %j, and the known ones are named", (kind) => {
    const error = failure(ConfigError, () => requireAgent(kind));
    expect(error.code).toBe("AGENT_UNKNOWN");
    expect(error.message).toBe(`Podbot does not know an agent ${JSON.stringify(kind)}.`);
    expect(error.hint).toContain("claude, codex, opencode, gemini, goose, qwen");
    expect(error.details).toMatchObject({ agent: kind, known: agents.map(({ name }) => name) });
    if (kind !== "custom") expect(failure(ConfigError, () => agentCommand({ ...none, kind }))).toEqual(error);
  });
});

describe("the command of a custom agent", () => {
  test("is what is configured and the caller's words, whatever holds for known ones", () => {
    const custom = { ...none, kind: "custom", command: "./agent", args: ["--stdio"] };
    expect(agentCommand(custom)).toEqual({ name: "custom", argv: ["./agent", "--stdio"] });
    const argv = ["./agent", "--stdio", "-v"];
    expect(agentCommand({ ...custom, extra: ["-v"], permissive: false })).toEqual({ name: "custom", argv });
  });

  test("is the caller's words alone where none is configured", () => {
    const argv = ["python3", "agent.py"];
    expect(agentCommand({ ...none, kind: "custom", extra: argv })).toEqual({ name: "custom", argv });
    expect(agentCommand({ ...none, kind: "custom", args: ["--of-nothing"], extra: argv }).argv).toEqual(argv);
  });

  test("must be given", () => {
    const error = failure(UsageError, () => agentCommand({ ...none, kind: "custom" }));
    expect(error.code).toBe("USAGE");
    expect(error.hint).toContain("podbot run --agent custom -- COMMAND");
  });
});

describe("the command of a server", () => {
  const words = (kind: string, form: AgentForm, extra: readonly string[] = []) =>
    agentCommand({ ...none, kind, form, extra }).argv;

  test.each([
    ["claude", "acp", ["claude-agent-acp"]],
    ["codex", "acp", ["codex-acp"]],
    ["opencode", "acp", ["opencode", "acp"]],
    ["gemini", "acp", ["gemini", "--acp"]],
    ["goose", "acp", ["goose", "acp", "--with-builtin", "developer"]],
    ["qwen", "acp", ["qwen", "--acp"]],
  ] as const)("is, for %s in mode %s, %j and the caller's words, whatever is permitted", (kind, form, argv) => {
    expect(words(kind, form)).toEqual(argv);
    expect(words(kind, form, ["--debug"])).toEqual([...argv, "--debug"]);
    expect(agentCommand({ ...none, kind, form, permissive: false })).toEqual({ name: kind, argv });
  });

  test("keeps Codex's own server quiet as it keeps Codex, and from confining what is confined", () => {
    const { quiet } = requireAgent("codex");
    const listen = ["app-server", "--listen", "stdio://"];
    const unconfined = ["-c", 'sandbox_mode="danger-full-access"'];
    expect(words("codex", "codex_app_server")).toEqual(["codex", ...quiet.flags, ...unconfined, ...listen]);
    const own = agentCommand({ ...none, kind: "codex", form: "codex_app_server", permissive: false });
    expect(own.argv).toEqual(["codex", ...quiet.flags, ...listen]);
  });

  test("is a custom agent's own, and must be given", () => {
    expect(words("custom", "acp", ["./agent", "--acp"])).toEqual(["./agent", "--acp"]);
    const error = failure(UsageError, () => words("custom", "codex_app_server"));
    expect(error.hint).toContain("podbot host --agent custom -- COMMAND");
  });

  test.each(agents)("is, for $name, that of one of its servers, or none", (agent) => {
    expect(serverOf(agent, "podbot")).toBeNull();
    expect(serverOf(agent, "acp")).toBe(agent.acp);
    expect(serverOf(agent, "codex_app_server")).toBe(agent.appServer);
  });
});

test("what installs an agent is the version that was tried", () => {
  expect(installCommand(requireAgent("codex"))).toBe("npm install --global @openai/codex@0.166.0");
});
