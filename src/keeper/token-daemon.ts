import { join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { PodbotError, SessionError } from "../errors.ts";
import { type Clock, systemClock } from "../github/clock.ts";
import { holdLease } from "../github/lease.ts";
import { openGitHubApp } from "../github/open.ts";
import { keepFresh, type TokenEvent } from "../github/refresh.ts";
import { backoffMs } from "../github/schedule.ts";
import { writeToken } from "../github/token-file.ts";
import { lookAt } from "../machine/process-mark.ts";
import { findSession } from "../registry/find.ts";
import { type GitHubMark, isDamaged, type SessionRecord } from "../registry/record.ts";
import { readRecord, readRecords } from "../registry/store.ts";
import type { SessionId } from "../wall/wall.ts";
import { placesOf } from "./places.ts";
import type { SandboxOptions } from "./request.ts";
import { homeOf } from "./standpoint.ts";
import { chooseUpstream } from "./upstream.ts";

export type DaemonEvent = { readonly session: SessionId } & (
  | { readonly kind: "taken" }
  | { readonly kind: "left" }
  /** There is not even a first token; it is tried again. */
  | { readonly kind: "refused"; readonly error: unknown; readonly retryInMs: number }
  | TokenEvent
);

export interface DaemonOptions {
  readonly env: SandboxOptions["env"];
  /** Ids, or the beginnings of some; `all` also those that begin later. */
  readonly which: "all" | readonly string[];
  readonly signal: AbortSignal;
  readonly report: (event: DaemonEvent) => void;
  readonly clock?: Clock;
}

/** How often records and leases are looked at: nobody says when a keeper is gone. */
const lookEveryMs = 2_000;

interface Served {
  readonly over: AbortController;
  readonly done: Promise<void>;
}

/**
 * Keeps the tokens of sessions fresh whose own keepers do not: those of running sessions, in files, that nobody who
 * lives has the right to write. Ends with the signal, and where sessions were named, with the last of these.
 */
export async function serveTokens(options: DaemonOptions): Promise<void> {
  const { env, which, signal, report, clock = systemClock } = options;
  const { state } = placesOf(env);
  // What the owner himself says, wherever the daemon was started.
  const upstream = await chooseUpstream(await loadConfig({ cwd: "/", home: homeOf(env), env }), env);
  const named = which === "all" ? null : which.map((id) => findNamed(state, id));
  const served = new Map<SessionId, Served>();
  const failed = new Map<SessionId, { readonly times: number; readonly until: number }>();

  const serve = (record: SessionRecord, mark: GitHubMark): void => {
    const { id: session, directory } = record;
    const lease = holdLease(directory);
    if (lease === null) return;
    const over = new AbortController();
    const work = async () => {
      try {
        const { repository, permissions, ...app } = mark;
        const source = (await openGitHubApp(app, { clock, upstream })).tokenSource({ repository, permissions });
        const { first, done } = keepFresh(source, (token) => writeToken(join(directory, "secrets"), token), {
          signal: over.signal,
          report: (event) => report({ session, ...event }),
          clock,
        });
        await first;
        failed.delete(session);
        await done;
      } catch (error) {
        if (over.signal.aborted) return;
        const times = failed.get(session)?.times ?? 0;
        const retryInMs = backoffMs(error, times + 1, 1);
        failed.set(session, { times: times + 1, until: clock.monotonic() + retryInMs });
        report({ session, kind: "refused", error, retryInMs });
      } finally {
        lease.release();
        served.delete(session);
        report({ session, kind: "left" });
      }
    };
    report({ session, kind: "taken" });
    served.set(session, { over, done: work() });
  };

  const look = (): boolean => {
    const records = named === null ? readRecords(state) : named.map((id) => readRecord(state, id));
    const living = records.flatMap((record) =>
      record !== null && !isDamaged(record) && isLiving(record) ? [record] : [],
    );
    for (const [id, { over }] of served) if (!living.some((record) => record.id === id)) over.abort();
    for (const record of living) {
      const waits = (failed.get(record.id)?.until ?? 0) > clock.monotonic();
      if (record.github?.token !== "file" || record.phase === "starting" || served.has(record.id) || waits) continue;
      attempt(() => serve(record, record.github as GitHubMark));
    }
    return named === null || living.length > 0;
  };

  try {
    while (look()) await clock.sleep(lookEveryMs, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    const all = [...served.values()];
    for (const { over } of all) over.abort();
    await Promise.all(all.map(({ done }) => done));
  }
}

/** A session that ends right now has no directory for a lease any more. */
function attempt(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof PodbotError)) throw error;
  }
}

function isLiving({ phase, keeper }: SessionRecord): boolean {
  // A box ends with its keeper, so that a token would be nobody's.
  return phase !== "ended" && lookAt(keeper) !== "dead";
}

function findNamed(state: string, word: string): SessionId {
  const record = findSession(readRecords(state), word);
  if (isDamaged(record) || record.github?.token === "file") return record.id;
  const masked = record.github?.token === "masked";
  throw new SessionError("SESSION_UNREACHABLE", `Session ${record.id} has no token in a file.`, {
    hint: masked
      ? "Its token is masked: only its keeper can replace it, and does."
      : "Start it with --repo and --branch, or with --github-token.",
  });
}
