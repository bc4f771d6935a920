import { setTimeout as wait } from "node:timers/promises";
import { SessionError } from "../errors.ts";
import { sendSignal } from "../machine/process.ts";
import { lookAt, type ProcessMark } from "../machine/process-mark.ts";
import type { Action } from "./reconcile.ts";
import type { SessionId } from "./record.ts";
import { removeRuntime, removeSession } from "./store.ts";

/** What the registry cannot do by itself: talk to keepers at length, and know walls. */
export interface Hands {
  readonly stateDirectory: string;
  /** Asks a keeper to end its session and waits until it has. */
  readonly askKeeper: (socket: string, id: SessionId) => Promise<void>;
  readonly destroyBox: (id: SessionId) => Promise<void>;
  /** Called once nothing more is written to the journal, before it is removed. */
  readonly onOver?: () => void;
  /** How long a keeper may take to end by itself before it is killed. Default: 2,000. */
  readonly graceMs?: number;
}

/** Does one thing after the other. The first that fails ends it: what follows relies on it. */
export async function perform(actions: readonly Action[], hands: Hands): Promise<void> {
  for (const action of actions) await performOne(action, hands);
}

async function performOne(
  action: Action,
  { stateDirectory, askKeeper, destroyBox, onOver = () => {}, graceMs = 2000 }: Hands,
): Promise<void> {
  switch (action.kind) {
    case "ask-keeper":
      return askKeeper(action.socket, action.id);
    case "continue-keeper":
      signal(action.keeper, "SIGCONT");
      return;
    case "kill-keeper":
      return endProcess(action.keeper, action.id, graceMs);
    case "destroy-box":
      return destroyBox(action.id);
    case "remove-runtime":
      return removeRuntime(action.directory, action.id);
    case "remove-state":
      onOver();
      return removeSession(stateDirectory, action.id);
  }
}

/** First as a request: a keeper that only cannot be reached ends its session in order. */
async function endProcess(keeper: ProcessMark, id: SessionId, graceMs: number): Promise<void> {
  if (lookAt(keeper) !== "elsewhere") {
    signal(keeper, "SIGTERM");
    if (await hasEnded(keeper, graceMs)) return;
    signal(keeper, "SIGKILL");
    if (await hasEnded(keeper, 2000)) return;
  }
  throw new SessionError("SESSION_UNREACHABLE", `Process ${keeper.pid}, which keeps session ${id}, cannot be ended.`, {
    hint: "It may be another user's, be in another container, or wait for a disk. End it, then stop the session again.",
    details: { pid: keeper.pid },
  });
}

/** Never to a process that has only got the same number. */
function signal(keeper: ProcessMark, name: "SIGCONT" | "SIGTERM" | "SIGKILL"): void {
  const seen = lookAt(keeper);
  if (seen === "alive" || seen === "stopped") sendSignal(keeper.pid, name);
}

async function hasEnded(keeper: ProcessMark, withinMs: number): Promise<boolean> {
  for (let left = withinMs; left > 0; left -= 20) {
    if (lookAt(keeper) === "dead") return true;
    await wait(20);
  }
  return lookAt(keeper) === "dead";
}
