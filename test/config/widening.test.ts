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
    ["chooses the image", { image: "x" }, { image: "y" }, "image"],
    ["names a GitHub App", { github: { app_id: 1 } }, {}, "github.app_id"],
    ["names a key file", { github: { private_key_path: "/k" } }, {}, "github.private_key_path"],
    ["copies credentials", { creds: { copy_claude: true } }, { creds: { copy_claude: false } }, "creds.copy_claude"],
    ["moves the workspace", { workspace: { base_dir: "/x" } }, {}, "workspace.base_dir"],
    ["mounts the host", { workspace: { host_path: "/x" } }, {}, "workspace.host_path"],
    ["chooses the agent", { agent: { kind: "codex" } }, {}, "agent.kind"],
    ["chooses the mode", { agent: { mode: "acp" } }, {}, "agent.mode"],
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
    ["forbid nesting", { sandbox: { nesting: false } }, { sandbox: { nesting: true } }],
    ["choose a minimal root", { sandbox: { root: "minimal" } }, {}],
    ["say the default", { agent: { kind: "claude", mode: "podbot" }, workspace: { base_dir: "/work" } }, {}],
    ["give longer grace", { sandbox: { grace_seconds: 60 } }, {}],
    ["refuse privileges", { sandbox: { privileged: false } }, { sandbox: { privileged: true } }],
    ["name bubblewrap where the choice was open", { sandbox: { wall: "bubblewrap" } }, {}],
    ["keep the SELinux label", { sandbox: { selinux_label_mode: "keep_default" } }, {}],
    ["keep credentials out", { creds: { copy_claude: false } }, {}],
    ["add presets that protect", { filesystem: { presets: ["@base", "@git", "@git-strict", "@lint/ts"] } }, {}],
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
