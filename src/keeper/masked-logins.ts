import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { agents } from "../agents/table.ts";
import type { Config } from "../config/types.ts";
import { readLogin } from "../credentials/masked.ts";
import { maskContent } from "../credentials/masked-content.ts";
import { backupDirectories, isVersionOf, type MaskedFile, maskedFiles } from "../credentials/masked-files.ts";
import type { Operation, Plan } from "../plan/plan.ts";
import { isWithin } from "../policy/paths.ts";
import type { TrustFile } from "../wall/wall.ts";
import type { MaskTokens } from "./masked-credentials.ts";
import { agentCredentials } from "./provision.ts";

/** Whose login is masked behind bubblewrap, by the files and directories of the home that hold it. */
export function loginNames(config: Config, plan: Plan, session: boolean): readonly string[] {
  if (session) return agentCredentials(config);
  return agents.find(({ program }) => program === basename(plan.command[0]))?.credentials ?? [];
}

/**
 * Behind bubblewrap the home's own files are seen. Over each file of it that is known to hold a login, a copy is laid:
 * of the logins named with surrogates, of all others without any token, lest what is bound to their hosts be mistaken
 * for something that this agent needs. What cannot be read as a login is covered by nothing at all.
 */
export function maskLogins(plan: Plan, home: string, names: readonly string[], mask: MaskTokens): readonly TrustFile[] {
  const known = maskedFiles.flatMap((file): readonly TrustFile[] => {
    const target = realPath(join(home, file.path));
    if (target === null || !isShown(plan, target)) return [];
    const isNamed = names.some((name) => isWithin(`/${file.path}`, `/${name}`));
    const content = maskedContent(target, file, isNamed ? mask : () => null);
    return [{ target, bytes: Buffer.from(content) }];
  });
  const covered = new Set(known.map(({ target }) => target));
  const others = [...new Set(oldLogins(home))].filter((target) => !covered.has(target) && isShown(plan, target));
  return [...known, ...others.map((target) => ({ target, bytes: Buffer.alloc(0) }))];
}

/** What agents and editors leave of such files has the same tokens in it, and nobody inside needs it. */
function oldLogins(home: string): readonly string[] {
  const siblings = maskedFiles.flatMap(({ path }) =>
    listFiles(join(home, dirname(path))).filter((found) => isVersionOf(basename(found), basename(path))),
  );
  const kept = backupDirectories.flatMap((path) => listFiles(join(home, path)));
  return [...siblings, ...kept].flatMap((path) => realPath(path) ?? []);
}

function listFiles(directory: string): readonly string[] {
  return (attempt(() => readdirSync(directory)) ?? []).map((name) => join(directory, name));
}

function maskedContent(path: string, file: MaskedFile, mask: MaskTokens): string {
  return maskContent(file, attempt(() => readLogin(path)) ?? "", (real, way) => mask(real, file, way)) ?? "";
}

/** Where a file lies; null where there is none. */
function realPath(path: string): string | null {
  const real = attempt(() => realpathSync.native(path));
  return real !== null && statSync(real, { throwIfNoEntry: false })?.isFile() ? real : null;
}

/** What the caller may not read, nobody inside may either. */
function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

const mounts: readonly Operation["kind"][] = ["bind", "tmpfs", "copy", "file", "mask", "proc", "dev"];

/** Whether the host's file is what lies at its path inside, itself or as a copy. */
function isShown({ operations }: Plan, path: string): boolean {
  const last = operations.findLast(({ kind, target }) => mounts.includes(kind) && isWithin(path, target));
  if (last?.kind === "bind") return existsSync(last.source + path.slice(last.target.length));
  return last?.kind === "copy";
}
