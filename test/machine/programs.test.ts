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
import { afterAll, describe, expect, inject, test } from "vitest";
import { argvOf } from "../../src/machine/processes.ts";
import { findOnPath, systemPath } from "../../src/machine/programs.ts";

/** Where root alone writes, from the top; and where everybody does. */
const inRoots =
  process.getuid?.() === 0 ? realpathSync(mkdtempSync(`/usr/local/lib/podbot-test-${inject("run").id}-`)) : null;
const inTemporary = realpathSync(mkdtempSync(join(tmpdir(), "podbot-path-")));
afterAll(() => {
  for (const path of [inRoots, inTemporary]) if (path !== null) rmSync(path, { recursive: true });
});

const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";
const addedBy = (path: string) => systemPath(path, 1_000).slice(system.length);

describe("the system's own PATH", () => {
  test("is a fixed list for root, whatever PATH says", () => {
    expect(systemPath("/opt/x:/usr/bin:/home/u/bin", 0)).toBe(system);
    expect(systemPath("", 0)).toBe(system);
  });

  test("has the usual places first, each once, and nothing of what others own", () => {
    expect(systemPath("", 1_000)).toBe(system);
    expect(addedBy(`/usr/bin:/bin:${inTemporary}:/tmp:/missing:/dev/null/x:.:bin::../bin`)).not.toMatch(
      /tmp|missing|\.|null/,
    );
  });

  test.runIf(inRoots !== null)("has also what root alone can write, all the way up", () => {
    const at = (name: string) => {
      const path = join(inRoots as string, name);
      mkdirSync(path, { mode: 0o755 });
      return path;
    };
    chmodSync(inRoots as string, 0o755);
    const [sound, group, others, foreign, inForeign] = ["sound", "group", "others", "foreign", "foreign/in"].map(at);
    chmodSync(group as string, 0o775);
    chmodSync(others as string, 0o757);
    chownSync(foreign as string, 1_000, 1_000);
    symlinkSync(sound as string, join(inRoots as string, "link"));
    expect(addedBy(sound as string)).toBe(`:${sound}`);
    for (const path of [group, others, foreign]) expect(addedBy(path as string)).toBe("");
    // Root's own, but where somebody else can put another in its place.
    expect(addedBy(inForeign as string)).toBe("");
    // A link is judged by where it leads, and goes no further than that.
    expect(addedBy(join(inRoots as string, "link"))).toBe(`:${sound}`);
    expect(addedBy(`${sound}:${sound}:${sound}/`)).toBe(`:${sound}`);
  });

  test.runIf(inRoots !== null)(
    "does not lead to a program that somebody has put on PATH, which PATH itself does",
    () => {
      const planted = join(inTemporary, "podbot-planted");
      writeFileSync(planted, "#!/bin/sh\n", { mode: 0o755 });
      chownSync(inTemporary, 1_000, 1_000);
      const path = `${inTemporary}:/usr/bin`;
      expect(findOnPath("podbot-planted", path)).toBe(planted);
      for (const uid of [0, 1_000]) expect(findOnPath("podbot-planted", systemPath(path, uid))).toBeNull();
    },
  );
});

describe("the words of a process", () => {
  test("are those that it was started with", () => {
    expect(argvOf(process.pid).length).toBeGreaterThan(0);
    expect(argvOf(process.pid)[0]).toContain("node");
  });

  test("are none where there is no such process, or it has none", () => {
    expect(argvOf(2 ** 30)).toEqual([]);
    // A thread of the kernel's, where there are any.
    expect(argvOf(-1)).toEqual([]);
  });
});
