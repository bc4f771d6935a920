import { readlinkSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import { isOurUser } from "../machine/process.ts";
import { parentOf } from "../policy/paths.ts";

/** As many as the kernel follows. */
const mostLinks = 40;

/**
 * What lies in a directory that is closed to us cannot be mounted by us, and a name in there passes as absent. But the
 * agent is the same user: where the directory is our own, the agent can open it again inside (and may have closed it in
 * an earlier run), and what was taken for absent would be there, unprotected.
 */
export function refuseOwnClosed(path: string, links = mostLinks): void {
  for (let at = path; ; at = parentOf(at)) {
    const stats = unlessRefused(() => statSync(at));
    if (stats !== null) {
      if (stats.isDirectory() && isOurUser(stats.uid) && (stats.mode & 0o500) !== 0o500) throw closed(at);
      return;
    }
    const to = links > 0 ? unlessRefused(() => readlinkSync(at)) : null;
    const above = to === null ? null : unlessRefused(() => realpathSync.native(parentOf(at)));
    if (to !== null && above !== null) refuseOwnClosed(resolve(above, to), links - 1);
    if (to !== null || at === "/") return;
  }
}

function closed(path: string): PolicyError {
  return new PolicyError(
    "PATH_REFUSED",
    `${path} is closed to its own owner, so what lies in it can be neither hidden nor protected: a program inside could open it again.`,
    {
      hint: `Look what is in it, then open it (chmod u+rwx ${path}) or remove it.`,
      details: { path },
    },
  );
}

function unlessRefused<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}
