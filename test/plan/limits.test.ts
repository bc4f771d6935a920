import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { completeUlimits, limitsSet, parseUlimit } from "../../src/plan/limits.ts";
import { planFor, unlimited } from "./ordinary.ts";

describe("a limit of processes", () => {
  test.each([
    ["nofile=1024", { name: "nofile", soft: 1024, hard: 1024 }],
    ["nofile=1024:2048", { name: "nofile", soft: 1024, hard: 2048 }],
    ["core=0", { name: "core", soft: 0, hard: 0 }],
    ["nproc=7:7", { name: "nproc", soft: 7, hard: 7 }],
  ])("is read: %s", (text, limit) => expect(parseUlimit(text)).toEqual(limit));

  test.each([
    "",
    "nofile",
    "nofile=",
    "=5",
    "nofile=-1",
    "nofile=1.5",
    "nofile=unlimited",
    "nofile=2048:1024",
    "nofile=1:2:3",
    "NOFILE=5",
    "nofile=5\n",
    " nofile=5",
    `nofile=${"9".repeat(16)}`,
  ])("is not %j", (text) => expect(parseUlimit(text)).toBeNull());

  test("is read as it is written, whatever its numbers, unless the soft one is the greater", () => {
    const number = fc.nat({ max: 999_999_999_999_999 });
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,10}$/), number, number, (name, soft, hard) => {
        expect(parseUlimit(`${name}=${soft}:${hard}`)).toEqual(soft <= hard ? { name, soft, hard } : null);
      }),
    );
  });
});

test("what the owner sets comes before what the machine has, and each name once", () => {
  const given = [{ name: "nofile", soft: 1, hard: 2 }];
  const machine = [
    { name: "nofile", soft: 9, hard: 9 },
    { name: "nproc", soft: 8, hard: 8 },
  ];
  expect(completeUlimits(given, machine)).toEqual([...given, machine[1]]);
  expect(completeUlimits([], machine)).toEqual(machine);
  expect(completeUlimits(given, [])).toEqual(given);
  const again = { name: "nofile", soft: 3, hard: 4 };
  expect(completeUlimits([...given, again], machine)).toEqual([again, machine[1]]);
});

const everything = {
  mode: "best-effort",
  memoryMb: 512,
  cpus: 1.5,
  pids: 64,
  ulimits: [{ name: "core", soft: 0, hard: 0 }],
} as const;
const names = ["sandbox.memory_mb", "sandbox.cpus", "sandbox.pids", "sandbox.ulimits"];

test("limits that are set are named by their keys", () => {
  expect(limitsSet(unlimited)).toEqual([]);
  expect(limitsSet(everything)).toEqual(names);
  expect(limitsSet({ ...unlimited, pids: 64 })).toEqual(["sandbox.pids"]);
});

describe("behind bubblewrap, which limits nothing,", () => {
  const warnings = (limits: Parameters<typeof limitsSet>[0]) => planFor([], {}, { request: { limits } }).warnings;

  test("each limit is a warning", () => {
    expect(warnings(everything)).toEqual(
      names.map((key) => `${key} is not enforced: bubblewrap limits nothing. --wall engine does.`),
    );
    expect(warnings(unlimited)).toEqual([]);
  });

  test("one that is required is a gap, and needs no warning", () => {
    expect(warnings({ ...everything, mode: "require" })).toEqual([]);
  });
});
