// @module-tag security
import { afterAll, describe, expect, test } from "vitest";
import { sessionWorld } from "../cli/terminal/remains.ts";
import { FloodedBox, mostGrownBytes } from "../gateway/floods.ts";
import { Town } from "../gateway/stage.ts";

const town = new Town();
afterAll(() => town[Symbol.asyncDispose]());

/** Each as often as it takes for every limit to be reached, and at last those that make it hold most, together. */
const floods: readonly (readonly (readonly [mode: string, times: number])[])[] = [
  [["bomb", 24]],
  [["bomb-fitting", 100]],
  [["bomb-denied", 100]],
  [["bomb-few", 100]],
  [["streams", 200]],
  [["streams-allowed", 200]],
  [["resets", 20]],
  [["continuations", 50]],
  [["lines", 20]],
  [["lines-in-tls", 10]],
  [["heads", 2_200]],
  [["heads-in-tls", 1_200]],
  [["hellos", 2_200]],
  [["pipeline", 100]],
  [["frames", 40]],
  [["questions", 250]],
  [["tunnels", 2_100]],
  [
    ["streams-allowed", 150],
    ["pipeline", 20],
    ["heads-in-tls", 1_100],
    ["tunnels", 1_100],
  ],
];

describe("a box that floods its gateway makes the keeper hold little, and others are answered", () => {
  test.each(floods.map((flood) => [flood.flat().join(" "), flood] as const))("by %s", async (_, flood) => {
    const box = await FloodedBox.open(sessionWorld(), town);
    const grown = await box.flood(...flood);
    await box.expectAnswer();
    expect(grown).toBeLessThan(mostGrownBytes);
  });
});
