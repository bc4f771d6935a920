import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { FilesystemError } from "../../src/errors.ts";
import { parseEvent } from "../../src/journal/event.ts";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { parseOutput } from "../../src/journal/output.ts";
import { type FollowOptions, followOutput, readEvents, readOutput } from "../../src/journal/read.ts";
import { eventually, until } from "../eventually.ts";
import { failure } from "../failure.ts";
import { makeDirectory } from "./directory.ts";

function open(directory: string, outputLimit = 2000): Journal {
  const journal = openJournal(directory, () => new Date(), { outputLimit });
  onTestFinished(() => journal.close());
  return journal;
}

const print = (journal: Journal, text: unknown) => journal.output(0, "stdout", Buffer.from(String(text)));

/** What a follower has seen so far, and the promise of its end. */
function follow(directory: string, options: FollowOptions): { readonly seen: string[]; readonly end: Promise<void> } {
  const seen: string[] = [];
  const read = async () => {
    for await (const { bytes } of followOutput(directory, options)) seen.push(bytes.toString());
  };
  return { seen, end: read() };
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at));

describe("a line of the journal", () => {
  const at = "2026-01-02T12:00:00.000Z";
  test.each([
    { kind: "session-started" },
    { kind: "process-started", process: 0, argv: ["sh"], tty: true },
    { kind: "process-exited", process: 0, code: 130, killed: false },
    { kind: "warning", text: "" },
    { kind: "note", text: "denied" },
    { kind: "repository-cloned", repository: "o/n", branch: "main" },
    { kind: "token-written", expiresAt: "2026-01-02T13:00:00.000Z" },
    { kind: "session-ended", code: 0 },
    { kind: "session-ended", code: null },
    { kind: "journal-lost", bytes: 5 },
    { kind: "rules-replaced", rules: 3 },
  ])("is an event: %j", (happening) => {
    const event = { seq: 1, at, ...happening };
    expect(parseEvent(JSON.stringify(event))).toEqual(event);
  });

  test.each([
    { kind: "unknown" },
    { kind: "constructor" },
    { kind: "note", text: 5 },
    { kind: 5 },
    {},
    { kind: "session-started", seq: -1 },
    { kind: "session-started", seq: 1.5 },
    { kind: "session-started", at: 5 },
    { kind: "process-started", process: "0", argv: ["sh"], tty: true },
    { kind: "process-started", process: 0, argv: "sh", tty: true },
    { kind: "process-started", process: 0, argv: [5], tty: true },
    { kind: "process-started", process: 0, argv: ["sh"] },
    { kind: "repository-cloned", repository: "o/n" },
    { kind: "repository-cloned", branch: "main" },
    { kind: "token-written" },
    { kind: "process-exited", process: 0, code: "1", killed: false },
    { kind: "process-exited", code: 1, killed: false },
    { kind: "process-exited", process: 0, code: 1 },
    { kind: "warning" },
    { kind: "session-ended" },
    { kind: "journal-lost", bytes: "5" },
    { kind: "rules-replaced", rules: "3" },
  ])("is none: %j", (happening) => {
    expect(parseEvent(JSON.stringify({ seq: 1, at, ...happening }))).toBeNull();
  });

  test("is an event or none, whatever it holds", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
        expect(parseEvent(line)).toBeNull();
        expect(parseOutput(line)).toBeNull();
      }),
    );
  });
});

describe("a line of output", () => {
  const entry = { at: "now", process: 0, stream: "stdout" };
  test.each([
    { ...entry },
    { ...entry, text: 5 },
    { ...entry, base64: 5 },
    { ...entry, text: "x", base64: "eA==" },
    { ...entry, base64: "eA==", text: null },
    { ...entry, text: "x", stream: "stdin" },
    { ...entry, text: "x", process: -1 },
    { ...entry, text: "x", at: 5 },
  ])("is none: %j", (value) => {
    expect(parseOutput(JSON.stringify(value))).toBeNull();
  });
});

