import { expect, test } from "vitest";
import { existing, oneOf, told, WrongUse, wholeNumber } from "./wrong-use.ts";

const root = import.meta.dirname;

test("numbers, names and files are taken", () => {
  expect(wholeNumber("SEED", "12")).toBe(12);
  expect(oneOf("SUITE", ["fast", "e2e"], "e2e")).toBe("e2e");
  expect(existing(root, ["soak", "wrong-use.ts"])).toEqual(["soak", "wrong-use.ts"]);
});

test("other words are refused in one line", async () => {
  expect(() => wholeNumber("SEED", "abc")).toThrow("SEED is a whole number, not abc");
  expect(() => oneOf("SUITE", ["fast", "e2e"], "all")).toThrow("SUITE is fast, e2e, not all");
  expect(() => existing(root, ["nowhere.ts"])).toThrow(
    `there is no nowhere.ts: FILES names files or folders of ${root}`,
  );
  const fail = (error: Error) => told(() => Promise.reject(error));
  expect(await fail(new WrongUse("this is why no test ran"))).toBe(2);
  await expect(fail(new Error("defect"))).rejects.toThrow("defect");
  expect(await told(async () => 1)).toBe(1);
});
