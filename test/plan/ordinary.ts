import { collectRules } from "../../src/keeper/rules.ts";
import { makePlan } from "../../src/plan/make.ts";
import type { Plan } from "../../src/plan/plan.ts";
import type { Request } from "../../src/plan/request.ts";
import { toPattern } from "../../src/policy/glob.ts";
import { choosePresets } from "../../src/policy/presets.ts";
import type { Access, Rule, RuleLayer } from "../../src/policy/rule.ts";
import type { Survey } from "../../src/survey/survey.ts";
import { surveyOf, type Tree } from "./tree.ts";

export const home = "/home/u";
export const cwd = "/home/u/project";

/** What everybody's machine has. */
export const ordinaryTree: Tree = {
  "/usr/bin": "directory",
  "/etc/passwd": "file",
  "/opt/podbot/enter": "file",
  "/opt/podbot/shim": "file",
  [cwd]: "directory",
};

/** A request without rules, to be completed by what a test is about. */
export function ordinaryRequest(more: Partial<Request> = {}): Request {
  return {
    command: ["make", "test"],
    cwd,
    home,
    root: "host",
    network: { mode: "none", origin: "default" },
    rules: [],
    git: { mode: "on", layer: "default" },
    commands: [],
    variables: [],
    path: "/usr/bin",
    nesting: false,
    nested: false,
    dockerSocket: null,
    keptDirectory: "/home/u/.local/state/podbot/kept",
    native: { enter: "/opt/podbot/enter", shim: "/opt/podbot/shim" },
    graceMs: 10_000,
    uid: 1000,
    acceptedGaps: [],
    ...more,
  };
}

/** A rule as its owner writes it: `ro ~/notes`. */
export function said(layer: RuleLayer, line: string, more: Partial<Rule> = {}): Rule {
  const [access, written] = line.split(/ (.*)/s) as [Access, string];
  const origin = layer === "flag" ? `--${access}` : layer;
  return { access, ...toPattern(written, { home, cwd }), written, layer, origin, trusted: true, ...more };
}

/** The rules of presets; without a word those of `@all`. */
export function presetRules(...toggles: readonly string[]): readonly Rule[] {
  return collectRules([], choosePresets(toggles), "host", { home, cwd });
}

/** The plan for rules on a machine that has, besides what everybody has, what the tree says. */
export function planFor(
  rules: readonly Rule[],
  tree: Tree = {},
  more: { readonly request?: Partial<Request>; readonly survey?: Partial<Survey> } = {},
): Plan {
  const request = ordinaryRequest({ rules, ...more.request });
  return makePlan(request, surveyOf({ ...ordinaryTree, ...tree }, request, more.survey));
}
