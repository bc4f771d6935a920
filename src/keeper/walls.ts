import { existsSync } from "node:fs";
import { EngineError } from "../errors.ts";
import { findNativePrograms } from "../machine/programs.ts";
import type { Boxes } from "../registry/evidence.ts";
import type { EngineMark, SessionRecord } from "../registry/record.ts";
import { isDamaged } from "../registry/record.ts";
import { readRecord, readRecords, sessionDirectory } from "../registry/store.ts";
import { BubblewrapWall } from "../wall/bubblewrap/wall.ts";
import type { EngineWall } from "../wall/engine/wall.ts";
import type { SessionId } from "../wall/wall.ts";
import { forgetEngine, keyOf, notedEngines } from "./engine-ledger.ts";
import { placesOf } from "./places.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Every box that sessions of this state directory may have, on whichever wall. */
export async function listBoxes(env: Environment, records: readonly SessionRecord[]): Promise<Boxes> {
  const there = new Set(await bubblewrap(env).list());
  const unknown = new Set<SessionId>();
  const paused = new Set<SessionId>();
  const own: SessionId[] = [];
  await Promise.all(
    enginesInUse(env, records).map(async ({ mark, ids }) => {
      try {
        await using engine = await openWall(env, mark);
        for (const box of await engine.wall.look()) {
          (box.paused ? paused : there).add(box.id);
          own.push(box.id);
        }
      } catch {
        for (const id of ids) unknown.add(id);
      }
    }),
  );
  return { there, paused, unknown, own };
}

/** Ends a box on the wall that its record names; on every wall where there is none. */
export async function destroyBox(env: Environment, id: SessionId): Promise<void> {
  const { state } = placesOf(env);
  const record = readRecord(state, id);
  const mark = record === null || isDamaged(record) ? null : record.engine;
  if (mark === null) await bubblewrap(env).destroy(id);
  const marks = mark === null ? notedEngines(state) : [mark];
  const outcomes = await Promise.allSettled(marks.map((each) => destroyOn(env, each, id)));
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  // What no record names was listed by an engine that answers; those that do not have nothing to do with it.
  if (failures.length === 0 || failures.length < marks.length) return;
  throw mark === null ? failures[0] : withWayOut(failures[0], sessionDirectory(state, id));
}

async function destroyOn(env: Environment, mark: EngineMark, id: SessionId): Promise<void> {
  await using engine = await openWall(env, mark);
  await engine.wall.destroy(id);
}

/** An engine may have gone for good, and its containers with it: that is for the owner to say. */
function withWayOut(error: unknown, directory: string): unknown {
  // Only what can be done about an engine that cannot be reached has a hint.
  if (!(error instanceof EngineError) || error.hint === undefined) return error;
  const { code, message, hint, details } = error;
  return new EngineError(code, message, {
    hint: `${hint} Then stop the session again. If that engine is gone for good, remove ${directory}.`,
    details,
    cause: error,
  });
}

/** Finishes what killed ones could not. An engine that does not answer now is asked the next time. */
export async function sweepWalls(env: Environment): Promise<void> {
  await bubblewrap(env).sweep();
  const { state } = placesOf(env);
  for (const mark of notedEngines(state)) {
    try {
      await using engine = await openWall(env, mark);
      await engine.wall.sweep();
      const left = await engine.wall.list();
      if (left.length === 0 && !isRecorded(state, mark)) forgetEngine(state, mark);
    } catch {}
  }
}

function bubblewrap(env: Environment): BubblewrapWall {
  return new BubblewrapWall({ bwrap: "", native: findNativePrograms(), heldDirectory: placesOf(env).held });
}

interface EngineInUse {
  readonly mark: EngineMark;
  /** The sessions that are said to have a container there. */
  readonly ids: readonly SessionId[];
}

/** Those that records name, and those that may hold what no record names any more. */
function enginesInUse(env: Environment, records: readonly SessionRecord[]): readonly EngineInUse[] {
  const all = new Map<string, { readonly mark: EngineMark; readonly ids: SessionId[] }>();
  const note = (mark: EngineMark) => {
    const known = all.get(keyOf(mark)) ?? { mark, ids: [] };
    all.set(keyOf(mark), known);
    return known.ids;
  };
  for (const { id, engine, phase } of records) if (engine !== null && phase !== "ended") note(engine).push(id);
  for (const mark of notedEngines(placesOf(env).state)) note(mark);
  // A service of ours that has ended is started again for a session's sake, not to find that there is none.
  return [...all.values()].filter(({ mark, ids }) => ids.length > 0 || mark.service === null || isListening(mark));
}

function isListening({ endpoint }: EngineMark): boolean {
  return !endpoint.startsWith("unix://") || existsSync(endpoint.slice("unix://".length));
}

async function openWall(env: Environment, mark: EngineMark): Promise<AsyncDisposable & { readonly wall: EngineWall }> {
  // Only where there are containers: what talks to engines takes its time to load.
  const { reopenWall } = await import("./engine-wall.ts");
  return reopenWall(mark, env, placesOf(env));
}

function isRecorded(state: string, mark: EngineMark): boolean {
  return readRecords(state).some(
    (record) => !isDamaged(record) && record.engine !== null && keyOf(record.engine) === keyOf(mark),
  );
}
