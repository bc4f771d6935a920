import { describe, expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import { configError } from "../../src/config/problem.ts";
import { checkRules, modesOf } from "../../src/config/rules.ts";
import type { AgentKind, AgentMode, Layer, PartialConfig } from "../../src/config/types.ts";

function check(value: PartialConfig, more: { above?: PartialConfig; doubtful?: readonly string[] } = {}) {
  const layers: Layer[] = [defaultLayer(), { name: "global", source: "g.toml", trusted: true, value }];
  if (more.above) layers.push({ name: "flag", source: "command line", trusted: true, value: more.above });
  const { config, origins } = mergeLayers(layers);
  const { problems, warnings } = checkRules(config, origins, new Set(more.doubtful));
  return { problems: problems.map((problem) => configError([problem]).message), warnings };
}

describe("(kind, mode)", () => {
  const legal: Readonly<Record<AgentKind, readonly AgentMode[]>> = {
    claude: ["podbot", "acp"],
    codex: ["podbot", "codex_app_server", "acp"],
    opencode: ["podbot", "acp"],
    gemini: ["podbot", "acp"],
    goose: ["podbot", "acp"],
    qwen: ["podbot", "acp"],
    custom: ["podbot", "codex_app_server", "acp"],
  };
  const modes = ["podbot", "codex_app_server", "acp"] as const;
  const pairs = (Object.keys(legal) as AgentKind[]).flatMap((kind) => modes.map((mode) => [kind, mode] as const));

  test.each(pairs)("%s in mode %s is legal exactly where the table says so", (kind, mode) => {
    const { problems } = check({ agent: { kind, mode, ...(kind === "custom" ? { command: "x" } : {}) } });
    expect(modesOf(kind)).toEqual(legal[kind]);
    expect(problems).toEqual(
      legal[kind].includes(mode)
        ? []
        : [
            `g.toml: agent.mode = "${mode}": is not a mode of agent.kind = "${kind}"; use podbot or acp, or another agent.kind`,
          ],
    );
  });

  test("blames the layer that spoke last", () => {
    const { problems } = check(
      { agent: { mode: "codex_app_server", kind: "codex" } },
      { above: { agent: { kind: "goose" } } },
    );
    expect(problems).toEqual([
      'command line: agent.mode = "codex_app_server": is not a mode of agent.kind = "goose"; use podbot or acp, or another agent.kind',
    ]);
  });
});

describe("acp.delegation", () => {
  const delegating = (agent: PartialConfig["agent"]) => ({
    acp: { delegation: "allow_fs" } as const,
    ...(agent && { agent }),
  });
  const wrong = (mode: string, source = "g.toml") => [
    `${source}: acp.delegation = "allow_fs": is for agent.mode = "acp", and agent.mode is "${mode}"; leave it out, or say agent.mode = "acp"`,
  ];

  test("is for ACP alone", () => {
    expect(check(delegating({ mode: "acp" })).problems).toEqual([]);
    expect(check(delegating({ mode: "podbot" })).problems).toEqual(wrong("podbot"));
    const other = delegating({ kind: "codex", mode: "codex_app_server" });
    expect(check(other).problems).toEqual(wrong("codex_app_server"));
    expect(check({ ...other, acp: { delegation: "disabled" } }).problems).toEqual([]);
  });

  test("may stand where nobody has said what the agent speaks", () => {
    expect(check(delegating(undefined)).problems).toEqual([]);
  });

  test("may stand where the agent is run on a terminal for once, but not where it speaks another protocol", () => {
    expect(check(delegating({ mode: "acp" }), { above: { agent: { mode: "podbot" } } }).problems).toEqual([]);
    const above = { agent: { kind: "codex", mode: "codex_app_server" } } as const;
    expect(check(delegating({ mode: "acp" }), { above }).problems).toEqual(wrong("codex_app_server", "command line"));
  });
});

describe("other rules over several keys", () => {
  test.each<[PartialConfig, string]>([
    [
      { agent: { kind: "custom" } },
      'g.toml: agent.command: is missing, and agent.kind = "custom" needs it; name the program to run (on the command line: podbot run --agent custom -- COMMAND)',
    ],
    [
      { workspace: { base_dir: "work" } },
      'g.toml: workspace.base_dir = "work": is not an absolute path; write the whole path, beginning with /',
    ],
    [
      { workspace: { source: "host_mount" } },
      'g.toml: workspace.host_path: is missing, and workspace.source = "host_mount" needs it; name the directory to mount',
    ],
    [
      { workspace: { source: "host_mount", host_path: "~/src" } },
      'g.toml: workspace.host_path = "~/src": is not absolute, as workspace.source = "host_mount" needs; write the whole path, beginning with /',
    ],
    [
      { workspace: { source: "host_mount", host_path: "/src", container_path: "src" } },
      'g.toml: workspace.container_path = "src": is not absolute, as workspace.source = "host_mount" needs; write the whole path, beginning with /',
    ],
    ...["src", "./src", "~other/src", ""].map((root): [PartialConfig, string] => [
      { mounts: { allowed_roots: ["/srv", root] } },
      `g.toml: mounts.allowed_roots = "${root}": is neither an absolute path nor one of your home; write the whole path, beginning with / or ~/`,
    ]),
    ...["nofile", "nofile=2:1", "nofile=-1", "NOFILE=1"].map((text): [PartialConfig, string] => [
      { sandbox: { ulimits: ["core=0", text] } },
      `g.toml: sandbox.ulimits = "${text}": is not a limit of processes; write "nofile=1024" or "nofile=1024:2048"`,
    ]),
    ...["env", "", "proxy:3128", "socks5://me:hunter2@x:1", "http://me:hun/ter2@x:1", "http://x:1/?hunter2"].map(
      (upstream_proxy): [PartialConfig, string] => [
        { network: { upstream_proxy } },
        'g.toml: network.upstream_proxy: is not the address of a proxy; write "http://host:port", with what is special in a password escaped (%40), or "environment" or "none"',
      ],
    ),
  ])("refuse %j", (value, message) => {
    expect(check(value).problems).toEqual([message]);
  });

  test.each<[PartialConfig]>([
    [{ agent: { kind: "custom", command: "opencode", args: ["acp"] } }],
    [{ workspace: { source: "host_mount", host_path: "/src" } }],
    [{ mounts: { allowed_roots: ["/srv", "~", "~/src"] } }],
    [{ sandbox: { ulimits: ["nofile=1024", "core=0:0", "nproc=1:2"] } }],
    [{ workspace: { source: "empty", host_path: "src" } }],
    [{ network: { upstream_proxy: "environment" } }],
    [{ network: { upstream_proxy: "none" } }],
    [{ network: { upstream_proxy: "HTTP://me:p%40ss@[::1]:3128" } }],
    [{ network: { upstream_proxy: "https://proxy.corp/" } }],
    [{ workspace: { source: "github_clone", host_path: "src", container_path: "src" } }],
  ])("accept %j", (value) => {
    expect(check(value)).toEqual({ problems: [], warnings: [] });
  });

  test("say nothing about keys that are wrong already", () => {
    expect(check({ agent: { kind: "custom" } }, { doubtful: ["agent.command"] }).problems).toEqual([]);
    expect(check({ environment: { set: { A: "!secret X" } } }, { doubtful: ["secrets"] }).problems).toEqual([]);
  });
});

describe("a reference to a secret", () => {
  const secrets = { GH_TOKEN: { env: "GH_TOKEN" } };

  test("that is defined is accepted", () => {
    expect(check({ secrets, environment: { set: { A: "!secret GH_TOKEN" } } })).toEqual({ problems: [], warnings: [] });
  });

  test.each([
    ["GH_TOKN", "did you mean GH_TOKEN?"],
    ["OTHER", "define secrets.OTHER, or write !secret? OTHER if it may be absent"],
  ])("that is not is refused: %s", (name, wayOut) => {
    expect(check({ secrets, environment: { set: { A: `!secret ${name}` } } }).problems).toEqual([
      `g.toml: environment.set.A: refers to the secret ${name}, which is not defined; ${wayOut}`,
    ]);
  });

  test("to a name that objects have by nature is not taken for defined", () => {
    expect(check({ environment: { set: { A: "!secret toString" } } }).problems).toHaveLength(1);
  });

  test("that is optional may lack its secret, with a word when the name looks misspelt", () => {
    expect(check({ secrets, environment: { set: { A: "!secret? OTHER" } } })).toEqual({ problems: [], warnings: [] });
    expect(check({ secrets, environment: { set: { A: "!secret? GH_TOKN" } } })).toEqual({
      problems: [],
      warnings: ["environment.set.A: there is no secret GH_TOKN; did you mean GH_TOKEN?"],
    });
  });
});

describe("a command for a known agent", () => {
  test.each<[PartialConfig["agent"] & object, string]>([
    [{ kind: "codex", command: "opencode", args: ["acp"] }, "agent.command and agent.args are ignored"],
    [{ kind: "claude", args: ["-p"] }, "agent.args is ignored"],
    [{ command: "x" }, "agent.command is ignored"],
  ])("is ignored with a warning: %j", (agent, warning) => {
    expect(check({ agent })).toEqual({
      problems: [],
      warnings: [`${warning}: only agent.kind = "custom" reads ${warning.includes("are") ? "them" : "it"}`],
    });
  });
});
