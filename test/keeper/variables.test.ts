import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { AgentKind, Config, PartialConfig } from "../../src/config/types.ts";
import { ConfigError } from "../../src/errors.ts";
import { chooseVariables, resolveVariables, type VariableContext } from "../../src/keeper/variables.ts";
import { failure } from "../failure.ts";
import { planFor } from "../plan/ordinary.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-variables-"));
afterAll(() => rmSync(directory, { recursive: true }));

function configOf(value: PartialConfig): Config {
  return mergeLayers([defaultLayer(), { name: "global", source: "test", trusted: true, value }]).config;
}

/** References to variables, in short. */
function chosen(value: PartialConfig, context: Partial<VariableContext> = {}): Readonly<Record<string, unknown>> {
  const variables = chooseVariables(configOf(value), {
    env: {},
    uid: 1000,
    nesting: false,
    docker: false,
    session: false,
    image: null,
    ...context,
  });
  return Object.fromEntries(variables.map(({ name, ...reference }) => [name, reference]));
}

/** The environment inside, values and all. */
function resolved(
  value: PartialConfig,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const config = configOf(value);
  const variables = chooseVariables(config, {
    env,
    uid: 1000,
    nesting: false,
    docker: false,
    session: false,
    image: null,
  });
  return resolveVariables(planFor([], {}, { request: { variables } }), config, env);
}

