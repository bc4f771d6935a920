import { constants } from "node:os";
import { SessionError } from "../errors.ts";
import type { Exit } from "../wall/wall.ts";
import type { Conversation } from "./conversation.ts";
import type { Command } from "./sandbox.ts";

const { SIGTERM, SIGCONT, SIGKILL } = constants.signals;

const usualGraceMs = 5000;
/** Even a killed process takes a moment to be gone. */
const leastLastWaitMs = 1000;
/** A longer timer would fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/** What `timeout(1)` reports. */
const timedOut = 124;

/**
 * How the process ends, and sees to it that it does: when its time is over or its signal is aborted, the group is asked
 * to end, then killed, then left to the warden.
 */
export function superviseEnd(
  conversation: Conversation,
  command: Command,
): { readonly exited: Promise<Exit>; readonly end: (graceMs: number) => void } {
  const { timeoutMs, signal, graceMs: ownGraceMs = usualGraceMs } = command;
  let cause: "timeout" | "abort" | undefined;
  let timer: NodeJS.Timeout | undefined;
  const then = (delayMs: number, step: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(step, Math.min(delayMs, longestTimerMs));
  };
  const end = (why: "timeout" | "abort", graceMs = ownGraceMs) => {
    cause ??= why;
    conversation.signal(SIGTERM);
    // What is stopped would not notice.
    conversation.signal(SIGCONT);
    then(graceMs, kill);
  };
  const kill = () => {
    conversation.signal(SIGKILL);
    then(Math.max(ownGraceMs, leastLastWaitMs), () => conversation.giveUp(128 + SIGKILL));
  };
  const onAbort = () => {
    if (conversation.isRunning) end("abort");
    else conversation.fail(signal?.reason);
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  if (timeoutMs !== undefined) {
    // The time begins with the process; but one that is not even started shall not be waited for without end.
    then(timeoutMs + ownGraceMs, () => conversation.fail(tooSlow(command)));
    const onStart = () => {
      if (cause === undefined) then(timeoutMs, () => end("timeout"));
    };
    conversation.started.then(onStart, () => {});
  }
  const exited = conversation.exited
    .finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    })
    .then((code) => ({ code: cause === "timeout" ? timedOut : code, killed: cause !== undefined }));
  exited.catch(() => {});
  return { exited, end: (graceMs) => conversation.isRunning && end("abort", graceMs) };
}

function tooSlow({ argv }: Command): SessionError {
  return new SessionError("EXEC_FAILED", `${JSON.stringify(argv[0])} was not started in time.`, {
    hint: "Allow it more time, or look whether the sandbox hangs.",
  });
}
