import { agents } from "../agents/table.ts";
import type { Command, Flag } from "./command.ts";

const help: Flag = { name: "help", short: "h", about: "Show this help." };
const json: Flag = { name: "json", about: "Print JSON." };
const cwd: Flag = { name: "cwd", short: "C", value: "DIR", about: "Work in DIR instead of the current directory." };
const config: Flag = {
  name: "config",
  short: "c",
  value: "FILE",
  about: "Use FILE instead of the project's .podbot/config.*; it is trusted.",
};

/** What may be seen, written and reached: the same for every command that builds a wall. */
const policy: readonly Flag[] = [
  { name: "ro", value: "PATH", repeatable: true, about: "Let PATH be read. Globs and ~ are understood." },
  { name: "rw", value: "PATH", repeatable: true, about: "Let PATH be read and written." },
  { name: "exclude", value: "PATH", repeatable: true, about: "Hide PATH." },
  { name: "preset", value: "NAME", repeatable: true, about: "Switch a preset on (@git-strict) or off (!@caches)." },
  {
    name: "network",
    value: "MODE",
    choices: ["none", "allowlist", "learn", "open"],
    about:
      "allowlist (default): what rules name. none: loopback only. learn: everything public, noted. open: the host's network; in a container the engine's.",
  },
  {
    name: "allow",
    value: "HOST[:PORT]",
    repeatable: true,
    about:
      "Let HOST be reached, at ports 80 and 443 or at PORT; *.HOST: what lies below it. Means --network allowlist.",
  },
  {
    name: "root",
    value: "STYLE",
    choices: ["host", "minimal"],
    about: "host (default): the host's root, read-only. minimal: programs and a home of its own.",
  },
  {
    name: "cmd",
    value: "NAME=RULE",
    repeatable: true,
    about: "Wrap a command: false blocks, true leaves alone, @git guards, a path replaces.",
  },
  { name: "env", value: "NAME[=VALUE]", repeatable: true, about: "Pass a variable on, or set it." },
  { name: "docker", about: "Hand the container engine's socket in. Whoever reaches it controls the host." },
];
/** What builds the wall. */
const wall: readonly Flag[] = [
  {
    name: "wall",
    value: "WALL",
    choices: ["auto", "bubblewrap", "engine"],
    about: "bubblewrap, or engine: a container. auto (default): engine where an image is named.",
  },
  { name: "image", value: "IMAGE", about: "The container image for the engine wall." },
  {
    name: "engine-socket",
    value: "URL",
    about: "The container engine: unix://, tcp://, https://, ssh:// or a path. Default: the usual places.",
  },
];
const timeout: Flag = {
  name: "timeout",
  value: "TIME",
  about: "End the command after TIME (90s, 5m; a bare number is seconds); exit status 124.",
};
const dryRun: Flag = {
  name: "dry-run",
  about: "Print a script that would do the same (--json: the plan), and start nothing.",
};
const debug: Flag = { name: "debug", about: "Say on stderr why each decision fell as it did." };
const quiet: Flag = { name: "quiet", short: "q", about: "No warnings and no progress." };
const noTty: Flag = { name: "no-tty", about: "Pipes instead of a terminal, also where there is one." };
const agent: Flag = {
  name: "agent",
  value: "NAME",
  choices: [...agents.map(({ name }) => name), "custom"],
  about: "The agent to run; custom: the command after --. Default: agent.kind of the configuration.",
};
const agentMode: Flag = {
  name: "agent-mode",
  value: "MODE",
  choices: ["podbot"],
  about: "How the agent is run: podbot, itself and on your terminal. Default: agent.mode of the configuration.",
};
const hostedMode: Flag = {
  name: "agent-mode",
  value: "MODE",
  choices: ["acp", "codex_app_server"],
  about: "The protocol that the agent speaks. Default: agent.mode of the configuration, else acp.",
};
const delegation: Flag = {
  name: "acp-delegation",
  value: "WHAT",
  choices: ["disabled", "allow_fs", "allow_terminal", "allow_all"],
  about:
    "What the agent may have its client do on the client's machine, outside the wall. disabled (default): nothing.",
};
const workspace: Flag = {
  name: "workspace",
  value: "DIR",
  about: "The directory to work in. Default: the current one.",
};

