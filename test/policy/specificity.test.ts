import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareAccess, type Rule, type RuleLayer } from "../../src/policy/rule.ts";
import { strongest } from "../../src/policy/specificity.ts";
import { said } from "../plan/ordinary.ts";

/** What takes part in the comparison. */
const weight = ({ access, layer, glob }: Rule) => `${layer} ${access} ${glob ? "glob" : "exact"}`;

const owners: readonly RuleLayer[] = ["default", "global", "project", "environment", "flag"];

function rulesOf(layers: readonly RuleLayer[]): fc.Arbitrary<readonly [Rule, ...Rule[]]> {
  const rule = fc
    .tuple(fc.constantFrom(...layers), fc.constantFrom("exclude", "ro", "rw"), fc.constantFrom("/x/a", "/x/*"))
    .map(([layer, access, path]) => (layer === "podbot" ? guard : said)(layer, `${access} ${path}`));
  return fc.tuple(rule, fc.array(rule, { maxLength: 5 })).map(([first, others]) => [first, ...others]);
}

/** A rule that can take away and never gives. */
const guard = (layer: RuleLayer, line: string): Rule => said(layer, line, { guard: true });

describe("of two rules for one path holds", () => {
  test.each<[string, Rule, Rule]>([
    ["the exact one over a pattern", said("default", "rw a"), said("flag", "exclude *")],
    ["exclude over ro", said("default", "exclude a"), said("flag", "ro a")],
    ["exclude over rw", said("default", "exclude a"), said("flag", "rw a")],
    ["ro over rw", said("default", "ro a"), said("flag", "rw a")],
    ["the stricter of two patterns", said("default", "ro a*"), said("flag", "rw ?")],
    ["the global one over the default", said("global", "ro a"), said("default", "ro a")],
    ["the project's over the global one", said("project", "ro a"), said("global", "ro a")],
    ["the environment's over the project's", said("environment", "ro a"), said("project", "ro a")],
    ["the flag over the environment's", said("flag", "ro a"), said("environment", "ro a")],
    ["Podbot's own over any that opens", guard("podbot", "ro a"), said("flag", "rw a")],
    ["a guard even where it is a pattern", guard("default", "ro a*"), said("flag", "rw a")],
    [
      "what hides over a guard, which would only keep from writing",
      said("default", "exclude a"),
      guard("podbot", "ro a"),
    ],
    ["what hides by a pattern over a guard", said("default", "exclude a*"), guard("podbot", "ro a")],
    ["of two guards the stricter", guard("default", "exclude a"), guard("podbot", "ro a")],
  ])("%s", (_, winner, loser) => {
    expect(strongest([winner, loser])).toEqual({ rule: winner, beaten: [loser] });
    expect(strongest([loser, winner])).toEqual({ rule: winner, beaten: [loser] });
  });

  test("the one that opens as far as a guard lets it, where both say the same", () => {
    const [rule, same] = [said("default", "ro a"), guard("podbot", "ro a")];
    expect(strongest([rule, same]).rule).toBe(rule);
    expect(strongest([same, rule]).rule).toBe(rule);
  });

  test("the one given last where they weigh the same", () => {
    const [first, second] = [said("flag", "ro a"), said("flag", "ro a", { origin: "again" })];
    expect(strongest([first, second])).toEqual({ rule: second, beaten: [first] });
  });

  test("the only one where there is one", () => {
    const only = said("flag", "ro a");
    expect(strongest([only])).toEqual({ rule: only, beaten: [] });
  });
});

describe("the strongest rule", () => {
  test("is the same in whatever order the rules are given", () => {
    fc.assert(
      fc.property(
        rulesOf([...owners, "podbot"]).chain((rules) =>
          fc.tuple(fc.constant(rules), fc.shuffledSubarray([...rules], { minLength: rules.length })),
        ),
        ([rules, shuffled]) => {
          expect(weight(strongest(shuffled as unknown as typeof rules).rule)).toBe(weight(strongest(rules).rule));
        },
      ),
    );
  });

  test("beats each of the others, and loses none of them", () => {
    fc.assert(
      fc.property(rulesOf(owners), (rules) => {
        const { rule: winner, beaten } = strongest(rules);
        expect([winner, ...beaten]).toHaveLength(rules.length);
        for (const loser of beaten) expect(weight(strongest([winner, loser]).rule)).toBe(weight(winner));
      }),
    );
  });

  test("is never made laxer by a guard, and never laxer than one", () => {
    fc.assert(
      fc.property(rulesOf(owners), fc.constantFrom("exclude", "ro", "rw"), (rules, access) => {
        const guarded = strongest([...rules, guard("podbot", `${access} /x/a`)]).rule.access;
        expect(compareAccess(guarded, strongest(rules).rule.access)).toBeLessThanOrEqual(0);
        expect(compareAccess(guarded, access)).toBeLessThanOrEqual(0);
      }),
    );
  });

  test("is the same without any that it beat", () => {
    fc.assert(
      fc.property(rulesOf(owners), (rules) => {
        const { rule: winner, beaten } = strongest(rules);
        for (const loser of beaten) {
          const others = rules.filter((one) => one !== loser) as unknown as typeof rules;
          expect(weight(strongest(others).rule)).toBe(weight(winner));
        }
      }),
    );
  });
});
