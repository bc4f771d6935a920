import { readdirSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { FilesystemError, PolicyError } from "../errors.ts";
import { gitRules } from "../policy/git.ts";
import { isWithin, parentOf } from "../policy/paths.ts";
import type { Rule } from "../policy/rule.ts";
import { findTargets, readScript } from "./commands.ts";
import { expandPattern } from "./expand.ts";
import { findGit } from "./git.ts";
import { lookForRepositories } from "./git-look.ts";
import { identityOf, kindOf, Reader, statOf } from "./reader.ts";
import { findSockets } from "./sockets.ts";
import type { Ask, Listed, Script, Survey, Target } from "./survey.ts";
import { findWay } from "./way.ts";

type Asked = Pick<Rule, "pattern" | "glob" | "placeholder">;

/** Reads the filesystem once and to the end. `onLong` is told of each pattern that takes long. */
export function takeSurvey(
  ask: Ask,
  absent: ReadonlySet<string> = new Set(),
  onLong?: (pattern: string) => void,
): Survey {
  const reader = new Reader(absent, ask.mighty);
  const cwd = directoryAt(ask.cwd, "working directory", reader);
  const home = directoryAt(ask.home, "home directory", reader);
  const git = ask.git
    ? findGit({ cwd, home, uid: ask.uid, strict: ask.gitStrict, configs: ask.gitConfigs }, reader)
    : null;
  const own = git === null ? [] : gitRules(git, cwd, ask.gitStrict);
  const asked: readonly Asked[] = [...ask.rules, ...own.map((rule) => ({ ...rule, pattern: rule.path }))];
  reader.expect(asked.map(({ pattern }) => pattern));
  const matches: Record<string, readonly string[]> = {};
  const firstMissing: Record<string, Survey["firstMissing"][string]> = {};
  for (const { pattern, glob, placeholder } of asked) {
    const found = matches[pattern] ?? expandPattern(pattern, glob === true, reader, { onLong });
    matches[pattern] = found;
    for (const path of found) reader.look(path);
    if (placeholder !== undefined && found.length === 0) {
      const { missing } = findWay(pattern, reader);
      if (missing !== null) firstMissing[pattern] = missing;
    }
  }
  const targets: Record<string, readonly Target[]> = {};
  const scripts: Record<string, Script> = {};
  for (const command of ask.commands) {
    targets[command.name] = findTargets(command.name, ask.path, cwd, reader);
    if (command.kind === "script") scripts[command.name] = readScript(command.name, command.script, reader);
  }
  const sockets = findSockets(reader, ask);
  for (const path of sockets) {
    reader.look(path);
    matches[path] ??= [path];
  }
  return {
    cwd,
    home,
    matches,
    firstMissing,
    ...mountPoints(ask.mountPoints, ask.emptyRoot, reader),
    git,
    repositories: ask.git ? lookForRepositories(cwd) : null,
    targets,
    scripts,
    sockets,
    resolver: ask.network ? resolverPlace(reader) : null,
    nodes: Object.fromEntries(reader.nodes),
  };
}

function directoryAt(path: string, what: string, reader: Reader): string {
  const resolved = reader.resolve(path);
  const node = resolved === null ? null : reader.look(resolved);
  if (resolved !== null && node?.kind === "directory") return resolved;
  const problem = `The ${what} ${JSON.stringify(path)} ${node === null ? "does not exist" : "is not a directory"}.`;
  if (what === "home directory") {
    throw new FilesystemError("HOME_INVALID", problem, { hint: "Set HOME to your home directory.", details: { path } });
  }
  throw new PolicyError("PATH_REFUSED", problem, {
    hint: "Go to an existing directory or name one with -C.",
    details: { path },
  });
}

/** Where a mount point is missing, the nearest directory above it, and all that lies there. */
function mountPoints(
  points: readonly string[],
  emptyRoot: boolean,
  reader: Reader,
): Pick<Survey, "missing" | "listings"> {
  const missing: Record<string, string> = {};
  const listings: Record<string, readonly Listed[]> = emptyRoot ? { "/": list("/") } : {};
  for (const point of points) {
    const resolved = reader.resolve(point);
    if (resolved !== null) {
      reader.look(resolved);
      continue;
    }
    const directory = nearestAbove(point, reader);
    missing[point] = directory;
    listings[directory] ??= list(directory);
  }
  return { missing, listings };
}

/** The nearest existing directory above a path that does not exist. */
function nearestAbove(path: string, reader: Reader): string {
  for (let missing = path; ; missing = parentOf(missing)) {
    const directory = reader.resolve(parentOf(missing));
    if (directory === null) continue;
    reader.look(directory);
    return directory;
  }
}

function list(directory: string): readonly Listed[] {
  return readdirSync(directory)
    .sort()
    .flatMap((name) => {
      const path = join(directory, name);
      const stats = statOf(path);
      if (stats === null) return [];
      const kind = kindOf(stats);
      return [{ name, kind, identity: identityOf(stats), to: kind === "link" ? readlinkSync(path) : "" }];
    });
}

/**
 * systemd-resolved and others link /etc/resolv.conf into /run, which is private inside. While they do not run, the link
 * leads nowhere, but inside it can be made to lead somewhere.
 */
function resolverPlace(reader: Reader): string | null {
  const place = "/etc/resolv.conf";
  const resolved = reader.resolve(place);
  if (resolved !== null) {
    reader.look(resolved);
    return resolved;
  }
  const stats = statOf(place);
  const to = stats !== null && kindOf(stats) === "link" ? resolve("/etc", readlinkSync(place)) : "/";
  return isWithin(to, "/run") ? to : null;
}
