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

/** Every command: what is parsed, what help says and what shells complete comes from here. */
export const commands: readonly Command[] = [
  {
    name: "sandbox",
    summary: "Run a command behind a wall of bubblewrap.",
    usage: "podbot sandbox [flags] [--] COMMAND [ARGS…]",
    takesCommand: true,
    flags: [
      { name: "ro", value: "PATH", repeatable: true, about: "Let PATH be read. Globs and ~ are understood." },
      { name: "rw", value: "PATH", repeatable: true, about: "Let PATH be read and written." },
      { name: "exclude", value: "PATH", repeatable: true, about: "Hide PATH." },
      { name: "preset", value: "NAME", repeatable: true, about: "Switch a preset on (@git-strict) or off (!@caches)." },
      { name: "network", value: "MODE", about: "none (default): loopback only. open: the host's network." },
      {
        name: "root",
        value: "STYLE",
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
      {
        name: "timeout",
        value: "TIME",
        about: "End the command after TIME (90s, 5m; a bare number is seconds); exit status 124.",
      },
      { name: "dry-run", about: "Print a script that would do the same (--json: the plan), and start nothing." },
      { name: "debug", about: "Say on stderr why each decision fell as it did." },
      { name: "quiet", short: "q", about: "No warnings." },
      { name: "json", about: "With --dry-run, print the plan; errors as JSON in any case." },
      cwd,
      config,
      help,
    ],
    examples: [
      ["podbot sandbox npm test", "without network, with only this directory writable"],
      ["podbot sandbox --network open -- claude", "an agent with network"],
      ["podbot sandbox --exclude '**/.env*' --rw ~/data -- make", "hide secrets, add a directory"],
      ["podbot sandbox --dry-run -- true", "what would be done"],
    ],
    load: () => import("./sandbox.ts"),
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
    summary: "Say what this machine can enforce, what it lacks, and what mends it.",
    usage: "podbot doctor [--json]",
    flags: [json, help],
    examples: [],
    load: () => import("./doctor.ts"),
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
];
