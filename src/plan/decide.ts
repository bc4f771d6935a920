import { PolicyError } from "../errors.ts";
import { gitRules } from "../policy/git.ts";
import { spellOut } from "../policy/glob.ts";
import { byDepth, isBelow, isWithin, nameOf, parentOf } from "../policy/paths.ts";
import { describeRule, type Placeholder, type Rule } from "../policy/rule.ts";
import { strongest } from "../policy/specificity.ts";
import type { Survey } from "../survey/survey.ts";
import type { Request } from "./request.ts";

/** What holds for one resolved path. */
export interface Verdict {
  readonly path: string;
  readonly rule: Rule;
  readonly beaten: readonly Rule[];
  /** Set where the path does not exist and must not come into being. */
  readonly placeholder: Placeholder | null;
}

/** Private inside, whatever the host has there. */
export const privatePlaces: readonly string[] = ["/proc", "/dev", "/run", "/tmp"];

/** One verdict for each path that any rule speaks of, parents first. */
export function decide(request: Request, survey: Survey): readonly Verdict[] {
  const verdicts = verdictsOf(allRules(request, survey), survey);
  refuseImpossible(survey, verdicts);
  if (request.workspace === "mounted") refuseStandpoint(survey, verdicts);
  return verdicts;
}

/** What the owner's own rules and Podbot's would say if the project were silent. */
export function decideTrusted(request: Request, survey: Survey): readonly Verdict[] {
  return verdictsOf(
    allRules(request, survey).filter(({ trusted }) => trusted),
    survey,
  );
}

function allRules(request: Request, survey: Survey): readonly Rule[] {
  const needed = request.rules.filter((rule) => isNeeded(rule, request, survey));
  return [...needed, ...rulesOfGit(request, survey), ...socketRules(request, survey)];
}

/** A fresh directory is made where the host has none, for the program that needs it; over the host's only if it says so. */
function isNeeded({ fresh, pattern }: Rule, { command: [program] }: Request, survey: Survey): boolean {
  if (fresh === undefined) return true;
  const isMissing = survey.matches[pattern]?.length === 0;
  return isMissing ? fresh.program === nameOf(program) : fresh.covers === true;
}

function rulesOfGit(request: Request, survey: Survey): readonly Rule[] {
  if (survey.git === null) return [];
  const strict = request.git.mode === "strict";
  const rules = gitRules(survey.git, survey.cwd, strict);
  // Beside a clone nobody works here; but what is writable all the same, git obeys out here.
  const held = request.workspace === "clone" ? rules.filter(({ access }) => access !== "rw") : rules;
  return held.map(({ access, path, placeholder }) => ({
    access,
    pattern: path,
    written: path,
    layer: request.git.layer,
    origin: strict ? "preset @git-strict" : "preset @git",
    trusted: true,
    ...(access === "rw" ? {} : { guard: true }),
    ...(placeholder === undefined ? {} : { placeholder }),
  }));
}

/** Sockets of the host are hidden, but for those that the owner names; the engine's own is never shown. */
function socketRules(request: Request, survey: Survey): readonly Rule[] {
  const named = new Set(
    request.rules
      .filter(({ trusted, guard, layer }) => trusted && !guard && layer !== "default")
      .flatMap(({ pattern }) => survey.matches[pattern] ?? []),
  );
  const engine = survey.matches[request.container?.engineSocket ?? ""] ?? [];
  const others = survey.sockets.filter((path) => !named.has(path) && path !== request.dockerSocket);
  return [...new Set([...engine, ...others])].map((path) => ({
    access: "exclude",
    pattern: path,
    written: path,
    layer: "default",
    origin: engine.includes(path) ? "the engine listens there" : "a program of the host is bound there",
    trusted: true,
  }));
}

function verdictsOf(rules: readonly Rule[], survey: Survey): readonly Verdict[] {
  const byPath = new Map<string, [Rule, ...Rule[]]>();
  const placeholders = new Map<string, Placeholder>();
  for (const given of rules) {
    for (const { path, placeholder } of placesOf(given, survey)) {
      const rule = isAstray(given, path, rules, survey) ? guardOf(given) : given;
      if (rule === null) continue;
      const known = byPath.get(path);
      if (known === undefined) byPath.set(path, [rule]);
      else known.push(rule);
      if (placeholder !== null) placeholders.set(path, placeholder);
    }
  }
  // Nothing below what Podbot protects for itself may be opened, however long its path and whoever speaks of it.
  const verdicts = [...byPath]
    .map(([path, candidates]) => ({ path, ...strongest(candidates), placeholder: placeholders.get(path) ?? null }))
    .sort((a, b) => byDepth(a.path, b.path));
  const own = verdicts.filter(({ rule, beaten }) => [rule, ...beaten].some(({ layer }) => layer === "podbot"));
  // A fresh directory opens nothing: it is not the host's.
  return verdicts.filter(
    ({ path, rule }) => rule.access !== "rw" || rule.fresh || !own.some((guard) => isBelow(path, guard.path)),
  );
}

/**
 * Whether a rule of a preset's has come to where a link has led it. An agent may have made the link, in what it could
 * write: presets know names, and not what is behind them. A directory of an agent's own that is itself a link, as people
 * have it who keep their settings in a repository, is followed, unless it leads to where this one works.
 */
