import { describe, expect, test } from "vitest";
import { Territory } from "../../src/plan/territory.ts";

function ordinary(): Territory {
  const territory = new Territory();
  territory.set("/", "ro");
  territory.set("/tmp", "private");
  territory.set("/home/u/project", "rw");
  territory.set("/home/u/project/secret", "exclude");
  return territory;
}

describe("a territory", () => {
  test.each([
    ["/", "/", "ro"],
    ["/etc/passwd", "/", "ro"],
    ["/tmp", "/tmp", "private"],
    ["/tmp/x/y", "/tmp", "private"],
    ["/home/u/project", "/home/u/project", "rw"],
    ["/home/u/project/src/a", "/home/u/project", "rw"],
    ["/home/u/project/secret/key", "/home/u/project/secret", "exclude"],
    ["/home/u/project2", "/", "ro"],
  ])("has %s in the region that begins at %s and is %s", (path, begins, look) => {
    expect(ordinary().at(path)).toEqual({ begins, look });
  });

  test("without any region shows nothing of the host", () => {
    expect(new Territory().at("/etc")).toEqual({ begins: "/", look: "private" });
    expect(new Territory().shows("/etc")).toBe(false);
  });

  test.each([
    ["/etc/passwd", true],
    ["/home/u/project/src", true],
    ["/tmp/x", false],
    ["/home/u/project/secret/key", false],
  ])("shows %s: %s", (path, expected) => {
    expect(ordinary().shows(path)).toBe(expected);
  });

  test("knows where regions begin", () => {
    expect(ordinary().below("/home/u")).toEqual(["/home/u/project", "/home/u/project/secret"]);
    expect(ordinary().below("/home/u/project/secret")).toEqual([]);
    expect(ordinary().below("/")).toHaveLength(3);
  });

  test("takes the last word on a region", () => {
    const territory = ordinary();
    territory.set("/home/u/project", "ro");
    expect(territory.at("/home/u/project/src").look).toBe("ro");
  });
});
