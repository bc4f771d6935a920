import { dirname } from "node:path";
import { directoriesBetween, isWithin } from "../policy/paths.ts";
import { describeRule } from "../policy/rule.ts";
import type { Survey } from "../survey/survey.ts";
import { privatePlaces, type Verdict } from "./decide.ts";
import type { HeldName, Operation, PathDecision } from "./plan.ts";
import { holdsLinks, keptHome, kernelSecrets, kernelSwitches, type Request } from "./request.ts";
import { Territory } from "./territory.ts";

/** The filesystem of the plan, in the making. */
export interface Ground {
  readonly operations: Operation[];
  readonly seals: Operation[];
  readonly kept: string[];
  readonly held: HeldName[];
  readonly paths: PathDecision[];
  /** Links to protected paths, and other steps on the way to them, that lie where the agent may write. */
  readonly links: string[];
  readonly territory: Territory;
}

const minimalRoot = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc"];

/** Lays the root, the private places and then every verdict on top of what is above it. */
export function layGround(request: Request, survey: Survey, verdicts: readonly Verdict[]): Ground {
  const ground: Ground = {
    operations: [],
    seals: [],
    kept: [],
    held: [],
    paths: [],
    links: [],
    territory: new Territory(),
  };
  if (request.root !== "image") layOwnRoot(ground, request, survey);
  for (const verdict of verdicts) layVerdict(ground, request, survey, verdict);
  ground.links.push(...replaceableLinks(survey, ground, verdicts));
  if (holdsLinks(request)) for (const path of ground.links) holdStep(ground, survey, path);
  return ground;
}

/** What leads to something protected, and could be made to lead elsewhere. */
function replaceableLinks(survey: Survey, { territory }: Ground, verdicts: readonly Verdict[]): readonly string[] {
  const named = verdicts.flatMap(({ rule, beaten }) => [rule, ...beaten]).filter(({ access }) => access !== "rw");
  const links = named.map(({ pattern }) => pattern).filter((pattern) => survey.nodes[pattern]?.kind === "link");
  return [...new Set([...links, ...Object.keys(survey.git?.steps ?? {})])].filter((path) => {
    const { look, begins } = territory.at(path);
    // A directory that is a mount stays where it is.
    return look === "rw" && begins !== path;
  });
}

/** After all verdicts: a directory that is not yet a mount has nothing protected in it that a new one would cover. */
function holdStep(ground: Ground, survey: Survey, path: string): void {
  const node = survey.nodes[path];
  const { begins } = ground.territory.at(path);
  const why = "it leads to something protected";
  holdAncestors(ground, survey, begins, path, why);
  if (begins === path || node === undefined) return;
  if (node.kind === "link") ground.operations.push({ kind: "hold", target: path, identity: node.identity, why });
  else ground.operations.push(bind(path, path, "rw", node.identity, why));
  ground.territory.set(path, "rw");
}

/** Of an image nothing is laid: the engine brings all of it, and what is private in it. */
function layOwnRoot(ground: Ground, request: Request, survey: Survey): void {
  if (request.root === "host") layHostRoot(ground, survey);
  else layMinimalRoot(ground, survey);
  layPrivatePlaces(ground);
  if (request.uid === 0) laySwitches(ground, survey);
  maskKernelSecrets(ground, request, survey);
  if (request.root === "minimal") layKeptHome(ground, request, survey);
  if (request.clone) layClone(ground, survey, request.clone.directory);
}

function layHostRoot({ operations, territory }: Ground, survey: Survey): void {
  const why = "the host's root is readable (sandbox.root = host)";
  operations.push(bind("/", "/", "ro", survey.nodes["/"]?.identity ?? null, why));
  territory.set("/", "ro");
}

