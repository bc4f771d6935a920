// @module-tag security
import { execFile } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { holdLease } from "../../src/github/lease.ts";
import { makeSecretsDirectory, tokenFileName, writeToken } from "../../src/github/token-file.ts";
import { until } from "../eventually.ts";
import { patience } from "../faults/thorough.ts";

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "token-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function secrets(): Promise<string> {
  const directory = join(scratch(), "secrets");
  await makeSecretsDirectory(directory);
  return directory;
}

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe("a token's file", () => {
  test("is its owner's alone, holds the token and nothing else, and has nothing beside it", async () => {
    const directory = await secrets();
    for (const value of ["first", "second-and-longer", "3"]) {
      await writeToken(directory, { value });
      const path = join(directory, tokenFileName);
      expect([readFileSync(path, "utf8"), modeOf(path), modeOf(directory)]).toEqual([value, 0o600, 0o700]);
      expect(readdirSync(directory)).toEqual([tokenFileName]);
    }
  });

  test.each([0o000, 0o777])("whatever the umask: %i", async (mask) => {
    const directory = join(scratch(), "secrets");
    const before = process.umask(mask);
    try {
      await makeSecretsDirectory(directory);
      await writeToken(directory, { value: "x" });
      expect([modeOf(directory), modeOf(join(directory, tokenFileName))]).toEqual([0o700, 0o600]);
    } finally {
      process.umask(before);
    }
  });

  test("is a new one each time, so that who has the old one open reads that to its end", async () => {
    const directory = await secrets();
    const path = join(directory, tokenFileName);
    await writeToken(directory, { value: "one" });
    const { ino } = statSync(path);
    await writeToken(directory, { value: "two" });
    expect(statSync(path).ino).not.toBe(ino);
  });

  test("is there, and whole, for whoever reads while it is written over and over", async () => {
    const directory = await secrets();
    const sizes = [1_000, 40, 3_000];
    const token = (turn: number) => `${turn % 10}`.repeat(sizes[turn % 3] as number);
    await writeToken(directory, { value: token(0) });
    // Other processes, which read until the last token is there.
    const reader = `
      const { readFileSync, writeFileSync } = require("node:fs");
      let read = 0, torn = 0, last = "";
      for (const end = performance.now() + ${patience * 60_000}; last !== "z" && performance.now() < end; ) {
        last = readFileSync(process.argv[1], "utf8");
        read += 1;
        if (read === 1 && process.argv[2]) writeFileSync(process.argv[2], "");
        if (!/^(.)\\1*$/.test(last) || ![1, 40, 1000, 3000].includes(last.length)) torn += 1;
      }
      console.log(JSON.stringify({ torn, many: read > 20, last }));`;
    const path = join(directory, tokenFileName);
    const readers = [1, 2].map(() => promisify(execFile)(process.execPath, ["-e", reader, path]));
    for (let turn = 0; turn < 300; turn += 1) await writeToken(directory, { value: token(turn) });
    await writeToken(directory, { value: "z" });
    for (const { stdout } of await Promise.all(readers)) {
      expect(JSON.parse(stdout)).toEqual({ torn: 0, many: expect.any(Boolean), last: "z" });
    }
    // The control: a file that is written in place is seen in pieces.
    writeFileSync(path, "ab");
    const begun = join(directory, "begun");
    const torn = promisify(execFile)(process.execPath, ["-e", reader, path, begun]);
    await until("it is read", () => existsSync(begun));
    writeFileSync(path, "z");
    expect(JSON.parse((await torn).stdout).torn).toBeGreaterThan(0);
  });

  test("replaces what a crash has left, and nothing that is not its own", async () => {
    const directory = await secrets();
    writeFileSync(join(directory, "ghapp_token.tmp.0123456789abcdef"), "half");
    writeFileSync(join(directory, "ghapp_token.tmp.mine"), "kept");
    await writeToken(directory, { value: "x" });
    expect(readdirSync(directory).sort()).toEqual(["ghapp_token", "ghapp_token.tmp.mine"]);
  });

  test("that cannot be put in place leaves nothing, and the old one as it was", async () => {
    const directory = await secrets();
    mkdirSync(join(directory, tokenFileName, "in-the-way"), { recursive: true });
    await expect(writeToken(directory, { value: "secret-value" })).rejects.toThrow(
      expect.objectContaining({
        code: "FILESYSTEM",
        message: expect.stringMatching(/secrets\/ghapp_token cannot be written \((?:EISDIR|ENOTEMPTY|EEXIST)\)\.$/),
      }),
    );
    expect(readdirSync(directory)).toEqual([tokenFileName]);
  });
});

describe("a token is not written", () => {
  test("where the directory is a link, a file, open to others or not there", async () => {
    const base = scratch();
    const good = join(base, "good");
    await makeSecretsDirectory(good);
    symlinkSync(good, join(base, "link"));
    writeFileSync(join(base, "file"), "");
    mkdirSync(join(base, "open"));
    chmodSync(join(base, "open"), 0o750);
    for (const [name, why] of [
      ["link", "is not safe for a token: it is a link"],
      ["file", "is not safe for a token: it is not a directory"],
      ["open", "is not safe for a token: it has mode 750, not 700"],
      ["none", "cannot be looked at (ENOENT)"],
    ] as const) {
      await expect(writeToken(join(base, name), { value: "x" })).rejects.toThrow(why);
      if (name !== "none") await expect(makeSecretsDirectory(join(base, name))).rejects.toThrow(why);
    }
    await expect(makeSecretsDirectory(join(base, "none/deeper"))).rejects.toThrow("cannot be made (ENOENT)");
    // As root, everybody else's are in reach; for others, root's.
    const foreign = process.geteuid?.() === 0 ? good : "/";
    if (foreign === good) chownSync(good, 65_534, 65_534);
    await expect(writeToken(foreign, { value: "x" })).rejects.toThrow(
      /is not safe for a token: it belongs to user \d+/,
    );
    if (foreign === good) chownSync(good, 0, 0);
    // The control.
    await makeSecretsDirectory(good);
    await writeToken(good, { value: "x" });
    expect(readdirSync(good)).toEqual([tokenFileName]);
  });
});

describe("the right to write a token", () => {
  test("is one process's at a time, and can be given back", () => {
    const directory = scratch();
    const lease = holdLease(directory);
    expect(lease).not.toBeNull();
    expect(holdLease(directory)).toBeNull();
    lease?.release();
    const again = holdLease(directory);
    expect(again).not.toBeNull();
    again?.release();
  });

  test("is taken from the dead, and from nobody of whom one cannot tell", () => {
    const directory = scratch();
    const path = join(directory, "token.writer");
    holdLease(directory);
    const mark = JSON.parse(readFileSync(path, "utf8"));
    // Other than this process by one thing each.
    writeFileSync(path, JSON.stringify({ ...mark, machine: "another" }));
    expect(holdLease(directory)).toBeNull();
    writeFileSync(path, JSON.stringify({ ...mark, started: "1" }));
    expect(holdLease(directory)).not.toBeNull();
    writeFileSync(path, "half of a ma");
    expect(holdLease(directory)).not.toBeNull();
  });

  test("ends with the session's directory", () => {
    const directory = scratch();
    const lease = holdLease(directory);
    rmSync(directory, { recursive: true });
    lease?.release();
    expect(holdLease(directory)).toBeNull();
    expect(existsSync(directory)).toBe(false);
  });
});
