import type { Duplex, Readable } from "node:stream";
import type { OwnPart, Plan } from "../plan/plan.ts";
import type { Doors } from "./doors.ts";

/** Something of a plan that a wall on this machine cannot enforce. */
export interface Gap {
  readonly name: string;
  readonly about: string;
  readonly remedy: string;
}

/** How a command ended. `code` is what a shell would report: 128 + n for signal n. */
export interface Exit {
  readonly code: number;
  /** True where Podbot itself ended it, the grace period being over. */
  readonly killed: boolean;
}

export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT";

/** What a start needs that is not in the plan: values, and the world's wishes. */
export interface Birth {
  /** The environment inside, values and all. */
  readonly env: Readonly<Record<string, string>>;
  /** Calls back for each signal that must reach the command; returns the way to stop listening. */
  readonly onSignal?: (listener: (signal: Signal) => void) => () => void;
  readonly signal?: AbortSignal;
  /** Of a plan with doors, called with them when they are there and nothing runs inside yet. They end with the box. */
  readonly onDoors?: (doors: Doors) => void;
  readonly trust?: readonly TrustFile[];
}

/** A file that everybody inside may read and nobody may change, known only when the box is born. */
export interface TrustFile {
  /** A file that exists inside, or a name below Podbot's own corner. */
  readonly target: string;
  /** May be made when it is first asked for. */
  readonly bytes: Uint8Array;
}

/** What a box that outlives one command needs besides. */
export interface BoxBirth extends Pick<Birth, "env" | "signal" | "trust"> {
  readonly id: SessionId;
  /** The session's runtime directory, 0700. The wall makes what it needs in it. */
  readonly directory: string;
  /** What of the session's own the plan has places for, as it lies out here. */
  readonly own?: Readonly<Partial<Record<OwnPart, string>>>;
  /** Called before anything runs inside, where the wall has files of its own that can be written (a container). */
  readonly furnish?: (files: BoxFiles) => Promise<void>;
}

/** The files of a box in which nothing runs yet, as archives. */
export interface BoxFiles {
  /** Unpacks an archive at a directory. */
  put(tar: Readable, path: string): Promise<void>;
  /** An archive of what lies at a path; null where nothing does. */
  get(path: string): Promise<Readable | null>;
}

/** The caller's own descriptors: standard input, output and error of the command. */
export type Stdio = readonly [stdin: number, stdout: number, stderr: number];

/** Ten letters and digits, by chance. Whatever belongs to a session is named after it. */
export type SessionId = string;

/** What a wall has built: namespaces, mounts and, in them, the warden. */
export interface Box extends AsyncDisposable {
  readonly id: SessionId;
  /** One stream to the warden, for one process, past the hello. */
  connect(signal?: AbortSignal): Promise<Duplex>;
  /** Whether its first process lives, as the kernel says now. */
  isThere(): boolean;
  /** Of a plan with doors; they end with the box. */
  readonly doors: Doors | null;
  /** Resolves when nothing of the box is left. */
  readonly exited: Promise<Exit>;
}

export interface Wall {
  readonly kind: "bubblewrap" | "engine" | (string & {});
  check(plan: Plan): Promise<readonly Gap[]>;
  /** One command on the caller's own descriptors, and nothing is left. For walls that need no session for it. */
  run?(plan: Plan, birth: Birth, stdio: Stdio): Promise<Exit>;
  /** A box in which the warden waits for orders. */
  start(plan: Plan, birth: BoxBirth): Promise<Box>;
  /** The boxes of this wall that exist, whoever started them. */
  list(): Promise<readonly SessionId[]>;
  /** Ends a box and removes what it held, whatever is left of it. Succeeds where nothing is. */
  destroy(id: SessionId): Promise<void>;
}
