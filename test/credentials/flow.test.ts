// @module-tag security
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { FilesystemError } from "../../src/errors.ts";
import { begin, failureOf, Home } from "./home.ts";

const large = 4 * 1024 * 1024;

/** A home whose first file is large: once the archive has begun, its directory is listed and no other file is open. */
function slowHome(): Home {
  const home = new Home();
  home.file(".claude/a", Buffer.alloc(large, "a"));
  home.file(".claude/b", "plain b");
  return home;
}

/** Begins the archive, lets the world change, and unpacks it all. */
async function unpackAcross(home: Home, change: () => unknown): Promise<string> {
  const archive = await home.archive([".claude"]);
  const whole = new PassThrough();
  whole.write(await begin(archive));
  await change();
  archive.pipe(whole);
  archive.once("error", (error) => whole.destroy(error));
  return join(await home.unpack(whole), ".claude");
}

describe("while it is packed", () => {
  test("a file that grows arrives as large as it was", async () => {
    const home = slowHome();
    const path = await unpackAcross(home, () => appendFileSync(join(home.path, ".claude/a"), "more".repeat(100_000)));
    expect(readFileSync(join(path, "a")).equals(Buffer.alloc(large, "a"))).toBe(true);
    expect(readFileSync(join(path, "b"), "utf8")).toBe("plain b");
  });

  test("a file that shrinks is an error that names it", async () => {
    const home = slowHome();
    const archive = await home.archive([".claude"]);
    await begin(archive);
    truncateSync(join(home.path, ".claude/a"), 10);
    const error = await failureOf(archive);
    expect(error).toBeInstanceOf(FilesystemError);
    expect(error.message).toBe(
      `Copying ${JSON.stringify(join(home.path, ".claude/a"))} into the sandbox failed: it became shorter meanwhile.`,
    );
    expect(home.opened()).toEqual([]);
  });

  test("what vanishes before its turn is left out", async () => {
    const home = slowHome();
    home.file(".claude/c/file");
    symlinkSync("a", join(home.path, ".claude/d"));
    home.file(".claude/e", "last");
    const path = await unpackAcross(home, () => {
      for (const name of ["b", "c", "d"]) rmSync(join(home.path, ".claude", name), { recursive: true });
    });
    expect(readdirSync(path)).toEqual(["a", "e"]);
  });

  test("without a change, all of that arrives", async () => {
    const home = slowHome();
    home.file(".claude/c/file");
    const path = await unpackAcross(home, () => {});
    execFileSync("diff", ["-r", join(home.path, ".claude"), path]);
  });

  test("a swap for a link, a fifo, a socket or another kind is not followed and does not block", async () => {
    const home = slowHome();
    const inside = (name: string) => join(home.path, ".claude", name);
    for (const name of ["c", "d", "f"]) home.file(`.claude/${name}`);
    home.file(".claude/e/file");
    symlinkSync("a", inside("g"));
    home.file("secret/file", "SECRET");
    const server = createServer();
    const path = await unpackAcross(home, async () => {
      for (const name of ["b", "c", "d", "e", "f", "g"]) rmSync(inside(name), { recursive: true });
      symlinkSync(join(home.path, "secret/file"), inside("b"));
      execFileSync("mkfifo", [inside("c")]);
      await new Promise<void>((resolve) => server.listen(inside("d"), resolve));
      symlinkSync(join(home.path, "secret"), inside("e"));
      mkdirSync(inside("f"));
      writeFileSync(inside("g"), "no link any more");
    });
    server.close();
    expect(readdirSync(path)).toEqual(["a"]);
    expect(home.opened()).toEqual([]);
  });

  test("a directory that is swapped for a link while it is being read is read on as it was", async () => {
    const home = new Home();
    home.file(".claude/sub/a", Buffer.alloc(large, "a"));
    home.file(".claude/sub/b", "plain b");
    home.file("secret/b", "SECRET");
    const sub = join(home.path, ".claude/sub");
    const path = await unpackAcross(home, () => {
      renameSync(sub, join(home.path, "aside"));
      symlinkSync(join(home.path, "secret"), sub);
    });
    expect(readFileSync(join(path, "sub/b"), "utf8")).toBe("plain b");
    // The control: what the path leads to by now.
    expect(readFileSync(join(sub, "b"), "utf8")).toBe("SECRET");
  });
});

