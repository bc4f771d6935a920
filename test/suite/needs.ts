import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { clock } from "./soak/clock.ts";

/** Something that tests use, and what its absence costs. */
export interface Need {
  readonly what: string;
  readonly isThere: boolean;
  readonly without: string;
  readonly fix: string;
}

/** What the fast suite can use of a machine. `make test` installs the programs where it may. */
export function needs(root: string, env: Readonly<Record<string, string | undefined>>): readonly Need[] {
  const has = (program: string) => isOnPath(program, env["PATH"] ?? "");
  const program = (what: string, without: string): Need => ({
    what,
    isThere: has(what),
    without,
    fix: `install ${what}, or run \`make test\` as root or with sudo`,
  });
  const isBuilt = existsSync(join(root, "dist/podbot.cjs")) && existsSync(join(root, "native/bin"));
  return [
    {
      what: "a build",
      isThere: isBuilt,
      without: "tests that start the program or a sandbox fail; those of the pure rooms (test/policy, …) pass",
      fix: "make build",
    },
    program("bwrap", "tests behind a real wall fail"),
    {
      what: "user namespaces",
      isThere: !has("bwrap") || spawnSync("bwrap", ["--unshare-user", "--dev-bind", "/", "/", "true"]).status === 0,
      without: "tests behind a real wall fail",
      fix: "sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
    },
    program("tmux", "tests in a terminal fail (test/cli/terminal)"),
    ...["curl", "wget", "openssl", "python3", "ssh"].map((name) =>
      program(name, `tests of the gateway with ${name} fail`),
    ),
    ...["zsh", "fish"].map((name) => program(name, `tests of ${name}'s completion fail`)),
    {
      what: "libfaketime",
      isThere: clock.obstacle() === null,
      without: "the test of a clock that jumps is skipped",
      fix: "apt-get install libfaketime",
    },
    {
      what: "keytool",
      isThere: has("keytool"),
      without: "only the tests read Java's trust store; Java itself does not verify it",
      fix: "apt-get install default-jdk-headless",
    },
    {
      what: "root",
      isThere: process.getuid?.() === 0,
      without: "tests are skipped that act as another user, in directories of root's, or under the cgroup freezer",
      fix: "run as root",
    },
  ];
}

/** One line for each that is missing. */
export function missingLines(all: readonly Need[]): readonly string[] {
  return all
    .filter(({ isThere }) => !isThere)
    .map(({ what, without, fix }) => `missing here: ${what}: ${without} (${fix})`);
}

function isOnPath(program: string, path: string): boolean {
  return [...path.split(delimiter), "/usr/sbin", "/sbin"].some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
