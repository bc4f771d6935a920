// @module-tag security
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { Config, Layer, PartialConfig } from "../../src/config/types.ts";
import { type MaskedFile, maskedFiles, tokenHeaders } from "../../src/credentials/masked-files.ts";
import { ConfigError } from "../../src/errors.ts";
import { maskKey, maskTokens } from "../../src/keeper/masked-credentials.ts";
import type { Outside } from "../../src/keeper/secret-source.ts";
import { readSecret } from "../../src/keeper/secret-source.ts";
import { maskingWarnings, openSecrets, redact, unmaskedWarnings } from "../../src/keeper/secrets.ts";
import { chooseVariables, resolveVariables } from "../../src/keeper/variables.ts";
import { failure } from "../failure.ts";
import { planFor } from "../plan/ordinary.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-secrets-"));
afterAll(() => rmSync(directory, { recursive: true }));

const real = "ghp_RealRealRealReal0123";
const shape = /^ghp_(?:[A-Z][a-z]{3}){4}[0-9]{4}$/;

function configOf(value: PartialConfig): Config {
  return mergeLayers([defaultLayer(), { name: "global", source: "test", trusted: true, value }]).config;
}

/** A program in a directory that may be given as PATH. */
function program(name: string, script: string): string {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** A home with these files, of which programs can be executed. */
function homeOf(files: Readonly<Record<string, string>>): string {
  const home = realpathSync(mkdtempSync(join(directory, "home-")));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), content, { mode: 0o755 });
  }
  return home;
}

