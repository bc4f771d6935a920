import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configError } from "../../src/config/problem.ts";
import { validateLayer } from "../../src/config/validate.ts";

function problemsOf(input: Record<string, unknown>): readonly string[] {
  const { problems } = validateLayer(input, { source: "f" });
  return problems.map((problem) => configError([problem]).message);
}

describe("a value of the right type", () => {
  test.each<[string, Record<string, unknown>]>([
    ["text", { image: "ghcr.io/example/box:latest" }],
    ["a positive integer", { github: { app_id: 12345 } }],
    ["a number", { sandbox: { grace_seconds: 0.5 } }],
    ["a flag", { creds: { copy_claude: false } }],
    ["a choice", { agent: { kind: "qwen" } }],
    ["a list of paths", { filesystem: { ro: ["~/.ssh", "**/.env"] } }],
    ["a list of arguments, even blank ones", { agent: { args: ["", " "] } }],
    ["a list of variables and patterns", { environment: { pass: ["TERM", "LC_*", "*"] } }],
    ["rules for commands", { commands: { git: "@git", npm: true, rm: false, "g++": "./wrap.sh", constructor: false } }],
    ["rules of the network", { network: { rules: [{ host: "x.org", deny: true, local: false }] } }],
    ["sources of secrets", { secrets: { "a.b": { env: "TOKEN" }, c: { file: "~/token" } } }],
    ["permissions", { github: { permissions: { contents: "read", pull_requests: "none" } } }],
    ["an editor's schema", { $schema: "./config.schema.json" }],
    ["nothing said", { image: undefined, agent: undefined, sandbox: { wall: undefined } }],
  ])("passes: %s", (_, input) => {
    expect(problemsOf(input)).toEqual([]);
  });

  test("is kept as it is", () => {
    const input = { image: "x", agent: { args: ["a"] }, commands: { npm: false }, secrets: { T: { env: "T" } } };
    expect(validateLayer(input, { source: "f" }).value).toEqual(input);
  });

  test.each([
    [true, "open"],
    [false, "none"],
  ])("network = %s is mode %s", (network, mode) => {
    expect(validateLayer({ network }, { source: "f" }).value).toEqual({ network: { mode } });
  });

  test("of environment.set becomes a literal or a reference", () => {
    const set = { A: "plain", B: "!secret X", C: "!secret? X", D: "" };
    expect(validateLayer({ environment: { set } }, { source: "f" }).value).toEqual({
      environment: {
        set: {
          A: { kind: "literal", value: "plain" },
          B: { kind: "secret", name: "X", optional: false },
          C: { kind: "secret", name: "X", optional: true },
          D: { kind: "literal", value: "" },
        },
      },
    });
  });
});

