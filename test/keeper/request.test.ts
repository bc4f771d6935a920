import { describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { AgentKind, LoadedConfig, PartialConfig } from "../../src/config/types.ts";
import { composeRequest, type SandboxOptions, type Surroundings } from "../../src/keeper/request.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { cwd, engineFacts, home } from "../plan/ordinary.ts";

function loaded(value: PartialConfig): LoadedConfig {
  const layers = [defaultLayer(), { name: "flag", source: "command line", trusted: true, value } as const];
  return { ...mergeLayers(layers), layers, warnings: [], files: [] };
}

const around: Surroundings = {
  home,
  cwd,
  state: `${home}/.local/state/podbot`,
  held: `${home}/.local/state/podbot/held`,
  sessions: [],
  native: findNativePrograms(),
  nested: false,
  engine: engineFacts,
  workspace: { kind: "mounted", inside: null } as Surroundings["workspace"],
  settings: {},
  network: { mode: "none", origin: "default", policy: null, ports: [] },
};
const options: SandboxOptions = { command: ["agent"], cwd, env: { PATH: "/usr/bin", HOME: home } };

test("the file of a masked secret is hidden, and no other", () => {
  const secrets = {
    masked: { file: "~/.keys/api", hosts: ["api.example.com"] },
    open: { file: "~/.keys/other" },
    told: { env: "TOLD", hosts: ["api.example.com"] },
  };
  const hidden = composeRequest(options, loaded({ secrets }), { ...around, engine: null }).rules.filter(({ origin }) =>
    origin.startsWith("the masked secret"),
  );
  expect(hidden).toMatchObject([{ access: "exclude", pattern: `${home}/.keys/api`, layer: "podbot" }]);
});

describe("credentials", () => {
  const asked = (config: PartialConfig, session = true, engine: Surroundings["engine"] = engineFacts) =>
    composeRequest({ ...options, session }, loaded(config), { ...around, engine }).container?.wishes.credentials;
  const named = (session: boolean, creds: PartialConfig["creds"] = {}, engine: Surroundings["engine"] = engineFacts) =>
    asked({ creds, agent: { kind: "custom", command: "agent" } }, session, engine);

  test("are copied for an agent, as the owner has it", () => {
    expect(named(true, { copy_claude: true, copy_codex: true })).toEqual([".claude", ".codex"]);
    expect(named(true, { copy_claude: false, copy_codex: true })).toEqual([".codex"]);
    expect(named(true, { copy_claude: false, copy_codex: false })).toEqual([]);
  });

  test.each(agents)("are, for $name, its own and no others", ({ name, credentials }) => {
    const agent = { kind: name as AgentKind };
    expect(asked({ agent })).toEqual(credentials);
    const key = name === "claude" ? "copy_claude" : name === "codex" ? "copy_codex" : "copy_agent";
    expect(asked({ agent, creds: { [key]: false } })).toEqual([]);
    const all = { copy_claude: false, copy_codex: false, copy_agent: false };
    expect(asked({ agent, creds: { ...all, [key]: true } })).toEqual(credentials);
  });

  test("are not copied for a plain command, whatever the owner has", () => {
    expect(named(false, { copy_claude: true, copy_codex: true })).toEqual([]);
  });

  test("are never spoken of behind bubblewrap", () => {
    expect(named(true, { copy_claude: true }, null)).toBeUndefined();
  });
});