describe("the value of a secret", () => {
  const outside: Outside = { env: { HOME: directory, PATH: "/usr/bin:/bin", TOKEN: "from env" } };

  test("comes from a variable, a file or a command, without the newline at its end", () => {
    writeFileSync(join(directory, "token"), "from file\r\n");
    const command = program("print", 'printf "from command %s in %s\\n" "$1" "$(pwd)"');
    expect(readSecret({ env: "TOKEN" }, outside)).toEqual({ value: "from env" });
    expect(readSecret({ file: "~/token" }, outside)).toEqual({ value: "from file" });
    expect(readSecret({ command: [command, "a b"] }, outside)).toEqual({ value: "from command a b in /" });
    expect(readSecret({ command: ["~/print", "x"] }, outside)).toEqual({ value: "from command x in /" });
    expect(readSecret({ command: ["printf", "%s", "from printf"] }, outside)).toEqual({ value: "from printf" });
  });

  test("has a command see the caller's environment, and look for programs among the system's", () => {
    const command = program("environment", 'echo "$TOKEN $PATH"');
    const reading = readSecret({ command: [command] }, { env: { ...outside.env, PATH: `${directory}:relative` } });
    expect(reading).toMatchObject({ value: expect.stringContaining("from env /usr/local/sbin:") });
    expect((reading as { value: string }).value).not.toContain("relative");
  });

  test.each<[string, readonly string[], string]>([
    ["prints nothing", ["true"], "true has printed nothing"],
    ["fails", ["sh", "-c", "echo hush; echo 'no  such\nentry' >&2; exit 3"], "sh ended with status 3: no  such entry"],
    ["fails without a word", ["false"], "false ended with status 1"],
    ["is killed", ["sh", "-c", "echo hush; kill -9 $$"], "sh ended with signal SIGKILL"],
    ["is nowhere", ["no-such-program-here"], "there is no no-such-program-here among the system's programs"],
    ["is named by a relative path", ["./print"], "there is no ./print among the system's programs"],
    ["is not there", ["/no/such/program"], "there is no /no/such/program"],
    ["cannot be executed", ["/dev/null"], "/dev/null ended with EACCES"],
    ["prints without end", ["sh", "-c", "while :; do echo hushhushhush; done"], "sh ended with ENOBUFS"],
  ])("is missing where the command %s, and what it printed is in no message", (_, command, why) => {
    const reading = readSecret({ command }, outside);
    expect(reading).toEqual({ missing: why });
    expect(JSON.stringify(reading)).not.toContain("hush");
  });

  test("is not waited for longer than a while", () => {
    const reading = readSecret({ command: ["sleep", "600"] }, { ...outside, commandMs: 50 });
    expect(reading).toEqual({ missing: "sleep did not answer within 0.05 seconds" });
  });

  test("is not asked of a program that the agent may write", () => {
    const ran = join(directory, "ran");
    const command = program("planted", `touch ${ran}; echo x`);
    const isWritableInside = (path: string) => path.startsWith(`${directory}/`);
    expect(readSecret({ command: [command] }, { ...outside, isWritableInside })).toEqual({
      missing: `${command} lies where the agent may write (${command}) and may be the agent's, so it is not executed`,
    });
    expect(() => rmSync(ran)).toThrow();
    expect(readSecret({ command: [command] }, outside)).toEqual({ value: "x" });
    rmSync(ran);
  });

  test.each([
    ["a link of the owner's to it", "../project/tool", "own/tool", "~/own/tool"],
    ["a link to a directory of the agent's", "project", "tools", "~/tools/tool"],
    [
      "a link to a link of the agent's, which leads to a program of the owner's",
      "../project/link",
      "own/two",
      "~/own/two",
    ],
  ])("is not asked of a program that is reached by %s", (_, to, link, command) => {
    const home = homeOf({ "project/tool": "#!/bin/sh\ntouch $HOME/ran; echo x\n", "own/real": "#!/bin/sh\necho y\n" });
    symlinkSync("../own/real", join(home, "project/link"));
    symlinkSync(to, join(home, link));
    const env = { ...outside.env, HOME: home };
    const isWritableInside = (path: string) => `${path}/`.startsWith(`${home}/project/`);
    expect(readSecret({ command: [command] }, { env, isWritableInside })).toEqual({
      missing: expect.stringContaining("may be the agent's, so it is not executed"),
    });
    expect(existsSync(join(home, "ran"))).toBe(false);
    // Without an agent that may write there, it is asked; and so is the owner's own with one.
    expect(readSecret({ command: [command] }, { env })).toHaveProperty("value");
    expect(readSecret({ command: ["~/own/real"] }, { env, isWritableInside })).toEqual({ value: "y" });
  });

  test("is not read from a file that the agent may write, whatever that leads to", () => {
    const home = homeOf({ "project/x": "", "keys/id": "hidden\n", token: "mine\n" });
    symlinkSync("../keys/id", join(home, "project/.token"));
    symlinkSync("project", join(home, "work"));
    symlinkSync("token", join(home, "link"));
    const env = { HOME: home };
    const isWritableInside = (path: string) => `${path}/`.startsWith(`${home}/project/`);
    for (const file of ["project/.token", "work/.token", "project/x", "project/no-such"]) {
      expect(readSecret({ file }, { env, isWritableInside })).toEqual({
        missing: expect.stringMatching(/^the file \S+ lies where the agent may write \(.*\) and may be the agent's/),
      });
    }
    expect(readSecret({ file: "project/.token" }, { env })).toEqual({ value: "hidden" });
    for (const file of ["token", "link", "~/keys/../token"]) {
      expect(readSecret({ file }, { env, isWritableInside })).toEqual({ value: "mine" });
    }
  });

  test("is not waited for at a pipe, nor read from what is too large", () => {
    const home = homeOf({ large: "x".repeat(65 * 1024), fits: "x".repeat(64 * 1024) });
    execFileSync("mkfifo", [join(home, "pipe")]);
    for (const file of ["~/pipe", "~/large", "/dev/zero", "~/"]) {
      expect(readSecret({ file }, { env: { HOME: home } })).toEqual({
        missing: `the file ${file} is empty or missing`,
      });
    }
    expect(readSecret({ file: "fits" }, { env: { HOME: home } })).toEqual({ value: "x".repeat(64 * 1024) });
  });

  test("comes from the keyring, by its service and account", () => {
    const tool = program(
      "secret-tool",
      '[ "$5" = nobody ] && exit 1; [ "$5" = fail ] && { echo locked >&2; exit 2; }; echo "$*"',
    );
    const keyring = { ...outside, findProgram: (name: string) => (name === "secret-tool" ? tool : null) };
    expect(readSecret({ keyring: "gh:example/me/too" }, keyring)).toEqual({
      value: "lookup service gh:example username me/too",
    });
    expect(readSecret({ keyring: "gh/nobody" }, keyring)).toEqual({ missing: "the keyring has no entry gh/nobody" });
    expect(readSecret({ keyring: "gh/fail" }, keyring)).toEqual({
      missing: "secret-tool ended with status 2: locked",
    });
    expect(readSecret({ keyring: "gh/me" }, { ...outside, findProgram: () => null })).toEqual({
      missing: "the keyring is asked by secret-tool, which is not installed",
    });
  });

  test("is nowhere where nothing says where", () => {
    expect(readSecret(undefined, outside)).toEqual({ missing: "nothing says where it comes from" });
  });
});

/** A pool with one masked secret in the variable TOKEN. */
function pool(secrets: PartialConfig["secrets"], env: Readonly<Record<string, string>> = { TOKEN: real }) {
  return openSecrets(configOf(secrets === undefined ? {} : { secrets }), { env });
}

describe("a masked secret", () => {
  const masked = { env: "TOKEN", hosts: ["API.example.org"], headers: ["X-Token"], paths: ["/a"] } as const;

  test("is a surrogate to whoever asks, the same for the whole session and another in the next", () => {
    const secrets = pool({ GH: masked });
    const value = secrets.valueFor("GH", false);
    expect(value).toMatch(shape);
    expect(value).not.toBe(real);
    expect(secrets.valueFor("GH", true)).toBe(value);
    expect(pool({ GH: masked }).valueFor("GH", false)).not.toBe(value);
  });

  test("is told to the gateway with all that it is bound to", () => {
    const secrets = pool({ GH: masked, plain: { env: "TOKEN" } });
    expect(secrets.masked).toEqual([
      {
        ...{ name: "GH", real, surrogate: secrets.valueFor("GH", false) },
        ...{ hosts: ["api.example.org"], headers: ["x-token"], paths: ["/a"] },
      },
    ]);
  });

  test("has usual headers and any path where none are named", () => {
    expect(pool({ GH: { env: "TOKEN", hosts: ["a.example.org"] } }).masked).toMatchObject([
      { headers: ["authorization", "x-api-key"], paths: null },
    ]);
  });

  test("without a value keeps its binding, so that nobody else's goes there", () => {
    const secrets = pool({ GH: masked }, {});
    expect(secrets.masked).toMatchObject([{ name: "GH", real: "", surrogate: "", hosts: ["api.example.org"] }]);
    expect(secrets.valueFor("GH", true)).toBeUndefined();
    expect(failure(ConfigError, () => secrets.valueFor("GH", false)).code).toBe("SECRET_MISSING");
  });

  test("that has two names has one surrogate", () => {
    const secrets = pool({ a: masked, b: { ...masked, hosts: ["b.example.org"] } });
    expect(secrets.valueFor("a", false)).toBe(secrets.valueFor("b", false));
    expect(secrets.masked).toHaveLength(2);
  });

  test("that is replaced keeps its surrogate, as long as that can stand in for it", () => {
    const secrets = pool({});
    const binding = { name: "token", hosts: ["github.com"], headers: ["authorization"], paths: null };
    const [first, second, longer] = ["ghs_0123456789abcdefghij", "ghs_9876543210jihgfedcba", `ghs_${"a1".repeat(30)}`];
    const surrogate = secrets.renew(first, binding);
    expect(secrets.masked).toEqual([{ ...binding, real: first, surrogate }]);
    const before = secrets.masked;
    expect(secrets.masked).toBe(before);
    expect(secrets.renew(second, binding)).toBe(surrogate);
    expect(secrets.masked).toEqual([{ ...binding, real: second, surrogate }]);
    expect(secrets.masked).not.toBe(before);
    const another = secrets.renew(longer, binding);
    expect(another).toHaveLength(longer.length);
    // Who has read the one before still has it.
    expect(secrets.masked).toEqual([{ ...binding, real: longer, surrogate: another, earlier: [surrogate] }]);
    // Of each length there is one, however often it is replaced.
    expect(secrets.renew(first, binding)).toBe(surrogate);
    expect(secrets.masked).toEqual([{ ...binding, real: first, surrogate, earlier: [another] }]);
    for (const value of [first, second, longer]) expect(secrets.redact(value)).toBe("[REDACTED]");
  });

  test("is refused by name where nothing can stand in for it", () => {
    const error = failure(ConfigError, () => pool({ GH: masked }, { TOKEN: "short" }).masked);
    expect(error.code).toBe("SECRET_UNMASKABLE");
    expect(error.message).toContain('The secret "GH" cannot be masked');
    expect(error.message).not.toContain('short"');
  });

  test("is looked up once, and others only when they are asked for", () => {
    const count = join(directory, "count");
    const command = program("counted", `echo x >> ${count}; wc -l < ${count} | tr -d ' ' | sed 's/^/abcdefghijkl/'`);
    const secrets = pool({ a: { command: [command], hosts: ["a.example.org"] }, b: { command: [command] } });
    secrets.valueFor("a", false);
    expect(secrets.masked).toMatchObject([{ real: "abcdefghijkl1" }]);
    expect(secrets.valueFor("b", false)).toBe("abcdefghijkl2");
    expect(secrets.valueFor("b", false)).toBe("abcdefghijkl2");
  });
});

describe("variables inside", () => {
  const value: PartialConfig = {
    secrets: { GH: { env: "TOKEN", hosts: ["api.example.org"] }, PLAIN: { env: "PLAIN" } },
    environment: {
      pass: ["TOKEN", "URL", "OTHER_KEY"],
      set: { GH_TOKEN: "!secret GH", LITERAL: `x ${real} y`, SHOWN: "!secret PLAIN" },
    },
  };
  const env = { TOKEN: real, URL: `https://u:${real}@x/`, PLAIN: "plain-value-1", OTHER_KEY: "other-key-value" };
  const config = configOf(value);
  const context = { env, uid: 1000, nesting: false, docker: false, session: false, image: null };
  const plan = planFor([], {}, { request: { variables: chooseVariables(config, context) } });

  test("hold surrogates of what is masked, by whatever way it would come in", () => {
    const secrets = openSecrets(config, { env });
    const surrogate = secrets.valueFor("GH", false) as string;
    const inside = resolveVariables(plan, config, env, secrets);
    expect(inside).toMatchObject({
      ...{ GH_TOKEN: surrogate, TOKEN: surrogate, URL: `https://u:${surrogate}@x/`, LITERAL: `x ${surrogate} y` },
      SHOWN: "plain-value-1",
    });
    expect(JSON.stringify(inside)).not.toContain(real);
    expect(JSON.stringify(resolveVariables(plan, config, env))).not.toContain(real);
  });

  test("have all their secrets redacted, masked or not, and what a name tells to be one", () => {
    const secrets = openSecrets(config, { env });
    const inside = resolveVariables(plan, config, env, secrets);
    const text = `a ${real} b plain-value-1 c other-key-value d ${inside["GH_TOKEN"]} e`;
    const expected = `a [REDACTED] b [REDACTED] c [REDACTED] d ${inside["GH_TOKEN"]} e`;
    expect(secrets.redact(text)).toBe(expected);
    const redactor = secrets.redactor();
    const bytes = [...Buffer.from(text)].map((byte) => redactor.push(Buffer.of(byte)));
    expect(Buffer.concat([...bytes, redactor.flush()]).toString()).toBe(expected);
  });
});

describe("redaction", () => {
  test("takes the longest value first, and finds it in JSON and in addresses", () => {
    expect(redact("abcd abcdef", ["abcd", "abcdef"])).toBe("[REDACTED] [REDACTED]");
    const value = 'pass "word"/x';
    expect(redact(JSON.stringify({ value }), [value])).toBe('{"value":"[REDACTED]"}');
    expect(redact(`?p=${encodeURIComponent(value)}&q`, [value])).toBe("?p=[REDACTED]&q");
  });

  test("finds values in any case, as names of hosts have them, and those that are registered later", () => {
    const secrets = openSecrets({ secrets: {} }, { env: {} });
    expect(secrets.redact("Plain_Registered")).toBe("Plain_Registered");
    secrets.register("Plain_Registered");
    expect(secrets.redact("plain_registered.example.org")).toBe("[REDACTED].example.org");
  });

  test("of a stream finds what is registered while it goes on", () => {
    const secrets = pool({});
    secrets.register("first-secret");
    const redactor = secrets.redactor();
    const push = (text: string) => redactor.push(Buffer.from(text)).toString();
    expect(push("a first-secret, a later-secret, a fir")).toBe("a [REDACTED], a later-secret, a ");
    secrets.register("later-secret");
    expect(push("e, a later-sec")).toBe("fire, a ");
    expect(push("ret and first-secret")).toBe("[REDACTED] and [REDACTED]");
    expect(redactor.flush().toString()).toBe("");
  });

  test("of a stream finds what has come in part by the time that another is registered", () => {
    const secrets = pool({});
    secrets.register("first-secret");
    const redactor = secrets.redactor();
    const push = (text: string) => redactor.push(Buffer.from(text)).toString();
    expect(push("a first-se")).toBe("a ");
    secrets.register("later-secret");
    expect(push("cret.")).toBe("[REDACTED].");
    expect(push("first-se")).toBe("");
    expect(redactor.flush().toString()).toBe("first-se");
  });

  test("leaves text alone where there is nothing to hide, or what is to be hidden is a mere syllable", () => {
    expect(redact("all is well", [])).toBe("all is well");
    expect(redact("all is well", ["", "a", "is"])).toBe("all is well");
    const secrets = pool({});
    secrets.register("true");
    expect(secrets.redact("true")).toBe("true");
  });
});

describe("the owner is told that nobody puts a secret in", () => {
  const secrets = { GH: { env: "TOKEN", hosts: ["api.example.org"] }, plain: { env: "X" } };
  test.each(["none", "open"] as const)("with network.mode = %s", (mode) => {
    const texts = maskingWarnings(configOf({ secrets, creds: { mode: "masked" } }), mode);
    expect(texts).toHaveLength(2);
    expect(texts[0]).toContain("The secret GH is masked");
    expect(texts[1]).toContain("login");
    expect(texts.join()).toContain(`network.mode = "${mode}"`);
  });

  test.each(["allowlist", "learn"] as const)("but not with %s, where somebody does", (mode) => {
    expect(maskingWarnings(configOf({ secrets, creds: { mode: "masked" } }), mode)).toEqual([]);
  });
});

test("the owner is told where a later file takes a mask away by naming the secret without hosts", () => {
  const layer = (source: string, secrets: PartialConfig["secrets"]): Layer => {
    return { name: "flag", source, trusted: true, value: { secrets: secrets ?? {} } };
  };
  const masked = layer("a.toml", { GH: { env: "TOKEN", hosts: ["api.example.org"] }, plain: { env: "X" } });
  const bare = layer("b.toml", { GH: { env: "TOKEN" } });
  expect(unmaskedWarnings([masked, bare])).toEqual([
    "The secret GH is masked by a.toml, but b.toml names it without hosts, and that counts: its real value can be read inside.",
  ]);
  for (const layers of [[masked], [bare], [bare, masked], [masked, bare, masked]]) {
    expect(unmaskedWarnings(layers)).toEqual([]);
  }
});

describe("tokens in files", () => {
  const file = maskedFiles.find(({ agent }) => agent === "claude");
  if (file === undefined) throw new Error("There is none.");

  test("are masked for the hosts of the agent whose they are", () => {
    const secrets = pool({});
    const mask = maskTokens(configOf({ creds: { mode: "masked" } }), secrets);
    const surrogate = mask?.(real, file, ["claudeAiOauth", "accessToken"]);
    expect(surrogate).toMatch(shape);
    expect(secrets.masked).toEqual([
      {
        ...{ name: "~/.claude/.credentials.json", real, surrogate, paths: null },
        ...{ hosts: ["api.anthropic.com", "platform.claude.com"], headers: ["authorization", "x-api-key"] },
      },
    ]);
    expect(secrets.redact(real)).toBe("[REDACTED]");
    expect(secrets.hide(real)).toBe(surrogate);
  });

  test.each<[path: string, way: readonly string[], hosts: readonly string[]]>([
    [".local/share/opencode/auth.json", ["github-copilot", "refresh"], ["api.githubcopilot.com"]],
    [".local/share/opencode/auth.json", ["anthropic", "key"], ["api.anthropic.com", "platform.claude.com"]],
    [".local/share/opencode/auth.json", ["nobody-knows", "key"], []],
    [".local/share/opencode/auth.json", ["constructor", "key"], []],
    [".config/goose/secrets.yaml", ["OPENAI_API_KEY"], ["api.openai.com", "auth.openai.com", "chatgpt.com"]],
    [".qwen/.env", ["OPENAI_API_KEY"], ["api.openai.com", "auth.openai.com", "chatgpt.com"]],
    [".qwen/.env", ["DASHSCOPE_API_KEY"], ["chat.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"]],
  ])("of one provider are not for another: ~/%s, %j", (path, way, hosts) => {
    const secrets = pool({});
    const known = maskedFiles.find((one) => one.path === path) as MaskedFile;
    const surrogate = maskTokens(configOf({ creds: { mode: "masked" } }), secrets)?.(real, known, way);
    expect(surrogate).toMatch(shape);
    expect(secrets.masked).toMatchObject([{ real, surrogate, hosts }]);
  });

  test("of one provider are not for another in variables, either", () => {
    const secrets = pool({});
    const config = configOf({ creds: { mode: "masked" }, agent: { kind: "goose" } });
    expect(maskKey(config, secrets, "OPENROUTER_API_KEY", real)).toMatch(shape);
    expect(maskKey(config, secrets, "GOOSE_MODEL", real)).toBeNull();
    expect(secrets.masked).toMatchObject([{ hosts: ["openrouter.ai"] }]);
  });

  test("of two providers that are the same are bound to both", () => {
    const secrets = pool({});
    const known = maskedFiles.find(({ agent }) => agent === "opencode") as MaskedFile;
    const mask = maskTokens(configOf({ creds: { mode: "masked" } }), secrets);
    expect(mask?.(real, known, ["opencode", "key"])).toBe(mask?.(real, known, ["openrouter", "key"]));
    expect(secrets.masked).toMatchObject([{ hosts: ["opencode.ai"] }, { hosts: ["openrouter.ai"] }]);
  });

  test("are left out where nothing can stand in for them", () => {
    const secrets = pool({});
    expect(maskTokens(configOf({ creds: { mode: "masked" } }), secrets)?.("short", file, [])).toBeNull();
    expect(secrets.masked).toEqual([]);
  });

  test("are not masked where the owner does not say so", () => {
    expect(maskTokens(configOf({}), pool({}))).toBeNull();
  });

  test("have company in the agent's own variables, which are masked likewise", () => {
    const env = { ANTHROPIC_API_KEY: real, ANTHROPIC_BASE_URL: "https://api.example.org/", ALSO_TOKEN: real };
    const inside = (creds: PartialConfig["creds"] = {}, more: Partial<typeof env> = {}) => {
      const config = configOf({ creds, agent: { kind: "claude", env_allowlist: Object.keys(env) } });
      const all = { ...env, ...more };
      const context = { env: all, uid: 1000, nesting: false, docker: false, session: true, image: null };
      const plan = planFor([], {}, { request: { variables: chooseVariables(config, context) } });
      const secrets = openSecrets(config, { env: all });
      return {
        values: resolveVariables(plan, config, all, secrets),
        again: resolveVariables(plan, config, all, secrets),
        secrets,
      };
    };
    const { values, again, secrets } = inside({ mode: "masked" });
    expect(values["ANTHROPIC_API_KEY"]).toMatch(shape);
    expect(values["ANTHROPIC_BASE_URL"]).toBe(env.ANTHROPIC_BASE_URL);
    expect(JSON.stringify(values)).not.toContain(real);
    expect(again).toEqual(values);
    expect(secrets.masked).toMatchObject([
      { name: "ANTHROPIC_API_KEY", real, headers: ["authorization", "x-api-key"] },
    ]);
    expect(inside().values).toMatchObject(env);
    expect(inside({ mode: "masked" }, { ANTHROPIC_API_KEY: "" }).values).toMatchObject({ ANTHROPIC_API_KEY: "" });
    const short = failure(ConfigError, () => inside({ mode: "masked" }, { ANTHROPIC_API_KEY: "short" }));
    expect(short.message).toContain('"ANTHROPIC_API_KEY" cannot be masked');
  });

  test("belong to agents that are known, with headers to send them in", () => {
    for (const { agent, path } of maskedFiles) {
      const known = agents.find(({ name }) => name === agent);
      expect(known?.credentials.some((name) => path === name || path.startsWith(`${name}/`))).toBe(true);
      expect(tokenHeaders[agent]).toBeDefined();
    }
  });
});
