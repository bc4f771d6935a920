import { afterEach, describe, expect, test } from "vitest";
import { GitHubError } from "../../src/errors.ts";
import { type KeepFreshOptions, keepFresh, type TokenEvent } from "../../src/github/refresh.ts";
import { backoffMs } from "../../src/github/schedule.ts";
import type { Token } from "../../src/token-source.ts";
import { settle, TestClock } from "./clocks.ts";

const minute = 60_000;
const hour = 60 * minute;

/** A source of tokens that live for an hour, and what has become of them. */
function stage(
  options: Partial<Pick<KeepFreshOptions, "bufferMs" | "report">> & {
    readonly lifeMs?: number;
    readonly lifeOf?: (at: number) => number;
  } = {},
) {
  const { lifeMs = hour, lifeOf = () => lifeMs, ...given } = options;
  const clock = new TestClock();
  const started = clock.now();
  const over = new AbortController();
  const written: number[] = [];
  const tokens: Token[] = [];
  const events: TokenEvent[] = [];
  const failures: unknown[] = [];
  const acquire = async (): Promise<Token> => {
    if (failures.length > 0) throw failures.shift();
    return { value: `token-${tokens.length}`, expiresAt: new Date(clock.now() + lifeOf(tokens.length)) };
  };
  const write = async (token: Token) => {
    tokens.push(token);
    written.push(clock.now() - started);
  };
  const begin = () =>
    keepFresh({ acquire }, write, {
      signal: over.signal,
      report: (event) => events.push(event),
      clock,
      random: () => 1,
      ...given,
    });
  stages.push(over);
  return { clock, over, written, tokens, events, failures, begin };
}

const stages: AbortController[] = [];
afterEach(() => {
  for (const over of stages.splice(0)) over.abort();
});

describe("a token is kept fresh", () => {
  test("from its first moment, five minutes before it would end", async () => {
    const { clock, written, begin, events } = stage();
    const { first } = begin();
    expect(await first).toEqual({ value: "token-0", expiresAt: new Date("2026-01-01T01:00:00Z") });
    await clock.pass(54 * minute + 59_000);
    expect(written).toEqual([0]);
    await clock.pass(1_000);
    expect(written).toEqual([0, 55 * minute]);
    await clock.pass(3 * hour);
    expect(written).toEqual([0, 55, 110, 165, 220].map((at) => at * minute));
    expect(events.every(({ kind }) => kind === "written")).toBe(true);
  });

  test("with another buffer, where one is given", async () => {
    const { clock, written, begin } = stage({ bufferMs: 10 * minute });
    await begin().first;
    await clock.pass(50 * minute);
    expect(written).toEqual([0, 50 * minute]);
  });

  test("for three quarters of its life, where that is short", async () => {
    const { clock, written, begin } = stage({ lifeMs: 4_000 });
    await begin().first;
    await clock.pass(9_000);
    expect(written).toEqual([0, 3_000, 6_000, 9_000]);
  });

  test("and GitHub is left in peace even by one that lives no time at all", async () => {
    const { clock, written, begin } = stage({ lifeMs: -1_000 });
    await begin().first;
    await clock.pass(8_000);
    expect(written).toEqual([0, 500, 1_500, 3_500, 7_500]);
    await clock.pass(hour);
    const [before = 0, last = 0] = written.slice(-2);
    expect(last - before).toBe(minute);
  });

  test("soon again, when one is of use after others that were not", async () => {
    const lives = [100, 100, 4_000, 100, 100];
    const { clock, written, begin } = stage({ lifeOf: (at) => lives[at] ?? 4_000 });
    await begin().first;
    await clock.pass(12_000);
    expect(written).toEqual([0, 500, 1_500, 4_500, 5_000, 6_000, 9_000, 12_000]);
  });

  test("though whoever is told of it fails, each time", async () => {
    const { clock, written, begin, failures } = stage({
      report: () => {
        throw new Error("Nobody is there to listen.");
      },
    });
    await begin().first;
    failures.push(new Error("Not now."));
    await clock.pass(56 * minute);
    expect(written).toEqual([0, 55 * minute + 1_000]);
    clock.jump(hour);
    await clock.pass(minute);
    expect(written).toHaveLength(3);
  });

  test("until the signal, and not a moment longer", async () => {
    const { clock, written, begin, over } = stage();
    const { first, done } = begin();
    await first;
    over.abort();
    await done;
    await clock.pass(5 * hour);
    expect(written).toEqual([0]);
  });

  test("not at all after a signal that came first", async () => {
    const { written, begin, over } = stage();
    over.abort(new Error("over"));
    const { first, done } = begin();
    await expect(first).rejects.toThrow("over");
    await done;
    expect(written).toEqual([]);
  });

  test("without troubling who does not ask for the first one", async () => {
    const { failures, begin } = stage();
    failures.push(new Error("No."));
    // Vitest fails a run in which a rejection finds nobody.
    await begin().done;
    await settle();
  });

  test("not at all where there is no first one", async () => {
    const { clock, written, events, failures, begin } = stage();
    failures.push(new GitHubError("GITHUB_NOT_FOUND", "No."));
    const { first, done } = begin();
    await expect(first).rejects.toThrow("No.");
    await done;
    await clock.pass(hour);
    expect([written, events]).toEqual([[], []]);
  });
});

