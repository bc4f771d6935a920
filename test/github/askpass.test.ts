// @module-tag security
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { askpassScript, tokenPathInside } from "../../src/github/askpass.ts";
import { hostsOf } from "../../src/github/hosts.ts";
import { openGitHubApp } from "../../src/github/open.ts";
import { keepFresh } from "../../src/github/refresh.ts";
import { makeSecretsDirectory, tokenFileName, writeToken } from "../../src/github/token-file.ts";
import { isClockSteady } from "../faults/thorough.ts";
import { Town, type TownOptions } from "./town.ts";

const directory = mkdtempSync(join(tmpdir(), "askpass-"));
afterAll(() => rmSync(directory, { recursive: true }));
const tokenFile = join(directory, "token");
writeFileSync(tokenFile, "the-token");

function install(at: string, text: string): string {
  writeFileSync(at, text);
  chmodSync(at, 0o755);
  return at;
}

const shells = ["sh", "bash"].filter((shell) => spawnSync(shell, ["-c", "true"]).status === 0);

describe.each(shells)("the answers to git, by %s", (shell) => {
  const script = install(
    join(directory, `askpass-${shell}`),
    askpassScript(["https://github.com", "http://127.0.0.1:8080"], tokenFile),
  );
  const ask = (...words: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(shell, [script, ...words], { encoding: "utf8" });
    return { status, stdout, stderr };
  };

  test.each([
    ["Username for 'https://github.com': ", "x-access-token\n"],
    ["Username for 'https://github.com/o/n.git': ", "x-access-token\n"],
    ["Password for 'https://x-access-token@github.com': ", "the-token"],
    ["Password for 'https://x-access-token@github.com/o/n.git': ", "the-token"],
    ["Username for 'http://127.0.0.1:8080': ", "x-access-token\n"],
    ["Password for 'http://x-access-token@127.0.0.1:8080': ", "the-token"],
  ])("%s", (prompt, answer) => {
    expect(ask(prompt)).toEqual({ status: 0, stdout: answer, stderr: "" });
  });

  test.each([
    "Username for 'https://evil.example': ",
    "Username for 'http://github.com': ",
    "Username for 'https://github.com.evil.example': ",
    "Username for 'https://github.com:444': ",
    "Username for 'https://github.com@evil.example': ",
    "Username for 'https://github.com/@evil.example': ",
    "Username for 'https://evil.example/https://github.com': ",
    "Username for 'https://evil.example' 'https://github.com': ",
    "Password for 'https://github.com': ",
    "Password for 'https://me@github.com': ",
    "Password for 'https://x-access-token@evil.example': ",
    "Password for 'https://x-access-token@github.com.evil.example': ",
    "Password for 'https://x-access-token@github.com@evil.example': ",
    "Password for 'https://x-access-token@github.com/@evil.example': ",
    "Password for 'https://me@x-access-token@github.com': ",
    "Password for 'https://evil.example/x://x-access-token@github.com': ",
    "Password for 'https://evil.example/https://x-access-token@github.com': ",
    "Password for 'http://x-access-token@github.com': ",
    "Password for 'http://x-access-token@127.0.0.1:80801': ",
    "Password for 'https://x-access-token@127.0.0.1:8080': ",
    "Password for 'ssh://x-access-token@github.com': ",
    "Password for 'https://x-access-token@github.com': and more",
    "Password for 'https://x-access-token@github.com'",
    "Password: ",
    "Enter passphrase for key '/home/me/.ssh/id': ",
    "Are you sure you want to continue connecting (yes/no)? ",
    "",
    "*",
  ])("none to %s", (prompt) => {
    const { status, stdout, stderr } = ask(prompt);
    expect([prompt, status, stdout]).toEqual([prompt, 1, ""]);
    expect(stderr).toMatch(/^podbot-askpass: [a-z' ]+\n$/);
  });

  test("none to nobody, and none where there is no token", () => {
    expect(ask()).toMatchObject({ status: 1, stdout: "" });
    const without = install(join(directory, "without"), askpassScript(["https://github.com"], "/nonexistent/token"));
    const { status, stdout, stderr } = spawnSync(
      shell,
      [without, "Password for 'https://x-access-token@github.com': "],
      { encoding: "utf8" },
    );
    expect([status, stdout, stderr]).toEqual([1, "", "podbot-askpass: there is no /nonexistent/token\n"]);
  });
});

test("the script is made for origins and paths alone", () => {
  expect(askpassScript(["https://github.com"])).toContain(tokenPathInside);
  for (const origin of ["https://a'b", "https://a b", "https://$(x)", "https://a`x`", "https://a\nb", ""]) {
    expect(() => askpassScript([origin])).toThrow(TypeError);
  }
  expect(() => askpassScript([])).toThrow(TypeError);
  expect(() => askpassScript(["https://github.com"], "/x'y")).toThrow(TypeError);
});

interface Ran {
  readonly status: number | null;
  readonly said: string;
}

/** Real git, with the helper and nothing else that knows a password. */
async function stage(options: TownOptions) {
  const town = await Town.open(options);
  onTestFinished(() => town[Symbol.asyncDispose]());
  const secrets = join(town.directory, "secrets");
  await makeSecretsDirectory(secrets);
  const { cloneUrl } = hostsOf(town.app.apiUrl);
  const helper = install(join(town.directory, "askpass"), askpassScript([cloneUrl], join(secrets, tokenFileName)));
  const env = {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: town.directory,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: helper,
    GIT_SSL_CAINFO: town.trustFile,
    GIT_AUTHOR_NAME: "Me",
    GIT_AUTHOR_EMAIL: "me@example.com",
    GIT_COMMITTER_NAME: "Me",
    GIT_COMMITTER_EMAIL: "me@example.com",
  };
  // Not by spawnSync: the town lives in this process.
  const git = (...words: readonly string[]) =>
    new Promise<Ran>((resolve) => {
      const child = spawn("git", words, { env, stdio: ["ignore", "pipe", "pipe"] });
      let said = "";
      child.stdout.on("data", (part) => (said += part));
      child.stderr.on("data", (part) => (said += part));
      child.on("close", (status) => resolve({ status, said }));
    });
  return { town, secrets, git, cloneUrl, clone: join(town.directory, "clone") };
}

const scope = { repository: "example/name", permissions: { contents: "write", metadata: "read" } } as const;

describe("git itself", () => {
  test.each([false, true])("clones and pushes with a token that it never sees in a URL (TLS: %s)", async (tls) => {
    const { town, secrets, git, cloneUrl, clone } = await stage({ tls });
    // Where TLS is not trusted by this process, the client is another's business.
    const plain = tls ? await Town.open() : town;
    if (tls) onTestFinished(() => plain[Symbol.asyncDispose]());
    const token = await (await openGitHubApp(plain.app)).tokenSource(scope).acquire();
    if (tls) town.minted.push(...plain.minted);
    // The control: without the token there is nothing to be had.
    expect((await git("clone", "-q", `${cloneUrl}/example/name.git`, clone)).said).toContain(
      "podbot-askpass: there is no",
    );
    await writeToken(secrets, token);
    expect(
      await git("clone", "-q", "--branch", "main", "--single-branch", `${cloneUrl}/example/name.git`, clone),
    ).toEqual({
      status: 0,
      said: "",
    });
    expect((await git("-C", clone, "commit", "-q", "--allow-empty", "-m", "second")).status).toBe(0);
    expect(await git("-C", clone, "push", "-q")).toEqual({ status: 0, said: "" });
    expect((await git("-C", clone, "ls-remote", "origin", "main")).said).toContain(
      (await git("-C", clone, "rev-parse", "HEAD")).said.trim(),
    );
    // Narrowed to the one repository.
    expect((await git("ls-remote", `${cloneUrl}/example/other.git`)).status).toBe(128);
    expect((await git("-C", clone, "config", "--list")).said).not.toContain(token.value);
  });

  test("is refused by a token that has ended, and let in by the next one", async () => {
    const { town, secrets, git, cloneUrl } = await stage({});
    const source = (await openGitHubApp(town.app)).tokenSource(scope);
    await writeToken(secrets, await source.acquire());
    const list = () => git("ls-remote", `${cloneUrl}/example/name.git`);
    expect((await list()).status).toBe(0);
    town.aheadMs += 3_600_000;
    expect((await list()).status).toBe(128);
    await writeToken(secrets, await source.acquire());
    expect((await list()).status).toBe(0);
  });

  test.runIf(isClockSteady)(
    "pushes on and on while its tokens end every few seconds, and is never refused",
    async () => {
      const { town, secrets, git, cloneUrl, clone } = await stage({ tokenMs: 6_000 });
      const over = new AbortController();
      onTestFinished(() => over.abort());
      const source = (await openGitHubApp(town.app)).tokenSource(scope);
      const failed: unknown[] = [];
      const freshness = keepFresh(source, (token) => writeToken(secrets, token), {
        signal: over.signal,
        report: (event) => {
          if (event.kind !== "written") failed.push(event);
        },
      });
      await freshness.first;
      expect((await git("clone", "-q", `${cloneUrl}/example/name.git`, clone)).status).toBe(0);
      let pushes = 0;
      while (town.minted.length < 5) {
        expect((await git("-C", clone, "commit", "-q", "--allow-empty", "-m", `push ${pushes}`)).status).toBe(0);
        expect(await git("-C", clone, "push", "-q")).toEqual({ status: 0, said: "" });
        pushes += 1;
        await wait(200);
      }
      over.abort();
      await freshness.done;
      expect([failed, town.git.refused]).toEqual([[], 0]);
      expect(pushes).toBeGreaterThan(3);
    },
  );
});
