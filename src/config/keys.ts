import type { Key, KeyEntry, KeyName, ValueOf } from "./key-types.ts";
import {
  becomes,
  changes,
  delegatesMore,
  exceeds,
  loosensCommand,
  opensNetwork,
  permitsMore,
  protectingPreset,
} from "./loosens.ts";

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
  "github.api_url": {
    about:
      "GitHub's API. Of an Enterprise server it is `https://HOST/api/v3`, and its repositories are cloned from HOST.",
    type: { kind: "text" },
    default: "https://api.github.com",
    step: 7,
    widens: { when: changes, why: "chooses the server that repositories and tokens come from" },
  },
  "github.permissions": {
    about:
      "What tokens may do in their one repository, by GitHub's names: `read`, `write`, or `none` to take one away. The App must have all of them.",
    type: { kind: "record", of: "permission" },
    default: { contents: "write", metadata: "read" },
    step: 7,
    widens: { when: permitsMore, why: "lets the agent do more on GitHub" },
  },
  "github.token": {
    about:
      "`file` puts the token into the box, where git finds it; `masked` a surrogate, which the gateway replaces on the way to GitHub.",
    type: { kind: "choice", of: ["file", "masked"] },
    default: "file",
    step: 7,
    widens: { when: becomes("file"), why: "hands the token itself in where you had it masked" },
  },

  "workspace.source": {
    about:
      "Where the agent's source code comes from: a clone of its own, a directory of this machine, or nowhere (`empty`: a directory in the container that is gone afterwards).",
    type: { kind: "choice", of: ["github_clone", "host_mount", "empty"] },
    default: "github_clone",
    step: 3,
    widens: { when: changes, why: "changes which files of this machine the agent works on" },
  },
  "workspace.base_dir": {
    about: "Directory inside that `github_clone` clones into, and that `empty` makes. Absolute.",
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
    about:
      "Where `host_mount` puts that directory inside. Absolute. As long as nobody sets it, a workspace that was named on the command line keeps its own path.",
    type: { kind: "text" },
    default: "/workspace",
    step: 3,
    widens: { when: changes, why: "moves the workspace" },
  },

  "mounts.allowed_roots": {
    about:
      "Directories of this machine below which `workspace.host_path` may lie, each absolute or from `~` on. The directory that you stand in, or name with `--workspace`, needs no entry.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 3,
    widens: { when: changes, why: "lets more directories of this machine be shown to the agent" },
  },

  "creds.copy_claude": {
    about:
      "Copy Claude Code's credentials into the container: `~/.claude` and `~/.claude.json` for `claude`, `~/.claude` for a `custom` agent.",
    type: { kind: "flag" },
    default: true,
    step: 3,
    widens: { when: becomes(true), why: "hands Claude Code's credentials to the agent" },
  },
  "creds.copy_codex": {
    about: "Copy Codex's credentials (`~/.codex`) into the container, for `codex` and for a `custom` agent.",
    type: { kind: "flag" },
    default: true,
    step: 3,
    widens: { when: becomes(true), why: "hands Codex's credentials to the agent" },
  },
  "creds.copy_agent": {
    about:
      "Copy the credentials of any other known agent into the container, if it is the one that is run. docs/agents.md says which files these are.",
    type: { kind: "flag" },
    default: true,
    step: 4,
    widens: { when: becomes(true), why: "hands the agent's credentials to it" },
  },

  "creds.mode": {
    about:
      "`copy` hands credentials in as they are; `masked` puts surrogates in their place, which the gateway replaces on the way to the hosts that they are for.",
    type: { kind: "choice", of: ["copy", "masked"] },
    default: "copy",
    step: 5,
    widens: { when: becomes("copy"), why: "hands real credentials in where you had them masked" },
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
  "agent.permissive": {
    about:
      "Start a known agent so that it asks for no permission: the wall is the boundary. `false` leaves it its own questions.",
    type: { kind: "flag" },
    default: true,
    step: 4,
    widens: { when: becomes(true), why: "lets the agent act without asking" },
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

  "acp.delegation": {
    about:
      'What an agent that is hosted for an editor may have the editor do on its own machine, outside the wall: nothing (`disabled`), read and write files (`allow_fs`), run commands (`allow_terminal`), or both and all else that the protocol knows (`allow_all`). Only with `agent.mode = "acp"`.',
    type: { kind: "choice", of: ["disabled", "allow_fs", "allow_terminal", "allow_all"] },
    default: "disabled",
    step: 6,
    widens: { when: delegatesMore, why: "lets the agent reach around the wall, through your editor" },
  },

  "sandbox.wall": {
    about:
      "What builds the sandbox: bubblewrap on this machine, or a container engine. `auto` takes the engine where `image` or `engine_socket` is set, or where an agent is only in Podbot's own image; else bubblewrap.",
    type: { kind: "choice", of: ["auto", "bubblewrap", "engine"] },
    default: "auto",
    step: 1,
    // Even bubblewrap: the owner may have named an image, and means a container.
    widens: {
      when: (wall, below) => wall !== below,
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
    about:
      'Give the container `/dev/fuse`, which containers inside it need. Only where it is set: then it means `containers = "inner"`.',
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
  "sandbox.containers": {
    about:
      "`inner` lets programs inside run containers of their own: `/dev/fuse`, SYS_ADMIN and MKNOD, in a user namespace of the box's own. Setting `mount_dev_fuse` means the same.",
    type: { kind: "choice", of: ["none", "inner"] },
    default: "none",
    step: 3,
    widens: { when: becomes("inner"), why: "gives capabilities and a device to programs inside" },
  },
  "sandbox.read_only_root": {
    about: "Make the container's own files read-only, but for the home, `/tmp`, `/var/tmp` and `/run`.",
    type: { kind: "flag" },
    default: false,
    step: 3,
    widens: { when: becomes(false), why: "makes the container's files writable where you had them read-only" },
  },
  "sandbox.runtime": {
    about: "The OCI runtime that the engine uses: `runc`, `crun`, `runsc` and so on. Unset, the engine's own choice.",
    type: { kind: "text" },
    step: 3,
    widens: { when: changes, why: "chooses what enforces the container" },
  },
  "sandbox.limits": {
    about:
      "What happens where a limit cannot be enforced: `best-effort` warns, `require` starts nothing. docs/engines.md says which wall enforces what.",
    type: { kind: "choice", of: ["best-effort", "require"] },
    default: "best-effort",
    step: 3,
    widens: { when: becomes("best-effort"), why: "lets the sandbox start without its limits" },
  },
  "sandbox.memory_mb": {
    about: "Memory that everything inside may use together, in MiB, without swap.",
    type: { kind: "integer", min: 16 },
    step: 3,
    widens: { when: exceeds, why: "lets programs inside use more memory" },
  },
  "sandbox.cpus": {
    about: "Processors that everything inside may use together: `1.5` is one and a half.",
    type: { kind: "number", min: 0.01, max: 4096 },
    step: 3,
    widens: { when: exceeds, why: "lets programs inside use more processor time" },
  },
  "sandbox.pids": {
    about: "Processes and threads that there may be inside at once.",
    type: { kind: "integer", min: 8 },
    step: 3,
    widens: { when: exceeds, why: "lets programs inside start more processes" },
  },
  "sandbox.ulimits": {
    about: 'Limits of each process inside: `"nofile=1024"` or `"nofile=1024:2048"`, soft and hard.',
    type: { kind: "list", of: "text" },
    default: [],
    step: 3,
    widens: { when: changes, why: "changes the limits of processes inside" },
  },
  "sandbox.pool": {
    about:
      "How many boxes a program that stays keeps prepared, so that a session starts at once. For plans that mount no directory of yours.",
    type: { kind: "integer", min: 0 },
    default: 0,
    step: 3,
    widens: { when: exceeds, why: "keeps more boxes running" },
  },

  "network.mode": {
    about:
      "`none` has no network at all, `allowlist` what presets, domains and rules name, `learn` everything public, and notes what was asked for, `open` the machine's own. `network = true` is short for `open`, `network = false` for `none`.",
    type: { kind: "choice", of: ["none", "allowlist", "learn", "open"] },
    default: "allowlist",
    step: 5,
    widens: { when: opensNetwork, why: "opens the network, so anything that can be read can be sent away" },
  },
  "network.presets": {
    about:
      "Ready-made rules of `allowlist` to add (`@github`), or to take away again (`!@github`). Those of package managers (`@npm`) take their hosts from this machine's own settings.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 5,
    widens: { when: (preset) => !preset.startsWith("!"), why: "lets programs inside reach more hosts" },
  },
  "network.domains": {
    about:
      "Hosts that may be reached at ports 80 and 443, or at the one that is named: `api.example.org`, `*.example.org`, `db.example.org:5432`.",
    type: { kind: "list", of: "text" },
    default: [],
    step: 5,
    widens: { when: () => true, why: "lets programs inside reach more hosts" },
  },
  "network.rules": {
    about:
      "Finer rules, each a table: `host`, `port` or `ports`, `path` or `paths`, `methods`, `deny` to refuse what another rule allows, `local` for names that lead to private addresses.",
    type: { kind: "rules" },
    default: [],
    step: 5,
    widens: { when: ({ deny }) => deny !== true, why: "lets programs inside reach more" },
  },
  "network.reach": {
    about:
      'Where a name is dialled, whatever it resolves to: `"db" = "127.0.0.1:5432"` leads to a server on this machine. Whether it may be reached, the rules say.',
    type: { kind: "record", of: "address" },
    default: {},
    step: 5,
    widens: { when: changes, why: "leads programs inside to an address of your own network" },
  },

  "network.upstream_proxy": {
    about:
      "The proxy by which Podbot itself reaches the world, for boxes and for GitHub: `environment` takes HTTPS_PROXY, HTTP_PROXY or ALL_PROXY of whoever starts it, `none` dials everything itself, `http://[user:password@]host:port` or `https://…` is one. NO_PROXY names what is reached without it.",
    type: { kind: "text" },
    default: "environment",
    step: 5,
    widens: { when: changes, why: "chooses whom everything that is sent goes through" },
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
      "Where secrets come from, by name: `env`, a variable of the caller's environment, `file`, the content of a file, `command`, what a program prints, or `keyring`, the entry `service/account`. With `hosts`, the box gets a surrogate, and the value is put in on the way there: in `headers`, below `paths`.",
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
