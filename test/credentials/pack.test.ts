import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { begin, Home, tar } from "./home.ts";

/** Names in the order of the archive, as bytes in latin1. */
async function namesIn(archive: Readable): Promise<readonly string[]> {
  const printed = await tar(["-t", "--quoting-style=escape"], archive);
  return printed.toString("latin1").trim().split("\n");
}

describe("which directories are packed", () => {
  test("those that are present, in the order asked for", async () => {
    const home = new Home();
    home.file(".codex/auth.json");
    home.file(".claude/.credentials.json");
    home.file(".other/file");
    const { paths, archive } = await home.pack([".claude", ".gemini", ".codex", ".claude"]);
    expect(paths).toEqual(["/root/.claude", "/root/.codex"]);
    expect(await namesIn(archive as Readable)).toEqual([
      ".claude/",
      ".claude/.credentials.json",
      ".codex/",
      ".codex/auth.json",
    ]);
    expect((await home.pack([".codex", ".claude"])).paths).toEqual(["/root/.codex", "/root/.claude"]);
    expect((await home.pack([".codex"], { target: "/home/agent" })).paths).toEqual(["/home/agent/.codex"]);
  });

  test("nothing is an empty answer, whether none is present, none is asked for, or there is no home", async () => {
    const home = new Home();
    const nothing = { paths: [], archive: null };
    expect(await home.pack([".claude", ".codex"])).toEqual(nothing);
    expect(await home.pack([])).toEqual(nothing);
    expect(await home.pack([".claude"], { home: join(home.path, "missing") })).toEqual(nothing);
    home.file(".claude/file");
    expect((await home.pack([".claude"])).paths).toEqual(["/root/.claude"]);
  });

  test("a directory deeper in the home is one too, and an empty one is packed", async () => {
    const home = new Home();
    mkdirSync(join(home.path, ".config/agent"), { recursive: true });
    const { paths, archive } = await home.pack([".config/agent"]);
    expect(paths).toEqual(["/root/.config/agent"]);
    expect(await namesIn(archive as Readable)).toEqual([".config/", ".config/agent/"]);
  });

  test("a file is one too, at the top of the home or deeper, with the directories above it", async () => {
    const home = new Home();
    home.file(".claude/settings.json");
    home.file(".claude.json", "top", 0o600);
    home.file(".config/agent/config.yaml", "deep", 0o640);
    home.file(".config/agent/keys.yaml", "", 0o600);
    home.file(".config/agent/history", "not asked for");
    chmodSync(join(home.path, ".config"), 0o755);
    const names = [
      ".claude",
      ".claude.json",
      ".config/agent/config.yaml",
      ".config/agent/gone",
      ".config/agent/keys.yaml",
    ];
    const { paths, archive } = await home.pack(names);
    expect(paths).toEqual([
      "/root/.claude",
      "/root/.claude.json",
      "/root/.config/agent/config.yaml",
      "/root/.config/agent/keys.yaml",
    ]);
    expect(await namesIn(archive as Readable)).toEqual([
      ".claude/",
      ".claude/settings.json",
      ".claude.json",
      ".config/",
      ".config/agent/",
      ".config/agent/config.yaml",
      ".config/agent/keys.yaml",
    ]);
    const target = await home.unpack(await home.archive(names));
    expect(readFileSync(join(target, ".claude.json"), "utf8")).toBe("top");
    expect(readFileSync(join(target, ".config/agent/config.yaml"), "utf8")).toBe("deep");
    const modeOf = (name: string) => lstatSync(join(target, name)).mode & 0o7777;
    expect([".config", ".config/agent"].map(modeOf)).toEqual([0o700, 0o700]);
    expect([".claude.json", ".config/agent/config.yaml"].map(modeOf)).toEqual([0o600, 0o640]);
  });
});

