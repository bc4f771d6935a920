import { GitHubError } from "../errors.ts";
import type { Token, TokenSource } from "../token-source.ts";
import { type Clock, systemClock } from "./clock.ts";
import { inWords } from "./failure.ts";
import { backoffMs, type Held, hold, isDue, jumpBetween, type Moment, napMs } from "./schedule.ts";

export type TokenEvent =
  | { readonly kind: "written"; readonly expiresAt: Date }
  /** GITHUB_TOKEN_REFRESH while the old one is good, GITHUB_TOKEN_EXPIRED after that. */
  | { readonly kind: "failed"; readonly error: GitHubError; readonly retryInMs: number }
  | { readonly kind: "clock-jumped"; readonly byMs: number };

export interface KeepFreshOptions {
  readonly signal: AbortSignal;
  readonly report: (event: TokenEvent) => void;
  readonly clock?: Clock;
  /** How long before its end a token is replaced, but never more than a quarter of its life. Default: 300,000. */
  readonly bufferMs?: number;
  /** Between 0 and 1. Default: Math.random. */
  readonly random?: () => number;
}

/** A token that is replaced in time, for as long as the signal lets it. */
export interface Freshness {
  /** The first token, when it has been written. Rejects if that fails: then nothing goes on. */
  readonly first: Promise<Token>;
  /** Settles after the signal, when nothing is written any more. Never rejects. */
  readonly done: Promise<void>;
}

/** Has a token written at once, and another before it expires, until the signal. */
export function keepFresh(
  source: TokenSource,
  write: (token: Token) => Promise<void>,
  { signal, report, clock = systemClock, bufferMs = 300_000, random = Math.random }: KeepFreshOptions,
): Freshness {
  /** Whoever listens may fail; a token is replaced all the same. */
  const tell = (event: TokenEvent): void => {
    try {
      report(event);
    } catch {}
  };
  const moment = (): Moment => ({ wall: clock.now(), monotonic: clock.monotonic() });

  const renew = async (before: Held | null): Promise<Held> => {
    signal.throwIfAborted();
    const token = await source.acquire(signal);
    const since = moment();
    signal.throwIfAborted();
    await write(token);
    tell({ kind: "written", expiresAt: token.expiresAt });
    return hold(token, since, bufferMs, before);
  };

  /** Sleeps in short naps: a timer knows nothing of a clock that was set, nor of a machine that was suspended. */
  const untilDue = async (held: Held): Promise<void> => {
    for (let before = moment(); !isDue(held, before); ) {
      await clock.sleep(napMs(held, before), signal);
      const after = moment();
      const byMs = jumpBetween(before, after);
      if (byMs !== null) {
        tell({ kind: "clock-jumped", byMs });
        // Nobody knows any more how old the token is.
        return;
      }
      before = after;
    }
  };

  const renewUntilDone = async (held: Held): Promise<Held> => {
    for (let failures = 0; ; failures += 1) {
      try {
        return await renew(held);
      } catch (cause) {
        signal.throwIfAborted();
        const retryInMs = backoffMs(cause, failures, random());
        tell({ kind: "failed", error: notReplaced(held, clock.now(), retryInMs, cause), retryInMs });
        await clock.sleep(retryInMs, signal);
      }
    }
  };

  const goOn = async (first: Held): Promise<never> => {
    for (let held = first; ; held = await renewUntilDone(held)) await untilDue(held);
  };

  const held = renew(null);
  const first = held.then(({ token }) => token);
  // Whoever gives up at once need not wait to hear of it.
  first.catch(() => {});
  return { first, done: held.then(goOn).catch(() => {}) };
}

function notReplaced({ token }: Held, now: number, retryInMs: number, cause: unknown): GitHubError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const until = token.expiresAt.toISOString();
  const next = `The next attempt is in ${inWords(retryInMs)}.`;
  const options = { hint: cause instanceof GitHubError && cause.hint !== undefined ? cause.hint : next, cause };
  return token.expiresAt.getTime() <= now
    ? new GitHubError("GITHUB_TOKEN_EXPIRED", `The token ended at ${until} and has not been replaced: ${why}`, options)
    : new GitHubError(
        "GITHUB_TOKEN_REFRESH",
        `The token is good until ${until}, but not replaced yet: ${why}`,
        options,
      );
}
