import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { FilesystemError, SessionError } from "../../src/errors.ts";
import { isSessionId } from "../../src/registry/record.ts";
import {
  newSessionId,
  readRecord,
  readRecords,
  removeRuntime,
  removeSession,
  sessionDirectory,
  writeRecord,
} from "../../src/registry/store.ts";
import { failure } from "../failure.ts";
import { ended, makeScratch, sampleRecord } from "./sessions.ts";

const id = "abcdefgh23";
const badNames = ["", ".", "..", "../../etc", "abcdefgh2/", "abcdefgh23/..", "ABCDEFGH23"];

test("a new id is a letter and nine letters or digits that nobody confuses, and never the same", () => {
  const ids = Array.from({ length: 2000 }, newSessionId);
  for (const one of ids) {
    expect(isSessionId(one)).toBe(true);
    expect(one).not.toMatch(/[01oil]/);
  }
  expect(new Set(ids).size).toBe(ids.length);
  expect(new Set(ids.join("")).size).toBe(31);
});

describe("a record that is written", () => {
  test("is read again, and only its owner can", () => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    expect(readRecords(state)).toEqual([sampleRecord()]);
    const directory = sessionDirectory(state, id);
    expect(lstatSync(directory).mode & 0o777).toBe(0o700);
    expect(lstatSync(dirname(directory)).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(directory, "record.json")).mode & 0o777).toBe(0o600);
  });

  test("takes the place of the one before, and leaves nothing else", () => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    writeFileSync(join(sessionDirectory(state, id), "record.json.new"), "torn");
    writeRecord(state, sampleRecord(ended));
    expect(readRecord(state, id)).toEqual(sampleRecord(ended));
    expect(readdirSync(sessionDirectory(state, id))).toEqual(["record.json"]);
    expect(readdirSync(join(state, "sessions"))).toEqual([id]);
  });

  test("is not written through a link", () => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    const victim = join(state, "victim");
    writeFileSync(victim, "mine");
    symlinkSync(victim, join(sessionDirectory(state, id), "record.json.new"));
    writeRecord(state, sampleRecord(ended));
    expect(readFileSync(victim, "utf8")).toBe("mine");
  });

  test("fails with the path and a way out", () => {
    const { state } = makeScratch();
    writeFileSync(state, "a file");
    const error = failure(FilesystemError, () => writeRecord(state, sampleRecord()));
    expect(error).toMatchObject({ code: "FILESYSTEM", hint: expect.stringContaining("XDG_STATE_HOME") });
    expect(error.message).toContain(sessionDirectory(state, id));
    expect(error.message).toContain("ENOTDIR");
  });

  test("fails without leaving a draft, where it cannot take its place", () => {
    const { state } = makeScratch();
    const directory = sessionDirectory(state, id);
    mkdirSync(join(directory, "record.json"), { recursive: true });
    const error = failure(FilesystemError, () => writeRecord(state, sampleRecord()));
    expect(error.details).toEqual({ path: directory, errno: "EISDIR" });
    expect(readdirSync(directory)).toEqual(["record.json"]);
  });

  test.each(badNames)("cannot have the id %j", (name) => {
    const { state } = makeScratch();
    expect(failure(SessionError, () => writeRecord(state, sampleRecord({ id: name }))).code).toBe("SESSION_NOT_FOUND");
    expect(existsSync(state)).toBe(false);
  });
});

