import { describe, expect, test } from "vitest";
import { type Access, compareAccess, compareLayers, describeRule, type RuleLayer } from "../../src/policy/rule.ts";

const levels: readonly Access[] = ["exclude", "ro", "rw"];
const layers: readonly RuleLayer[] = ["default", "global", "project", "environment", "flag", "podbot"];

test("access grows from exclude over ro to rw", () => {
  for (const [a, first] of levels.entries()) {
    for (const [b, second] of levels.entries()) expect(Math.sign(compareAccess(first, second))).toBe(Math.sign(a - b));
  }
});

test("layers follow each other from the defaults to the command line, and Podbot's own comes last", () => {
  expect(["flag", "podbot", "default", "environment", "project", "global"].sort(compareLayers as never)).toEqual(
    layers,
  );
  for (const layer of layers) expect(compareLayers(layer, layer)).toBe(0);
});

describe("a rule in a sentence", () => {
  test("keeps what the owner wrote and names who said it", () => {
    const rule = {
      access: "ro",
      written: "~/notes",
      origin: "/home/u/.config/podbot/config.toml",
      layer: "global",
    } as const;
    expect(describeRule(rule)).toBe("ro ~/notes (/home/u/.config/podbot/config.toml, global)");
  });
});
