import { GitHubError } from "../errors.ts";
import type { Token } from "../token-source.ts";

/** The time by both clocks. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

export interface Held {
  readonly token: Token;
  /** When it came. */
  readonly since: Moment;
  /** How long before its end it is to be replaced. */
  readonly bufferMs: number;
  /** How many there were in a row, up to this one, that ended before they could be used. */
  readonly useless: number;
}

/** How long nobody looks at the clocks. */
const longestNapMs = 30_000;
/** However short a token's life is, GitHub is not asked more often. */
const shortestNapMs = 500;
/** Nobody gets to use one that lives for less. */
const shortestLifeMs = 1_000;
/** More than the clocks of a busy machine differ by over a nap. */
const jumpMs = 5_000;

export function hold(token: Token, since: Moment, bufferMs: number, before: Held | null): Held {
  const lifeMs = token.expiresAt.getTime() - since.wall;
  const useless = lifeMs > shortestLifeMs ? 0 : (before?.useless ?? 0) + 1;
  return { token, since, bufferMs, useless };
}

/**
 * How long after its coming a token is to be replaced. A short-lived one would else be due at once, for ever; and where
 * one after the other is of no use, GitHub is asked ever more rarely.
 */
function useMs({ token, since, bufferMs, useless }: Held): number {
  const lifeMs = token.expiresAt.getTime() - since.wall;
  const leastMs = Math.min(passingMs, shortestNapMs * 2 ** Math.max(0, useless - 1));
  return Math.max(leastMs, lifeMs - Math.min(bufferMs, lifeMs / 4));
}

/** By either clock: the one that stood still, or was set back, is behind. */
function ageMs({ since }: Held, at: Moment): number {
  return Math.max(at.wall - since.wall, at.monotonic - since.monotonic);
}

export function isDue(held: Held, at: Moment): boolean {
  return ageMs(held, at) >= useMs(held);
}

export function napMs(held: Held, at: Moment): number {
  return Math.min(longestNapMs, Math.max(1, useMs(held) - ageMs(held, at)));
}

/** By how much the wall's clock has gone another way than time did; null where it has not. */
export function jumpBetween(before: Moment, after: Moment): number | null {
  const byMs = after.wall - before.wall - (after.monotonic - before.monotonic);
  return Math.abs(byMs) < jumpMs ? null : byMs;
}

const passingMs = 60_000;
const lastingMs = 300_000;
/** As long as a limit of GitHub's can last. */
const longestRetryMs = 3_600_000;

/**
 * How long to wait after a failure: twice as long after each, up to a minute where it may pass by itself, and five where
 * somebody has to do something. By chance somewhat less, so that not all who failed together come back together; but
 * never less than GitHub has asked for.
 */
export function backoffMs(failure: unknown, failures: number, chance: number): number {
  const mostMs = isLasting(failure) ? lastingMs : passingMs;
  const fullMs = Math.min(mostMs, 1_000 * 2 ** Math.min(failures, 20));
  const askedMs = failure instanceof GitHubError ? Number(failure.details["retryAfterMs"] ?? 0) : 0;
  return Math.min(longestRetryMs, Math.max(askedMs, Math.round(fullMs * (0.5 + chance / 2))));
}

function isLasting(failure: unknown): boolean {
  const lasting = ["GITHUB_AUTHENTICATION", "GITHUB_FORBIDDEN", "GITHUB_NOT_FOUND", "GITHUB_UNEXPECTED"];
  return failure instanceof GitHubError && lasting.includes(failure.code);
}