describe("the variables inside", () => {
  test("are those of the caller that the policy lets in, by name alone", () => {
    const env = { LANG: "C", LC_ALL: "C", GH_TOKEN: "secret", TERM: undefined, HOME: "/home/u" };
    const variables = chosen({}, { env });
    expect(variables).toMatchObject({ LANG: { from: "caller" }, LC_ALL: { from: "caller" }, HOME: { from: "caller" } });
    expect(Object.keys(variables)).toEqual(["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR"]);
  });

  test("are more where the owner passes more", () => {
    const env = { FOO: "1", BAR_A: "2", BAR_B: "3", BAZ: "4" };
    expect(Object.keys(chosen({ environment: { pass: ["FOO", "BAR_*"] } }, { env }))).toEqual([
      "BAR_A",
      "BAR_B",
      "FOO",
      "PATH",
      "TMPDIR",
    ]);
  });

  test("leave out names that a shell might execute", () => {
    const env = { "BASH_FUNC_x%%": "() { :; }", "A-B": "1", "1A": "2", "A B": "3", A_1: "4" };
    expect(Object.keys(chosen({ environment: { pass: ["*"] } }, { env }))).toEqual(["A_1", "PATH", "TMPDIR"]);
  });

  test.each([
    ["first", false, "/run/podbot/bin:/usr/bin:/bin"],
    ["last, where sandboxes may nest", true, "/usr/bin:/bin:/run/podbot/bin"],
  ])("have Podbot's own programs on PATH, %s", (_, nesting, value) => {
    expect(chosen({}, { env: { PATH: "/usr/bin:/bin" }, nesting })["PATH"]).toEqual({ from: "plan", value });
  });

  test("have a PATH where the caller has none", () => {
    expect(chosen({})["PATH"]).toEqual({ from: "plan", value: "/run/podbot/bin:/usr/local/bin:/usr/bin:/bin" });
  });

  test("have a temporary directory that exists", () => {
    expect(chosen({}, { env: { TMPDIR: "/var/folders/x" } })["TMPDIR"]).toEqual({ from: "plan", value: "/tmp" });
  });

  test("tell agents that root is harmless here, if it is root", () => {
    expect(chosen({}, { uid: 0 })["IS_SANDBOX"]).toEqual({ from: "plan", value: "1" });
    expect(chosen({}, { uid: 1000 })["IS_SANDBOX"]).toBeUndefined();
  });

  test("keep a known agent quiet and tell it to ask nothing, in a session only and behind both walls", () => {
    const goose: PartialConfig = { agent: { kind: "goose" } };
    const told = { GOOSE_MODE: "auto", GOOSE_DISABLE_KEYRING: "1", GOOSE_TELEMETRY_OFF: "1" };
    const expected = Object.fromEntries(Object.entries(told).map(([name, value]) => [name, { from: "plan", value }]));
    expect(chosen(goose, { session: true })).toMatchObject(expected);
    expect(chosen(goose, { session: true, image: { uid: 0, home: "/root" } })).toMatchObject(expected);
    for (const name of Object.keys(told)) expect(chosen(goose)).not.toHaveProperty(name);
    const custom: PartialConfig = { agent: { kind: "custom", command: "goose" } };
    for (const name of Object.keys(told)) expect(chosen(custom, { session: true })).not.toHaveProperty(name);
  });

  test.each<[string, PartialConfig]>([
    ["the owner wants its questions", { agent: { kind: "goose", permissive: false } }],
    ["somebody speaks a protocol with it", { agent: { kind: "goose", mode: "acp" } }],
  ])("leave an agent its questions where %s", (_, config) => {
    const variables = chosen(config, { session: true });
    expect(variables).not.toHaveProperty("GOOSE_MODE");
    expect(variables).toHaveProperty("GOOSE_TELEMETRY_OFF");
  });

  test("of an agent are the owner's where he passes or sets them, and where he has none they are its own", () => {
    const env = { GOOSE_MODE: "approve", GOOSE_TELEMETRY_OFF: "0" };
    const context = { env, session: true };
    const allowed = chosen({ agent: { kind: "goose", env_allowlist: ["GOOSE_MODE"] } }, context);
    expect(allowed).toMatchObject({
      GOOSE_MODE: { from: "caller" },
      GOOSE_TELEMETRY_OFF: { from: "plan", value: "1" },
    });
    const passed = chosen({ agent: { kind: "goose" }, environment: { pass: ["GOOSE_*"] } }, context);
    expect(passed).toMatchObject({ GOOSE_MODE: { from: "caller" }, GOOSE_TELEMETRY_OFF: { from: "caller" } });
    const set = chosen({ agent: { kind: "goose" }, environment: { set: { GOOSE_MODE: "chat" } } }, context);
    expect(set["GOOSE_MODE"]).toEqual({ from: "owner", layer: "environment.set" });
    const absent = chosen({ agent: { kind: "goose", env_allowlist: ["GOOSE_MODE"] } }, { session: true });
    expect(absent["GOOSE_MODE"]).toEqual({ from: "plan", value: "auto" });
  });

  test("never hold an agent's keys unless the owner lists them", () => {
    for (const { name, keys } of agents) {
      const env = Object.fromEntries(keys.map((key) => [key, "secret"]));
      const kind = name as AgentKind;
      expect(Object.keys(chosen({ agent: { kind } }, { env, session: true }))).not.toEqual(
        expect.arrayContaining([keys[0]]),
      );
      const listed = chosen({ agent: { kind, env_allowlist: keys } }, { env, session: true });
      for (const key of keys) expect(listed[key]).toEqual({ from: "caller" });
    }
  });

  test("are, in an image, those that say nothing of the host's files, with the image's own home and user", () => {
    const env = { LANG: "C", HOME: "/home/u", PATH: "/usr/bin", SSL_CERT_FILE: "/etc/x", SHELL: "/bin/zsh", FOO: "1" };
    const image = { uid: 0, home: "/root" };
    expect(chosen({ environment: { pass: ["FOO"] } }, { env, image })).toEqual({
      FOO: { from: "caller" },
      HOME: { from: "plan", value: "/root" },
      IS_SANDBOX: { from: "plan", value: "1" },
      LANG: { from: "caller" },
      USER: { from: "plan", value: "root" },
    });
    expect(chosen({}, { env, uid: 0, image: { uid: 1000, home: "/home/podbot" } })).toEqual({
      HOME: { from: "plan", value: "/home/podbot" },
      LANG: { from: "caller" },
      USER: { from: "plan", value: "podbot" },
    });
  });

  test("name the engine only where its socket is handed in", () => {
    const env = { DOCKER_HOST: "unix:///run/x" };
    expect(chosen({}, { env, docker: true })["DOCKER_HOST"]).toEqual({ from: "caller" });
    expect(chosen({}, { env })["DOCKER_HOST"]).toBeUndefined();
  });

  test("are as the owner sets them, by reference", () => {
    const set = { LANG: "C", TOKEN: "!secret GH", MAYBE: "!secret? GH", TMPDIR: "/var/tmp" };
    expect(chosen({ environment: { set } }, { env: { LANG: "de" } })).toMatchObject({
      LANG: { from: "owner", layer: "environment.set" },
      TMPDIR: { from: "owner", layer: "environment.set" },
      TOKEN: { from: "secret", secret: "GH", optional: false },
      MAYBE: { from: "secret", secret: "GH", optional: true },
    });
  });

  test("stand in the same order, however the caller's environment is ordered", () => {
    const names = ["TERM", "LANG", "USER", "HOME"];
    const order = (some: readonly string[]) =>
      Object.keys(chosen({}, { env: Object.fromEntries(some.map((name) => [name, "x"])) }));
    expect(order(names)).toEqual(order(names.toReversed()));
  });
});

