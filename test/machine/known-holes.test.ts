import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { withHoles } from "../../src/machine/diagnosis.ts";
import { type Examined, holesOf, versionOf } from "../../src/machine/known-holes.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-holes-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** A program that prints its version, and whatever else these print. */
function printing(...lines: readonly string[]): string {
  const path = join(directory, "program");
  writeFileSync(
    path,
    `#!/bin/sh\n[ "$1" = --version ] && printf '%s\\n' ${lines.map((line) => `'${line}'`).join(" ")}\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

describe("a version", () => {
  test.each<readonly [Examined, string, boolean]>([
    ["bubblewrap", "bubblewrap 0.8.0", true],
    ["bubblewrap", "bubblewrap 0.11.2", true],
    ["bubblewrap", "bubblewrap 0.12.0", false],
    ["bubblewrap", "bubblewrap 0.13.1", false],
    ["bubblewrap", "bubblewrap 1.0", false],
    ["runc", "runc version 1.1.5+ds1", true],
    ["runc", "runc version 1.2.7", true],
    ["runc", "runc version 1.2.8", false],
    ["runc", "runc version 1.3.2", true],
    ["runc", "runc version 1.3.3", false],
    ["runc", "runc version 1.4.0-rc.2+dev", true],
    ["runc", "runc version 1.4.0-rc.3", false],
    ["runc", "runc version 1.4.0", false],
    ["runc", "runc version 1.5.0-rc.1", false],
    ["podman", "podman version 4.3.1", true],
    ["podman", "podman version 5.2.4", true],
    ["podman", "podman version 5.2.5", false],
    ["podman", "podman version 5.8.5", false],
    ["docker", "20.10.24+dfsg1", true],
    ["docker", "29.5.0", true],
    ["docker", "29.5.1", false],
    ["docker", "30.0.0-beta.1", false],
    ["docker", "", false],
    ["docker", "library-import", false],
  ])("of %s, %j, has known holes: %s", (program, version, isOpen) => {
    const holes = holesOf(program, versionOf(printing(version, "commit: 9.9.9")));
    expect(holes.length > 0).toBe(isOpen);
    for (const { cves, fixedIn, remedy } of holes) {
      for (const cve of cves) expect(cve).toMatch(/^CVE-20\d\d-\d{4,6}$/);
      for (const fixed of fixedIn) expect(holesOf(program, fixed)).toEqual([]);
      expect(remedy).toMatch(/^Install /);
    }
  });

  test("is nothing where the program does not say it", () => {
    expect(versionOf("/nonexistent")).toBe("");
    expect(versionOf(directory)).toBe("");
  });
});

describe("a finding with holes", () => {
  const finding = { name: "runtime", state: "ok", found: "runc 1.1.5", remedy: null } as const;
  const [hole] = holesOf("runc", "1.1.5");
  if (hole === undefined) throw new Error("runc 1.1.5 has holes");

  test("is weak, names them and the way out, and that the distribution may have mended them", () => {
    const { state, found, remedy, holes } = withHoles(finding, [hole]);
    expect({ state, holes }).toEqual({ state: "weak", holes: [hole] });
    expect(found).toMatch(/^runc 1\.1\.5; CVE-2025-31133, .*unless your distribution has patched it$/);
    expect(remedy).toBe(hole.remedy);
    expect(withHoles({ ...finding, state: "missing", remedy: "Do." }, [hole])).toMatchObject({
      state: "missing",
      remedy: `Do. ${hole.remedy}`,
    });
  });

  test("is what it was where there are none", () => {
    expect(withHoles(finding, [])).toBe(finding);
  });
});
