import { release, userInfo } from "node:os";

/** What this process is and runs on. The only rooms that ask the process itself are this one and the command line. */
export interface Host {
  readonly platform: string;
  readonly arch: string;
  readonly release: string;
  readonly uid: number;
  readonly gid: number;
  readonly pid: number;
  /** The home that the system knows, whatever HOME says. */
  readonly systemHome: string;
  /** The Node that runs us. */
  readonly node: string;
}

export function thisHost(): Host {
  return {
    platform: process.platform,
    arch: process.arch,
    release: release(),
    uid: process.getuid?.() ?? -1,
    gid: process.getgid?.() ?? -1,
    pid: process.pid,
    get systemHome() {
      return systemHome();
    },
    node: process.execPath,
  };
}

let knownHome: string | undefined;

/** Users without an entry in the system's list have none. It is looked up once: the list may be long. */
function systemHome(): string {
  try {
    knownHome ??= userInfo().homedir;
  } catch {
    knownHome = "/";
  }
  return knownHome;
}
