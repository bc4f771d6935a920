// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { decisionFor } from "../../src/plan/access.ts";
import { makePlan } from "../../src/plan/make.ts";
import type { Operation, Plan } from "../../src/plan/plan.ts";
import { isBelow, isWithin, parentOf } from "../../src/policy/paths.ts";
import { compareAccess, type Rule, type RuleLayer } from "../../src/policy/rule.ts";
import type { Survey } from "../../src/survey/survey.ts";
import { accessInside, canBeRenamed } from "./mount-table.ts";
import { cwd, ordinaryRequest, ordinaryTree, planFor, presetRules, said } from "./ordinary.ts";
import { repositoryAt, surveyOf, type Tree } from "./tree.ts";

const tree: Tree = {
  "/srv/data/a": "file",
  "/srv/data/deep/er/b": "file",
  "/home/u/.ssh/id": "file",
  "/home/u/.aws/credentials": "file",
  "/home/u/.netrc": "file",
  "/home/u/.npm/x": "file",
  "/home/u/.profile": "-> .bashrc",
  "/home/u/.bashrc": "file",
  "/home/u/.agent/sock": "socket",
  "/home/u/.config/podbot/config.toml": "file",
  "/home/u/link": "-> /srv/data/deep",
  [`${cwd}/.git/hooks/pre-commit`]: "file",
  [`${cwd}/.git/config`]: "file",
  [`${cwd}/.git/modules/m/config`]: "file",
  [`${cwd}/.env`]: "file",
  [`${cwd}/src/a/b/c.ts`]: "file",
  [`${cwd}/src/a/d.ts`]: "file",
  [`${cwd}/tsconfig.json`]: "file",
};
const git = repositoryAt(cwd, { modules: [`${cwd}/.git/modules/m`], hookDirectories: [`${cwd}/.husky/_`] });

/** Every path of the tree, and one beside each that does not exist. */
const places = [
  ...new Set(Object.keys({ ...ordinaryTree, ...tree }).flatMap((path) => [path, `${path}.new`, ...above(path)])),
];

function above(path: string): readonly string[] {
  return path === "/" ? [] : [parentOf(path), ...above(parentOf(path))];
}

const guards = ["ro .podbot", "ro ~/.config/podbot"].map((line) =>
  said("podbot", line, { placeholder: { kind: "directory" }, guard: true }),
);
const standing = [...presetRules(), ...guards];

const pattern = fc.oneof(
  fc.constantFrom(...places),
  fc.constantFrom(...places).map((path) => `${parentOf(path)}/*`.replace("//", "/")),
  fc.constantFrom("**/*.ts", "~/.*", "~/*/*", "/srv/**", "**/config*", "src/?", "~/link/*", "./**"),
);
const owners: readonly RuleLayer[] = ["global", "project", "environment", "flag"];

function ruleOf(trusted: boolean): fc.Arbitrary<Rule> {
  return fc
    .tuple(
      fc.constantFrom(...(trusted ? owners : ["project" as const])),
      fc.constantFrom("exclude", "ro", "rw"),
      pattern,
    )
    .map(([layer, access, path]) => said(layer, `${access} ${path}`, { trusted }));
}

const rules = fc.array(ruleOf(true), { maxLength: 5 });

/** A plan, or null where the rules are refused, which is always safe. */
function planOf(given: readonly Rule[]): Plan | null {
  try {
    return planFor([...standing, ...given], tree, { survey: { git } });
  } catch (error) {
    if (error instanceof PolicyError) return null;
    throw error;
  }
}

/** Checks every plan that such rules lead to. */
function everyPlan(check: (plan: Plan, given: readonly Rule[]) => void): void {
  fc.assert(
    fc.property(rules, (given) => {
      const plan = planOf(given);
      if (plan !== null) check(plan, given);
    }),
    { numRuns: 300 },
  );
}

const mounting: readonly Operation["kind"][] = ["bind", "tmpfs", "proc", "dev", "mask"];