describe("reading", () => {
  test("finds nothing where nothing was ever written", () => {
    const { state } = makeScratch();
    expect(readRecords(state)).toEqual([]);
    expect(readRecord(state, id)).toBeNull();
  });

  test("says so where the sessions cannot be listed", () => {
    const { state } = makeScratch();
    mkdirSync(state);
    writeFileSync(join(state, "sessions"), "");
    expect(failure(FilesystemError, () => readRecords(state)).message).toContain("ENOTDIR");
  });

  test("passes over what is no session", () => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    mkdirSync(join(state, "sessions", "..x"));
    mkdirSync(join(state, "sessions", `.${id}.4194304.new`));
    expect(readRecords(state)).toHaveLength(1);
  });

  const damages: readonly [string, (file: string) => void, RegExp][] = [
    ["missing", (file) => rmSync(file), /missing/],
    ["torn", (file) => truncateSync(file, 20), /not a JSON object/],
    ["empty", (file) => truncateSync(file, 0), /not a JSON object/],
    ["huge", (file) => truncateSync(file, 17 * 1024 * 1024), /too large/],
    ["of another version", (file) => writeFileSync(file, '{"version":9}'), /version 9/],
    ["another session's", (file) => writeFileSync(file, JSON.stringify(sampleRecord({ id: "bbbbbbbbbb" }))), /another/],
    ["a link", (file) => replace(file, () => symlinkSync("/etc/passwd", file)), /ELOOP/],
    ["a directory", (file) => replace(file, () => mkdirSync(file)), /not a file/],
    ["a pipe", (file) => replace(file, () => execFileSync("mkfifo", [file])), /not a file/],
  ];
  test.each(damages)("reports a record that is %s, and reads the others", (_, damage, why) => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    writeRecord(state, sampleRecord({ id: "zzzzzzzzzz" }));
    damage(join(sessionDirectory(state, id), "record.json"));
    const [first, second] = readRecords(state);
    expect(first).toEqual({ id, damaged: expect.stringMatching(why) });
    expect(second).toEqual(sampleRecord({ id: "zzzzzzzzzz" }));
  });
});

describe("removing a session", () => {
  test("takes its whole directory, and succeeds again", () => {
    const { state } = makeScratch();
    writeRecord(state, sampleRecord());
    writeFileSync(join(sessionDirectory(state, id), "journal.jsonl"), "");
    removeSession(state, id);
    expect(readdirSync(join(state, "sessions"))).toEqual([]);
    removeSession(state, id);
  });

  test("takes what an earlier removal did not get to", () => {
    const { state } = makeScratch();
    mkdirSync(join(state, "sessions", ".bbbbbbbbbb.gone", "x"), { recursive: true });
    mkdirSync(join(state, "sessions", `.${id}.gone`, "x"), { recursive: true });
    writeRecord(state, sampleRecord());
    removeSession(state, id);
    expect(readdirSync(join(state, "sessions"))).toEqual([]);
  });

  test("says so where it cannot be done", () => {
    const { state } = makeScratch();
    writeFileSync(state, "");
    const error = failure(FilesystemError, () => removeSession(state, id));
    expect(error.message).toContain("ENOTDIR");
  });

  test("does not follow links, neither in it nor in its place", () => {
    const { state, runtimeOf } = makeScratch();
    const victim = runtimeOf("victim");
    writeFileSync(join(victim, "file"), "mine");
    writeRecord(state, sampleRecord());
    symlinkSync(victim, join(sessionDirectory(state, id), "link"));
    symlinkSync(victim, join(state, "sessions", "bbbbbbbbbb"));
    removeSession(state, id);
    removeSession(state, "bbbbbbbbbb");
    expect(readFileSync(join(victim, "file"), "utf8")).toBe("mine");
    expect(readdirSync(join(state, "sessions"))).toEqual([]);
  });

  test.each(badNames)("is refused for %j", (name) => {
    const { state } = makeScratch();
    mkdirSync(join(state, "sessions"), { recursive: true });
    expect(failure(SessionError, () => removeSession(state, name)).code).toBe("SESSION_NOT_FOUND");
    expect(existsSync(join(state, "sessions"))).toBe(true);
  });
});

describe("removing a runtime directory", () => {
  test("takes it with its sockets, and succeeds again", () => {
    const directory = makeScratch().runtimeOf(id);
    mkdirSync(join(directory, "in"));
    chmodSync(join(directory, "in"), 0o700);
    removeRuntime(directory, id);
    expect(existsSync(directory)).toBe(false);
    removeRuntime(directory, id);
  });

  test.each([
    ["another name", id, "somewhere"],
    ["no name", "", ""],
  ])("is refused for %s", (_, asked, name) => {
    const directory = makeScratch().runtimeOf(name);
    expect(failure(FilesystemError, () => removeRuntime(directory, asked)).code).toBe("FILESYSTEM");
    expect(existsSync(directory)).toBe(true);
  });
});

function replace(file: string, make: () => void): void {
  rmSync(file);
  make();
}
