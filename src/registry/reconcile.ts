import type { ProcessMark } from "../machine/process-mark.ts";
import type { Evidence } from "./evidence.ts";
import type { SessionId, SessionRecord } from "./record.ts";

/**
 * - starting, prepared, running: as its keeper says. A prepared one waits for its agent.
 * - ending: its box is gone, and its keeper is about to say so.
 * - suspended: the keeper's process is stopped, as by Ctrl-Z, or its container is paused.
 * - unreachable: somebody keeps it, but does not answer.
 * - ended: its keeper has ended it and written down how.
 * - died: its keeper is gone without having ended it.
 * - stray: there is no record that says anything, only what a session leaves.
 */
export type SessionState =
  | "starting"
  | "prepared"
  | "running"
  | "ending"
  | "suspended"
  | "unreachable"
  | "ended"
  | "died"
  | "stray";

export interface SessionView {
  readonly id: SessionId;
  readonly state: SessionState;
  /** Why it is in a state that needs explaining, and what can be done. */
  readonly why: string | null;
  /** The socket on which its keeper answers. */
  readonly socket: string | null;
  readonly record: SessionRecord | null;
}

export type Action =
  | { readonly kind: "ask-keeper"; readonly id: SessionId; readonly socket: string }
  | { readonly kind: "continue-keeper"; readonly id: SessionId; readonly keeper: ProcessMark }
  | { readonly kind: "kill-keeper"; readonly id: SessionId; readonly keeper: ProcessMark }
  | { readonly kind: "destroy-box"; readonly id: SessionId }
  | { readonly kind: "remove-runtime"; readonly id: SessionId; readonly directory: string }
  | { readonly kind: "remove-state"; readonly id: SessionId };

export interface Reconciled {
  /** The oldest first; those without a record last. */
  readonly sessions: readonly SessionView[];
  /** What can be cleaned away without hurting anybody who lives. */
  readonly remains: readonly Action[];
}

/**
 * What is true of all sessions. Truth, in this order: what the keeper answers; whether its process lives; the record.
 * Built on what keepers do: the record first, then the runtime directory with the socket, then the box; and at the end
 * the same backwards.
 */
export function reconcile(evidence: readonly Evidence[]): Reconciled {
  const sessions = evidence.map(viewOf).sort(compareViews);
  return { sessions, remains: evidence.flatMap((one) => (isLeft(one) ? leavings(one) : [])) };
}

/**
 * What makes a session vanish wholly, in order, each step only after the one before it has succeeded. Nothing, where
 * its keeper can neither be asked nor reached from here: then the view says why.
 */
export function cleaning({ state }: SessionView, evidence: Evidence): readonly Action[] {
  const { id, record, keeper, socket, process } = evidence;
  const rest: readonly Action[] = [
    ...leavings(evidence),
    // Also where there is none: a keeper that ends may just be writing it.
    { kind: "remove-state", id },
  ];
  if (keeper === "answers" && socket !== null) return [{ kind: "ask-keeper", id, socket }, ...rest];
  // The process of a session that has ended may be a program that goes on without it.
  if (state === "ended" || record === null || process === "dead") return rest;
  if (process === "elsewhere" || process === "unknown") return [];
  // A program that keeps it among other things notices by itself that the box is gone.
  if (!record.dedicated) return rest;
  const mark = { id, keeper: record.keeper };
  return [{ kind: "continue-keeper", ...mark }, { kind: "kill-keeper", ...mark }, ...rest];
}

function viewOf(evidence: Evidence): SessionView {
  const { id, record, socket } = evidence;
  return { id, ...judge(evidence), socket, record };
}

function judge({ id, record, damaged, keeper, process, box }: Evidence): Pick<SessionView, "state" | "why"> {
  // Of a keeper elsewhere, the box cannot be seen from here.
  if (
    keeper === "answers" &&
    (record?.phase === "running" || record?.phase === "prepared") &&
    box === "gone" &&
    process === "alive"
  ) {
    return { state: "ending", why: null };
  }
  if (keeper === "answers" && box === "paused") return { state: "suspended", why: pausedWords(id) };
  if (keeper === "answers") return { state: record?.phase ?? "running", why: damaged };
  if (record === null) {
    if (keeper === "silent")
      return { state: "unreachable", why: damaged ?? "It has no record, and its keeper does not answer." };
    return { state: "stray", why: damaged ?? "It has no record: its keeper died, or its state was removed." };
  }
  if (record.phase === "ended") return { state: "ended", why: null };
  const { pid } = record.keeper;
  switch (process) {
    case "dead":
      return { state: "died", why: `Its keeper, process ${pid}, is gone without having ended it.${remainder(box)}` };
    case "stopped":
      return {
        state: "suspended",
        why: `Its keeper, process ${pid}, is stopped. \`fg\` in its shell, or \`kill -CONT ${pid}\`, lets it go on.`,
      };
    case "alive":
      if (keeper === "silent") return { state: "unreachable", why: `Its keeper, process ${pid}, does not answer.` };
      if (record.phase === "starting") return { state: "starting", why: null };
      return { state: "unreachable", why: `Its keeper, process ${pid}, lives, but its socket is gone.` };
    default:
      return {
        state: "unreachable",
        why: `Its keeper runs, or ran, in another container or on another machine. Stop it there; if that place is gone, remove sessions/${id} in Podbot's state directory.`,
      };
  }
}

function pausedWords(id: SessionId): string {
  return `Its container is paused: \`unpause podbot-${id}\`, by its engine's own command, lets it go on.`;
}

/** A container outlives its keeper for some seconds, and longer if it was never started or is paused. */
function remainder(box: Evidence["box"]): string {
  if (box === "gone") return "";
  if (box === "unknown") return " Its engine does not answer, so its container may still be there.";
  return " Its box is still there: `podbot stop` removes it.";
}

/** Whether nobody who lives can need the box and the runtime directories any more. */
function isLeft({ record, damaged, keeper, process, box }: Evidence): boolean {
  // Somebody listens, whoever it is.
  if (keeper === "answers" || keeper === "silent") return false;
  if (record !== null) return process === "dead";
  // Refused: who listened there is gone. Without a socket, a directory alone may be one that a keeper with another
  // state directory has just made; and of a record that we cannot read, the keeper may live.
  return keeper === "refused" || (damaged === null && box === "there");
}

function leavings({ id, box, runtime }: Evidence): readonly Action[] {
  return [
    // Where nobody can tell, it is tried: an engine that does not answer says so again, and the record stays.
    ...(box === "gone" ? [] : [{ kind: "destroy-box", id } as const]),
    ...runtime.map((directory) => ({ kind: "remove-runtime", id, directory }) as const),
  ];
}

/** By time of creation as written down, which a clock set back may have disturbed; then by id, so that it is total. */
function compareViews(one: SessionView, other: SessionView): number {
  const [first, second] = [sortKey(one), sortKey(other)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function sortKey({ id, record }: SessionView): string {
  // "~" sorts behind every digit.
  return `${record?.createdAt ?? "~"} ${id}`;
}