describe("a wrong value is named with its key, its value, what is wrong and the way out", () => {
  test.each<[Record<string, unknown>, string]>([
    [
      { github: { permissions: { contents: "admin" } } },
      'f: github.permissions.contents = "admin": is not one of none, read, write; choose one of these',
    ],
    [
      { github: { permissions: { "Pull Requests": "read" } } },
      `f: github.permissions."Pull Requests" = "read": is not a name that github.permissions can hold; use GitHub's own name, such as pull_requests`,
    ],
    [{ image: 3 }, "f: image = 3: is not text; put it in quotes"],
    [{ image: " " }, 'f: image = " ": is blank; give it a value or remove it'],
    [
      { image: "a\0b" },
      'f: image = "a\\u0000b": holds a character that no path, argument or variable can hold; remove it',
    ],
    [
      { image: "a\ud800" },
      'f: image = "a\\ud800": holds a character that no path, argument or variable can hold; remove it',
    ],
    [
      { github: { app_id: 0 } },
      "f: github.app_id = 0: is not a whole number from 1 up; write the digits, without quotes",
    ],
    [
      { github: { app_id: 1.5 } },
      "f: github.app_id = 1.5: is not a whole number from 1 up; write the digits, without quotes",
    ],
    [
      { github: { app_id: 2n ** 63n } },
      "f: github.app_id = 9223372036854775808: is not a whole number from 1 up; write the digits, without quotes",
    ],
    [
      { sandbox: { grace_seconds: -1 } },
      "f: sandbox.grace_seconds = -1: is not a number from 0 to 3600; write the digits, without quotes",
    ],
    [
      { sandbox: { grace_seconds: 3601 } },
      "f: sandbox.grace_seconds = 3601: is not a number from 0 to 3600; write the digits, without quotes",
    ],
    [
      { sandbox: { grace_seconds: Number.NaN } },
      "f: sandbox.grace_seconds = NaN: is not a number from 0 to 3600; write the digits, without quotes",
    ],
    [
      { sandbox: { grace_seconds: "10" } },
      'f: sandbox.grace_seconds = "10": is not a number from 0 to 3600; write the digits, without quotes',
    ],
    [
      { sandbox: { nesting: "yes" } },
      'f: sandbox.nesting = "yes": is not true or false; write one of the two, without quotes',
    ],
    [
      { sandbox: { nesting: new Date(0) } },
      "f: sandbox.nesting = a date: is not true or false; write one of the two, without quotes",
    ],
    [
      { sandbox: { wall: "bubblewarp" } },
      'f: sandbox.wall = "bubblewarp": is not one of auto, bubblewrap, engine; did you mean "bubblewrap"?',
    ],
    [{ sandbox: { wall: 1 } }, "f: sandbox.wall = 1: is not one of auto, bubblewrap, engine; choose one of these"],
    [
      { network: { mode: "on" } },
      'f: network.mode = "on": is not one of none, allowlist, learn, open; choose one of these',
    ],
    [
      { network: { mode: "allowlst" } },
      'f: network.mode = "allowlst": is not one of none, allowlist, learn, open; did you mean "allowlist"?',
    ],
    [{ network: { rules: "x.org" } }, 'f: network.rules = "x.org": is not a list; write it as [{ … }]'],
    [{ network: { rules: ["x.org"] } }, 'f: network.rules[0] = "x.org": is not a table; write { host = "…" }'],
    [
      { network: { rules: [{ path: "/x" }] } },
      'f: network.rules[0] = {…}: has no host; say which one is meant: host = "…"',
    ],
    [
      { network: { rules: [{ host: "x.org", method: ["GET"] }] } },
      "f: network.rules[0].method = […]: is not a known key; did you mean methods?",
    ],
    [
      { network: { rules: [{ host: "x.org", constructor: 1 }] } },
      "f: network.rules[0].constructor = 1: is not a known key; the keys here are host, port, ports, path, paths, methods, deny, local",
    ],
    [
      { network: { rules: [{ host: "x.org", port: 1, ports: [2] }] } },
      "f: network.rules[0] = {…}: has both port and ports; keep one of the two",
    ],
    [
      { network: { rules: [{ host: "x.org", path: "/", paths: ["/"] }] } },
      "f: network.rules[0] = {…}: has both path and paths; keep one of the two",
    ],
    [
      { network: { rules: [{ host: "x.org", port: 65_536 }] } },
      "f: network.rules[0].port = 65536: is not a port; write a whole number from 1 to 65535, without quotes",
    ],
    [
      { network: { rules: [{ host: "x.org", ports: [0] }] } },
      "f: network.rules[0].ports[0] = 0: is not a port; write a whole number from 1 to 65535, without quotes",
    ],
    [
      { network: { rules: [{ host: "x.org", methods: [] }] } },
      "f: network.rules[0].methods = []: is not a list with something in it; write it as […], or leave it out",
    ],
    [
      { network: { rules: [{ host: "x.org", deny: "yes" }] } },
      'f: network.rules[0].deny = "yes": is not true or false; write one of the two, without quotes',
    ],
    [
      { network: { reach: { "a:1": "127.0.0.1" } } },
      'f: network.reach."a:1" = "127.0.0.1": is not a name that network.reach can hold; use the name of one host',
    ],
    [{ network: { reach: { db: 5432 } } }, "f: network.reach.db = 5432: is not text; put it in quotes"],
    [{ network: "open" }, "f: network: is not a table; write true, false, or network.mode"],
    [{ agent: null }, "f: agent: is not a table; give it keys, such as agent.kind"],
    [{ filesystem: { ro: "~/.ssh" } }, 'f: filesystem.ro = "~/.ssh": is not a list; write it as ["…"]'],
    [{ filesystem: { ro: ["a", 2] } }, "f: filesystem.ro[1] = 2: is not text; put it in quotes"],
    [{ filesystem: { ro: [""] } }, 'f: filesystem.ro[0] = "": is blank; give it a value or remove it'],
    [{ agent: { args: [["nested"]] } }, "f: agent.args[0] = […]: is not text; put it in quotes"],
    [
      { environment: { pass: ["A=1"] } },
      'f: environment.pass[0] = "A=1": is not the name of a variable; write one name, without = and blanks; * may end it',
    ],
    [
      { environment: { pass: ["*_TOKEN"] } },
      'f: environment.pass[0] = "*_TOKEN": is not the name of a variable; write one name, without = and blanks; * may end it',
    ],
    [{ commands: ["git"] }, "f: commands = […]: is not a table; give it names and values of its own"],
    [
      { commands: { npm: null } },
      'f: commands.npm = null: is not a rule for a command; write true, false, "@git" or the path of a script',
    ],
    [
      { commands: { npm: 1 } },
      'f: commands.npm = 1: is not a rule for a command; write true, false, "@git" or the path of a script',
    ],
    [
      { commands: { npm: [] } },
      'f: commands.npm = []: is not a rule for a command; write true, false, "@git" or the path of a script',
    ],
    [
      { commands: { npm: {} } },
      'f: commands.npm = {}: is not a rule for a command; write true, false, "@git" or the path of a script',
    ],
    [{ commands: { npm: "" } }, 'f: commands.npm = "": is blank; give it a value or remove it'],
    [
      { commands: { npm: "@git" } },
      'f: commands.npm = "@git": is a preset for the command git only; write a script for this command',
    ],
    [
      { commands: { npm: "@npm" } },
      'f: commands.npm = "@npm": is not a preset for commands; the only one is @git; the path of a script may begin with ./',
    ],
    [
      { commands: { git: "@strict" } },
      'f: commands.git = "@strict": is not a preset for commands; the only one is @git; the path of a script may begin with ./',
    ],
    [
      { commands: { "": true } },
      'f: commands."" = true: is not a name that commands can hold; use the bare name of a command, without /',
    ],
    [
      { commands: { "/bin/ls": true } },
      'f: commands."/bin/ls" = true: is not a name that commands can hold; use the bare name of a command, without /',
    ],
    [
      { commands: { "..": true } },
      'f: commands.".." = true: is not a name that commands can hold; use the bare name of a command, without /',
    ],
    [
      { commands: { "a\0": true } },
      'f: commands."a\\u0000" = true: is not a name that commands can hold; use the bare name of a command, without /',
    ],
  ])("%$: $1", (input, message) => {
    expect(problemsOf(input)).toEqual([message]);
  });

  test("and the rest of its list or record is kept", () => {
    const input = { filesystem: { ro: ["a", 2, "b"] }, commands: { npm: 1, rm: false } };
    expect(validateLayer(input, { source: "f" }).value).toEqual({
      filesystem: { ro: ["a", "b"] },
      commands: { rm: false },
    });
  });
});

