// @module-tag security
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { knownAgent } from "../../src/agents/table.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { Layer, LoadedConfig, PartialConfig } from "../../src/config/types.ts";
import { composeNetwork, type NetworkContext, withSettings, withTrust } from "../../src/keeper/network.ts";
import type { Variable } from "../../src/plan/request.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "podbot-network-")));
afterAll(() => rmSync(home, { recursive: true }));

function loaded(layers: Partial<Record<Layer["name"], PartialConfig>>): LoadedConfig {
  const all = [
    defaultLayer(),
    ...Object.entries(layers).map(([name, value]): Layer => {
      return { name: name as Layer["name"], source: `the ${name} file`, trusted: true, value };
    }),
  ];
  return { ...mergeLayers(all), layers: all, warnings: [], files: [] };
}

const context: NetworkContext = { env: { PATH: "" }, home, isWritable: () => false, agent: undefined };
const compose = (layers: Parameters<typeof loaded>[0], more: Partial<NetworkContext> = {}) =>
  composeNetwork(loaded(layers), { ...context, ...more });

describe("the network of a plan", () => {
  test.each([
    ["none", "the global file, global", { global: { network: false } }],
    ["open", "the flag file, flag", { flag: { network: true } }],
    ["none", "the flag file, flag", { flag: { network: { mode: "none" as const, domains: ["x.org"] } } }],
    ["none", "the global file, global", { global: { network: { mode: "none" as const, domains: ["x.org"] } } }],
    ["none", "the global file, global", { global: { network: false }, flag: { network: { domains: [] } } }],
  ])("is %s (%s), and then has no policy: %#", async (mode, origin, layers) => {
    expect(await compose(layers)).toEqual({
      network: { mode, origin, policy: null, ports: [] },
      warnings: [],
      variables: {},
    });
  });

  test("says which rules that deny are not kept, where it is open", async () => {
    const rules = [{ host: "x.org", deny: true }, { host: "y.org" }];
    expect((await compose({ global: { network: { mode: "open", rules } } })).warnings).toEqual([
      'network.rules of the global file: "x.org" is not denied: with network.mode = "open" nothing is.',
    ]);
    for (const mode of ["none", "allowlist", "learn"] as const) {
      expect((await compose({ global: { network: { mode, rules } } })).warnings).toEqual([]);
    }
  });

  test("is an allowlist of nothing where nobody says anything", async () => {
    const { network } = await compose({});
    expect(network).toMatchObject({ mode: "allowlist", origin: "default", ports: [80, 443, 3128] });
    expect(network.policy?.rules).toEqual([]);
  });

  test("is an allowlist where the caller allows a host and says nothing else", async () => {
    const flag: PartialConfig = { network: { domains: ["x.org", "db.x.org:5432"] } };
    const { network } = await compose({ global: { network: false }, flag });
    expect(network).toMatchObject({ mode: "allowlist", origin: "--allow", ports: [80, 443, 3128, 5432] });
    expect(network.policy?.rules.map(({ host, origin }) => [host, origin])).toEqual([
      ["x.org", "--allow"],
      ["db.x.org", "--allow"],
    ]);
  });

  test("keeps the mode that a file has where the caller allows a host", async () => {
    const flag: PartialConfig = { network: { domains: ["x.org"] } };
    expect((await compose({ global: { network: { mode: "open" } }, flag })).network.mode).toBe("open");
    expect((await compose({ global: { network: { mode: "learn" } }, flag })).network).toMatchObject({
      mode: "learn",
      policy: { learn: true },
    });
  });

  test("has a rule for all that was said, each with who said it", async () => {
    const { network, warnings } = await compose(
      {
        global: {
          network: { mode: "allowlist", presets: ["@openai"], domains: ["*.x.org"], reach: { DB: "127.0.0.1:5432" } },
          secrets: { T: { env: "T", hosts: ["api.x.org"] }, U: { env: "U" } },
        },
        project: { network: { rules: [{ host: "no.x.org", deny: true }] } },
      },
      { agent: knownAgent("claude") },
    );
    const origins = network.policy?.rules.map(({ host, origin }) => `${host}: ${origin}`);
    expect(origins).toEqual([
      "api.anthropic.com: agent claude",
      "platform.claude.com: agent claude",
      "api.openai.com: preset @openai",
      "auth.openai.com: preset @openai",
      "chatgpt.com: preset @openai",
      "*.x.org: network.domains of the global file",
      "no.x.org: network.rules of the project file",
    ]);
    expect(network.policy).toMatchObject({
      learn: false,
      secrets: [{ name: "T", hosts: ["api.x.org"] }],
      reach: { db: "127.0.0.1:5432" },
    });
    expect(network.policy?.rules[0]?.ports).toEqual([443]);
    expect(warnings).toEqual([]);
  });

  test("is the same each time", async () => {
    const layers = { global: { network: { mode: "allowlist" as const, presets: ["@github"], domains: ["x.org"] } } };
    expect(JSON.stringify(await compose(layers))).toBe(JSON.stringify(await compose(layers)));
  });

  test("takes hosts of package managers from their settings, be they in the house or not", async () => {
    writeFileSync(join(home, ".npmrc"), "registry=http://mirror.example:4873/npm/\n");
    const layers: Parameters<typeof loaded>[0] = { flag: { network: { mode: "allowlist", presets: ["@npm"] } } };
    const { network, warnings } = await compose(layers);
    expect(network.policy?.rules).toEqual([
      {
        host: "mirror.example",
        ports: [4873],
        paths: null,
        methods: null,
        deny: false,
        local: true,
        origin: "preset @npm",
      },
    ]);
    expect(network.ports).toContain(4873);
    expect(warnings).toEqual([]);
  });

  test("takes none from settings that an agent may write, and nothing in the house that the owner has not named", async () => {
    writeFileSync(join(home, ".npmrc"), "registry=http://10.0.0.1:4873/\n");
    const layers: Parameters<typeof loaded>[0] = { flag: { network: { mode: "allowlist", presets: ["@npm"] } } };
    const isWritable = (path: string) => path.startsWith(home);
    expect((await compose(layers, { isWritable })).network.policy?.rules).toEqual([]);
    expect((await compose(layers)).network.policy?.rules).toMatchObject([{ host: "10.0.0.1", local: true }]);
    const index = join(home, ".cargo/registry/index/index.example-1");
    mkdirSync(index, { recursive: true });
    writeFileSync(join(index, "config.json"), '{"dl":"https://files.example/"}');
    writeFileSync(join(home, ".cargo/config.toml"), '[registries.x]\nindex = "sparse+https://index.example/"\n');
    const crates = await compose({ flag: { network: { mode: "allowlist", presets: ["@crates"] } } });
    expect(crates.network.policy?.rules).toMatchObject([
      { host: "index.example", local: true },
      { host: "files.example", local: false },
    ]);
    rmSync(join(home, ".cargo"), { recursive: true });
  });

  test("does not let what a program has built in lead into the house, which no setting names", async () => {
    const layers: Parameters<typeof loaded>[0] = { flag: { network: { mode: "allowlist", presets: ["@npm"] } } };
    const definitions = join(home, "tools/node_modules/@npmcli/config/lib/definitions");
    mkdirSync(definitions, { recursive: true });
    writeFileSync(
      join(definitions, "definitions.js"),
      "new Definition('registry', {\n  default: 'https://own.example/'",
    );
    writeFileSync(join(home, "tools/npm"), "", { mode: 0o755 });
    rmSync(join(home, ".npmrc"), { force: true });
    const rules = async () => (await compose(layers, { env: { PATH: join(home, "tools") } })).network.policy?.rules;
    expect(await rules()).toMatchObject([{ host: "own.example", local: false }]);
    writeFileSync(join(home, ".npmrc"), "registry=https://own.example/\n");
    expect(await rules()).toMatchObject([{ host: "own.example", local: true }]);
    rmSync(join(home, ".npmrc"));
  });

  test("says which preset has no hosts here", async () => {
    const layers: Parameters<typeof loaded>[0] = { flag: { network: { mode: "allowlist", presets: ["@crates"] } } };
    const { network, warnings } = await compose(layers);
    expect(network.policy?.rules).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^preset @crates: cargo is not installed here/)]);
  });

  test.each([
    [{ presets: ["@nmp"] }, "PRESET_UNKNOWN", "Did you mean @npm?"],
    [{ domains: ["https://x.org"] }, "NETWORK_RULE_INVALID", "Did you mean x.org?"],
    [{ reach: { db: "localhost" } }, "NETWORK_RULE_INVALID", "127.0.0.1:5432"],
  ])("is refused: %j", async (network, code, hint) => {
    await expect(compose({ flag: { network: { mode: "allowlist", ...network } } })).rejects.toMatchObject({
      code,
      hint: expect.stringContaining(hint),
    });
  });
});

