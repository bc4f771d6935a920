// @module-tag security
import { describe, expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { PartialConfig } from "../../src/config/types.ts";
import { findWidenings, untrustedError } from "../../src/config/widening.ts";

function widenings(project: PartialConfig, global: PartialConfig = {}) {
  const below = mergeLayers([defaultLayer(), { name: "global", source: "g", trusted: true, value: global }]).config;
  return findWidenings(project, below);
}

describe("a project file widens when it", () => {
  test.each<[string, PartialConfig, PartialConfig, string]>([
    ["opens the network", { network: { mode: "open" } }, {}, "network.mode"],
    ["opens the network in short", { network: true }, { network: false }, "network.mode"],
    ["lets the network be learnt", { network: { mode: "learn" } }, { network: { mode: "allowlist" } }, "network.mode"],
    ["lets what is allowed out", { network: { mode: "allowlist" } }, { network: false }, "network.mode"],
    ["adds hosts of a preset", { network: { presets: ["@npm"] } }, {}, "network.presets"],
    ["adds a host", { network: { domains: ["x.org"] } }, { network: { domains: ["x.org"] } }, "network.domains"],
    ["adds a rule", { network: { rules: [{ host: "x.org" }] } }, {}, "network.rules"],
    ["says that it denies nothing", { network: { rules: [{ host: "x.org", deny: false }] } }, {}, "network.rules"],
    ["leads a name elsewhere", { network: { reach: { db: "::1" } } }, {}, "network.reach.db"],
    ["names a proxy", { network: { upstream_proxy: "http://x:1" } }, {}, "network.upstream_proxy"],
    ["goes around one", { network: { upstream_proxy: "none" } }, {}, "network.upstream_proxy"],
    [
      "takes the environment's instead of one",
      { network: { upstream_proxy: "environment" } },
      { network: { upstream_proxy: "http://x:1" } },
      "network.upstream_proxy",
    ],
    ["has real credentials handed in", { creds: { mode: "copy" } }, { creds: { mode: "masked" } }, "creds.mode"],
    [
      "sends a secret elsewhere",
      { secrets: { T: { env: "T", hosts: ["evil.example"] } } },
      { secrets: { T: { env: "T", hosts: ["x.org"] } } },
      "secrets.T",
    ],
    ["allows nesting", { sandbox: { nesting: true } }, {}, "sandbox.nesting"],
    ["accepts a gap", { sandbox: { accept_gaps: ["limits"] } }, {}, "sandbox.accept_gaps"],
    ["undoes a minimal root", { sandbox: { root: "host" } }, { sandbox: { root: "minimal" } }, "sandbox.root"],
    ["asks for privileges", { sandbox: { privileged: true } }, {}, "sandbox.privileged"],
    [
      "asks for /dev/fuse, although that is the default",
      { sandbox: { mount_dev_fuse: true } },
      {},
      "sandbox.mount_dev_fuse",
    ],
    [
      "switches SELinux off",
      { sandbox: { selinux_label_mode: "disable_for_container" } },
      { sandbox: { selinux_label_mode: "keep_default" } },
      "sandbox.selinux_label_mode",
    ],
    ["asks for containers inside", { sandbox: { containers: "inner" } }, {}, "sandbox.containers"],
    [
      "makes a read-only root writable",
      { sandbox: { read_only_root: false } },
      { sandbox: { read_only_root: true } },
      "sandbox.read_only_root",
    ],
    ["chooses a runtime", { sandbox: { runtime: "runc" } }, { sandbox: { runtime: "runsc" } }, "sandbox.runtime"],
    ["lets limits pass", { sandbox: { limits: "best-effort" } }, { sandbox: { limits: "require" } }, "sandbox.limits"],
    ["wants more memory", { sandbox: { memory_mb: 513 } }, { sandbox: { memory_mb: 512 } }, "sandbox.memory_mb"],
    ["wants more processors", { sandbox: { cpus: 2 } }, { sandbox: { cpus: 1.5 } }, "sandbox.cpus"],
    ["wants more processes", { sandbox: { pids: 65 } }, { sandbox: { pids: 64 } }, "sandbox.pids"],
    ["limits processes otherwise", { sandbox: { ulimits: ["core=1"] } }, {}, "sandbox.ulimits"],
    ["opens a root for mounts", { mounts: { allowed_roots: ["/"] } }, {}, "mounts.allowed_roots"],
    ["mounts a directory", { workspace: { host_path: "/etc" } }, {}, "workspace.host_path"],
    ["asks for the engine", { sandbox: { wall: "engine" } }, {}, "sandbox.wall"],
    ["undoes the owner's wall", { sandbox: { wall: "bubblewrap" } }, { sandbox: { wall: "engine" } }, "sandbox.wall"],
    ["takes a preset away", { filesystem: { presets: ["!@git"] } }, {}, "filesystem.presets"],
    ["takes its own preset away", { filesystem: { presets: ["!@lint/ts"] } }, {}, "filesystem.presets"],
    ["adds writable caches", { filesystem: { presets: ["@caches"] } }, {}, "filesystem.presets"],
    ["adds writable agents", { filesystem: { presets: ["@agents"] } }, {}, "filesystem.presets"],
    ["adds a preset that nobody knows", { filesystem: { presets: ["@new"] } }, {}, "filesystem.presets"],
    ["passes a variable", { environment: { pass: ["TERM"] } }, {}, "environment.pass"],
    ["sets a variable", { environment: { set: { A: "1" } } }, {}, "environment.set.A"],
    [
      "changes a variable",
      { environment: { set: { A: "1" } } },
      { environment: { set: { A: "2" } } },
      "environment.set.A",
    ],
    ["reads a secret", { secrets: { T: { env: "T" } } }, {}, "secrets.T"],
    ["frees git", { commands: { git: true } }, {}, "commands.git"],
    ["puts a script in the place of the git preset", { commands: { git: "./git.sh" } }, {}, "commands.git"],
    ["frees what was blocked", { commands: { rm: true } }, { commands: { rm: false } }, "commands.rm"],
    ["wraps what was blocked", { commands: { rm: "./rm.sh" } }, { commands: { rm: false } }, "commands.rm"],
    ["replaces a script", { commands: { rm: "./rm.sh" } }, { commands: { rm: "~/rm.sh" } }, "commands.rm"],
    ["wraps a free command", { commands: { npm: "./npm.sh" } }, { commands: { npm: true } }, "commands.npm"],
    ["wraps a command of which nobody spoke", { commands: { npm: "./npm.sh" } }, {}, "commands.npm"],
    ["unblocks git for the preset", { commands: { git: "@git" } }, { commands: { git: false } }, "commands.git"],
    ["chooses the engine socket", { engine_socket: "/x" }, {}, "engine_socket"],
    ["gives up containers", { sandbox: { wall: "bubblewrap" } }, {}, "sandbox.wall"],
    ["makes the workspace writable", { filesystem: { presets: ["@base"] } }, {}, "filesystem.presets"],
    ["chooses the image", { image: "x" }, { image: "y" }, "image"],
    ["names a GitHub App", { github: { app_id: 1 } }, {}, "github.app_id"],
    ["names another GitHub", { github: { api_url: "https://ghe.example/api/v3" } }, {}, "github.api_url"],
    ["permits more on GitHub", { github: { permissions: { issues: "read" } } }, {}, "github.permissions.issues"],
    ["hands a token in", { github: { token: "file" } }, { github: { token: "masked" } }, "github.token"],
    ["names a key file", { github: { private_key_path: "/k" } }, {}, "github.private_key_path"],
    ["copies credentials", { creds: { copy_claude: true } }, { creds: { copy_claude: false } }, "creds.copy_claude"],
    ["copies others", { creds: { copy_agent: true } }, { creds: { copy_agent: false } }, "creds.copy_agent"],
    ["moves the workspace", { workspace: { base_dir: "/x" } }, {}, "workspace.base_dir"],
    ["mounts the host", { workspace: { host_path: "/x" } }, {}, "workspace.host_path"],
    ["chooses the agent", { agent: { kind: "codex" } }, {}, "agent.kind"],
    ["chooses the mode", { agent: { mode: "acp" } }, {}, "agent.mode"],
    ["delegates files", { acp: { delegation: "allow_fs" } }, {}, "acp.delegation"],
    [
      "delegates commands where you delegate files",
      { acp: { delegation: "allow_terminal" } },
      { acp: { delegation: "allow_fs" } },
      "acp.delegation",
    ],
    ["silences questions", { agent: { permissive: true } }, { agent: { permissive: false } }, "agent.permissive"],
    ["chooses the command", { agent: { command: "x" } }, {}, "agent.command"],
    ["chooses arguments", { agent: { args: ["x"] } }, {}, "agent.args"],
    ["hands out a variable", { agent: { env_allowlist: ["X"] } }, {}, "agent.env_allowlist"],
  ])("%s", (_, project, global, key) => {
    const found = widenings(project, global);
    expect(found.map((widening) => widening.key)).toEqual([key]);
    expect(found[0]?.why).not.toBe("");
  });
});

describe("a project file may", () => {
  test.each<[string, PartialConfig, PartialConfig]>([
    ["say nothing", {}, {}],
    ["close the network", { network: false }, { network: true }],
    ["say that the network is open where it is", { network: true }, { network: true }],
    ["close an open network but for what is allowed", { network: { mode: "allowlist" } }, { network: true }],
    ["deny a host", { network: { rules: [{ host: "x.org", deny: true }] } }, {}],
    ["do without a preset", { network: { presets: ["!@npm"] } }, { network: { presets: ["@npm"] } }],
    ["have the token masked", { github: { token: "masked" } }, {}],
    ["permit less on GitHub", { github: { permissions: { contents: "read", metadata: "none" } } }, {}],
    ["have credentials masked", { creds: { mode: "masked" } }, {}],
    ["repeat a proxy", { network: { upstream_proxy: "none" } }, { network: { upstream_proxy: "none" } }],
    ["repeat where a name leads", { network: { reach: { db: "::1" } } }, { network: { reach: { db: "::1" } } }],
    ["forbid nesting", { sandbox: { nesting: false } }, { sandbox: { nesting: true } }],
    ["choose a minimal root", { sandbox: { root: "minimal" } }, {}],
    ["say the default", { agent: { kind: "claude", mode: "podbot" }, workspace: { base_dir: "/work" } }, {}],
    ["take a delegation back", { acp: { delegation: "disabled" } }, { acp: { delegation: "allow_all" } }],
    ["delegate less", { acp: { delegation: "allow_fs" } }, { acp: { delegation: "allow_all" } }],
    ["repeat a delegation", { acp: { delegation: "allow_fs" } }, { acp: { delegation: "allow_fs" } }],
    ["give longer grace", { sandbox: { grace_seconds: 60 } }, {}],
    ["refuse privileges", { sandbox: { privileged: false } }, { sandbox: { privileged: true } }],
    ["repeat the wall", { sandbox: { wall: "engine" } }, { sandbox: { wall: "engine" } }],
    ["keep the SELinux label", { sandbox: { selinux_label_mode: "keep_default" } }, {}],
    ["set a limit where there is none", { sandbox: { memory_mb: 512, cpus: 1, pids: 64 } }, {}],
    ["lower a limit", { sandbox: { memory_mb: 16, cpus: 0.5 } }, { sandbox: { memory_mb: 512, cpus: 1 } }],
    ["repeat a limit", { sandbox: { pids: 64 } }, { sandbox: { pids: 64 } }],
    ["require limits", { sandbox: { limits: "require" } }, {}],
    ["make the root read-only", { sandbox: { read_only_root: true } }, {}],
    ["forbid containers inside", { sandbox: { containers: "none", mount_dev_fuse: false } }, {}],
    ["keep credentials out", { creds: { copy_claude: false, copy_agent: false } }, {}],
    ["let the agent ask", { agent: { permissive: false } }, {}],
    ["add presets that protect", { filesystem: { presets: ["@git", "@git-strict", "@lint/ts"] } }, {}],
    ["block a command", { commands: { rm: false, git: false } }, {}],
    ["repeat a script", { commands: { npm: "./npm.sh" } }, { commands: { npm: "./npm.sh" } }],
    ["wrap git where it was free", { commands: { git: "@git" } }, { commands: { git: true } }],
    ["say that a free command is free", { commands: { ls: true } }, {}],
    ["repeat a variable", { environment: { set: { A: "1" } } }, { environment: { set: { A: "1" } } }],
    ["write path rules, which the plan judges", { filesystem: { rw: ["/"], ro: ["x"], exclude: ["y"] } }, {}],
  ])("%s", (_, project, global) => {
    expect(widenings(project, global)).toEqual([]);
  });
});

test("the error names the host of a rule", () => {
  const found = widenings({ network: { rules: [{ host: "x.org", path: "/v1/**" }] } });
  expect(untrustedError("/p/.podbot/config.toml", found).message).toContain('network.rules = "x.org": lets programs');
});

test.each([
  ["http://me:hunter2@proxy.corp:3128", 'network.upstream_proxy = "http://proxy.corp:3128": chooses whom'],
  ["none", 'network.upstream_proxy = "none": chooses whom'],
  ["http://me/hunter2@proxy.corp:3128", "network.upstream_proxy: chooses whom"],
])("the error names a proxy without its password: %s", (upstream_proxy, line) => {
  const error = untrustedError("/p/.podbot/config.toml", widenings({ network: { upstream_proxy } }));
  expect(error.message).toContain(line);
  expect(error.message + JSON.stringify(error.details)).not.toContain("hunter2");
});

test("the error lists each widening without any secret", () => {
  const found = widenings({
    network: true,
    environment: { set: { TOKEN: "hunter2", GH: "!secret GH", MAYBE: "!secret? X" } },
    secrets: { GH: { file: "hunter2" } },
    commands: { git: "./\x1b[2J.sh" },
  });
  const error = untrustedError("/p/.podbot/config.toml", found);
  expect(error.code).toBe("CONFIG_UNTRUSTED");
  expect(error.hint).toContain("podbot trust");
  expect(error.message.split("\n")).toEqual([
    "/p/.podbot/config.toml asks for more than your own configuration grants, and you have not trusted it:",
    '  network.mode = "open": opens the network, so anything that can be read can be sent away',
    '  commands.git = "./\\u001b[2J.sh": replaces a restriction on this command',
    "  environment.set.TOKEN: changes the environment of programs inside",
    '  environment.set.GH = "!secret GH": changes the environment of programs inside',
    '  environment.set.MAYBE = "!secret? X": changes the environment of programs inside',
    "  secrets.GH: makes Podbot read a secret of yours",
  ]);
  expect(JSON.stringify(error.details)).not.toContain("hunter2");
});