describe("the archive is a stream", () => {
  test("nothing is open before it is read, and nothing after its end", async () => {
    const home = slowHome();
    const archive = await home.archive([".claude"]);
    await sleep(20);
    expect(home.opened()).toEqual([]);
    await begin(archive);
    expect(home.opened()).toHaveLength(2);
    for await (const _ of archive);
    expect(home.opened()).toEqual([]);
  });

  test("nobody reads ahead of a reader that waits", async () => {
    const home = slowHome();
    const archive = await home.archive([".claude"]);
    await begin(archive);
    await sleep(100);
    expect(positionOf(join(home.path, ".claude/a"))).toBeLessThanOrEqual(1024 * 1024);
    archive.destroy();
    await closed(archive);
  });

  test("destroying it closes every descriptor, at any moment", async () => {
    const home = new Home();
    home.file(".claude/x/y/z/a", Buffer.alloc(large));
    for (let turns = 0; turns < 40; turns += 3) {
      const archive = await home.archive([".claude"]);
      archive.resume();
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
      archive.destroy();
      await closed(archive);
      expect(home.opened()).toEqual([]);
    }
    const archive = await home.archive([".claude"]);
    await begin(archive);
    expect(home.opened()).toHaveLength(5);
    archive.destroy();
    await closed(archive);
    expect(home.opened()).toEqual([]);
  });

  test("others have their turn while it is read as fast as can be", async () => {
    const home = new Home();
    truncateSync(home.file(".claude/large", ""), 64 * 1024 ** 2);
    for (let index = 0; index < 2000; index++) home.file(`.claude/small/${index}`);
    let turns = 0;
    const clock = setInterval(() => turns++, 1);
    for await (const _ of (await home.archive([".claude"])).on("data", () => {}));
    clearInterval(clock);
    expect(turns).toBeGreaterThan(10);
  });

  test("a signal ends it", async () => {
    const home = slowHome();
    const ending = new AbortController();
    const archive = await home.archive([".claude"], { signal: ending.signal });
    await begin(archive);
    ending.abort(new Error("enough"));
    const error = await failureOf(archive);
    expect([error.name, (error.cause as Error).message]).toEqual(["AbortError", "enough"]);
    expect(home.opened()).toEqual([]);
    await expect(home.pack([".claude"], { signal: ending.signal })).rejects.toThrow("enough");
    const calm = await home.archive([".claude"], { signal: new AbortController().signal });
    for await (const _ of calm);
  });

  test("512 MiB pass in flat memory", async () => {
    const home = new Home();
    truncateSync(home.file(".claude/large", ""), 512 * 1024 ** 2);
    const before = process.memoryUsage().rss;
    let most = before;
    let bytes = 0;
    for await (const chunk of await home.archive([".claude"])) {
      bytes += (chunk as Buffer).length;
      if (bytes % (8 * 1024 ** 2) < 128 * 1024) most = Math.max(most, process.memoryUsage().rss);
    }
    expect(bytes).toBe(512 * 1024 ** 2 + 4 * 512);
    expect((most - before) / 1024 ** 2).toBeLessThan(96);
  });
});

function closed(archive: Readable): Promise<void> {
  return archive.closed ? Promise.resolve() : new Promise((resolve) => archive.once("close", () => resolve()));
}

/** How far this process has read a file that it has open. */
function positionOf(path: string): number {
  for (const descriptor of readdirSync("/proc/self/fd")) {
    try {
      if (readlinkSync(`/proc/self/fd/${descriptor}`) !== path) continue;
      return Number(/pos:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"))?.[1]);
    } catch {}
  }
  throw new Error("It is not open.");
}