describe("values of secrets and variables", () => {
  test.each<[Record<string, unknown>, string]>([
    [{ environment: { set: { TOKEN: 12345 } } }, "f: environment.set.TOKEN: is not text; put it in quotes"],
    [
      { environment: { set: { TOKEN: "hunter\0" } } },
      "f: environment.set.TOKEN: holds a character that no path, argument or variable can hold; remove it",
    ],
    [
      { environment: { set: { TOKEN: "!secret" } } },
      "f: environment.set.TOKEN: is not a well-formed reference; write !secret NAME or !secret? NAME",
    ],
    [
      { environment: { set: { TOKEN: { kind: "literal", value: "hunter2" } } } },
      "f: environment.set.TOKEN: is not text; put it in quotes",
    ],
    [
      { environment: { set: { "LC_*": "C" } } },
      'f: environment.set."LC_*": is not a name that environment.set can hold; use the name of one variable, without = and blanks and *',
    ],
    [{ environment: { set: "hunter2" } }, "f: environment.set: is not a table; give it names and values of its own"],
    [
      { secrets: { T: "hunter2" } },
      'f: secrets.T: does not say where the secret comes from; write a table with env = "NAME" or file = "PATH"',
    ],
    [
      { secrets: { T: {} } },
      "f: secrets.T: must have exactly one of env, file, command and keyring; keep the one that it comes from",
    ],
    [
      { secrets: { T: { env: "A", file: "b" } } },
      "f: secrets.T: must have exactly one of env, file, command and keyring; keep the one that it comes from",
    ],
    [
      { secrets: { T: { env: "hunter 2" } } },
      "f: secrets.T.env: is not the name of a variable; write one name, without = and blanks and *",
    ],
    [{ secrets: { T: { file: "" } } }, "f: secrets.T.file: is blank; give it a value or remove it"],
    [
      { secrets: { T: { env: "A", value: "hunter2" } } },
      "f: secrets.T.value: is not a known key; the keys here are env, file, command, keyring, hosts, headers, paths",
    ],
    [{ secrets: { T: { env: "A", host: ["hunter2"] } } }, "f: secrets.T.host: is not a known key; did you mean hosts?"],
    [
      { secrets: { T: { command: "hunter2" } } },
      'f: secrets.T.command: is not a list of words; write the program and its arguments: ["pass", "show", "x"]',
    ],
    [
      { secrets: { T: { command: ["", "hunter2"] } } },
      "f: secrets.T.command[0]: is blank; give it a value or remove it",
    ],
    [{ secrets: { T: { command: ["pass", 2] } } }, "f: secrets.T.command[1]: is not text; put it in quotes"],
    [
      { secrets: { T: { keyring: "hunter2" } } },
      'f: secrets.T.keyring: is not an entry of a keyring; write "service/account"',
    ],
    [{ secrets: { T: { keyring: 2 } } }, "f: secrets.T.keyring: is not text; put it in quotes"],
    [
      { secrets: { T: { env: "A", headers: ["x-hunter2"] } } },
      "f: secrets.T: has headers but no hosts; say to which hosts it may be sent, or remove it",
    ],
    [
      { secrets: { T: { env: "A", headers: ["x"], paths: ["/"] } } },
      "f: secrets.T: has headers and paths but no hosts; say to which hosts it may be sent, or remove it",
    ],
    [
      { secrets: { T: { env: "A", hosts: [] } } },
      "f: secrets.T.hosts: is not a list with something in it; write it as […], or leave it out",
    ],
    [
      { secrets: { "a b": { env: "A" } } },
      'f: secrets."a b": is not a name that secrets can hold; use letters, digits, and _ . -',
    ],
  ])("are never shown: %j", (input, message) => {
    expect(problemsOf(input)).toEqual([message]);
  });

  test.each<[string, Record<string, unknown>]>([
    ["image", { image: "!secret X" }],
    ["agent.args[0]", { agent: { args: ["!secret X"] } }],
    ["filesystem.ro[0]", { filesystem: { ro: ["!secret? X"] } }],
    ["environment.pass[0]", { environment: { pass: ["!secret X"] } }],
    ["commands.npm", { commands: { npm: "!secret X" } }],
    ["secrets.T.env", { secrets: { T: { env: "!secret X" } } }],
  ])("are nowhere else: a reference in %s is refused", (key, input) => {
    const [message] = problemsOf(input);
    expect(message).toContain(`${key}`);
    expect(message).toContain("is a reference to a secret, which only a value of environment.set can be");
  });

  test.each<[Record<string, unknown>]>([
    [{ commands: { "!secret X": false } }],
    [{ environment: { set: { "!secretX": "v" } } }],
  ])("are no names: %j", (input) => {
    expect(problemsOf(input)).toHaveLength(1);
  });
});

