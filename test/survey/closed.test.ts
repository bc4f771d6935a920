// @module-tag security
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { expandPattern } from "../../src/survey/expand.ts";
import { findGit } from "../../src/survey/git.ts";
import { Reader } from "../../src/survey/reader.ts";
import { failure } from "../failure.ts";

const isRoot = process.getuid?.() === 0;
const caller = isRoot ? 65_534 : (process.getuid?.() as number);

/** Without root's right to pass everywhere. */
function asCaller<T>(action: () => T): T {
  if (!isRoot) return action();
  process.seteuid?.(caller);
  try {
    return action();
  } finally {
    process.seteuid?.(0);
  }
}

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-closed-")));
  if (isRoot) chownSync(root, caller, caller);
  asCaller(() => {
    mkdirSync(join(root, "secrets/more"), { recursive: true });
    writeFileSync(join(root, "secrets/more/key"), "");
    symlinkSync("secrets/more/key", join(root, "link"));
  });
});
afterEach(() => {
  asCaller(() => chmodSync(join(root, "secrets"), 0o700));
  rmSync(root, { recursive: true });
});

const expand = (pattern: string) =>
  asCaller(() => expandPattern(join(root, pattern), pattern.includes("*"), new Reader()));
const refusal = (call: () => unknown) => failure(PolicyError, call);

describe("a directory of our own that is closed, which an agent could open again,", () => {
  test.each([
    ["secrets/more/key", 0o000],
    ["secrets/more/key", 0o600],
    ["secrets/none", 0o000],
    ["link", 0o000],
    ["**/key", 0o000],
    ["**/key", 0o300],
    ["secrets/*/key", 0o300],
  ])("does not make %s pass as absent (mode %o)", (pattern, mode) => {
    chmodSync(join(root, "secrets"), mode);
    expect(refusal(() => expand(pattern))).toMatchObject({
      code: "PATH_REFUSED",
      details: { path: join(root, "secrets") },
    });
    chmodSync(join(root, "secrets"), 0o700);
    expect(expand(pattern)).toEqual(pattern.endsWith("none") ? [] : [join(root, "secrets/more/key")]);
  });

  test("can itself be hidden or protected, and searched for a name that is known", () => {
    chmodSync(join(root, "secrets"), 0o000);
    expect(expand("secrets")).toEqual([join(root, "secrets")]);
    chmodSync(join(root, "secrets"), 0o100);
    expect(expand("secrets/more/key")).toEqual([join(root, "secrets/more/key")]);
  });

  test.each(["modules", "modules/m", "worktrees", "worktrees/w"])("does not hide .git/%s from protection", (name) => {
    const git = join(root, ".git");
    asCaller(() => {
      for (const place of [git, join(git, "modules/m")]) {
        for (const part of ["objects", "refs"]) mkdirSync(join(place, part), { recursive: true });
        for (const file of ["HEAD", "config"]) writeFileSync(join(place, file), "");
      }
      mkdirSync(join(git, "worktrees/w"), { recursive: true });
      writeFileSync(join(git, "worktrees/w/gitdir"), `${root}/tree/.git\n`);
    });
    const find = () =>
      asCaller(() => findGit({ cwd: root, home: root, uid: caller, strict: false, configs: [] }, new Reader()));
    expect(find()).toMatchObject({ modules: [join(git, "modules/m")], worktrees: [join(git, "worktrees/w")] });
    chmodSync(join(git, name), 0o000);
    expect(refusal(find)).toMatchObject({ code: "PATH_REFUSED", details: { path: expect.stringContaining(git) } });
    chmodSync(join(git, name), 0o700);
  });
});

test.runIf(isRoot)("what others have closed is absent: an agent cannot open it either", () => {
  chownSync(join(root, "secrets"), 0, 0);
  chmodSync(join(root, "secrets"), 0o700);
  for (const pattern of ["secrets/more/key", "link", "**/key"]) expect(expand(pattern)).toEqual([]);
  chownSync(join(root, "secrets"), caller, caller);
});