describe("a model of the owner's own", () => {
  const claude = knownAgent("claude");
  const reached = async (url: string, more: PartialConfig = {}, agent = claude) => {
    const env = { PATH: "", ANTHROPIC_BASE_URL: url };
    const { network } = await compose(
      { flag: { environment: { pass: ["ANTHROPIC_BASE_URL"] }, ...more } },
      { env, agent },
    );
    const rules = network.policy?.rules.filter(({ origin }) => origin.startsWith("ANTHROPIC_BASE_URL"));
    return rules?.map(({ host, ports, local }) => `${host}:${ports} ${local}`);
  };

  test.each([
    ["https://models.example.org/v1", ["models.example.org:443 true"]],
    ["http://localhost:4000", ["localhost:4000 true"]],
    ["http://[::1]:4000/", ["::1:4000 true"]],
    ["ftp://example.org", []],
    ["example.org", []],
    ["http://a..b/", []],
  ])("is reached where the agent is told of it: %s", async (url, rules) => {
    expect(await reached(url)).toEqual(rules);
  });

  test("is not, where it is told of nothing, or of another", async () => {
    const url = "https://models.example.org";
    expect(await reached(url, { environment: { pass: [] } })).toEqual([]);
    expect(await reached(url, {}, knownAgent("codex"))).toEqual([]);
    expect(
      await reached(url, { environment: { pass: ["ANTHROPIC_*"], set: { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" } } }),
    ).toEqual(["127.0.0.1:9 true"]);
    const secret = { kind: "secret", name: "U", optional: true } as const;
    expect(await reached(url, { environment: { set: { ANTHROPIC_BASE_URL: secret } } })).toEqual([]);
  });
});

test("what package managers are told, the owner can say otherwise, in letters of either size", () => {
  const variables: readonly Variable[] = [{ name: "NPM_CONFIG_REGISTRY", from: "caller" }];
  const settings = { npm_config_registry: "https://one.example/", PIP_INDEX_URL: "https://two.example/" };
  expect(withSettings(settings, variables)).toEqual([
    ...variables,
    { name: "PIP_INDEX_URL", from: "plan", value: "https://two.example/" },
  ]);
});

describe("variables that say whom to trust", () => {
  const variables: readonly Variable[] = [
    { name: "PATH", from: "caller" },
    { name: "SSL_CERT_FILE", from: "caller" },
    { name: "DENO_CERT", from: "caller" },
    { name: "GIT_SSL_CAINFO", from: "owner", layer: "environment.set" },
  ];
  const origins = (mode: "none" | "open" | "allowlist" | "learn") =>
    Object.fromEntries(withTrust(mode, true, variables).map(({ name, from }) => [name, from]));

  test("stay as they are without a gateway", () => {
    expect(withTrust("none", true, variables)).toBe(variables);
    expect(withTrust("open", true, variables)).toBe(variables);
  });

  test.each(["allowlist", "learn"] as const)(
    "are Podbot's with %s, but for those that the owner has chosen",
    (mode) => {
      expect(origins(mode)).toMatchObject({
        PATH: "caller",
        SSL_CERT_FILE: "plan",
        NODE_EXTRA_CA_CERTS: "plan",
        // Nobody passes it on unless the owner says so.
        DENO_CERT: "caller",
        GIT_SSL_CAINFO: "owner",
      });
      const names = withTrust(mode, true, variables).map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
    },
  );

  test("are Java's only where there is a Java: it says on standard error that it has read them", () => {
    const names = (hasJava: boolean) => withTrust("allowlist", hasJava, variables).map(({ name }) => name);
    expect(names(true)).toContain("JAVA_TOOL_OPTIONS");
    expect(names(false)).not.toContain("JAVA_TOOL_OPTIONS");
  });
});
