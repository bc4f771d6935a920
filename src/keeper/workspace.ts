import { statSync } from "node:fs";
import type { LoadedConfig } from "../config/types.ts";
import { PolicyError, UsageError, WallError } from "../errors.ts";
import { checkMount } from "../policy/mounts.ts";
import { expandPath, isWithin } from "../policy/paths.ts";
import { isSaid, originOf } from "./origin.ts";
import { resolved } from "./standpoint.ts";

/** What the agent works on. */
export interface Workspace {
  /** `empty`: a directory of the container's own, and none of the caller's. `clone`: one of the session's own. */
  readonly kind: "mounted" | "empty" | "clone";
  /** The directory of this machine, resolved; where none is mounted, the one where the caller stands. */
  readonly path: string;
  /** Where it is seen inside, if not at its own path. */
  readonly inside: string | null;
}

export interface WorkspaceWish {
  /** Where the caller stands, or what he has named, resolved. */
  readonly cwd: string;
  /** Whether he has named it: then the configuration does not choose another. */
  readonly named: boolean;
  readonly home: string;
  readonly wall: "bubblewrap" | "engine";
  /** Whether a repository was named to be cloned. */
  readonly clone?: boolean;
}

/**
 * Chooses the directory, and refuses one that the configuration may not choose. Where the caller stands is his own
 * choice for this run; a path in a file must lie in one of the roots that the owner has opened.
 */
export function chooseWorkspace(loaded: LoadedConfig, wish: WorkspaceWish): Workspace {
  const { workspace, mounts } = loaded.config;
  const { cwd, named, home, wall } = wish;
  if (wish.clone === true) return cloneAt(workspace.base_dir, wish);
  if (workspace.source === "empty" && !named) {
    if (wall === "engine") {
      const inside = workspace.base_dir;
      // Nothing of the host is mounted; but the place must be one that can be spared.
      checkMount({ asked: inside, source: inside, target: inside, roots: [inside], origin: "workspace.base_dir" });
      return { kind: "empty", path: cwd, inside };
    }
    throw new WallError("GAP", 'workspace.source = "empty" needs a container: behind bubblewrap there is none.', {
      hint: "Use --wall engine with an image, or name the directory to work in with --workspace.",
    });
  }
  if (workspace.source === "github_clone" && isSaid(loaded, "workspace.source") && !named) throw nothingToClone(loaded);
  const fromFile = workspace.source === "host_mount" && !named ? workspace.host_path : undefined;
  // A directory of the configuration's lies where the configuration says, by default too; another at its own path.
  const isPlaced = fromFile !== undefined || isSaid(loaded, "workspace.container_path");
  const inside = wall === "engine" && isPlaced ? workspace.container_path : null;
  const path = fromFile === undefined ? cwd : resolved(fromFile);
  const roots = mounts.allowed_roots.map((root) => resolved(expandPath(root, { home, cwd })));
  const origin = fromFile === undefined ? "the command line" : originOf(loaded, "workspace.host_path");
  if (wall === "engine" || fromFile !== undefined) {
    checkMount({
      asked: fromFile ?? cwd,
      source: path,
      target: inside ?? path,
      roots: fromFile === undefined ? [path] : roots,
      origin,
    });
  }
  if (fromFile !== undefined && !isDirectory(path)) throw notThere(fromFile, origin);
  return { kind: "mounted", path, inside };
}

/** A place that can be spared inside, on either wall; behind bubblewrap, what the host has there is covered. */
function cloneAt(directory: string, { cwd, named, home, wall }: WorkspaceWish): Workspace {
  if (named) {
    throw new UsageError("USAGE", "--repo works on a clone, and a directory to work in was named as well.", {
      hint: "Leave out --workspace and --cwd, or --repo and --branch; --github-token gives a directory a token, too.",
    });
  }
  const inside = wall === "engine" ? directory : resolved(directory);
  checkMount({ asked: inside, source: inside, target: inside, roots: [inside], origin: "workspace.base_dir" });
  if (wall === "bubblewrap" && isWithin(home, inside)) {
    throw new PolicyError("MOUNT_REFUSED", `A clone cannot lie at ${inside}: it would cover your home.`, {
      hint: "Set workspace.base_dir to another directory, as /work.",
      details: { path: inside },
    });
  }
  return { kind: "clone", path: cwd, inside };
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function notThere(path: string, origin: string): PolicyError {
  return new PolicyError("PATH_REFUSED", `workspace.host_path = ${JSON.stringify(path)} is no directory (${origin}).`, {
    hint: "Make it, or name another there; `--workspace DIR` works on another one for this run.",
    details: { path },
  });
}

/** Whoever wrote that he wants a clone does not want his own directory to be worked on. */
function nothingToClone(loaded: LoadedConfig): UsageError {
  return new UsageError("USAGE", 'workspace.source = "github_clone", and no repository was named.', {
    hint: `Name it with --repo OWNER/NAME --branch BRANCH; or the directory to work in with --workspace; or change workspace.source in ${originOf(loaded, "workspace.source")}.`,
  });
}
