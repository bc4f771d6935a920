/** A caller's signal and a time limit, as one signal. Disposed of, it holds on to neither. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether it was time that ended it. */
  hasPassed(): boolean;
}

export function startDeadline(signal: AbortSignal | undefined, timeoutMs: number | null): Deadline {
  const controller = new AbortController();
  let passed = false;
  const onAbort = () => controller.abort(signal?.reason);
  const timer =
    timeoutMs === null
      ? undefined
      : setTimeout(() => {
          passed = true;
          controller.abort();
        }, timeoutMs);
  signal?.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    hasPassed: () => passed,
    [Symbol.dispose]() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    },
  };
}