describe("after the clock has jumped", () => {
  test.each([
    ["ahead, or the machine has slept for long,", 7 * hour],
    ["back", -7 * hour],
    ["by a minute", minute],
  ])("%s there is another token within half a minute", async (_, byMs) => {
    const { clock, tokens, events, begin } = stage();
    await begin().first;
    await clock.pass(10 * minute);
    expect(tokens).toHaveLength(1);
    clock.jump(byMs);
    await clock.pass(30_000);
    expect(tokens).toHaveLength(2);
    expect(events.map(({ kind }) => kind)).toEqual(["written", "clock-jumped", "written"]);
    expect(events[1]).toEqual({ kind: "clock-jumped", byMs });
    // And from then on as ever.
    await clock.pass(54 * minute);
    expect(tokens).toHaveLength(2);
    await clock.pass(minute);
    expect(tokens).toHaveLength(3);
  });

  test("while GitHub was being asked, the new token is as old as it is", async () => {
    const { clock, tokens, failures, begin } = stage();
    await begin().first;
    failures.push(new Error("one"), new Error("two"));
    await clock.pass(55 * minute);
    clock.jump(-2 * hour);
    await clock.pass(10_000);
    expect(tokens).toHaveLength(2);
    await clock.pass(54 * minute);
    expect(tokens).toHaveLength(2);
  });

  test("by what a busy machine shows, nothing is done", async () => {
    const { clock, tokens, events, begin } = stage();
    await begin().first;
    clock.jump(4_999);
    await clock.pass(minute);
    expect(tokens).toHaveLength(1);
    expect(events).toHaveLength(1);
  });

  test("by little and often, the clock that says more decides", async () => {
    const { clock, tokens, begin } = stage();
    await begin().first;
    for (let naps = 0; naps < 100; naps += 1) {
      clock.jump(4_000);
      await clock.pass(30_000);
    }
    // 50 minutes by one clock, 56 by the other.
    expect(tokens).toHaveLength(2);
  });
});

