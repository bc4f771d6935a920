// @module-tag security
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { WallError } from "../../src/errors.ts";
import { holdNames, lookBesideOthers, sweepHeld } from "../../src/wall/held.ts";
import { failure } from "../failure.ts";

/** A working directory in which an agent may do anything, and a directory of the owner's that looks like it. */
function makeGround() {
  const directory = mkdtempSync(join(tmpdir(), "podbot-test-hostile-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const at = (...names: readonly string[]) => join(directory, ...names);
  for (const name of ["work", "owner", "owner/.podbot"]) mkdirSync(at(name));
  for (const [name, content] of contents) writeFileSync(at("owner", name), content);
  const before = readdirSync(at("owner")).sort();
  const names = [
    { path: at("work", ".podbot"), placeholder: { kind: "directory" }, directory: identityOf(at("work")) },
    ...contents.map(([name, content]) => {
      return { path: at("work", name), placeholder: { kind: "file", content }, directory: identityOf(at("work")) };
    }),
  ] as Parameters<typeof holdNames>[1];
  return {
    at,
    hold: () => holdNames(at("claims"), names, []),
    /** The agent puts a link to the owner's directory where its own was. */
    exchange() {
      renameSync(at("work"), at("moved"));
      symlinkSync(at("owner"), at("work"));
    },
    expectOwnerUntouched: () => expect(readdirSync(at("owner")).sort()).toEqual(before),
  };
}

const contents = [
  ["config", ""],
  ["commondir", ".\n"],
] as const;

function identityOf(path: string): string {
  const { dev, ino } = lstatSync(path);
  return `${dev}:${ino}`;
}

describe("names that are held in a directory", () => {
  test("are made there and removed from there, as a control", () => {
    const { at, hold } = makeGround();
    const holding = hold();
    expect(readdirSync(at("work")).sort()).toEqual([".podbot", "commondir", "config"]);
    expect([...holding.identities]).toEqual(
      [".podbot", "config", "commondir"].map((name) => [at("work", name), identityOf(at("work", name))]),
    );
    holding[Symbol.dispose]();
    expect(readdirSync(at("work"))).toEqual([]);
  });

  test.each([
    ["a link to another", ({ at }: ReturnType<typeof makeGround>) => symlinkSync(at("owner"), at("work"))],
    ["a link to where it is now", ({ at }) => symlinkSync(at("moved"), at("work"))],
    ["another", ({ at }) => renameSync(at("owner"), at("work"))],
    ["a file", ({ at }) => writeFileSync(at("work"), "")],
  ])("are not made where the directory was replaced by %s", (_, replace) => {
    const ground = makeGround();
    renameSync(ground.at("work"), ground.at("moved"));
    replace(ground);
    expect(failure(WallError, ground.hold)).toMatchObject({ code: "PATH_CHANGED" });
    expect(readdirSync(ground.at("moved"))).toEqual([]);
    if (existsSync(ground.at("owner"))) ground.expectOwnerUntouched();
  });

  test("are not made where a directory on the way was replaced by a link", () => {
    const { at } = makeGround();
    mkdirSync(at("owner", "sub"));
    symlinkSync(at("owner"), at("work", "link"));
    const names = [
      { path: at("work", "link", "sub", "x"), placeholder: { kind: "directory" }, directory: null } as const,
    ];
    expect(failure(WallError, () => holdNames(at("claims"), names, []))).toMatchObject({ code: "PATH_CHANGED" });
    expect(readdirSync(at("owner", "sub"))).toEqual([]);
  });

  test("are removed from the directory in which they were made, wherever that is by now, and from no other", () => {
    const { at, hold, exchange, expectOwnerUntouched } = makeGround();
    const holding = hold();
    exchange();
    holding[Symbol.dispose]();
    expect(readdirSync(at("moved"))).toEqual([]);
    expectOwnerUntouched();
  });

  test("are left in a directory that was moved and that no living process holds open", () => {
    const { at, hold, exchange, expectOwnerUntouched } = makeGround();
    hold();
    const [name = ""] = readdirSync(at("claims")).filter((entry) => entry.endsWith(".json"));
    const claim = JSON.parse(readFileSync(at("claims", name), "utf8"));
    writeFileSync(at("claims", name), JSON.stringify({ ...claim, started: "of one that is gone" }));
    exchange();
    sweepHeld(at("claims"));
    expect(readdirSync(at("claims"))).toEqual([]);
    expect(readdirSync(at("moved"))).toHaveLength(3);
    expectOwnerUntouched();
  });
});

describe("what an agent has put in the place of a held name", () => {
  test.each([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
    ["a link to a device without end", (path: string) => symlinkSync("/dev/zero", path)],
    ["a link to the same content", (path: string) => symlinkSync("commondir.same", path)],
    ["a link that leads nowhere", (path: string) => symlinkSync("nowhere", path)],
    ["an endless file", (path: string) => execFileSync("truncate", ["--size", "1T", path])],
    ["a directory", (path: string) => mkdirSync(path)],
    ["another content", (path: string) => writeFileSync(path, "/tmp\n")],
  ])("is neither waited for nor removed: %s", (_, put) => {
    const { at, hold } = makeGround();
    writeFileSync(at("work", "commondir.same"), ".\n");
    const holding = hold();
    rmSync(at("work", "commondir"));
    put(at("work", "commondir"));
    const seen = lookBesideOthers(at("claims"), (held) => held.has(at("work", "commondir")));
    expect(seen).toBe(false);
    expect(failure(WallError, hold)).toMatchObject({
      code: "PATH_CHANGED",
      details: { path: at("work", "commondir") },
    });
    holding[Symbol.dispose]();
    expect(readdirSync(at("work")).sort()).toEqual(["commondir", "commondir.same"]);
    expect(readdirSync(at("claims"))).toEqual([]);
  });
});
