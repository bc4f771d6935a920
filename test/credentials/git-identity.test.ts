import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { gitIdentityCommands, readGitIdentity } from "../../src/credentials/git-identity.ts";
import { findOnPath } from "../../src/machine/programs.ts";

const git = findOnPath("git", process.env["PATH"] ?? "") ?? "/usr/bin/git";
const directory = mkdtempSync(join(tmpdir(), "podbot-identity-"));
afterAll(() => rmSync(directory, { recursive: true }));

const absent = {
  name: "git user.name is not configured on the host",
  email: "git user.email is not configured on the host",
};
let count = 0;

/** A home with this configuration, on a system that has none. */
function owner(config: string | Uint8Array | null): Record<string, string> {
  const home = join(directory, `home-${count++}`);
  mkdirSync(home);
  if (config !== null) writeFileSync(join(home, ".gitconfig"), config);
  return { HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
}

/** A program in git's place. */
function impostor(script: string): string {
  const path = join(directory, `git-${count++}`);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe("the owner's identity", () => {
  test("is what the owner's configuration says", async () => {
    const env = owner("[user]\n name = Ada Lovelace\n email = ada@example.com\n");
    expect(await readGitIdentity({ git, env })).toEqual({
      name: "Ada Lovelace",
      email: "ada@example.com",
      warnings: [],
    });
  });

  test("may come from the system, where the owner says nothing", async () => {
    const system = join(directory, "system");
    writeFileSync(system, "[user]\n name = System\n email = system@example.com\n");
    const { GIT_CONFIG_NOSYSTEM: _, ...env } = owner("[user]\n name = Owner\n");
    const identity = await readGitIdentity({ git, env: { ...env, GIT_CONFIG_SYSTEM: system } });
    expect(identity).toEqual({ name: "Owner", email: "system@example.com", warnings: [] });
  });

  test("may come from XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, or a file that the owner includes", async () => {
    const env = owner(null);
    const xdg = join(directory, "xdg");
    mkdirSync(join(xdg, "git"), { recursive: true });
    writeFileSync(join(xdg, "git/config"), "[user]\n name = Xdg\n");
    expect((await readGitIdentity({ git, env: { ...env, XDG_CONFIG_HOME: xdg } })).name).toBe("Xdg");
    const included = owner("[include]\n path = git/config\n");
    mkdirSync(join(included["HOME"] as string, "git"));
    writeFileSync(join(included["HOME"] as string, "git/config"), "[user]\n name = Included\n");
    expect((await readGitIdentity({ git, env: included })).name).toBe("Included");
    const GIT_CONFIG_GLOBAL = join(xdg, "git/config");
    expect((await readGitIdentity({ git, env: { ...included, GIT_CONFIG_GLOBAL } })).name).toBe("Xdg");
  });

  test("is absent where nothing is configured, or nothing but blanks", async () => {
    const nothing = { name: null, email: null, warnings: [absent.name, absent.email] };
    expect(await readGitIdentity({ git, env: owner(null) })).toEqual(nothing);
    expect(await readGitIdentity({ git, env: owner('[user]\n name = ""\n email = "  "\n') })).toEqual(nothing);
    expect(await readGitIdentity({ git, env: owner("[user]\n email = a@example.com\n") })).toEqual({
      name: null,
      email: "a@example.com",
      warnings: [absent.name],
    });
  });

  test.each([
    ["a newline", '[user]\n name = "Ada\\nEvil"\n email = a@example.com\n'],
    ["an escape sequence", '[user]\n name = "Ada\u001b[31m"\n email = a@example.com\n'],
    ["a control character beyond ASCII", '[user]\n name = "Ada\u009b31m"\n email = a@example.com\n'],
    ["bytes that are no text", Buffer.from('[user]\n name = "Ad\xe9"\n email = a@example.com\n', "latin1")],
  ])("with %s in it is left out with a warning", async (_, config) => {
    expect(await readGitIdentity({ git, env: owner(config) })).toEqual({
      name: null,
      email: "a@example.com",
      warnings: ["git user.name on the host is not a line of plain text and was left out"],
    });
  });

  test("is absent where git is missing, fails, or says too much", async () => {
    const env = owner("[user]\n name = Ada\n email = a@example.com\n");
    const nothing = { name: null, email: null, warnings: [absent.name, absent.email] };
    const answer = "printf 'user.name\\nAda\\000'";
    expect(await readGitIdentity({ git: join(directory, "none"), env })).toEqual(nothing);
    expect(await readGitIdentity({ git: impostor(`${answer}; exit 3`), env })).toEqual(nothing);
    expect(await readGitIdentity({ git: impostor("yes"), env })).toEqual(nothing);
    expect(await readGitIdentity({ git, env: owner("[user\n") })).toEqual(nothing);
    // The control: a program in git's place is believed if it ends well.
    expect((await readGitIdentity({ git: impostor(answer), env })).name).toBe("Ada");
  });

  test("is absent after five seconds, and a signal ends the waiting before", async () => {
    const env = owner(null);
    const slow = impostor("sleep 60 & sleep 60");
    const ending = new AbortController();
    const waiting = readGitIdentity({ git: slow, env, signal: ending.signal });
    setTimeout(() => ending.abort(new Error("enough")), 50);
    await expect(waiting).rejects.toThrow("enough");
    await expect(readGitIdentity({ git, env, signal: ending.signal })).rejects.toThrow("enough");
    expect((await readGitIdentity({ git: slow, env })).name).toBeNull();
  });
});

describe("what an agent has written in a repository", () => {
  test("is neither read nor obeyed, wherever the caller stands and whatever the environment says", async () => {
    const repository = join(directory, "repository");
    const sign = join(directory, "executed");
    const script = impostor(`touch ${sign}`);
    execFileSync(git, ["init", "-q", repository]);
    const settings = `[core]\n fsmonitor = ${script}\n pager = ${script}\n[alias]\n config = !${script}\n`;
    const identity = "[user]\n name = Evil\n email = evil@example.com\n";
    writeFileSync(join(repository, ".git/config"), settings + identity);
    const env = owner(`[includeIf "gitdir:${repository}/"]\n path = ${repository}/.git/config\n`);
    const before = process.cwd();
    process.chdir(repository);
    try {
      // The control: an ordinary git here believes the repository.
      expect(execFileSync(git, ["config", "--get", "user.name"], { env, encoding: "utf8" })).toBe("Evil\n");
      const hostile = {
        GIT_DIR: join(repository, ".git"),
        GIT_CONFIG: join(repository, ".git/config"),
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "user.name",
        GIT_CONFIG_VALUE_0: "Evil",
        GIT_CONFIG_PARAMETERS: "'user.name'='Evil'",
        GIT_WORK_TREE: repository,
        GIT_PAGER: script,
        GIT_TRACE: sign,
        PATH: repository,
      };
      for (const seen of [env, { ...env, ...hostile }]) {
        const { name, email } = await readGitIdentity({ git, env: seen });
        expect([name, email]).toEqual([null, null]);
      }
    } finally {
      process.chdir(before);
    }
    expect(existsSync(sign)).toBe(false);
  });

  test("git sees nothing of the environment but where the configuration is", async () => {
    const out = join(directory, "seen");
    const env = { ...owner(null), SECRET: "x", LD_PRELOAD: "/evil.so", XDG_CONFIG_HOME: "/x" };
    await readGitIdentity({ git: impostor(`{ /usr/bin/env; pwd; } > ${out}`), env });
    const seen = readFileSync(out, "utf8").trim().split("\n");
    const names = seen
      .map((line) => line.split("=")[0])
      .filter((name) => !["_", "PWD", "OLDPWD", "SHLVL"].includes(name ?? ""));
    expect(names.sort()).toEqual(["/", "GIT_CONFIG_NOSYSTEM", "GIT_DIR", "HOME", "LC_ALL", "PATH", "XDG_CONFIG_HOME"]);
  });
});

describe("the commands for inside", () => {
  test("are one for each part that is known", () => {
    expect(gitIdentityCommands({ name: "Ada", email: "a@example.com" })).toEqual([
      ["git", "config", "--global", "user.name", "Ada"],
      ["git", "config", "--global", "user.email", "a@example.com"],
    ]);
    expect(gitIdentityCommands({ name: null, email: "a@example.com" })).toHaveLength(1);
    expect(gitIdentityCommands({ name: null, email: null })).toEqual([]);
  });

  test.each(["Ada Lovelace", "--unset", "-l", "; rm -rf /", '"quoted" \\ $HOME', "#1", " Ä"])(
    "make git say %j again",
    async (name) => {
      const env = owner(null);
      for (const [program, ...words] of gitIdentityCommands({ name, email: "-e" }))
        execFileSync(program as string, words, { env: { ...env, PATH: process.env["PATH"] } });
      expect(await readGitIdentity({ git, env })).toEqual({ name: name.trim(), email: "-e", warnings: [] });
    },
  );
});
