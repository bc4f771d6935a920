// @module-tag security
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { FilesystemError } from "../../src/errors.ts";
import { failureOf, Home, isRoot } from "./home.ts";

async function refusal(promise: Promise<unknown>): Promise<FilesystemError> {
  const error = await promise.then(
    () => new Error("Nothing was refused."),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FilesystemError);
  const refused = error as FilesystemError;
  expect(refused.code).toBe("FILESYSTEM");
  expect(refused.hint).toBeTruthy();
  return refused;
}

/** Without root's right to read everything. */
async function asOrdinary<T>(action: () => Promise<T>): Promise<T> {
  if (!isRoot) return await action();
  process.seteuid?.(65534);
  try {
    return await action();
  } finally {
    process.seteuid?.(0);
  }
}

describe("a source", () => {
  test("that is a fifo or behind a file is an error that names it", async () => {
    const home = new Home();
    const fifo = join(home.path, ".claude");
    execFileSync("mkfifo", [fifo]);
    const error = await refusal(home.pack([".codex", ".claude"]));
    expect(error.message).toBe(
      `The credentials in ${JSON.stringify(fifo)} cannot be copied: it is neither a directory nor a file.`,
    );
    expect(error.details).toEqual({ path: fifo });
    home.file(".codex");
    expect((await refusal(home.pack([".codex/below"]))).message).toContain("ENOTDIR");
    rmSync(fifo);
    mkdirSync(fifo);
    expect((await home.pack([".claude"])).paths).toEqual(["/root/.claude"]);
  });

  test.each(["", ".", "..", "/etc", "../x", "a/../b", "a//b", "a/", "./a", "a\0b"])("is not named %j", async (name) => {
    expect((await refusal(new Home().pack([name]))).message).toContain("does not lie below the home");
  });

  test("that is a link to a directory of the caller is followed, as managers of dotfiles make it", async () => {
    const home = new Home();
    home.file("dotfiles/claude/settings.json", "linked");
    symlinkSync("dotfiles/claude", join(home.path, ".claude"));
    const { paths } = await home.pack([".claude"]);
    expect(paths).toEqual(["/root/.claude"]);
    const target = await home.unpack(await home.archive([".claude"]));
    execFileSync("diff", ["-r", join(home.path, "dotfiles/claude"), join(target, ".claude")]);
  });

  test("that is a link to a file of the caller is followed, where it stands in the home itself", async () => {
    const home = new Home();
    home.file("dotfiles/claude.json", "linked");
    symlinkSync("dotfiles/claude.json", join(home.path, ".claude.json"));
    const target = await home.unpack(await home.archive([".claude.json"]));
    execFileSync("diff", [join(home.path, "dotfiles/claude.json"), join(target, ".claude.json")]);
  });

  test("that is a link deeper in the home is refused, for an agent could have made it", async () => {
    const home = new Home();
    const key = home.file(".ssh/id_ed25519", "SECRET");
    home.file(".local/share/agent/other.json");
    const link = join(home.path, ".local/share/agent/auth.json");
    symlinkSync(key, link);
    const error = await refusal(home.pack([".local/share/agent/auth.json"]));
    expect(error.message).toContain("it is a link in a directory that agents write to");
    rmSync(link);
    home.file(".local/share/agent/auth.json", "mine");
    expect((await buffer(await home.archive([".local/share/agent/auth.json"]))).includes("mine")).toBe(true);
  });

  test("below a link is followed to what is the caller's own", async () => {
    const home = new Home();
    home.file("dotfiles/agent/config.yaml", "linked");
    mkdirSync(join(home.path, ".config"));
    symlinkSync("../dotfiles/agent", join(home.path, ".config/agent"));
    const target = await home.unpack(await home.archive([".config/agent/config.yaml"]));
    execFileSync("diff", [join(home.path, "dotfiles/agent/config.yaml"), join(target, ".config/agent/config.yaml")]);
    symlinkSync("/etc", join(home.path, ".config/foreign"));
    const foreign = home.pack([".config/foreign/hostname"]);
    if (isRoot) expect((await foreign).paths).toHaveLength(1);
    else expect((await refusal(foreign)).message).toContain("another user's");
  });

  test("that is a link elsewhere is refused", async () => {
    const home = new Home();
    const link = join(home.path, ".claude");
    const linkTo = (target: string) => {
      rmSync(link, { force: true });
      symlinkSync(target, link);
      return refusal(home.pack([".claude"]));
    };
    expect((await linkTo("nowhere")).message).toContain("leads nowhere");
    expect((await linkTo(".claude")).message).toContain("leads nowhere");
    execFileSync("mkfifo", [join(home.path, "fifo")]);
    expect((await linkTo("fifo")).message).toContain("does not lead to a directory or file");
    expect((await linkTo(".")).message).toContain("leads to the home itself");
    expect((await linkTo("..")).message).toContain("leads to the home itself");
    const foreign = join(home.directory, "foreign");
    mkdirSync(foreign);
    if (isRoot) chownSync(foreign, 65534, 65534);
    const error = await linkTo(isRoot ? foreign : "/etc");
    expect(error.message).toBe(
      `The credentials in ${JSON.stringify(link)} cannot be copied: the link leads to what is another user's.`,
    );
    // The control: the same directory, once it is the caller's.
    if (isRoot) chownSync(foreign, 0, 0);
    rmSync(link);
    symlinkSync(foreign, link);
    expect((await home.pack([".claude"])).paths).toEqual(["/root/.claude"]);
  });

  test("that is a file is read as it was found, or not at all", async () => {
    const home = new Home();
    const source = home.file(".claude.json", "mine");
    const [replaced, fifo, kept] = [
      await home.archive([".claude.json"]),
      await home.archive([".claude.json"]),
      await home.archive([".claude.json"]),
    ];
    renameSync(source, `${source}-aside`);
    home.file(".claude.json", "SECRET");
    expect((await failureOf(replaced)).message).toContain("replaced meanwhile");
    rmSync(source);
    execFileSync("mkfifo", [source]);
    expect((await failureOf(fifo)).message).toContain("replaced meanwhile");
    rmSync(source);
    renameSync(`${source}-aside`, source);
    expect((await buffer(kept)).includes("mine")).toBe(true);
    expect(home.opened()).toEqual([]);
  });

  test("that is replaced or gone before it is read is an error, for its path was promised", async () => {
    const home = new Home();
    home.file(".claude/file");
    home.file("elsewhere/secret", "SECRET");
    const source = join(home.path, ".claude");
    const [replaced, linked, gone, kept] = [
      await home.archive([".claude"]),
      await home.archive([".claude"]),
      await home.archive([".claude"]),
      await home.archive([".claude"]),
    ];
    renameSync(source, `${source}-aside`);
    expect((await failureOf(gone)).message).toContain("cannot be opened (ENOENT)");
    symlinkSync("elsewhere", source);
    expect((await failureOf(linked)).message).toMatch(/cannot be opened \((ELOOP|ENOTDIR)\)/);
    rmSync(source);
    renameSync(join(home.path, "elsewhere"), source);
    expect((await failureOf(replaced)).message).toContain("replaced meanwhile");
    renameSync(source, join(home.path, "elsewhere"));
    renameSync(`${source}-aside`, source);
    expect((await buffer(kept)).includes("content")).toBe(true);
    expect(home.opened()).toEqual([]);
  });
});