function layMinimalRoot({ operations, seals, territory }: Ground, survey: Survey): void {
  const why = "programs and libraries (sandbox.root = minimal)";
  operations.push({ kind: "tmpfs", target: "/", mode: 0o755, why: "an empty root (sandbox.root = minimal)" });
  territory.set("/", "private");
  for (const entry of survey.listings["/"] ?? []) {
    const target = `/${entry.name}`;
    if (!minimalRoot.includes(entry.name)) continue;
    if (entry.kind === "link") operations.push({ kind: "link", target, to: entry.to, why });
    else {
      operations.push(bind(target, target, "ro", entry.identity, why));
      territory.set(target, "ro");
    }
  }
  seals.push({ kind: "seal", target: "/", why: "the root itself takes no new entries" });
}

function layPrivatePlaces({ operations, territory }: Ground): void {
  operations.push({ kind: "dev", target: "/dev", why: "a few harmless devices" });
  operations.push({ kind: "proc", target: "/proc", why: "only the sandbox's own processes" });
  operations.push({ kind: "tmpfs", target: "/tmp", mode: 0o1777, why: "private, gone afterwards" });
  operations.push({ kind: "tmpfs", target: "/run", mode: 0o755, why: "private: sockets of the host live in /run" });
  for (const place of privatePlaces) territory.set(place, "private");
}

/** bubblewrap covers some of these, by a test that root's own files pass. */
function laySwitches({ operations }: Ground, survey: Survey): void {
  for (const path of kernelSwitches) {
    const identity = survey.nodes[path]?.identity;
    if (identity !== undefined) operations.push(bind(path, path, "ro", identity, "root changes the kernel there"));
  }
}

function maskKernelSecrets({ operations }: Ground, request: Request, survey: Survey): void {
  for (const path of kernelSecrets(request)) {
    if (survey.nodes[path] !== undefined) operations.push({ kind: "mask", target: path, why: "the kernel's own" });
  }
}

function layKeptHome(ground: Ground, request: Request, survey: Survey): void {
  const source = `${request.keptDirectory}/${keptHome}`;
  ground.kept.push(source);
  ground.operations.push(bind(source, survey.home, "rw", null, "a home of the sandbox's own, kept between runs"));
  ground.territory.set(survey.home, "private");
}

/** Before all rules: what they speak of in this place is the host's, and is not seen. */
function layClone(ground: Ground, survey: Survey, target: string): void {
  if (ground.territory.shows(target)) makeRoom(ground, survey, target);
  ground.operations.push({ kind: "own", part: "clone", target, access: "rw", why: "the session's own clone" });
  ground.territory.set(target, "private");
}

function layVerdict(ground: Ground, request: Request, survey: Survey, verdict: Verdict): void {
  const { path, rule, placeholder } = verdict;
  const region = ground.territory.at(path);
  const why = describeRule(rule);
  const mounted = isNew(verdict, region.look) && !(request.nested && isMasked(survey, path));
  // An image shows nothing of the host: what is hidden there by default says nothing, and changes from hour to hour.
  if (!mounted && request.root === "image" && rule.layer === "default") return;
  ground.paths.push({
    path,
    access: rule.access,
    rule: rule.written,
    layer: rule.layer,
    origin: rule.origin,
    beaten: verdict.beaten.map(describeRule),
    mounted,
  });
  if (!mounted) return;
  if (region.look === "rw" && rule.access !== "rw") holdAncestors(ground, survey, region.begins, path, why);
  if (placeholder !== null) {
    ground.held.push({ path, placeholder, directory: survey.nodes[dirname(path)]?.identity ?? null });
  }
  if (rule.own !== undefined || rule.fresh !== undefined) {
    if (!hasRoom(ground, survey, path)) return;
    if (rule.own !== undefined) layOwn(ground, request, survey, path, rule.own, why);
    else layFresh(ground, survey, path, why);
  } else if (rule.access === "exclude") hide(ground, survey, path, why);
  else {
    const identity = survey.nodes[path]?.identity ?? null;
    if (rule.copied && region.look === "private")
      ground.operations.push({ kind: "copy", source: path, target: path, identity, why });
    else ground.operations.push(bind(path, path, rule.access, identity, why));
    ground.territory.set(path, rule.access);
  }
}

