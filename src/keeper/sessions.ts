import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { SessionError } from "../errors.ts";
import { readEvents } from "../journal/read.ts";
import { reduceJournal } from "../journal/reduce.ts";
import { thisHost } from "../machine/host.ts";
import { lookAt } from "../machine/process-mark.ts";
import { existingRuntimeDirectories } from "../machine/runtime-directory.ts";
import { type Evidence, gather } from "../registry/evidence.ts";
import { findSession } from "../registry/find.ts";
import { perform } from "../registry/perform.ts";
import { cleaning, reconcile, type SessionView } from "../registry/reconcile.ts";
import { isDamaged, type SessionRecord } from "../registry/record.ts";
import { readRecord, sessionDirectory, sweepSessions } from "../registry/store.ts";
import { openSandbox } from "../sandbox/open.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { SessionId } from "../wall/wall.ts";
import { askToReload, askToStop, throughKeeper } from "./client.ts";
import { placesOf } from "./places.ts";
import type { SandboxOptions } from "./request.ts";
import { destroyBox, listBoxes, sweepWalls } from "./walls.ts";

type Environment = SandboxOptions["env"];

/** The sessions of this user, as they truly are. Changes nothing, but that no token outlives its keeper for long. */
export async function listSessions(env: Environment): Promise<readonly SessionView[]> {
  const { sessions } = reconcile(await look(env));
  for (const { state, record } of sessions) if (state === "died" && record !== null) removeToken(record);
  return sessions;
}

/** All else that is left can be looked at until the session is stopped. */
function removeToken({ github, directory }: SessionRecord): void {
  if (github === null) return;
  try {
    rmSync(join(directory, "secrets"), { recursive: true, force: true });
  } catch {
    // Whoever stops the session is told.
  }
}

/** The session that an id, or the beginning of one, means. */
export async function lookUpSession(env: Environment, id: string): Promise<SessionView> {
  return findSession(await listSessions(env), id);
}

/** A running session that another process keeps, for as long as that one does. */
export async function openSession(
  env: Environment,
  id: string,
  note: { readonly argv?: readonly string[]; readonly tty?: boolean } = {},
): Promise<Sandbox> {
  const view = await lookUpSession(env, id);
  if (view.socket === null || view.state !== "running") throw notRunning(view);
  return openSandbox(throughKeeper(view.id, dirname(view.socket), note));
}

/** Has a session go by the configuration's network rules of now. Fails with what is wrong with them; the old ones hold. */
export async function reloadSession(env: Environment, id: string): Promise<SessionId> {
  const view = await lookUpSession(env, id);
  if (view.socket === null || view.state !== "running") throw notRunning(view);
  await askToReload(dirname(view.socket));
  return view.id;
}

export interface Stopped {
  readonly id: SessionId;
  /** Null where nothing is left of it. */
  readonly failure: unknown;
  /** What its keeper had to say to an owner who was not there, up to its end: it is gone with the journal. */
  readonly warnings: readonly string[];
}

/** Ends sessions, by id or all of them or those that have ended already, and removes what is left. What fails for one does not spare the others. */
export async function stopSessions(
  env: Environment,
  which: "all" | "ended" | readonly string[],
  graceMs: number,
): Promise<readonly Stopped[]> {
  const seen = await look(env);
  const chosen = choose(reconcile(seen).sessions, which);
  const stopped = await Promise.all(
    [...new Set(chosen.map(({ id }) => id))].map(async (id): Promise<Stopped> => {
      let warnings: readonly string[] = [];
      const onOver = () => {
        warnings = warningsOf(env, id);
      };
      try {
        await stopOne(env, id, graceMs, seen, onOver);
        return { id, failure: null, warnings };
      } catch (failure) {
        return { id, failure, warnings };
      }
    }),
  );
  await sweepWalls(env);
  sweepSessions(placesOf(env).state);
  return stopped;
}

/** Others may be stopping it, too, or it may be ending by itself: then it is looked at again. */
async function stopOne(
  env: Environment,
  id: SessionId,
  graceMs: number,
  seen: readonly Evidence[],
  onOver: () => void,
): Promise<void> {
  for (let tries = 3, all = seen; ; tries -= 1, all = await look(env)) {
    const evidence = all.filter((one) => one.id === id);
    const [view] = reconcile(evidence).sessions;
    if (view === undefined) return;
    try {
      const actions = cleaning(view, evidence[0] as Evidence);
      if (actions.length === 0) throw notRunning(view);
      return await perform(actions, {
        stateDirectory: placesOf(env).state,
        askKeeper: (socket) => askToStop(dirname(socket), graceMs),
        destroyBox: (box) => destroyBox(env, box),
        onOver,
      });
    } catch (error) {
      if (tries === 1 || !(error instanceof SessionError) || error.code !== "SESSION_UNREACHABLE") throw error;
      await setTimeout(100);
    }
  }
}

function choose(sessions: readonly SessionView[], which: "all" | "ended" | readonly string[]): readonly SessionView[] {
  if (which === "all") return sessions;
  if (which === "ended") return sessions.filter(({ state }) => ["ended", "died", "stray"].includes(state));
  return which.map((id) => findSession(sessions, id));
}

/** Where the record, the journal and the log of a session lie. */
export function sessionFiles(env: Environment, id: SessionId): string {
  return sessionDirectory(placesOf(env).state, id);
}

/** The warnings that a session has in its journal, as far as that can be read. */
export function warningsOf(env: Environment, id: SessionId): readonly string[] {
  try {
    return reduceJournal(readEvents(sessionFiles(env, id)).events).warnings.map(({ text }) => text);
  } catch {
    return ["The journal of this session cannot be read, so its warnings are not known."];
  }
}

/** Whether nothing more will be written there. */
export function isOver(env: Environment, id: SessionId): boolean {
  const record = readRecord(placesOf(env).state, id);
  return record === null || isDamaged(record) || record.phase === "ended" || lookAt(record.keeper) === "dead";
}

async function look(env: Environment): Promise<readonly Evidence[]> {
  const { state } = placesOf(env);
  const { uid } = thisHost();
  return gather({
    stateDirectory: state,
    runtimeRoots: existingRuntimeDirectories({ env, uid, state }),
    boxes: (records) => listBoxes(env, records),
  });
}

function notRunning({ id, state, why, record }: SessionView): SessionError {
  if (state === "ended") {
    const how = record?.exit === null || record === null ? "" : ` with status ${record.exit.code}`;
    return new SessionError("SESSION_ENDED", `Session ${id} has ended${how}.`, {
      hint: `\`podbot logs ${id}\` shows what it printed, \`podbot stop ${id}\` removes it.`,
    });
  }
  const hint = state === "starting" ? "Try again in a moment." : (why ?? "`podbot ps` shows it.");
  return new SessionError(
    ["died", "stray", "ending"].includes(state) ? "SESSION_ENDED" : "SESSION_UNREACHABLE",
    `Session ${id} is not running (${state}).`,
    { hint },
  );
}
