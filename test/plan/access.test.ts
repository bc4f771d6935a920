// @module-tag security
import { describe, expect, test } from "vitest";
import { decisionFor, isGranted, isWritableInside } from "../../src/plan/access.ts";
import { cwd, planFor, presetRules, said } from "./ordinary.ts";

const plan = planFor([...presetRules("!@all", "@base"), said("flag", "ro src/a"), said("flag", "exclude ~/data")], {
  [`${cwd}/src/a/b`]: "file",
  "/home/u/data/x": "file",
  "/home/u/.ssh/id": "file",
});

describe("the decision for a path is that of the nearest rule at or above it", () => {
  test.each([
    [cwd, "rw", "."],
    [`${cwd}/new/file`, "rw", "."],
    [`${cwd}/src`, "rw", "."],
    [`${cwd}/src/a`, "ro", "src/a"],
    [`${cwd}/src/a/b`, "ro", "src/a"],
    [`${cwd}/src/ab`, "rw", "."],
    ["/home/u/notes", "ro", "~"],
    ["/home/u/data/x", "exclude", "~/data"],
    ["/home/u/.ssh/id", "exclude", "~/.ssh"],
  ])("%s: %s by %s", (path, access, rule) => {
    expect(decisionFor(plan, path)).toMatchObject({ access, rule });
  });

  test.each(["/usr/bin", "/", "/home"])("%s: none", (path) => {
    expect(decisionFor(plan, path)).toBeNull();
  });
});

describe("a path is granted for writing", () => {
  const own = said("podbot", "ro src/a", { guard: true });
  const guarded = planFor([...presetRules("!@all", "@base"), own, said("flag", "ro docs")], {
    [`${cwd}/src/a/b`]: "file",
    [`${cwd}/docs`]: "directory",
  });

  test.each([
    [`${cwd}/new`, true],
    [`${cwd}/src/a/b`, true],
    [`${cwd}/docs/x`, false],
    ["/home/u/notes", false],
    ["/usr/bin", false],
  ])("%s: %s, Podbot's own protection left aside", (path, expected) => {
    expect(isGranted(guarded, path)).toBe(expected);
  });

  test("or is what lies there under another name", () => {
    const kept = "/home/u/.local/state/podbot/kept";
    const caches = planFor(presetRules("!@all", "@base", "@caches"), { "/home/u/.npm": "directory" });
    const sources = caches.operations.flatMap((one) =>
      one.kind === "bind" && one.access === "rw" ? [one.source] : [],
    );
    const own = sources.find((source) => source.startsWith(kept)) as string;
    expect(isGranted(caches, `${own}/x`)).toBe(false);
    expect(isWritableInside(caches, `${own}/x`)).toBe(true);
    expect(isWritableInside(caches, `${cwd}/x`)).toBe(true);
    expect(isWritableInside(caches, "/home/u/notes")).toBe(false);
    expect(isWritableInside(caches, "/tmp/x")).toBe(false);
  });
});