/** What a session has of GitHub's. */
const github: readonly Flag[] = [
  {
    name: "repo",
    value: "OWNER/NAME",
    about: "Work on a clone of this repository of GitHub's, which is gone with the session. Needs --branch.",
  },
  { name: "branch", value: "BRANCH", about: "The branch that is cloned." },
  {
    name: "github-token",
    about: "Give git a token in a directory of yours, too, for the repository of its origin. --repo means it.",
  },
];

/** Every command: what is parsed, what help says and what shells complete comes from here. */
export const commands: readonly Command[] = [
  {
    name: "sandbox",
    summary: "Run a command behind a wall: bubblewrap, or a container.",
    usage: "podbot sandbox [flags] [--] COMMAND [ARGS…]",
    takesCommand: true,
    flags: [
      ...policy,
      ...wall,
      timeout,
      dryRun,
      debug,
      quiet,
      { name: "json", about: "With --dry-run, print the plan; errors as JSON in any case." },
      cwd,
      config,
      help,
    ],
    examples: [
      ["podbot sandbox npm test", "reaching nobody, with only this directory writable"],
      ["podbot sandbox --allow example.com -- curl https://example.com", "reaching one host"],
      ["podbot sandbox --exclude '**/.env*' --rw ~/data -- make", "hide secrets, add a directory"],
      ["podbot sandbox --dry-run -- true", "what would be done"],
    ],
    load: () => import("./sandbox.ts"),
  },
  {
    name: "run",
    summary: "Start an agent in a session of its own.",
    usage: "podbot run [flags] [--] [ARGS…]",
    takesCommand: true,
    flags: [
      agent,
      agentMode,
      { name: "detach", short: "d", about: "Leave it running and print the session's id." },
      noTty,
      ...policy,
      ...wall,
      timeout,
      dryRun,
      debug,
      quiet,
      { name: "json", about: "With --detach, print the session as JSON; with --dry-run, the plan." },
      workspace,
      ...github,
      cwd,
      config,
      help,
    ],
    examples: [
      ["podbot run --agent custom -- bash", "a shell behind the wall"],
      ["podbot run --repo octocat/hello --branch main --agent claude", "on a clone of its own, with a token for it"],
      ["podbot run --agent claude", "a known agent of this machine; its model is in reach"],
      ["podbot run --detach --agent custom -- make test", "in the background; podbot logs shows what it says"],
      ["podbot run --image localhost/dev --agent custom -- bash", "in a container"],
    ],
    load: () => import("./run.ts"),
  },
  {
    name: "host",
    summary: "Start an agent as a server that an editor speaks with.",
    usage: "podbot host [flags] [--] [ARGS…]",
    takesCommand: true,
    flags: [
      agent,
      hostedMode,
      delegation,
      ...policy,
      ...wall,
      dryRun,
      debug,
      {
        name: "quiet",
        short: "q",
        about: "Nothing on stderr but errors, what the agent says there, and changes of trust.",
      },
      { name: "json", about: "With --dry-run, print the plan; errors as JSON in any case." },
      workspace,
      ...github,
      cwd,
      config,
      help,
    ],
    examples: [
      ["podbot host --agent claude", "for an editor that speaks the Agent Client Protocol"],
      ["podbot host --agent codex --agent-mode codex_app_server", "for a client of Codex's own protocol"],
      ["podbot host --agent custom -- ./my-agent --acp", "any other agent"],
    ],
    load: () => import("./host.ts"),
  },
  {
    name: "exec",
    summary: "Run a command in a session.",
    usage: "podbot exec [flags] SESSION [--] COMMAND [ARGS…]",
    words: ["session"],
    completes: "session",
    takesCommand: true,
    flags: [
      { name: "detach", short: "d", about: "Without input and output; waits for the command all the same." },
      noTty,
      { name: "env", value: "NAME[=VALUE]", repeatable: true, about: "Pass a variable on, or set it." },
      timeout,
      {
        name: "cwd",
        short: "C",
        value: "DIR",
        about: "Work in DIR, a path inside, instead of the session's directory.",
      },
      json,
      help,
    ],
    examples: [
      ["podbot exec k3 bash", "a shell beside the agent; ids may be abbreviated"],
      ["podbot exec k3 -- git status --short", ""],
    ],
    load: () => import("./exec.ts"),
  },
  {
    name: "ps",
    summary: "List the sessions and how they are.",
    usage: "podbot ps [--json | --quiet]",
    flags: [json, { name: "quiet", short: "q", about: "Only the ids." }, help],
    examples: [],
    load: () => import("./ps.ts"),
  },
  {
    name: "logs",
    summary: "Show what a session's agent has printed.",
    usage: "podbot logs [--follow] [--json] SESSION",
    words: ["session"],
    completes: "session",
    flags: [
      { name: "follow", short: "f", about: "Go on until the session ends." },
      { name: "json", about: "Print JSON lines: time, process, stream, and the very bytes." },
      help,
    ],
    examples: [],
    load: () => import("./logs.ts"),
  },
  {
    name: "audit",
    summary: "Show what a run has asked for on the network, and what became of it.",
    usage: "podbot audit [--follow] [--all] [--json] [SESSION]",
    words: ["session?"],
    completes: "session",
    flags: [
      { name: "follow", short: "f", about: "Go on until the run ends." },
      { name: "all", short: "a", about: "Also the names that were looked up." },
      { name: "json", about: "Print the lines as they were written, and what is open or lost: JSON, all of it." },
      help,
    ],
    examples: [
      ["podbot audit", "of the run that last asked for something"],
      ["podbot audit --follow k3", "ids may be abbreviated"],
    ],
    load: () => import("./audit.ts"),
  },
  {
    name: "policy",
    summary: "Suggest the network rules that a run would have needed; have a session go by the rules of now.",
    usage: "podbot policy suggest [--hosts-only] [--json] [SESSION] | reload SESSION",
    words: ["verb", "session?"],
    flags: [{ name: "hosts-only", about: "Hosts alone, without methods and paths." }, json, help],
    examples: [
      ["podbot policy suggest", "of the run that last asked for something"],
      ["podbot policy reload k3", "after a change of the configuration"],
    ],
    load: () => import("./policy.ts"),
  },
  {
    name: "stop",
    summary: "End sessions and remove what is left of them.",
    usage: "podbot stop [--all | --ended] [--time TIME] [SESSION…]",
    words: ["session…?"],
    completes: "session",
    flags: [
      { name: "all", short: "a", about: "Every session of yours, also what crashes have left." },
      { name: "ended", about: "Those that have ended or died: removes their records and logs." },
      { name: "time", short: "t", value: "TIME", about: "How long processes may take to end (10s by default)." },
      json,
      help,
    ],
    examples: [
      ["podbot stop k3", ""],
      ["podbot stop --all", "leaves a clean machine"],
    ],
    load: () => import("./stop.ts"),
  },
  {
    name: "keep",
    summary: "Own a session in this process, as `run --detach` has it done in the background.",
    usage: "podbot keep [flags of run] [--] [ARGS…]",
    takesCommand: true,
    flags: [agent, agentMode, ...policy, ...wall, timeout, debug, quiet, json, workspace, ...github, cwd, config, help],
    examples: [["podbot keep --agent custom -- ./serve", "under a supervisor such as systemd"]],
    load: () => import("./keep.ts"),
  },
  {
    name: "token-daemon",
    summary: "Keep the GitHub tokens of sessions fresh whose keepers do not.",
    usage: "podbot token-daemon [--json] --all | SESSION…",
    words: ["session…?"],
    completes: "session",
    flags: [
      { name: "all", short: "a", about: "Every session of yours, also those that begin later." },
      { name: "json", about: "Print JSON lines." },
      help,
    ],
    examples: [["podbot token-daemon --all", "as docs/github.md has systemd do it"]],
    load: () => import("./token-daemon.ts"),
  },
  {
    name: "github",
    summary: "Say whether GitHub gives tokens: key, App, installation, permissions and clock.",
    usage: "podbot github check [--json] [OWNER/NAME]",
    words: ["check", "repository?"],
    flags: [json, cwd, config, help],
    examples: [["podbot github check octocat/hello-world", "and whether the App is installed on it"]],
    load: () => import("./github.ts"),
  },
  {
    name: "check",
    summary: "Say whether this is the inside of a sandbox.",
    usage: "podbot check [--quiet] [--json]",
    flags: [{ name: "quiet", short: "q", about: "Only the exit status: 0 inside, 1 outside." }, json, help],
    examples: [["podbot check && echo walled in", ""]],
    load: () => import("./check.ts"),
  },
  {
    name: "doctor",
    summary: "Say what this machine can enforce, what it lacks, which versions have known holes, and what mends it.",
    usage: "podbot doctor [--json]",
    flags: [json, help],
    examples: [],
    load: () => import("./doctor.ts"),
  },
  {
    name: "agents",
    summary: "List the agents that Podbot knows, and which of them can be used here.",
    usage: "podbot agents [--json]",
    flags: [json, help],
    examples: [],
    load: () => import("./agents.ts"),
  },
  {
    name: "demo",
    summary: "Watch a scripted agent work, and be stopped, in a throwaway repository.",
    usage: "podbot demo",
    flags: [json, help],
    examples: [],
    load: () => import("./demo/demo.ts"),
  },
  {
    name: "image",
    summary: "Build the container image that agents work in, or show what is in it.",
    usage: "podbot image build [flags] | podbot image show [--tag NAME] [--json]",
    words: ["build|show"],
    flags: [
      {
        name: "agents",
        value: "NAMES",
        about: "The agents in it, with commas between them; all, or none. Default: claude,codex.",
      },
      {
        name: "base",
        value: "BASE",
        about:
          "An image of Debian to build on; debian: a root that is made here. auto (default): Debian's public image, else such a root.",
      },
      { name: "tag", value: "NAME", about: "What to call it. Default: localhost/podbot:latest." },
      { name: "fresh", about: "Take nothing from earlier builds: the newest packages." },
      { name: "host-network", about: "Let the build use this machine's own network." },
      ...wall.filter(({ name }) => name === "engine-socket"),
      quiet,
      json,
      cwd,
      config,
      help,
    ],
    examples: [
      ["podbot image build", "with Claude Code and Codex"],
      ["podbot image build --agents all --base debian", "all agents, without a registry"],
      ["podbot run --image localhost/podbot --agent claude", "work in it"],
    ],
    load: () => import("./image.ts"),
  },
  {
    name: "config",
    summary: "Show the effective configuration, each value with its layer.",
    usage: "podbot config show [--json]",
    words: ["show"],
    flags: [json, cwd, config, help],
    examples: [],
    load: () => import("./config.ts"),
  },
  {
    name: "trust",
    summary: "Accept the project's configuration as it is now.",
    usage: "podbot trust [--list | --revoke] [--json]",
    flags: [
      { name: "list", about: "List what has been trusted." },
      { name: "revoke", about: "Take the trust back." },
      json,
      cwd,
      help,
    ],
    examples: [],
    load: () => import("./trust.ts"),
  },
  {
    name: "completion",
    summary: "Print a script that lets a shell complete podbot's commands.",
    usage: "podbot completion bash|zsh|fish",
    words: ["shell?"],
    flags: [help],
    examples: [["podbot completion bash > ~/.local/share/bash-completion/completions/podbot", "once, for bash"]],
    load: async () => (await import("./completion.ts")).completionOf(commands),
  },
];