describe("reading", () => {
  test("finds nothing where nothing was written", () => {
    expect(readEvents(makeDirectory())).toEqual({ events: [], skipped: 0 });
    expect(readOutput("/nowhere/at/all")).toEqual({ entries: [], skipped: 0 });
  });

  test("skips damaged lines and a torn last one, and counts them", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    for (const [file, write] of [
      ["journal.jsonl", () => journal.event({ kind: "session-started" })],
      ["output.jsonl", () => print(journal, "x")],
    ] as const) {
      write();
      appendFileSync(join(directory, file), "{}\n\nnot json\n");
      write();
      appendFileSync(join(directory, file), '{"seq":3');
    }
    expect(readEvents(directory)).toMatchObject({ events: [{ seq: 1 }, { seq: 2 }], skipped: 4 });
    expect(readOutput(directory)).toMatchObject({ entries: [{}, {}], skipped: 4 });
  });

  test("puts events in order", () => {
    const directory = makeDirectory();
    const line = (seq: number) => `${JSON.stringify({ seq, at: "", kind: "session-started" })}\n`;
    writeFileSync(join(directory, "journal.jsonl"), line(2) + line(1));
    expect(readEvents(directory).events.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test("says so where it cannot be done", () => {
    const directory = makeDirectory();
    const unreachable = join(directory, "d".repeat(300));
    for (const read of [readEvents, readOutput]) {
      expect(failure(FilesystemError, () => read(unreachable)).message).toContain("ENAMETOOLONG");
    }
  });

  test("leaves no descriptor open", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    for (const number of numbers(0, 50)) print(journal, number);
    const before = readdirSync("/proc/self/fd").length;
    readOutput(directory);
    readEvents(directory);
    expect(readdirSync("/proc/self/fd")).toHaveLength(before);
  });
});

describe("following", () => {
  test("gives what was there, what comes, and ends after the last", async () => {
    const directory = makeDirectory();
    const journal = open(directory);
    print(journal, "before ");
    let over = false;
    const { seen, end } = follow(directory, { isOver: () => over });
    await eventually(() => expect(seen).toEqual(["before "]));
    print(journal, "meanwhile ");
    await eventually(() => expect(seen).toEqual(["before ", "meanwhile "]));
    print(journal, "last");
    over = true;
    await end;
    expect(seen.join("")).toBe("before meanwhile last");
  });

  test("begins before there is anything, even a directory", async () => {
    const directory = join(makeDirectory(), "session");
    let over = false;
    const { seen, end } = follow(directory, { isOver: async () => over });
    await wait(20);
    mkdirSync(directory);
    print(open(directory), "hello");
    over = true;
    await end;
    expect(seen).toEqual(["hello"]);
  });

  test("loses and repeats nothing while files are put aside", async () => {
    const directory = makeDirectory();
    const journal = open(directory, 2000);
    let over = false;
    const { seen, end } = follow(directory, { isOver: () => over });
    for (const number of numbers(0, 200)) {
      print(journal, number);
      // One file holds more than is written between two looks.
      if (Number(number) % 10 === 0) await until(`${number} is seen`, () => seen.at(-1) === number);
    }
    over = true;
    await end;
    expect(seen).toEqual(numbers(0, 200));
    expect(readdirSync(directory)).toContain("output.1.jsonl");
  });

  test("reads on in a file that was put aside, and then replaced, while it was being read", async () => {
    const directory = makeDirectory();
    const journal = open(directory, 1000);
    for (const number of numbers(0, 10)) print(journal, number);
    const seen: string[] = [];
    let written = 10;
    for await (const { bytes } of followOutput(directory, { isOver: () => written === 40 })) {
      seen.push(bytes.toString());
      // As if the reader were slow: by the time it asks again, its file is gone, and the next has been put aside.
      if (seen.length === 5) {
        for (const number of numbers(10, 35)) print(journal, number);
        written = 35;
      }
      if (seen.length === 35) {
        for (const number of numbers(35, 40)) print(journal, number);
        written = 40;
      }
    }
    expect(seen).toEqual(numbers(0, 40));
  });

  test("that falls behind by more than is kept goes on with what there is, in order", async () => {
    const directory = makeDirectory();
    const journal = open(directory, 1000);
    for (const number of numbers(0, 5)) print(journal, number);
    const seen: string[] = [];
    for await (const { bytes } of followOutput(directory, { isOver: () => true })) {
      seen.push(bytes.toString());
      if (seen.length === 1) for (const number of numbers(5, 200)) print(journal, number);
    }
    expect(seen.length).toBeLessThan(100);
    expect(seen.at(-1)).toBe("199");
    expect(seen.map(Number)).toEqual([...new Set(seen.map(Number))].sort((one, other) => one - other));
  });

  test("waits for the end of a line that has only begun", async () => {
    const directory = makeDirectory();
    const file = join(directory, "output.jsonl");
    const line = `${JSON.stringify({ at: "", process: 0, stream: "stdout", text: "whole" })}\n`;
    writeFileSync(file, line.slice(0, 20));
    let over = false;
    const { seen, end } = follow(directory, { isOver: () => over });
    await wait(150);
    expect(seen).toEqual([]);
    appendFileSync(file, `${line.slice(20)}{}\n`);
    over = true;
    await end;
    expect(seen).toEqual(["whole"]);
  });

  test.each([true, false])("ends when it is told to (before it begins: %s)", async (early) => {
    const directory = makeDirectory();
    const journal = open(directory);
    print(journal, "x");
    const stop = new AbortController();
    if (early) stop.abort();
    const { seen, end } = follow(directory, { signal: stop.signal, isOver: () => false });
    if (!early) await eventually(() => expect(seen).toEqual(["x"]));
    stop.abort();
    await end;
    expect(seen).toEqual(early ? [] : ["x"]);
  });

  test("ends in the middle when it is told to there, and leaves no descriptor open", async () => {
    const directory = makeDirectory();
    const journal = open(directory);
    for (const number of numbers(0, 40)) print(journal, number);
    const before = readdirSync("/proc/self/fd").length;
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const { bytes } of followOutput(directory, { signal: stop.signal, isOver: () => false })) {
      seen.push(bytes.toString());
      if (seen.length === 3) stop.abort();
    }
    expect(seen).toHaveLength(3);
    for await (const _ of followOutput(directory, { isOver: () => false })) break;
    expect(readdirSync("/proc/self/fd")).toHaveLength(before);
  });
});