function isAstray(rule: Rule, path: string, rules: readonly Rule[], { matches, cwd }: Survey): boolean {
  const isGrant = rule.layer === "default" && rule.access !== "exclude" && !rule.guard && !rule.own && !rule.fresh;
  if (!isGrant || isAt(rule, rule.pattern, path)) return false;
  const roots = rules.filter(({ fresh, pattern }) => fresh !== undefined && isBelow(rule.pattern, pattern));
  return !roots.some(({ pattern }) => {
    const [root] = matches[pattern] as readonly string[];
    if (root === undefined || isWithin(root, cwd) || isWithin(cwd, root)) return false;
    return isAt(rule, root + rule.pattern.slice(pattern.length), path);
  });
}

/** Of a glob, only what stands before its first sign is a place. */
function isAt({ glob }: Rule, pattern: string, path: string): boolean {
  if (!glob) return path === pattern;
  return isWithin(path, parentOf(pattern.slice(0, pattern.search(/[*?[{]|$/))));
}

/** What is left of a rule that may not grant: it may still take away. */
function guardOf(rule: Rule): Rule | null {
  return rule.access === "ro" ? { ...rule, guard: true } : null;
}

function placesOf(
  rule: Rule,
  survey: Survey,
): readonly { readonly path: string; readonly placeholder: Placeholder | null }[] {
  const found = survey.matches[rule.pattern] ?? [];
  if (found.length > 0) return found.map((path) => ({ path, placeholder: null }));
  if (rule.own !== undefined || rule.fresh !== undefined)
    return canBeMade(rule, survey) ? [{ path: rule.pattern, placeholder: null }] : [];
  if (rule.placeholder === undefined) return [];
  // To keep `a/b/c` from being made where not even `a` exists, it is `a` that must be held.
  const missing = survey.firstMissing[rule.pattern];
  if (missing === undefined) return [];
  const { path, isLast } = missing;
  return [{ path, placeholder: isLast ? rule.placeholder : { kind: "directory" } }];
}

/** Composing a directory anew costs a mount for each of its entries. */
const mostEntries = 200;

/** A cache of a tool that has never been here, or a crowded home, is not worth composing anew. */
function canBeMade({ pattern, fresh }: Rule, survey: Survey): boolean {
  const above = survey.missing[pattern];
  if (above === undefined) return true;
  const isWanted = above === parentOf(pattern) || fresh !== undefined;
  return isWanted && (survey.listings[above] ?? []).length <= mostEntries;
}

function refuseImpossible(survey: Survey, verdicts: readonly Verdict[]): void {
  for (const { path, rule } of verdicts) {
    if (rule.layer === "default" || rule.layer === "podbot" || rule.guard) continue;
    const place = privatePlaces.find(
      (reserved) => path === reserved || (reserved !== "/tmp" && isBelow(path, reserved)),
    );
    if (place !== undefined) {
      throw refused(path, rule, `${place} is private inside`, "Leave the rule out, or bind a directory elsewhere.");
    }
    if (path === "/" && rule.access !== "ro") {
      throw refused(path, rule, `the root cannot be ${rule.access}`, "Name the directories that you mean.");
    }
    // What lies in the working directory, links included, is for the project to say.
    const here = rule.glob ? spellOut(survey.cwd) : survey.cwd;
    if (rule.access !== "exclude" && isBelow(rule.pattern, here) && !isWithin(path, survey.cwd)) {
      throw refused(path, rule, "a link leads out of the working directory", `If you mean ${path}, name it.`);
    }
  }
}

function refused(path: string, rule: Rule, why: string, hint: string): PolicyError {
  return new PolicyError("PATH_REFUSED", `The rule ${describeRule(rule)} for ${path} cannot be kept: ${why}.`, {
    hint,
    details: { path, rule: rule.written, origin: rule.origin },
  });
}

function refuseStandpoint(survey: Survey, verdicts: readonly Verdict[]): void {
  const { cwd, home } = survey;
  const refuse = (why: string, hint: string): never => {
    throw new PolicyError("PATH_REFUSED", `The sandbox cannot be started in ${cwd}: ${why}.`, {
      hint,
      details: { cwd },
    });
  };
  if (cwd === "/") refuse("everything would be writable", "Go to the project's directory, or name it with -C.");
  if (cwd === home) refuse("your whole home would be writable", "Go to the project's directory, or name it with -C.");
  const place = privatePlaces.find((reserved) => cwd === reserved || (reserved !== "/tmp" && isBelow(cwd, reserved)));
  if (place !== undefined) refuse(`${place} is private inside`, "Work in a directory elsewhere.");
  const hiding = verdicts.find(({ path, rule }) => rule.access === "exclude" && isWithin(cwd, path));
  if (hiding) refuse(`it is hidden by ${describeRule(hiding.rule)}`, "Work elsewhere, or take that rule out.");
}

/** Protected only where they exist: a placeholder for these would change what tools do. */
export function unguarded(request: Request, survey: Survey): readonly string[] {
  return request.rules
    .filter(
      ({ guard, pattern, placeholder }) =>
        guard && placeholder === undefined && isBelow(pattern, survey.cwd) && survey.matches[pattern]?.length === 0,
    )
    .map(({ pattern }) => pattern)
    .filter((path, at, all) => all.indexOf(path) === at);
}