/** Whether a verdict changes anything where it lies. */
function isNew({ rule, placeholder }: Verdict, look: ReturnType<Territory["at"]>["look"]): boolean {
  if (placeholder !== null || rule.guard) return look === "rw";
  if (rule.own !== undefined || rule.fresh !== undefined) return look === "ro";
  if (rule.access === "exclude") return look === "ro" || look === "rw";
  return look !== rule.access;
}

/** In a sandbox within a sandbox: a file without any name is the outer one's mask, and nothing mounts on it. */
function isMasked(survey: Survey, path: string): boolean {
  const node = survey.nodes[path];
  return node?.kind === "file" && node.links === 0;
}

/**
 * A protected name can be carried off by renaming a directory above it. A directory that is a mount cannot be
 * renamed, so each one on the way is mounted onto itself.
 */
function holdAncestors(ground: Ground, survey: Survey, from: string, path: string, why: string): void {
  for (const directory of directoriesBetween(from, path)) {
    const identity = survey.nodes[directory]?.identity ?? null;
    ground.operations.push(
      bind(directory, directory, "rw", identity, `cannot be renamed: it holds ${path}, protected by ${why}`),
    );
    ground.territory.set(directory, "rw");
  }
}

function hide(ground: Ground, survey: Survey, path: string, why: string): void {
  if (survey.nodes[path]?.kind === "directory") {
    ground.operations.push({ kind: "tmpfs", target: path, mode: 0o755, why });
    ground.seals.push({ kind: "seal", target: path, why });
  } else if (survey.nodes[path]?.kind === "socket") {
    ground.operations.push({ kind: "mask", target: path, fleeting: true, why });
  } else ground.operations.push({ kind: "mask", target: path, why });
  ground.territory.set(path, "exclude");
}

function layFresh(ground: Ground, survey: Survey, path: string, why: string): void {
  makeRoom(ground, survey, path);
  ground.operations.push({ kind: "tmpfs", target: path, mode: 0o700, why });
  ground.territory.set(path, "private");
}

function layOwn(ground: Ground, request: Request, survey: Survey, path: string, own: string, why: string): void {
  makeRoom(ground, survey, path);
  const source = `${request.keptDirectory}/${own}`;
  ground.kept.push(source);
  ground.operations.push(bind(source, path, "rw", null, why));
  ground.territory.set(path, "private");
}

function makeRoom(ground: Ground, survey: Survey, path: string): void {
  const above = survey.missing[path];
  if (above !== undefined) compose(ground, survey, above);
}

/** Whether a directory that the host lacks has a place: not behind a link, and not where something is hidden. */
function hasRoom({ territory }: Ground, survey: Survey, path: string): boolean {
  const above = survey.missing[path];
  return above === undefined || (isWithin(path, above) && territory.at(above).look === "ro");
}

/** A read-only directory takes no new mount point: it is built anew, entry by entry, around the one that is missing. */
function compose(ground: Ground, survey: Survey, directory: string): void {
  const why = "built anew, so that mount points can be missing on the host";
  if (ground.operations.some(({ kind, target }) => kind === "tmpfs" && target === directory)) return;
  const begun = ground.territory.below(directory);
  const at = ground.operations.findIndex(({ target }) => begun.includes(target));
  const anew: Operation[] = [{ kind: "tmpfs", target: directory, mode: 0o755, why }];
  for (const entry of survey.listings[directory] ?? []) {
    const target = directory === "/" ? `/${entry.name}` : `${directory}/${entry.name}`;
    if (begun.includes(target)) continue;
    if (entry.kind === "link") anew.push({ kind: "link", target, to: entry.to, why });
    else anew.push(bind(target, target, "ro", entry.identity, why));
  }
  // Whatever is already laid below belongs on top of it.
  ground.operations.splice(at < 0 ? ground.operations.length : at, 0, ...anew);
  ground.seals.push({ kind: "seal", target: directory, why });
  // It begins anew: if one above it is composed, too, it belongs on top.
  ground.territory.set(directory, "ro");
}

export function bind(
  source: string,
  target: string,
  access: "ro" | "rw",
  identity: string | null,
  why: string,
): Operation {
  return { kind: "bind", source, target, access, identity, why };
}
