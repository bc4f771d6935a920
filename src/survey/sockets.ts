import { readFileSync } from "node:fs";
import { isWithin } from "../policy/paths.ts";
import { type Reader, statOf } from "./reader.ts";

/** Private inside anyway. */
const privatePlaces = ["/run", "/tmp", "/var/run", "/dev", "/proc"];

/**
 * Unix sockets to which something of the host is bound. A read-only mount does not keep a program from connecting to one, and
 * who answers (an agent of keys, an engine, an editor) may do for it what it cannot do itself.
 */
export function findSockets(reader: Reader): readonly string[] {
  const paths = bound(kernelTable()).filter((path) => !privatePlaces.some((place) => isWithin(path, place)));
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

/** Lines are `slot: refs protocol flags type state inode path`. Datagram sockets do not listen, but answer. */
function bound(table: string): readonly string[] {
  return table.split("\n").flatMap((line) => {
    const slash = line.indexOf(" /");
    return slash < 0 ? [] : [line.slice(slash + 1)];
  });
}
