import { isDeepStrictEqual } from "node:util";
import type { Key, KeyEntry, KeyName, ValueOf } from "./key-types.ts";
import type { CommandRule } from "./types.ts";

/**
 * Every key that Podbot knows, once. Validation, merging, trust, the `PODBOT_*` variables, the JSON Schema and
 * docs/configuration.md are all read from this table; adding a key here adds it everywhere.
 */
const table: { readonly [N in KeyName]: Key<ValueOf<N>> } = {
  engine_socket: {
    about:
      "Socket of the container engine: `unix://`, `tcp://`, `http://`, `https://` or a bare path. Unset, the usual places are tried.",
    type: { kind: "text" },
    step: 3,
    widens: { when: changes, why: "chooses the engine that holds the sandbox" },
  },
  image: {
    about: "Container image for the engine wall.",
    type: { kind: "text" },
    step: 3,
    widens: { when: changes, why: "chooses the programs that run inside" },
  },

  "github.app_id": {
    about: "Id of the GitHub App that mints repository tokens.",
    type: { kind: "integer", min: 1 },
    step: 7,
    widens: { when: changes, why: "chooses the identity that acts on GitHub" },
  },
  "github.installation_id": {
    about: "Id of that App's installation on the account that owns the repositories.",
    type: { kind: "integer", min: 1 },
    step: 7,
    widens: { when: changes, why: "chooses the repositories that tokens open" },
  },
  "github.private_key_path": {
    about: "File with the App's private key (PEM).",
    type: { kind: "text" },
    step: 7,
    widens: { when: changes, why: "makes Podbot read a key file" },
  },

  "workspace.source": {
    about: "Where the agent's source code comes from: a clone of its own, or a directory of this machine.",
    type: { kind: "choice", of: ["github_clone", "host_mount"] },
    default: "github_clone",
    step: 3,
    widens: { when: changes, why: "changes which files of this machine the agent works on" },
  },
  "workspace.base_dir": {
    about: "Directory inside that `github_clone` clones into. Absolute.",
    type: { kind: "text" },
    default: "/work",
    step: 3,
    widens: { when: changes, why: "moves the workspace" },
  },
  "workspace.host_path": {
    about: "Directory of this machine that `host_mount` shows to the agent. Absolute; required for `host_mount`.",
    type: { kind: "text" },
    step: 3,
    widens: { when: changes, why: "shows a directory of this machine to the agent" },
  },
  "workspace.container_path": {
    about: "Where `host_mount` puts that directory inside. Absolute.",
    type: { kind: "text" },
    default: "/workspace",
    step: 3,
    widens: { when: changes, why: "moves the workspace" },
  },

  "creds.copy_claude": {
    about: "Copy Claude Code's credentials (`~/.claude`) into the container.",
    type: { kind: "flag" },
    default: true,
    step: 3,
    widens: { when: becomes(true), why: "hands Claude Code's credentials to the agent" },
  },
  "creds.copy_codex": {
    about: "Copy Codex's credentials (`~/.codex`) into the container.",
    type: { kind: "flag" },
    default: true,
    step: 3,
    widens: { when: becomes(true), why: "hands Codex's credentials to the agent" },
  },

  "agent.kind": {
    about: "The agent to run: one that Podbot knows, or `custom` with a command of its own.",
    type: { kind: "choice", of: ["claude", "codex", "opencode", "gemini", "goose", "qwen", "custom"] },
    default: "claude",
    step: 2,
    widens: { when: changes, why: "chooses the program that is started, and its credentials" },
  },
  "agent.mode": {
    about:
      "How the agent is run: `podbot` on your terminal, `codex_app_server` or `acp` as a server that speaks its protocol on standard input and output. `codex_app_server` is for `codex` and `custom` only.",
    type: { kind: "choice", of: ["podbot", "codex_app_server", "acp"] },
    default: "podbot",
    step: 2,
    widens: { when: changes, why: "changes how the agent is connected" },
  },
  "agent.command": {
    about: "Program of a `custom` agent, required there. The known agents ignore it, with a warning.",
    type: { kind: "text" },
    step: 2,
    widens: { when: changes, why: "chooses the program that is started" },
  },
  "agent.args": {
    about: "Arguments of a `custom` agent. The known agents ignore them, with a warning.",
    type: { kind: "list", of: "argument" },
    default: [],
    step: 2,
    widens: { when: changes, why: "chooses how the program is started" },
  },
  "agent.env_allowlist": {
    about: "Variables of the caller's environment that are copied to the agent when they are set.",
    type: { kind: "list", of: "variable" },
    default: [],
    step: 2,
    widens: { when: changes, why: "hands a variable of yours to the agent" },
  },

  "sandbox.wall": {
    about:
      "What builds the sandbox. `auto` decides once and says what it chose. `engine` arrives with the engine wall.",
    type: { kind: "choice", of: ["auto", "bubblewrap", "engine"] },
    default: "auto",
    step: 1,
    // Naming bubblewrap where the owner left the choice open gives up nothing; undoing the owner's choice might.
    widens: {
      when: (wall, below) => wall !== below && !(wall === "bubblewrap" && below === "auto"),
      why: "chooses what enforces the sandbox",
    },
  },
  "sandbox.root": {
    about:
      "What is seen outside the rules: `host`, the machine's own files read-only, or `minimal`, only what programs need.",
    type: { kind: "choice", of: ["host", "minimal"] },
    default: "host",
    step: 1,
    widens: { when: becomes("host"), why: "shows the machine's files where you chose a minimal root" },
  },
  "sandbox.nesting": {
    about: "Let programs inside create user namespaces, and so sandboxes of their own.",
    type: { kind: "flag" },
    default: false,
    step: 1,
    widens: { when: becomes(true), why: "opens more of the kernel to programs inside" },
  },
  "sandbox.accept_gaps": {
    about: "Names of enforcement gaps that may pass: parts of a plan that the wall on this machine cannot enforce.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 1,
    widens: { when: changes, why: "lets the sandbox start although part of it is not enforced" },
  },
  "sandbox.grace_seconds": {
    about: "Seconds between the polite signal and SIGKILL when a sandbox is stopped.",
    type: { kind: "number", min: 0, max: 3600 },
    default: 10,
    step: 1,
    widens: "never",
  },
  "sandbox.privileged": {
    about:
      "Run the container privileged. Gives up most of the wall; `mount_dev_fuse` and `selinux_label_mode` are then ignored.",
    type: { kind: "flag" },
    default: false,
    step: 3,
    widens: { when: becomes(true), why: "gives up most of the wall" },
  },
  "sandbox.mount_dev_fuse": {
    about: "Give the container `/dev/fuse`, which containers inside it need.",
    type: { kind: "flag" },
    default: true,
    step: 3,
    // True is the default, but only saying it makes a container that holds containers.
    widens: { when: (fuse) => fuse, why: "gives a device to programs inside" },
  },
  "sandbox.selinux_label_mode": {
    about:
      "Whether SELinux labels are disabled for the container, which containers inside it need, or kept as the engine sets them.",
    type: { kind: "choice", of: ["disable_for_container", "keep_default"] },
    default: "disable_for_container",
    step: 3,
    widens: { when: becomes("disable_for_container"), why: "switches SELinux off where you kept it" },
  },

  "network.mode": {
    about:
      "`none` has no network at all, `open` has the machine's own. `network = true` is short for `open`, `network = false` for `none`.",
    type: { kind: "choice", of: ["none", "open"], later: ["allowlist", "learn"] },
    default: "none",
    step: 1,
    widens: { when: becomes("open"), why: "opens the network, so anything that can be read can be sent away" },
  },

  "filesystem.presets": {
    about: "Ready-made rules to add (`@git`), or to take away (`!@git`).",
    type: { kind: "list", of: "text" },
    default: [],
    step: 1,
    widens: {
      when: (preset) => !protectingPreset.test(preset),
      why: "takes a protection away or lets the agent write more",
    },
  },
  "filesystem.ro": {
    about: "Paths and globs that can be read but not written.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 1,
    widens: "by-path",
  },
  "filesystem.rw": {
    about: "Paths and globs that can be read and written.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 1,
    widens: "by-path",
  },
  "filesystem.exclude": {
    about: "Paths and globs that are hidden.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 1,
    widens: "by-path",
  },

  commands: {
    about:
      'What a command may do inside, by its name: `true` runs it as it is, `false` blocks it, `"@git"` (for `git` only) lets through what cannot destroy work, any other text is the path of a script that takes its place.',
    type: { kind: "record", of: "command" },
    default: { git: "@git" },
    step: 1,
    widens: { when: loosensCommand, why: "replaces a restriction on this command" },
  },

  "environment.pass": {
    about:
      "Variables of the caller's environment that programs inside may see; a `*` at the end stands for any letters, as in `LC_*`.",
    type: { kind: "list", of: "variable" },
    default: [],
    step: 1,
    widens: { when: changes, why: "hands a variable of yours to programs inside" },
  },
  "environment.set": {
    about:
      "Variables to set inside, by name. `!secret NAME` is the value of a secret; `!secret? NAME` is left out when it has none.",
    type: { kind: "record", of: "variable" },
    default: {},
    step: 1,
    widens: { when: changes, why: "changes the environment of programs inside" },
  },

  secrets: {
    about:
      "Where secrets come from, by name: `env`, a variable of the caller's environment, or `file`, the content of a file.",
    type: { kind: "record", of: "secret" },
    default: {},
    step: 1,
    widens: { when: changes, why: "makes Podbot read a secret of yours" },
  },
};

export const keys: readonly KeyEntry[] = Object.entries(table).map(([name, key]) => {
  const [first, second] = name.split(".") as [string, string?];
  return {
    name: name as KeyName,
    section: second === undefined ? undefined : first,
    leaf: second ?? first,
    default: undefined,
    ...(key as Key<unknown>),
  };
});

/** Presets that only protect. All others, and every `!@…`, are taken as grants: a preset added later must be safe by default. */
const protectingPreset = /^@(?:base|git|git-strict|lint\/.+)$/;

/**
 * Blocking restricts, and so does a preset where there was no rule. What takes a restriction's place may be weaker
 * than it, and a script is a file that is shown to programs inside, wherever it lies.
 */
function loosensCommand(rule: CommandRule, below: CommandRule | undefined): boolean {
  if (rule === below || rule === false) return false;
  return (typeof rule === "string" && !rule.startsWith("@")) || (below !== undefined && below !== true);
}

/** Saying what already holds asks for nothing. */
function changes(value: unknown, below: unknown): boolean {
  return !isDeepStrictEqual(value, below);
}

function becomes(granted: unknown): (value: unknown, below: unknown) => boolean {
  return (value, below) => value === granted && below !== granted;
}
