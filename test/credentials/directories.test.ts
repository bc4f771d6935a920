import { existsSync, lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { packDirectories } from "../../src/credentials/directories.ts";
import { tar } from "./home.ts";

function scratch(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-directories-")));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const archive = (paths: readonly string[], owner = { uid: 1234, gid: 5678 }) =>
  Readable.from(packDirectories(paths, owner));

describe("an archive of empty directories", () => {
  test("is unpacked by tar to those directories, each of its owner's", async () => {
    const directory = scratch();
    const isRoot = process.getuid?.() === 0;
    await tar(
      ["-x", "-C", directory, isRoot ? "--same-owner" : "--no-same-owner", "-p"],
      archive(["/home/podbot", "/work"]),
    );
    const shown = (await tar(["-t", "-v", "--numeric-owner"], archive(["/home/podbot", "/work"]))).toString();
    expect(shown.match(/1234\/5678/g)).toHaveLength(2);
    for (const path of ["home/podbot", "work"]) {
      const stats = lstatSync(join(directory, path));
      expect(stats.isDirectory()).toBe(true);
      // Only root can give files away.
      if (isRoot) expect(stats).toMatchObject({ uid: 1234, gid: 5678 });
      expect(stats.mode & 0o7777).toBe(0o755);
      expect(readdirSync(join(directory, path))).toEqual([]);
    }
    expect(readdirSync(directory).sort()).toEqual(["home", "work"]);
  });

  test("has every name, however long or strange, below where it is unpacked", async () => {
    const directory = scratch();
    const names = [`/${"d".repeat(120)}/${"e".repeat(120)}`, "//two/slashes", "/it's ünïcode\n"];
    await tar(["-x", "-C", directory], archive(names));
    for (const name of names) expect(existsSync(join(directory, name))).toBe(true);
    const listed = (await tar(["-t"], archive(names))).toString();
    expect(listed.split("\n").filter((line) => line.startsWith("/"))).toEqual([]);
  });

  test("is whole without any: two blocks of nothing", async () => {
    expect(await buffer(archive([]))).toEqual(Buffer.alloc(1024));
    expect((await tar(["-t"], archive([]))).toString()).toBe("");
  });
});