describe("an unknown key", () => {
  test.each<[Record<string, unknown>, string]>([
    [{ sandbx: {} }, "f: sandbx: is not a known key; did you mean sandbox?"],
    [{ agent: { comand: "x" } }, "f: agent.comand: is not a known key; did you mean agent.command?"],
    [{ grace_seconds: 3 }, "f: grace_seconds: is not a known key; did you mean sandbox.grace_seconds?"],
    [{ "sandbox.wall": "auto" }, 'f: "sandbox.wall": is not a known key; did you mean sandbox.wall?'],
    [{ network: { privileged: true } }, "f: network.privileged: is not a known key; did you mean sandbox.privileged?"],
    [
      { network: { allow: [] } },
      "f: network.allow: is not a known key; the keys here are mode, presets, domains, rules, reach, upstream_proxy",
    ],
    [
      { zzz: { TOKEN: "hunter2" } },
      "f: zzz: is not a known key; the keys here are engine_socket, image, github, workspace, mounts, creds, agent, acp, sandbox, network, filesystem, commands, environment, secrets",
    ],
    [
      { constructor: {} },
      "f: constructor: is not a known key; the keys here are engine_socket, image, github, workspace, mounts, creds, agent, acp, sandbox, network, filesystem, commands, environment, secrets",
    ],
  ])("is named with the nearest known one, never with its value: %j", (input, message) => {
    expect(problemsOf(input)).toEqual([message]);
  });
});

