import { resolve } from "node:path";
import { questions, type Request } from "../../src/plan/request.ts";
import type { GitLayout } from "../../src/policy/git.ts";
import { gitRules } from "../../src/policy/git.ts";
import { isGlob, segmentMatcher } from "../../src/policy/glob.ts";
import { isWithin, nameOf, parentOf } from "../../src/policy/paths.ts";
import type { Listed, Node, NodeKind, Survey } from "../../src/survey/survey.ts";

/** A filesystem as a literal: each path with what is there. Directories on the way are implied. */
export type Tree = Readonly<
  Record<string, NodeKind | `-> ${string}` | { readonly kind: NodeKind; readonly links: number }>
>;

/** What a survey of such a filesystem would answer to a request. The rest of the answers can be given literally. */
export function surveyOf(tree: Tree, request: Request, rest: Partial<Survey> = {}): Survey {
  const ask = questions(request);
  const place = new Place(tree);
  const git = rest.git ?? null;
  const named = [
    ...ask.rules.map(({ pattern, glob }) => [pattern, glob === true] as const),
    ...(git === null ? [] : gitRules(git, ask.cwd, ask.gitStrict).map(({ path }) => [path, false] as const)),
  ];
  const sockets = Object.keys(tree).filter((path) => tree[path] === "socket" && !isPrivate(path));
  const firstMissing = Object.fromEntries(
    named
      .filter(([pattern, glob]) => place.expand(pattern, glob).length === 0)
      .map(([pattern]) => [pattern, place.firstMissing(pattern)]),
  );
  const missing: Record<string, string> = {};
  const listings: Record<string, readonly Listed[]> = ask.emptyRoot ? { "/": place.list("/") } : {};
  for (const point of ask.mountPoints.filter((path) => place.resolve(path) === null)) {
    const directory = place.nearestAbove(point);
    missing[point] = directory;
    listings[directory] ??= place.list(directory);
  }
  return {
    cwd: ask.cwd,
    home: ask.home,
    matches: Object.fromEntries(
      [...named, ...sockets.map((path) => [path, false] as const)].map(([pattern, glob]) => [
        pattern,
        place.expand(pattern, glob),
      ]),
    ),
    nodes: place.nodes,
    firstMissing,
    missing,
    listings,
    git,
    repositories: null,
    targets: {},
    scripts: {},
    sockets,
    resolver: null,
    ...rest,
  };
}

/** A plain repository in a directory, as a survey describes it. */
export function repositoryAt(root: string, more: Partial<GitLayout> = {}): GitLayout {
  return {
    entry: { path: `${root}/.git`, kind: "directory" },
    gitDir: `${root}/.git`,
    commonDir: `${root}/.git`,
    pointsBack: true,
    modules: [],
    worktrees: [],
    obeyed: [],
    hookDirectories: [],
    absent: [],
    steps: {},
    gitlinks: {},
    embedded: [],
    branch: "refs/heads/main",
    heads: [],
    ...more,
  };
}

/** By this a test recognizes what a path stood for. */
export function identityOf(path: string): string {
  return `inode of ${path}`;
}

function isPrivate(path: string): boolean {
  return ["/proc", "/dev", "/run", "/tmp"].some((place) => isWithin(path, place));
}

class Place {
  readonly nodes: Record<string, Node> = {};
  readonly #links = new Map<string, string>();

  constructor(tree: Tree) {
    for (const [path, entry] of Object.entries(tree)) {
      const link = typeof entry === "string" && entry.startsWith("-> ");
      if (link) this.#links.set(path, entry.slice(3));
      this.nodes[path] = nodeAt(path, link ? "link" : (entry as NodeKind | { kind: NodeKind; links: number }));
      for (let above = path; above !== "/"; above = parentOf(above)) {
        this.nodes[parentOf(above)] ??= nodeAt(parentOf(above), "directory");
      }
    }
  }

  resolve(path: string): string | null {
    const link = [...this.#links].find(([name]) => isWithin(path, name));
    if (link !== undefined) return this.resolve(resolve(parentOf(link[0]), link[1]) + path.slice(link[0].length));
    return this.nodes[path] === undefined ? null : path;
  }

  expand(pattern: string, glob: boolean): readonly string[] {
    const wanted = pattern.split("/");
    const found = glob ? Object.keys(this.nodes).filter((path) => matches(path.split("/"), wanted)) : [pattern];
    return [...new Set(found.map((path) => this.resolve(path)).filter((path) => path !== null))].sort();
  }

  firstMissing(pattern: string): { readonly path: string; readonly isLast: boolean } {
    let missing = pattern;
    while (this.resolve(parentOf(missing)) === null) missing = parentOf(missing);
    const above = this.resolve(parentOf(missing)) as string;
    return { path: above === "/" ? `/${nameOf(missing)}` : `${above}/${nameOf(missing)}`, isLast: missing === pattern };
  }

  nearestAbove(path: string): string {
    const above = parentOf(path);
    return this.resolve(above) ?? this.nearestAbove(above);
  }

  list(directory: string): readonly Listed[] {
    return Object.keys(this.nodes)
      .filter((path) => path !== "/" && parentOf(path) === directory)
      .sort()
      .map((path) => {
        const { kind, identity } = this.nodes[path] as Node;
        return { name: nameOf(path), kind, identity, to: this.#links.get(path) ?? "" };
      });
  }
}

function nodeAt(path: string, entry: NodeKind | { readonly kind: NodeKind; readonly links: number }): Node {
  return { identity: identityOf(path), ...(typeof entry === "string" ? { kind: entry, links: 1 } : entry) };
}

function matches([name, ...names]: readonly string[], [segment, ...segments]: readonly string[]): boolean {
  if (segment === undefined) return name === undefined;
  if (segment === "**" && matches([name as string, ...names], segments)) return true;
  if (name === undefined) return false;
  if (segment === "**") return matches(names, [segment, ...segments]);
  return (isGlob(segment) ? segmentMatcher(segment, segment).test(name) : segment === name) && matches(names, segments);
}
