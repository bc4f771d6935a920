// @module-tag security
import { afterAll, expect, test } from "vitest";
import { sessionWorld } from "../cli/terminal/remains.ts";
import { FloodedBox, mostGrownBytes } from "./floods.ts";
import { Town } from "./stage.ts";

const town = new Town();
afterAll(() => town[Symbol.asyncDispose]());

test("a box that floods its gateway makes the keeper hold little, and others are answered", async () => {
  const box = await FloodedBox.open(sessionWorld(), town);
  const grown = await box.flood(["bomb", 3], ["bomb-denied", 3], ["lines", 1], ["heads", 200], ["streams", 10]);
  await box.expectAnswer();
  expect(grown).toBeLessThan(mostGrownBytes);
});