describe("whatever an owner's rules are,", () => {
  test("most of them can be kept, so that the rest of these tests say something", () => {
    expect(fc.sample(rules, 300).filter((given) => planOf(given) !== null).length).toBeGreaterThan(100);
  });

  test("what the plan says of a path is what the mounts do there", () => {
    const plain = fc.array(ruleOf(true), { maxLength: 6 });
    fc.assert(
      fc.property(plain, (given) => {
        const all = [said("default", "rw ."), ...given];
        let plan: Plan;
        try {
          plan = planFor(all, tree);
        } catch (error) {
          if (error instanceof PolicyError) return;
          throw error;
        }
        for (const path of places) {
          expect([path, accessInside(plan, path)]).toEqual([path, decisionFor(plan, path)?.access ?? "ro"]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("the mount of a decision is the one that is in force there", () => {
    everyPlan((plan) => {
      for (const { path, access } of plan.paths.filter(({ mounted }) => mounted)) {
        const mount = plan.operations.findLast(({ kind, target }) => mounting.includes(kind) && isWithin(path, target));
        // A directory that is built anew shows its entries, each of them read-only.
        const anew = mount?.kind === "tmpfs" && mount.why.startsWith("built anew") ? "ro" : "exclude";
        expect([path, mount?.target]).toEqual([path, path]);
        expect([path, mount?.kind === "bind" ? mount.access : anew]).toEqual([path, access]);
      }
    });
  });

  test("nothing that is protected can be renamed, nor any directory above it", () => {
    everyPlan((plan) => {
      for (const { path, access, mounted } of plan.paths) {
        if (!mounted || access === "rw") continue;
        for (const name of [path, ...above(path)])
          expect([path, name, canBeRenamed(plan, name)]).toEqual([path, name, false]);
      }
    });
  });

  test("nothing is mounted in a directory that a later mount covers", () => {
    everyPlan(({ operations }) => {
      const mounts = operations.filter(({ kind, target }) => mounting.includes(kind) && target !== "/");
      for (const [at, { target }] of mounts.entries()) {
        const covering = mounts.slice(at + 1).filter((later) => isBelow(target, later.target));
        expect([target, covering]).toEqual([target, []]);
      }
    });
  });

  test("nothing is mounted in what has been sealed", () => {
    everyPlan(({ operations }) => {
      for (const [at, { kind, target }] of operations.entries()) {
        if (kind !== "seal") continue;
        const later = operations.slice(at + 1).filter((other) => mounting.includes(other.kind));
        expect([target, later.filter((other) => isBelow(other.target, target))]).toEqual([target, []]);
      }
    });
  });

  test("Podbot's own protection holds against any that opens", () => {
    everyPlan((plan) => {
      for (const guard of [`${cwd}/.podbot`, "/home/u/.config/podbot"]) {
        for (const path of [guard, `${guard}/new`, ...places.filter((place) => isWithin(place, guard))]) {
          expect([path, accessInside(plan, path) === "rw"]).toEqual([path, false]);
        }
        expect(canBeRenamed(plan, guard)).toBe(false);
      }
    });
  });

  test("a socket of the host is out of reach unless a rule names it", () => {
    const socket = "/home/u/.agent/sock";
    everyPlan((plan, given) => {
      if (given.some((rule) => names(rule, socket))) return;
      expect(accessInside(plan, socket)).toBe("exclude");
    });
  });

  test("what is held does not exist, lies where one can write, and is read-only", () => {
    everyPlan((plan) => {
      for (const { path } of plan.held) {
        expect(places.includes(path) && !path.endsWith(".new")).toBe(false);
        expect([path, accessInside(plan, parentOf(path)), accessInside(plan, path)]).toEqual([path, "rw", "ro"]);
      }
    });
  });
});

function names(rule: Rule, path: string): boolean {
  const request = ordinaryRequest({ rules: [rule] });
  return surveyOf({ ...ordinaryTree, ...tree }, request).matches[rule.pattern]?.includes(path) ?? false;
}

describe("whatever an untrusted rule says, it", () => {
  test("gives nobody more than there was without it, or it is refused", () => {
    fc.assert(
      fc.property(rules, fc.array(ruleOf(false), { minLength: 1, maxLength: 3 }), (given, untrusted) => {
        const build = (all: readonly Rule[]) => planFor([...presetRules("!@all", "@base", "@caches"), ...all], tree);
        let before: Plan;
        let after: Plan;
        try {
          before = build(given);
          after = build([...given, ...untrusted]);
        } catch (error) {
          if (error instanceof PolicyError) return;
          throw error;
        }
        for (const path of places) {
          const [now, then] = [accessInside(after, path), accessInside(before, path)];
          expect([path, then, now, compareAccess(now, then) > 0]).toEqual([path, then, now, false]);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a plan", () => {
  test("does not depend on the order in which the survey lists what it found", () => {
    fc.assert(
      fc.property(rules, fc.infiniteStream(fc.nat()), (given, order) => {
        const request = ordinaryRequest({ rules: [...standing, ...given] });
        const survey = surveyOf({ ...ordinaryTree, ...tree }, request, { git });
        const shuffled = Object.fromEntries(
          Object.entries(survey).map(([key, part]) => [key, isRecord(part) ? shuffle(part, order) : part]),
        ) as unknown as Survey;
        expect(attempt(() => makePlan(request, shuffled))).toBe(attempt(() => makePlan(request, survey)));
      }),
    );
  });

  test("does not depend on the order of rules that weigh differently", () => {
    const request = (all: readonly Rule[]) => ordinaryRequest({ rules: all });
    const decisions = (all: readonly Rule[]) =>
      attempt(() =>
        makePlan(request(all), surveyOf({ ...ordinaryTree, ...tree }, request(all))).paths.map(
          ({ path, access, layer }) => [path, access, layer],
        ),
      );
    fc.assert(
      fc.property(
        rules.chain((given) => fc.tuple(fc.constant(given), fc.shuffledSubarray(given, { minLength: given.length }))),
        ([given, shuffled]) => {
          fc.pre(!decisions(given).startsWith("refused"));
          expect(decisions(shuffled)).toBe(decisions(given));
        },
      ),
    );
  });

  test("is deeply frozen", () => {
    everyPlan((plan) => {
      expect([plan, ...Object.values(plan), ...plan.operations, ...plan.paths].every(Object.isFrozen)).toBe(true);
    });
  });
});

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !("gitDir" in value);
}

function shuffle(record: Record<string, unknown>, order: fc.Stream<number>): Record<string, unknown> {
  const entries = Object.entries(record).map((entry) => ({ entry, weight: order.next().value }));
  return Object.fromEntries(entries.sort((a, b) => a.weight - b.weight).map(({ entry }) => entry));
}

/** What comes of a call, as text. */
function attempt(call: () => unknown): string {
  try {
    return JSON.stringify(call());
  } catch (error) {
    if (error instanceof PolicyError) return `refused: ${error.message}`;
    throw error;
  }
}
