import { describe, expect, test } from "vitest";
import { readEnvironment, variableFor } from "../../src/config/environment.ts";
import { keys } from "../../src/config/keys.ts";
import { configError } from "../../src/config/problem.ts";

describe("a PODBOT_* variable", () => {
  test.each<[string, string, unknown]>([
    ["PODBOT_ENGINE_SOCKET", "unix:///run/podman.sock", { engine_socket: "unix:///run/podman.sock" }],
    ["PODBOT_GITHUB_APP_ID", "12345", { github: { app_id: 12345 } }],
    ["PODBOT_SANDBOX_GRACE_SECONDS", "0.5", { sandbox: { grace_seconds: 0.5 } }],
    ["PODBOT_SANDBOX_NESTING", "true", { sandbox: { nesting: true } }],
    ["PODBOT_CREDS_COPY_CLAUDE", "false", { creds: { copy_claude: false } }],
    ["PODBOT_AGENT_MODE", "acp", { agent: { mode: "acp" } }],
    ["PODBOT_AGENT_ENV_ALLOWLIST", " A, B ,,C,", { agent: { env_allowlist: ["A", "B", "C"] } }],
    ["PODBOT_FILESYSTEM_RO", ",", { filesystem: { ro: [] } }],
    ["PODBOT_NETWORK_MODE", "open", { network: { mode: "open" } }],
    ["PODBOT_NETWORK_MODE", "allowlist", { network: { mode: "allowlist" } }],
    ["PODBOT_NETWORK_PRESETS", "@npm,@github", { network: { presets: ["@npm", "@github"] } }],
    ["PODBOT_NETWORK_DOMAINS", "x.org, *.y.org", { network: { domains: ["x.org", "*.y.org"] } }],
    ["PODBOT_CREDS_MODE", "masked", { creds: { mode: "masked" } }],
    ["PODBOT_NETWORK", "true", { network: { mode: "open" } }],
    ["PODBOT_NETWORK", "false", { network: { mode: "none" } }],
  ])("%s=%j is read", (name, value, expected) => {
    expect(readEnvironment({ [name]: value })).toEqual({ value: expected, problems: [], warnings: [] });
  });

  test.each([
    {},
    { PODBOT_IMAGE: "" },
    { PODBOT_IMAGE: undefined },
    { PODBOT_CONFIG_PATH: "/x", PODBOT_CMD: "git", PODBOT_REAL: "/usr/bin/git" },
    { HOME: "/home/me", XPODBOT_IMAGE: "x" },
  ])("is not among %j", (env) => {
    expect(readEnvironment(env)).toEqual({ value: {}, problems: [], warnings: [] });
  });

  test.each<[Record<string, string>, string]>([
    [{ PODBOT_SANDBOX_NESTING: "yes" }, 'PODBOT_SANDBOX_NESTING = "yes": is not true or false'],
    [{ PODBOT_SANDBOX_NESTING: "True" }, 'PODBOT_SANDBOX_NESTING = "True": is not true or false'],
    [{ PODBOT_GITHUB_APP_ID: "1e3" }, 'PODBOT_GITHUB_APP_ID = "1e3": is not a whole number from 1 up'],
    [{ PODBOT_GITHUB_APP_ID: "-1" }, "PODBOT_GITHUB_APP_ID = -1: is not a whole number from 1 up"],
    [{ PODBOT_AGENT_KIND: "claud" }, 'PODBOT_AGENT_KIND = "claud": is not one of'],
    [{ PODBOT_AGENT_ENV_ALLOWLIST: "A,B=1" }, 'PODBOT_AGENT_ENV_ALLOWLIST = "B=1": is not the name of a variable'],
    [{ PODBOT_IMAGE: "!secret X" }, 'PODBOT_IMAGE = "!secret X": is a reference to a secret'],
    [
      { PODBOT_NETWORK: "open" },
      'PODBOT_NETWORK = "open": is not true or false; for other modes set PODBOT_NETWORK_MODE',
    ],
    [
      { PODBOT_NETWORK: "true", PODBOT_NETWORK_MODE: "none" },
      'PODBOT_NETWORK = "true": is set beside PODBOT_NETWORK_MODE; unset one of the two',
    ],
  ])("with a wrong value is named: %j", (env, expected) => {
    const problems = readEnvironment(env).problems;
    expect(problems).toHaveLength(1);
    expect(configError(problems).message).toContain(`PODBOT_* environment: ${expected}`);
  });

  test.each([
    ["PODBOT_NETWROK", "PODBOT_NETWROK is ignored: there is no such setting; did you mean PODBOT_NETWORK?"],
    ["PODBOT_AGENT_KINDS", "PODBOT_AGENT_KINDS is ignored: there is no such setting; did you mean PODBOT_AGENT_KIND?"],
    ["PODBOT_WHATEVER_ELSE", "PODBOT_WHATEVER_ELSE is ignored: there is no such setting"],
    ["PODBOT_COMMANDS", "PODBOT_COMMANDS is ignored: commands can only be set in a file"],
    ["PODBOT_SECRETS_TOKEN", "PODBOT_SECRETS_TOKEN is ignored: secrets can only be set in a file"],
    ["PODBOT_ENVIRONMENT_SET_X", "PODBOT_ENVIRONMENT_SET_X is ignored: environment.set can only be set in a file"],
  ])("that is no setting gives a warning: %s", (name, warning) => {
    expect(readEnvironment({ [name]: "x" })).toEqual({ value: {}, problems: [], warnings: [warning] });
  });

  test("in short is no obstacle to the others of the network", () => {
    const { value, problems } = readEnvironment({ PODBOT_NETWORK: "false", PODBOT_NETWORK_DOMAINS: "x.org" });
    expect(problems).toEqual([]);
    expect(value).toEqual({ network: { mode: "none", domains: ["x.org"] } });
  });

  test("exists for every key but tables, and no two keys share one", () => {
    const names = keys.map(variableFor).filter((name) => name !== undefined);
    expect(new Set(names).size).toBe(names.length);
    expect(keys.filter((key) => variableFor(key) === undefined).map(({ name }) => name)).toEqual([
      "github.permissions",
      "network.rules",
      "network.reach",
      "commands",
      "environment.set",
      "secrets",
    ]);
  });
});