describe("a token that cannot be replaced", () => {
  test("is tried again after longer and longer times, and told to be good until its end", async () => {
    const { clock, written, events, failures, begin } = stage();
    await begin().first;
    const cause = new GitHubError("GITHUB_UNAVAILABLE", "GitHub is out of order.", { hint: "Wait." });
    failures.push(cause, cause, new Error("The disk is full."));
    await clock.pass(55 * minute);
    expect(events[1]).toMatchObject({ kind: "failed", retryInMs: 1_000 });
    await clock.pass(7_000);
    expect(written).toEqual([0, 55 * minute + 7_000]);
    const failed = events.flatMap((event) => (event.kind === "failed" ? [event] : []));
    expect(failed.map(({ retryInMs }) => retryInMs)).toEqual([1_000, 2_000, 4_000]);
    expect(failed[0]?.error).toMatchObject({
      code: "GITHUB_TOKEN_REFRESH",
      message: "The token is good until 2026-01-01T01:00:00.000Z, but not replaced yet: GitHub is out of order.",
      hint: "Wait.",
      cause,
    });
    expect(failed[2]?.error).toMatchObject({ hint: "The next attempt is in 4 s." });
  });

  test("and has ended, is told so, and is replaced as soon as that can be", async () => {
    const { clock, tokens, events, failures, begin } = stage();
    await begin().first;
    // Of what is thrown, anything can be told.
    for (let times = 0; times < 12; times += 1) failures.push("nothing of ours");
    await clock.pass(61 * minute);
    expect(tokens).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({
      kind: "failed",
      retryInMs: minute,
      error: {
        code: "GITHUB_TOKEN_EXPIRED",
        message: "The token ended at 2026-01-01T01:00:00.000Z and has not been replaced: nothing of ours",
      },
    });
    await clock.pass(2 * minute);
    expect(tokens).toHaveLength(2);
  });

  test("is left as it is when the signal comes between two attempts", async () => {
    const { clock, written, failures, begin, over } = stage();
    const { first, done } = begin();
    await first;
    failures.push(...Array.from({ length: 20 }, () => new Error("No.")));
    await clock.pass(56 * minute);
    over.abort();
    await done;
    await clock.pass(hour);
    expect(written).toEqual([0]);
  });

  test("is left as it is when the signal comes while GitHub is asked", async () => {
    const clock = new TestClock();
    const over = new AbortController();
    const written: string[] = [];
    let answer: (token: Token) => void = () => {};
    const source = {
      acquire: () =>
        new Promise<Token>((resolve) => {
          answer = resolve;
        }),
    };
    const write = async ({ value }: Token) => void written.push(value);
    const { first, done } = keepFresh(source, write, { signal: over.signal, report: () => {}, clock });
    answer({ value: "one", expiresAt: new Date(clock.now() + hour) });
    await first;
    await clock.pass(55 * minute);
    over.abort();
    answer({ value: "two", expiresAt: new Date(clock.now() + hour) });
    await settle();
    await done;
    expect(written).toEqual(["one"]);
  });
});

describe("the time between attempts", () => {
  const passing = new GitHubError("GITHUB_UNAVAILABLE", "No.");
  const lasting = new GitHubError("GITHUB_AUTHENTICATION", "No.");
  const limited = (retryAfterMs: number) =>
    new GitHubError("GITHUB_RATE_LIMITED", "No.", { details: { retryAfterMs } });

  test.each([
    [passing, 0, 1, 1_000],
    [passing, 0, 0, 500],
    [passing, 3, 0.5, 6_000],
    [passing, 60, 1, 60_000],
    [lasting, 6, 1, 64_000],
    [lasting, 60, 1, 300_000],
    [limited(120_000), 0, 0, 120_000],
    [limited(10), 1, 1, 2_000],
    [limited(86_400_000), 0, 0, 3_600_000],
    ["anything", 2, 1, 4_000],
  ])("%s, failures: %i, chance: %f: %i ms", (failure, failures, chance, ms) => {
    expect(backoffMs(failure, failures, chance)).toBe(ms);
  });
});

test("the machine's own clock will do, too", async () => {
  const over = new AbortController();
  const values: string[] = [];
  const source = {
    acquire: async () => ({ value: `${values.length}`, expiresAt: new Date(Date.now() + 800) }),
  };
  let enough: () => void = () => {};
  const several = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const write = async ({ value }: Token) => {
    if (values.push(value) === 3) enough();
  };
  const { first, done } = keepFresh(source, write, { signal: over.signal, report: () => {} });
  await first;
  await several;
  over.abort();
  await done;
  expect(values).toEqual(["0", "1", "2"]);
});