describe("what cannot be read", () => {
  test.each([
    [".claude/closed/file", ".claude/closed", 0o000],
    [".claude/a file", ".claude/a file", 0o200],
  ])("%j is an error that names %j, and not what is in it", async (file, closed, mode) => {
    const home = new Home();
    home.file(file, "SECRET");
    const path = join(home.path, closed);
    chmodSync(path, mode);
    await asOrdinary(async () => {
      const error = (await failureOf(await home.archive([".claude"]))) as FilesystemError;
      expect(error).toBeInstanceOf(FilesystemError);
      expect(error.message).toBe(`Copying ${JSON.stringify(path)} into the sandbox failed: EACCES.`);
      expect(error.details).toEqual({ path });
      expect(JSON.stringify(error)).not.toContain("SECRET");
      expect(home.opened()).toEqual([]);
    });
    chmodSync(path, 0o755);
    await asOrdinary(async () => {
      expect((await buffer(await home.archive([".claude"]))).includes("SECRET")).toBe(true);
    });
  });

  test("a home that may not be searched is an error, and not an absence", async () => {
    const home = new Home();
    home.file(".claude/file");
    chmodSync(home.path, 0o000);
    await asOrdinary(async () => {
      expect((await refusal(home.pack([".claude"]))).message).toContain("cannot be looked at (EACCES)");
    });
    chmodSync(home.path, 0o755);
    await asOrdinary(async () => expect((await home.pack([".claude"])).paths).toHaveLength(1));
  });

  test("a tree that is deeper than any path is an error", async () => {
    const home = new Home();
    const deepest = `cd ${JSON.stringify(home.path)} && mkdir .claude && cd .claude && d=$(printf '%0200d' 0) && for i in $(seq 19); do mkdir $d && cd $d; done`;
    execFileSync("bash", ["-c", deepest]);
    expect((await buffer(await home.archive([".claude"]))).length).toBeGreaterThan(10_000);
    execFileSync("bash", [
      "-c",
      `${deepest.replace("mkdir .claude &&", "").replace("mkdir $d &&", "")} && mkdir -p $d/$d && cd $d`,
    ]);
    const error = await failureOf(await home.archive([".claude"]));
    expect(error.message).toMatch(/its path is too long\.$/);
    expect(home.opened()).toEqual([]);
  });
});
