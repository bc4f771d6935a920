import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { packUser } from "../../src/credentials/passwd.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-passwd-")));
afterAll(() => rmSync(directory, { recursive: true }));
const fresh = () => mkdtempSync(join(directory, "d-"));

const user = { uid: 1_234, gid: 100, name: "podbot", home: "/home/podbot" };
const line = "podbot:x:1234:100::/home/podbot:/bin/sh\n";
const root = "root:x:0:0:root:/root:/bin/bash\n";

/** An archive as an engine sends one, by the real tar. */
function archiveOf(content: string | Buffer, ...options: readonly string[]): Buffer {
  const at = fresh();
  writeFileSync(join(at, "passwd"), content);
  return execFileSync("tar", ["-C", at, ...options, "-cf", "-", "passwd"], { maxBuffer: 64 * 1024 * 1024 });
}

const pack = (archive: Buffer, who = user) => packUser(Readable.from([archive]), who);

/** The list as it is when the archive has been unpacked over it. */
function unpacked(archive: Buffer | null): string {
  if (archive === null) throw new Error("There is no archive.");
  const at = fresh();
  mkdirSync(join(at, "etc"));
  writeFileSync(join(at, "etc/passwd"), "what was there\n");
  execFileSync("tar", ["-C", at, "-xpf", "-"], { input: archive, stdio: ["pipe", "pipe", "inherit"] });
  const { mode, uid, gid } = lstatSync(join(at, "etc/passwd"));
  expect(mode & 0o7777).toBe(0o644);
  if (process.getuid?.() === 0) expect([uid, gid]).toEqual([0, 0]);
  return readFileSync(join(at, "etc/passwd"), "latin1");
}

describe("a user who is not in the list of an image", () => {
  test("is appended, once, and all else stays as it is", async () => {
    const list = `${root}daemon:x:1:1::/:/sbin/nologin\n`;
    const once = unpacked(await pack(archiveOf(list)));
    expect(once).toBe(list + line);
    expect(await pack(archiveOf(once))).toBeNull();
  });

  test.each([
    ["a last line without an end", root.trimEnd(), `${root}${line}`],
    [
      "bytes that are no text",
      Buffer.from("r\xe9\xff:x:0:0::/:/bin/sh\n", "latin1"),
      `r\xe9\xff:x:0:0::/:/bin/sh\n${line}`,
    ],
    ["lines that are none", "\n:::\n#x\n", `\n:::\n#x\n${line}`],
    ["the number as a group", "a:x:1:1234::/:/bin/sh\n", `a:x:1:1234::/:/bin/sh\n${line}`],
    ["a number that begins the same", "a:x:12345:1::/:/bin/sh\n", `a:x:12345:1::/:/bin/sh\n${line}`],
    ["exactly one block", `${"x".repeat(511)}\n`, `${"x".repeat(511)}\n${line}`],
  ])("is appended to a list with %s", async (_, list, expected) => {
    expect(unpacked(await pack(archiveOf(list)))).toBe(expected);
  });

  test.each(["--format=ustar", "--format=gnu", "--format=pax", "--format=v7"])(
    "is appended where it comes as %s",
    async (format) => {
      expect(unpacked(await pack(archiveOf(root, format)))).toBe(root + line);
    },
  );

  test("is appended whatever pieces the archive comes in, and where a directory comes first", async () => {
    const archive = archiveOf(root);
    const pieces = Array.from({ length: Math.ceil(archive.length / 7) }, (_, at) =>
      archive.subarray(7 * at, 7 * at + 7),
    );
    expect(unpacked(await packUser(Readable.from(pieces), user))).toBe(root + line);
    const at = fresh();
    mkdirSync(join(at, "etc"));
    writeFileSync(join(at, "etc/passwd"), root);
    const whole = execFileSync("tar", ["-C", at, "-cf", "-", "etc"]);
    expect(unpacked(await pack(whole))).toBe(root + line);
  });
});

describe("nothing is put over the list", () => {
  test("where the number is known, under whatever name", async () => {
    expect(await pack(archiveOf(`${root}node:x:1234:1234::/home/node:/bin/sh\n`))).toBeNull();
    expect(await pack(archiveOf(`${root}node:x:1234`))).toBeNull();
    expect(await pack(archiveOf(root), { ...user, uid: 0 })).toBeNull();
  });

  test("where it is a link, empty, or not there", async () => {
    const at = fresh();
    symlinkSync("elsewhere", join(at, "passwd"));
    expect(await pack(execFileSync("tar", ["-C", at, "-cf", "-", "passwd"]))).toBeNull();
    expect(await pack(archiveOf(""))).toBeNull();
    expect(await pack(Buffer.alloc(0))).toBeNull();
    expect(await pack(Buffer.alloc(10_240))).toBeNull();
  });

  test("where the archive is cut off anywhere in it", async () => {
    const archive = archiveOf(root.repeat(40));
    for (let length = 0; length < 512 + root.length * 40; length += 37) {
      expect(await pack(archive.subarray(0, length))).toBeNull();
    }
  });

  test("where it is larger than any list is, and an archive without an end is not read to it", async () => {
    const large = archiveOf(root.repeat(65_536));
    const pieces = Array.from({ length: large.length / 512 }, (_, at) => large.subarray(512 * at, 512 * at + 512));
    expect(await packUser(Readable.from(pieces), user)).toBeNull();
    let sent = 0;
    const header = archiveOf("x").subarray(0, 512);
    header.write("77777777777", 124);
    async function* endless() {
      yield header;
      for (;;) {
        sent += 65_536;
        yield Buffer.alloc(65_536, "x");
      }
    }
    expect(await packUser(Readable.from(endless()), user)).toBeNull();
    expect(sent).toBeLessThan(4 * 1_048_576);
  });

  test.each([
    "-1000",
    "-00000001000",
    "-7777777777",
    "99999999999",
    "abc",
    "\x80\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",
    "  12",
  ])("where a size is %j", async (size) => {
    for (const type of ["0", "5", "x", "L", "\0"]) {
      const archive = archiveOf(root);
      archive.fill(0, 124, 136).write(size, 124, "latin1");
      archive.write(type, 156, "latin1");
      const found = await pack(archive.subarray(0, 512));
      expect(found).toBeNull();
    }
  });

  test("and whatever the bytes are, nothing hangs or throws", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 512, maxLength: 2_048 }), async (bytes) => {
        const found = await pack(Buffer.from(bytes));
        expect(found === null || found.length % 512 === 0).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