describe("what arrives", () => {
  test("bytes, modes, times and links are those of the source", async () => {
    const home = new Home();
    for (const [size, mode] of [
      [0, 0o600],
      [1, 0o644],
      [511, 0o755],
      [512, 0o400],
      [513, 0o666],
      [1_000_000, 0o640],
    ] as const) {
      const path = home.file(`.claude/size-${size}`, Buffer.alloc(size, `${size};`), mode);
      utimesSync(path, 0, 1_000_000_000 + size);
    }
    home.file(".claude/sub/file", "below");
    chmodSync(join(home.path, ".claude/sub"), 0o1710);
    utimesSync(join(home.path, ".claude/sub"), 0, 86_400);
    symlinkSync("sub/file", join(home.path, ".claude/link"));
    symlinkSync("/etc/apt", join(home.path, ".claude/outwards"));
    symlinkSync("nowhere", join(home.path, ".claude/dangling"));
    lutimesSync(join(home.path, ".claude/dangling"), 0, 5);
    linkSync(join(home.path, ".claude/size-513"), join(home.path, ".claude/twin"));
    chmodSync(join(home.path, ".claude"), 0o700);
    const target = await home.unpack(await home.archive([".claude"]));
    execFileSync("diff", ["-r", "--no-dereference", join(home.path, ".claude"), join(target, ".claude")]);
    const facts = (root: string) =>
      readdirSync(root, { recursive: true, encoding: "utf8" })
        .sort()
        .map((name) => {
          const { mode, mtimeMs, size } = lstatSync(join(root, name));
          return { name, mode, seconds: Math.floor(mtimeMs / 1000), size: name === "sub" ? 0 : size };
        });
    expect(facts(join(target, ".claude"))).toEqual(facts(join(home.path, ".claude")));
    expect(lstatSync(join(target, ".claude")).mode & 0o7777).toBe(0o700);
    expect(lstatSync(join(target, ".claude/size-513")).nlink).toBe(1);
    expect(readlinkSync(join(target, ".claude/outwards"))).toBe("/etc/apt");
  });

  test("entries are sorted by bytes, each directory by itself, and the same tree makes the same archive", async () => {
    const home = new Home();
    for (const name of ["b", "a.c", "B", "é", "a/z", "a/y", "10", "9"]) home.file(`.claude/${name}`);
    const names = ["10", "9", "B", "a/", "a/y", "a/z", "a.c", "b", "\\303\\251"].map((name) => `.claude/${name}`);
    expect(await namesIn(await home.archive([".claude"]))).toEqual([".claude/", ...names]);
    expect(await buffer(await home.archive([".claude"]))).toEqual(await buffer(await home.archive([".claude"])));
  });

  test("every header names the owner that was asked for, however large the number", async () => {
    const home = new Home();
    home.file(".claude/file");
    home.file(".config/agent/file");
    for (const owner of [
      { uid: 0, gid: 0 },
      { uid: 1234, gid: 56 },
      { uid: 3_000_000_000, gid: 2_097_152 },
    ]) {
      const listing = await tar(
        ["-t", "-v", "--numeric-owner"],
        await home.archive([".claude", ".config/agent/file"], { owner }),
      );
      const owners = listing.toString().match(/\d+\/\d+(?= )/g);
      expect(owners).toEqual(Array(5).fill(`${owner.uid}/${owner.gid}`));
    }
  });

  test("odd and long names survive", async () => {
    const home = new Home();
    const root = join(home.path, ".claude");
    mkdirSync(root);
    const names = [
      Buffer.from("with space"),
      Buffer.from("new\nline"),
      Buffer.from("-x"),
      Buffer.from("\\back\"quote'*"),
      Buffer.from("ünïcödé"),
      Buffer.from([0x6e, 0xff, 0xfe, 0x80]),
      ...[89, 90, 91, 92, 93, 99, 100, 101, 255].map((length) => Buffer.alloc(length, `${length}`)),
      Buffer.concat([Buffer.alloc(250, "l"), Buffer.from([0xff])]),
    ];
    const inRoot = (name: Buffer) => Buffer.concat([Buffer.from(`${root}/`), name]);
    for (const name of names) writeFileSync(inRoot(name), name);
    for (const length of [98, 99, 100, 101, 300]) symlinkSync("t".repeat(length), join(root, `to-${length}`));
    symlinkSync(Buffer.from([0x2e, 0x2f, 0xff]), join(root, "to-bytes"));
    const deep = join(root, "d".repeat(200), "e".repeat(200), "f".repeat(200));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, "deep"), "deep");
    const target = await home.unpack(await home.archive([".claude"]));
    execFileSync("diff", ["-r", "--no-dereference", root, join(target, ".claude")]);
    const listing = (path: string) => readdirSync(Buffer.from(path), { encoding: "buffer" }).sort(Buffer.compare);
    expect(listing(join(target, ".claude"))).toEqual(listing(root));
    expect(listing(root)).toHaveLength(names.length + 7);
  });

  test("times before 1970 and sizes above 8 GiB are announced as they are", async () => {
    const home = new Home();
    const path = home.file(".claude/large", "");
    truncateSync(path, 9 * 1024 ** 3);
    execFileSync("touch", ["-d", "@-86400", path]);
    const archive = await home.archive([".claude"]);
    const input = await begin(archive);
    archive.destroy();
    const words = ["-t", "-v", "--full-time", "-f", "-"];
    const { stdout } = spawnSync("tar", words, {
      input,
      env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" },
    });
    expect(stdout.toString()).toMatch(/ 9663676416 1969-12-31 00:00:00 \.claude\/large\n/);
  });

  test("sockets, fifos and devices are left out, and what is beside them is not", async () => {
    const home = new Home();
    home.file(".claude/a");
    home.file(".claude/z");
    execFileSync("mkfifo", [join(home.path, ".claude/fifo")]);
    if (process.getuid?.() === 0) spawnSync("mknod", [join(home.path, ".claude/device"), "c", "1", "3"]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(home.path, ".claude/socket"), resolve));
    try {
      expect(await namesIn(await home.archive([".claude"]))).toEqual([".claude/", ".claude/a", ".claude/z"]);
    } finally {
      server.close();
    }
  });
});

test("the content of a source is never in an archive of another", async () => {
  const home = new Home();
  home.file(".claude/file", "mine");
  home.file(".ssh/key", "SECRET-KEY");
  symlinkSync("../.ssh", join(home.path, ".claude/ssh"));
  expect((await buffer(await home.archive([".claude"]))).includes("SECRET-KEY")).toBe(false);
  expect((await buffer(await home.archive([".ssh"]))).includes("SECRET-KEY")).toBe(true);
  expect(readFileSync(join(home.path, ".claude/ssh/key"), "utf8")).toBe("SECRET-KEY");
});
