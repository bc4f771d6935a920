import { readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import { isOurUser, isSubordinate } from "../machine/process.ts";
import { parentOf } from "../policy/paths.ts";

/** As many as the kernel follows. */
const mostLinks = 40;

/**
 * What lies in a directory that is closed to us cannot be mounted by us, and a name in there passes as absent. But the
 * agent is the same user: where the directory is our own, the agent can open it again inside (and may have closed it in
 * an earlier run), and what was taken for absent would be there, unprotected. The same goes for our subordinate users,
 * to whom root of a rootless container can give it.
 */
export function refuseOwnClosed(path: string, subordinates = true, links = mostLinks): void {
  for (let at = path; ; at = parentOf(at)) {
    const stats = unlessRefused(() => statSync(at));
    if (stats !== null) {
      if (isClosed(stats, subordinates)) throw closed(at);
      return;
    }
    const to = links > 0 ? unlessRefused(() => readlinkSync(at)) : null;
    const above = to === null ? null : unlessRefused(() => realpathSync.native(parentOf(at)));
    if (to !== null && above !== null) refuseOwnClosed(resolve(above, to), subordinates, links - 1);
    if (to !== null || at === "/") return;
  }
}

function isClosed(stats: Stats, subordinates: boolean): boolean {
  if (!stats.isDirectory()) return false;
  if (isOurUser(stats.uid)) return (stats.mode & 0o500) !== 0o500;
  return subordinates && (stats.mode & 0o005) !== 0o005 && isSubordinate(stats.uid);
}

function closed(path: string): PolicyError {
  return new PolicyError(
    "PATH_REFUSED",
    `${path} is closed, so what lies in it can be neither hidden nor protected, though a program inside could open it again.`,
    {
      hint: `Look what is in it, then open it (chmod u+rwx ${path}; podman unshare chown 0:0 ${path} first, where it is not your own) or remove it.`,
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