describe("the values of variables", () => {
  test("are the caller's, the plan's and the owner's", () => {
    const value: PartialConfig = { environment: { set: { SET: "set", LANG: "C" } } };
    expect(resolved(value, { HOME: "/home/u", LANG: "de", GH_TOKEN: "x" })).toEqual({
      HOME: "/home/u",
      LANG: "C",
      PATH: "/run/podbot/bin:/usr/local/bin:/usr/bin:/bin",
      TMPDIR: "/tmp",
      SET: "set",
    });
  });

  test("are left out where the caller or the owner no longer has them", () => {
    const variables = [
      { name: "GONE", from: "caller" },
      { name: "UNSET", from: "owner", layer: "environment.set" },
    ] as const;
    expect(resolveVariables(planFor([], {}, { request: { variables } }), configOf({}), {})).toEqual({});
  });

  test("come from the places of secrets, without the newline that ends a file", () => {
    const file = (name: string, content: string) => {
      writeFileSync(join(directory, name), content);
      return join(directory, name);
    };
    const value: PartialConfig = {
      environment: { set: { A: "!secret a", B: "!secret b", C: "!secret c", D: "!secret d" } },
      secrets: {
        a: { env: "SOURCE" },
        b: { file: file("b", "from file\n") },
        c: { file: file("c", "two\nlines\r\n") },
        d: { file: file("d", "none") },
      },
    };
    expect(resolved(value, { SOURCE: "from env" })).toMatchObject({
      A: "from env",
      B: "from file",
      C: "two\nlines",
      D: "none",
    });
  });

  test("come from files in the home, by ~ or a relative path", () => {
    writeFileSync(join(directory, "token"), "abc\n");
    const value: PartialConfig = {
      environment: { set: { A: "!secret a", B: "!secret b" } },
      secrets: { a: { file: "~/token" }, b: { file: "token" } },
    };
    expect(resolved(value, { HOME: directory })).toMatchObject({ A: "abc", B: "abc" });
    expect(failure(ConfigError, () => resolved(value, {})).code).toBe("SECRET_MISSING");
  });

  test.each<[string, PartialConfig["secrets"], string]>([
    ["its variable is not set", { x: { env: "SOURCE" } }, "the variable SOURCE"],
    ["its variable is empty", { x: { env: "EMPTY" } }, "the variable EMPTY"],
    ["its file does not exist", { x: { file: "/no/such/file" } }, "the file /no/such/file"],
    ["its file is empty", { x: { file: "/dev/null" } }, "the file /dev/null"],
  ])("are missing where a secret has none: %s", (_, secrets = {}, place) => {
    const env = { EMPTY: "" };
    const error = failure(ConfigError, () => resolved({ environment: { set: { X: "!secret x" } }, secrets }, env));
    expect(error).toMatchObject({ code: "SECRET_MISSING", details: { secret: "x" } });
    expect(error.message).toContain(`${place} is empty or missing`);
    expect(error.hint).toContain('"!secret? x"');
    expect(resolved({ environment: { set: { X: "!secret? x" } }, secrets }, env)).not.toHaveProperty("X");
  });
});