describe("a layer made by a program", () => {
  const typed = (set: Record<string, unknown>) => validateLayer({ environment: { set } }, { source: "f", typed: true });

  test("may give a literal that looks like a reference", () => {
    const set = {
      TITLE: { kind: "literal", value: "!secret GH_TOKEN" },
      A: { kind: "secret", name: "X", optional: true },
      B: { kind: "secret", name: "X" },
    };
    const { value, problems } = typed(set);
    expect(problems).toEqual([]);
    expect(value.environment?.set).toEqual({ ...set, B: { kind: "secret", name: "X", optional: false } });
  });

  test.each<[unknown]>([[{ kind: "literal", value: 3 }], [{ kind: "other" }], [{ kind: "secret", name: "a b" }], [{}]])(
    "may not give %j",
    (variable) => {
      expect(typed({ A: variable }).problems).toHaveLength(1);
    },
  );
});

describe("any input at all", () => {
  test("gives a value or problems, never an exception", () => {
    const table = fc.dictionary(
      fc.constantFrom("agent", "sandbox", "network", "commands", "secrets", "environment", "image", "__proto__", "x"),
      fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, maxDepth: 4 }),
    );
    fc.assert(
      fc.property(table, fc.boolean(), (input, typed) => {
        const { value, problems } = validateLayer(input, { source: "f", typed });
        expect(validateLayer({ ...value }, { source: "f", typed: true }).problems).toEqual([]);
        if (problems.length > 0) expect(configError(problems).message.length).toBeLessThan(100_000);
      }),
    );
  });
});

describe("the error", () => {
  test("lists every problem on a line of its own", () => {
    const { problems } = validateLayer({ image: 1, agent: { kind: "x" } }, { source: "/home/me/config.toml" });
    const error = configError(problems);
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message.split("\n")).toEqual([
      "2 problems in the configuration:",
      "  /home/me/config.toml: image = 1: is not text; put it in quotes",
      '  /home/me/config.toml: agent.kind = "x": is not one of claude, codex, opencode, gemini, goose, qwen, custom; choose one of these',
    ]);
    expect(error.details["problems"]).toEqual(problems);
  });

  test.each([
    ["at the top", (keys: object) => keys],
    ["in a section", (agent: object) => ({ agent })],
  ])("stays short, and is quick to come, when everything %s is wrong", (_, place) => {
    const wrong = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`key${index}`, "x"]));
    const { message } = configError(validateLayer({ ...place(wrong) }, { source: "f" }).problems);
    expect(message.split("\n")).toHaveLength(52);
    expect(message).toMatch(/and 99950 more$/);
  });
});
