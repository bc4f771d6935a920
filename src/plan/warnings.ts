import { isWithin } from "../policy/paths.ts";
import { compareAccess, describeRule } from "../policy/rule.ts";
import type { Survey } from "../survey/survey.ts";
import type { Verdict } from "./decide.ts";
import type { Ground } from "./lay.ts";
import { limitsSet } from "./limits.ts";
import { holdsLinks, type Request } from "./request.ts";

/** What the owner should know before the start, though it stops nothing. */
export function findWarnings(
  request: Request,
  survey: Survey,
  ground: Ground,
  verdicts: readonly Verdict[],
): readonly string[] {
  return [
    ...hardLinks(survey, ground),
    ...rulesWithoutEffect(verdicts),
    ...emptyExcludes(request, survey),
    ...(holdsLinks(request) ? [] : ground.links.map((path) => replaceable(survey, path))),
    ...visiblePlaceholders(survey, ground),
    ...gitElsewhere(survey),
    ...(request.dockerSocket === null
      ? []
      : [
          `--docker hands ${request.dockerSocket} in: whoever reaches it controls the host. This is a change of trust.`,
        ]),
    ...(request.container === null && request.limits.mode === "best-effort"
      ? limitsSet(request.limits).map((key) => `${key} is not enforced: bubblewrap limits nothing. --wall engine does.`)
      : []),
    ...(request.nesting
      ? ["sandbox.nesting leaves user namespaces available inside: more of the kernel is in reach."]
      : []),
  ];
}

/** Hiding one name of a file does not hide the others. */
function hardLinks(survey: Survey, { paths }: Ground): readonly string[] {
  return paths
    .filter(({ path, access, mounted }) => access === "exclude" && mounted && isSharedFile(survey, path))
    .map(({ path }) => `${path} is hidden, but the file has other names (hard links) that are not.`);
}

function isSharedFile(survey: Survey, path: string): boolean {
  const node = survey.nodes[path];
  return node?.kind === "file" && node.links > 1;
}

/** A flag that grants and loses is a surprise; say who won. */
function rulesWithoutEffect(verdicts: readonly Verdict[]): readonly string[] {
  return verdicts.flatMap(({ path, rule, beaten }) =>
    beaten
      .filter((loser) => loser.layer === "flag" && compareAccess(loser.access, rule.access) > 0)
      .map((loser) => `${describeRule(loser)} has no effect on ${path}: ${describeRule(rule)} holds.`),
  );
}

/** A rule that was meant to hide something and hides nothing may be misspelt. */
function emptyExcludes(request: Request, survey: Survey): readonly string[] {
  return request.rules
    .filter(
      ({ access, layer, pattern }) => access === "exclude" && layer !== "default" && !survey.matches[pattern]?.length,
    )
    .map((rule) => `${describeRule(rule)} hides nothing: there is no such path.`);
}

function replaceable(survey: Survey, path: string): string {
  if (survey.nodes[path]?.kind === "link")
    return `${path} is a link: what it leads to is protected, but the link itself can be replaced inside.`;
  return `${path} is on the way to what git obeys (a path goes on from it by ..), and can be replaced inside.`;
}

/** An empty file says to git what its absence says, but in the worktree it is seen. */
function visiblePlaceholders({ git }: Survey, { held }: Ground): readonly string[] {
  if (git === null) return [];
  const files = git.absent.filter(({ path, placeholder }) => {
    return placeholder.kind === "file" && !isWithin(path, git.commonDir) && held.some((name) => name.path === path);
  });
  return files.map(
    ({ path }) =>
      `${path} does not exist, and git would obey it: an empty file stands there meanwhile, which git status shows unless it is ignored.`,
  );
}

function gitElsewhere({ git, cwd }: Survey): readonly string[] {
  if (git === null || git.pointsBack || isWithin(git.commonDir, cwd)) return [];
  return [
    `${git.entry.path} leads to ${git.commonDir}, which does not point back, so it stays read-only. If it is right: --rw ${git.commonDir}`,
  ];
}
