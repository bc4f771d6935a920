import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { lookAt } from "../machine/process-mark.ts";
import { type Expected, type KeeperAnswer, probeKeeper } from "./probe.ts";
import { type DamagedRecord, isDamaged, isSessionId, type SessionId, type SessionRecord } from "./record.ts";
import { readRecord, readRecords } from "./store.ts";

/** All that can be seen of one session from outside. */
export interface Evidence {
  readonly id: SessionId;
  readonly record: SessionRecord | null;
  /** What is wrong with the record, where there is one that says nothing. */
  readonly damaged: string | null;
  readonly keeper: KeeperAnswer;
  /** The socket on which the keeper answered. */
  readonly socket: string | null;
  /** The keeper's process, as far as a record names it. */
  readonly process: ReturnType<typeof lookAt> | "unknown";
  /** Paused: there, but its owner has its engine hold it. Unknown where the engine that would know does not answer. */
  readonly box: "there" | "paused" | "gone" | "unknown";
  /** The runtime directories of this session that exist. */
  readonly runtime: readonly string[];
}

/** What is known of boxes. */
export interface Boxes {
  readonly there: ReadonlySet<SessionId>;
  readonly paused: ReadonlySet<SessionId>;
  /** Of these nothing can be said. */
  readonly unknown: ReadonlySet<SessionId>;
  /** Boxes that bear the name of this state directory, whether or not anything else is left of their sessions. */
  readonly own: readonly SessionId[];
}

export interface Places {
  readonly stateDirectory: string;
  /** Directories that hold runtime directories, all of them the caller's own. */
  readonly runtimeRoots: readonly string[];
  /** What the walls list. Asked last: a session that was said to run and has no box then is ending. */
  readonly boxes: (records: readonly SessionRecord[]) => Promise<Boxes>;
  /** How long a keeper may take to answer. Default: 5,000. All are asked at once. */
  readonly waitMs?: number;
}

/**
 * Looks at every session that has a record or a runtime directory here. Changes nothing. A box alone is no sign of one
 * of ours: the same user may keep sessions in other places, and a box without a keeper does not live.
 */
export async function gather(places: Places): Promise<readonly Evidence[]> {
  const records = new Map(readRecords(places.stateDirectory).map((record) => [record.id, record]));
  const ids = new Set([...records.keys(), ...places.runtimeRoots.flatMap(namesIn).filter(isSessionId)]);
  const all = await Promise.all([...ids].map((id) => gatherOne(id, records.get(id) ?? null, places)));
  const seen = all.flatMap((evidence) => evidence ?? []);
  const { there, paused, unknown, own } = await places.boxes(seen.flatMap(({ record }) => record ?? []));
  const known = seen.map((evidence): Evidence => {
    const { id } = evidence;
    const doubt = unknown.has(id) ? "unknown" : "gone";
    return { ...evidence, box: there.has(id) ? "there" : paused.has(id) ? "paused" : doubt };
  });
  const strays = own.filter((id) => !ids.has(id) && isSessionId(id));
  // A session that began while the others were looked at is none.
  return [...known, ...strays.filter((id) => readRecord(places.stateDirectory, id) === null).map(strayBox)];
}

/** A container outlives its keeper for a while, and by accident all else that was known of its session. */
function strayBox(id: SessionId): Evidence {
  const nothing = {
    record: null,
    damaged: null,
    keeper: "absent",
    socket: null,
    process: "unknown",
    runtime: [],
  } as const;
  return { id, ...nothing, box: "there" };
}

const stoppedMs = 20;

async function gatherOne(
  id: SessionId,
  known: SessionRecord | DamagedRecord | null,
  { stateDirectory, runtimeRoots, waitMs = 5_000 }: Places,
): Promise<Omit<Evidence, "box"> | null> {
  const named = known === null || isDamaged(known) ? [] : [known.directory];
  const directories = [...new Set([...named, ...runtimeRoots.map((root) => join(root, id))])];
  // A stopped process cannot answer: nobody has to wait for it.
  const isStopped = known !== null && !isDamaged(known) && lookAt(known.keeper) === "stopped";
  const expected = { id, state: stateDirectory };
  const asked = await askAll(directories, expected, isStopped ? Math.min(stoppedMs, waitMs) : waitMs);
  // The world goes on meanwhile. A keeper writes the end down before it closes its socket and exits, so what is read
  // after the question, and after its process was found dead, is not older than the answer.
  const seen = known !== null && hasEnded(known) ? known : readRecord(stateDirectory, id);
  const process = seen === null || isDamaged(seen) ? "unknown" : lookAt(seen.keeper);
  const last = process === "dead" && seen !== null && !hasEnded(seen) ? readRecord(stateDirectory, id) : seen;
  const runtime = directories.filter(isDirectory);
  // A session's runtime directory goes before its record: without either it has ended since its keeper was asked.
  if (last === null && runtime.length === 0) return null;
  // A runtime directory alone is one of ours only if its keeper says so, or is dead: the same user may keep sessions
  // with another state directory.
  if (last === null && (asked.keeper === "silent" || asked.keeper === "absent")) return null;
  if (last === null || isDamaged(last)) {
    return { id, ...asked, record: null, damaged: last?.damaged ?? null, process: "unknown", runtime };
  }
  return { id, ...asked, record: last, damaged: null, process, runtime };
}

function hasEnded(record: SessionRecord | DamagedRecord): boolean {
  return !isDamaged(record) && record.phase === "ended";
}

/** The best answer counts: after a change of XDG_RUNTIME_DIR there may be more than one place. */
async function askAll(
  directories: readonly string[],
  expected: Expected,
  waitMs: number,
): Promise<Pick<Evidence, "keeper" | "socket">> {
  const sockets = directories.map((directory) => join(directory, "keeper.sock"));
  const answers = await Promise.all(sockets.map((socket) => probeKeeper(socket, expected, waitMs)));
  const at = answers.indexOf("answers");
  if (at !== -1) return { keeper: "answers", socket: sockets[at] as string };
  const keeper = answers.includes("silent") ? "silent" : answers.includes("refused") ? "refused" : "absent";
  return { keeper, socket: null };
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

/** What we may not even look at is not ours to list or to remove. */
function isDirectory(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}
