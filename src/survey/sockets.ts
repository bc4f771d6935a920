import { readFileSync } from "node:fs";
import { isWithin } from "../policy/paths.ts";
import { type Reader, statOf } from "./reader.ts";

/** Private inside anyway. */
const privatePlaces = ["/run", "/tmp", "/var/run", "/dev", "/proc"];

/**
 * Unix sockets on which something listens. A read-only mount does not keep a program from connecting to one, and
 * who answers (an agent of keys, an engine, an editor) may do for it what it cannot do itself.
 */
export function findSockets(reader: Reader): readonly string[] {
  const paths = listening(kernelTable()).filter((path) => !privatePlaces.some((place) => isWithin(path, place)));
  const resolved = paths.map((path) => reader.resolve(path)).filter((path) => path !== null);
  return [...new Set(resolved)].filter((path) => statOf(path)?.isSocket()).sort();
}

function kernelTable(): string {
  try {
    return readFileSync("/proc/net/unix", "utf8");
  } catch {
    return "";
  }
}

/** Lines are `slot: refs protocol flags type state inode path`; __SO_ACCEPTCON is 0x10000. */
function listening(table: string): readonly string[] {
  const paths: string[] = [];
  for (const line of table.split("\n")) {
    const slash = line.indexOf(" /");
    if (slash < 0) continue;
    const flags = Number.parseInt(line.split(/\s+/, 4)[3] ?? "0", 16);
    if ((flags & 0x10000) !== 0) paths.push(line.slice(slash + 1));
  }
  return paths;
}
