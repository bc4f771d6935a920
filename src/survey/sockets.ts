import { readFileSync } from "node:fs";
import { parentOf } from "../policy/paths.ts";
import { type Reader, statOf } from "./reader.ts";
import type { Ask } from "./survey.ts";

/**
 * Unix sockets to which something of the host is bound. A read-only mount does not keep a program from connecting to one, and
 * who answers (an agent of keys, an engine, an editor) may do for it what it cannot do itself.
 */
export function findSockets(reader: Reader, { uid, mighty }: Pick<Ask, "uid" | "mighty">): readonly string[] {
  const resolved = bound(kernelTable())
    .map((path) => reader.resolve(path))
    .filter((path) => path !== null);
  const reachable = [...new Set(resolved)].filter((path) => mighty || isReachable(path, uid));
  return reachable.filter((path) => statOf(path)?.isSocket()).sort();
}

/**
 * What lies in another user's closed directory, an ordinary user does not even see. Root sees it here, but not inside,
 * without capabilities: and nothing can be mounted there.
 */
function isReachable(path: string, uid: number): boolean {
  if (uid !== 0) return true;
  for (let directory = parentOf(path); directory !== "/"; directory = parentOf(directory)) {
    const stats = statOf(directory);
    if (stats === null) return false;
    const bit = stats.uid === 0 ? 0o100 : stats.gid === 0 ? 0o010 : 0o001;
    if ((stats.mode & bit) === 0) return false;
  }
  return true;
}

function kernelTable(): string {
  try {
    return readFileSync("/proc/net/unix", "utf8");
  } catch {
    return "";
  }
}

/** Lines are `slot: refs protocol flags type state inode path`. Datagram sockets do not listen, but answer. */
function bound(table: string): readonly string[] {
  return table.split("\n").flatMap((line) => {
    const slash = line.indexOf(" /");
    return slash < 0 ? [] : [line.slice(slash + 1)];
  });
}
