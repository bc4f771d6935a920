// @module-tag security
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { holdNames, lookBesideOthers } from "../../src/wall/held.ts";

function makePlace() {
  const directory = mkdtempSync(join(tmpdir(), "podbot-test-held-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const claims = join(directory, "claims");
  mkdirSync(claims);
  const path = join(directory, ".podbot");
  const hold = () => holdNames(claims, [{ path, placeholder: { kind: "directory" }, directory: null }], []);
  /** What whoever plans takes for the owner's own. */
  const look = (meanwhile: () => void = () => {}) => {
    const looks: boolean[] = [];
    lookBesideOthers(claims, (held) => {
      if (looks.length === 0) meanwhile();
      looks.push(existsSync(path) && !held.has(path));
    });
    return looks;
  };
  return { claims, path, hold, look };
}

describe("whoever plans beside other sandboxes", () => {
  test("takes what they hold for missing, and what is the owner's for his", () => {
    const { path, hold, look } = makePlace();
    mkdirSync(path);
    expect(look()).toEqual([true]);
    rmSync(path, { recursive: true });
    using _holding = hold();
    expect(existsSync(path)).toBe(true);
    expect(look()).toEqual([false]);
    writeFileSync(join(path, "config.toml"), "");
    expect(look()).toEqual([true]);
  });

  test("looks again where one has begun meanwhile", () => {
    const { hold, look } = makePlace();
    let holding: Disposable | undefined;
    const looks = look(() => {
      holding = hold();
    });
    holding?.[Symbol.dispose]();
    expect(looks).toEqual([true, false]);
  });

  test("looks again where one has begun and ended meanwhile", () => {
    const { claims, path, hold, look } = makePlace();
    // The kernel's clock for files goes in steps, longer than this takes.
    utimesSync(claims, 1, 1);
    const looks = look(() => {
      hold()[Symbol.dispose]();
      mkdirSync(path);
    });
    expect(looks).toEqual([true, true]);
  });

  test("takes for missing what one is about to make", () => {
    const { path, hold, look } = makePlace();
    using _holding = hold();
    rmSync(path, { recursive: true });
    expect(look(() => mkdirSync(path))).toEqual([false]);
  });

  test("looks no more than a few times, whatever the others do", () => {
    const { claims } = makePlace();
    let looks = 0;
    lookBesideOthers(claims, () => writeFileSync(join(claims, `1-${looks++}.json`), ""));
    expect(looks).toBe(5);
  });
});
