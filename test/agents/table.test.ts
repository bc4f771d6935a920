import { describe, expect, test } from "vitest";
import type { AgentServer } from "../../src/agents/agent.ts";
import { agents, knownAgent } from "../../src/agents/table.ts";
import { keys } from "../../src/config/keys.ts";
import { modesOf } from "../../src/config/rules.ts";
import type { AgentKind } from "../../src/config/types.ts";
import { reservedTargets } from "../../src/policy/mounts.ts";
import { isWithin } from "../../src/policy/paths.ts";

/** A name that a shell would take as one word, and no path. */
const word = /^[a-z][a-z0-9-]*$/;
const variable = /^[A-Z][A-Z0-9_]*$/;
const exactVersion = /^\d+\.\d+\.\d+$/;
const packageName = /^(@[a-z-]+\/)?[a-z0-9-]+$/;

describe("the table of agents", () => {
  test("has those that the configuration can choose, in its order", () => {
    const kind = keys.find(({ name }) => name === "agent.kind");
    expect(kind?.type).toEqual({ kind: "choice", of: [...agents.map(({ name }) => name), "custom"] });
  });

  test("knows each by its name, and no other", () => {
    for (const agent of agents) expect(knownAgent(agent.name)).toBe(agent);
    for (const name of ["custom", "", "toString"]) expect(knownAgent(name)).toBeUndefined();
    for (const field of ["name", "title", "program"] as const) {
      expect(new Set(agents.map((agent) => agent[field])).size).toBe(agents.length);
    }
  });

  test("names what npm installs, exactly", () => {
    expect(agents.map(({ name, package: { name: wanted, version } }) => `${name}: ${wanted}@${version}`)).toEqual([
      "claude: @anthropic-ai/claude-code@2.1.325",
      "codex: @openai/codex@0.166.0",
      "opencode: opencode-ai@1.18.33",
      "gemini: @google/gemini-cli@0.61.0",
      "goose: @aaif/goose-binary-linux-x64@0.20.1",
      "qwen: @qwen-code/qwen-code@0.24.4",
    ]);
  });

  test("holds no host of a package registry, and none twice", () => {
    for (const { hosts } of agents) {
      expect(new Set(hosts).size).toBe(hosts.length);
      for (const host of hosts) expect(host).toMatch(/^(?!registry\.)([a-z0-9-]+\.)+[a-z]{2,}$/);
    }
  });
});

describe.each(agents)("the entry of $name", (agent) => {
  test("has names of one word and a title to read", () => {
    expect(agent.name).toMatch(word);
    expect(agent.program).toMatch(word);
    expect(agent.title).toMatch(/^[A-Z]\S*( \S+)*$/);
  });

  test("pins its packages, and lists what of Debian's they need", () => {
    const servers = [agent.acp, agent.appServer].filter((server): server is AgentServer => server !== null);
    for (const wanted of [agent.package, ...servers.flatMap((server) => server.package ?? [])]) {
      expect(wanted.name).toMatch(packageName);
      expect(wanted.version).toMatch(exactVersion);
      for (const name of wanted.debian) expect(name).toMatch(word);
    }
    // A program that no package of its own brings is the agent itself.
    for (const server of servers) expect(server.package === null).toBe(server.program === agent.program);
  });

  test("needs a Node that Podbot itself runs on, or none", () => {
    expect(agent.needs.node ?? 20).toBeLessThanOrEqual(20);
  });

  test("asks for a version with a flag, and has one place for a prompt", () => {
    expect(agent.version).toEqual([expect.stringMatching(/^-/)]);
    expect(agent.headless.filter((part) => part === "{prompt}")).toHaveLength(1);
    expect(agent.headless.at(-1)).toBe("{prompt}");
    expect(agent.resume.length).toBeGreaterThan(0);
  });

  test("has a way to ask nothing, and the flags of it are not among what the caller decides by", () => {
    const { flags, environment, decided, behind, without } = agent.permissive;
    expect(flags.length + Object.keys(environment).length).toBeGreaterThan(0);
    for (const flag of [...flags, ...decided]) expect(flag).toMatch(/^--?[a-z]/);
    expect(flags.filter((flag) => decided.includes(flag))).toEqual([]);
    expect(behind.filter((command) => without.includes(command))).toEqual([]);
    for (const command of [...behind, ...without]) expect(command).toMatch(word);
    expect([...without].sort()).toEqual(without);
  });

  test("sets variables that are no keys, and has keys that nothing sets", () => {
    const servers = [agent.acp, agent.appServer].flatMap((server) => server ?? []);
    const set = Object.assign(
      { ...agent.quiet.environment, ...agent.permissive.environment },
      ...servers.flatMap(({ environment, unconfined }) => [environment, unconfined.environment]),
    ) as Readonly<Record<string, string>>;
    for (const [name, value] of Object.entries(set)) {
      expect(name).toMatch(variable);
      expect(value).not.toBe("");
    }
    expect(agent.keys.length).toBeGreaterThan(0);
    for (const key of agent.keys) expect(key).toMatch(variable);
    expect(agent.keys.filter((key) => key in set)).toEqual([]);
    // Chosen by who runs inside, for all agents alike.
    expect(Object.keys(set)).not.toContain("IS_SANDBOX");
  });

  test("keeps its credentials below the home, where nothing can be mounted in a container", () => {
    expect(agent.credentials.length).toBeGreaterThan(0);
    for (const path of agent.credentials) {
      expect(path).toMatch(/^\.[a-z]+(\/[a-z_.]+)*(\.[a-z]+)?$/);
      expect(path.split("/")).not.toContain("..");
      for (const home of ["/root", "/home/podbot"]) {
        expect(reservedTargets.some((target) => isWithin(`${home}/${path}`, target))).toBe(true);
      }
    }
  });

  test("has the modes that the configuration accepts", () => {
    const modes = ["podbot", ...(agent.appServer === null ? [] : ["codex_app_server"]), "acp"];
    expect(modesOf(agent.name as AgentKind)).toEqual(modes);
  });
});
