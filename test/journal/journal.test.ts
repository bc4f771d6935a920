import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { Appender } from "../../src/journal/append.ts";
import { type Journal, type JournalOptions, openJournal } from "../../src/journal/journal.ts";
import { readEvents, readOutput } from "../../src/journal/read.ts";
import { makeDirectory } from "./directory.ts";

const noon = new Date("2026-01-02T12:00:00.000Z");

function open(directory: string, options?: JournalOptions): Journal {
  const journal = openJournal(directory, () => noon, options);
  onTestFinished(() => journal.close());
  return journal;
}

const printed = (directory: string) =>
  Buffer.concat(readOutput(directory).entries.map(({ bytes }) => bytes)).toString("utf8");

describe("events", () => {
  test("are written one a line, numbered, for the owner alone", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    journal.event({ kind: "session-started" });
    journal.event({ kind: "warning", text: "two\nlines" });
    const file = join(directory, "journal.jsonl");
    expect(readFileSync(file, "utf8")).toBe(
      '{"seq":1,"at":"2026-01-02T12:00:00.000Z","kind":"session-started"}\n' +
        '{"seq":2,"at":"2026-01-02T12:00:00.000Z","kind":"warning","text":"two\\nlines"}\n',
    );
    expect(lstatSync(file).mode & 0o777).toBe(0o600);
    expect(journal.lost).toBe(0);
  });

  test("go on counting where an earlier writer stopped, also in the middle of a line", () => {
    const directory = makeDirectory();
    open(directory).event({ kind: "session-started" });
    appendFileSync(join(directory, "journal.jsonl"), '{"seq":2,"at":');
    open(directory).event({ kind: "session-ended", code: null });
    const { events, skipped } = readEvents(directory);
    expect(events.map(({ seq, kind }) => [seq, kind])).toEqual([
      [1, "session-started"],
      [2, "session-ended"],
    ]);
    expect(skipped).toBe(1);
  });

  test("are ordered by number when the clock goes back", () => {
    const directory = makeDirectory();
    let hour = 12;
    const journal = openJournal(directory, () => new Date(Date.UTC(2026, 0, 2, hour--)));
    for (const text of ["a", "b", "c"]) journal.event({ kind: "warning", text });
    journal[Symbol.dispose]();
    expect(readEvents(directory).events.map((event) => (event.kind === "warning" ? event.text : ""))).toEqual([
      "a",
      "b",
      "c",
    ]);
  });
});

describe("output", () => {
  test("is kept byte by byte, and as text where it is", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    journal.output(0, "stdout", Buffer.from("grüß\n\0"));
    journal.output(1, "stderr", Buffer.from([0xff, 0x00]));
    journal.output(1, "stderr", new Uint8Array());
    const lines = readFileSync(join(directory, "output.jsonl"), "utf8").trimEnd().split("\n");
    const at = noon.toISOString();
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { at, process: 0, stream: "stdout", text: "grüß\n\0" },
      { at, process: 1, stream: "stderr", base64: "/wA=" },
    ]);
    expect(lstatSync(join(directory, "output.jsonl")).mode & 0o777).toBe(0o600);
  });

  test("comes back as it went in, whatever it is", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    const chunk = fc.record({
      process: fc.nat(3),
      stream: fc.constantFrom("stdout", "stderr"),
      bytes: fc.oneof(
        fc.uint8Array({ minLength: 1 }),
        fc.string({ minLength: 1, unit: "binary" }).map((text) => Buffer.from(text)),
      ),
    });
    let before = 0;
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 5 }), (chunks) => {
        for (const { process, stream, bytes } of chunks) journal.output(process, stream as "stdout", bytes);
        const { entries, skipped } = readOutput(directory);
        expect(skipped).toBe(0);
        expect(entries.slice(before).map(({ at: _, ...entry }) => entry)).toEqual(
          chunks.map((chunk) => ({ ...chunk, bytes: Buffer.from(chunk.bytes) })),
        );
        before = entries.length;
      }),
    );
  });

  test.each([
    ["text", Buffer.from("ü€😀".repeat(40_000)), true],
    ["no text", Buffer.alloc(200_000, 0xff), false],
    ["no text either", Buffer.alloc(200_000, 0x80), false],
  ])("that comes in large pieces is cut, between characters if it can be: %s", (_, bytes, isText) => {
    const directory = makeDirectory();
    open(directory).output(0, "stdout", bytes);
    const lines = readFileSync(join(directory, "output.jsonl"), "utf8").trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect("text" in JSON.parse(line)).toBe(isText);
    expect(Buffer.concat(readOutput(directory).entries.map((entry) => entry.bytes)).equals(bytes)).toBe(true);
  });

  test("is bounded: the last file and the one before it are kept", () => {
    const directory = makeDirectory();
    const journal = open(directory, { outputLimit: 1000 });
    for (let count = 0; count < 100; count += 1) {
      journal.output(0, "stdout", Buffer.from(`${count} `));
      expect(statSync(join(directory, "output.jsonl")).size).toBeLessThanOrEqual(1000);
    }
    expect(readdirSync(directory).sort()).toEqual(["output.1.jsonl", "output.jsonl"]);
    expect(statSync(join(directory, "output.1.jsonl")).size).toBeGreaterThan(900);
    const kept = printed(directory).trim().split(" ").map(Number);
    expect(kept.at(-1)).toBe(99);
    expect(kept).toEqual(kept.map((_, at) => 100 - kept.length + at));
    expect(journal.lost).toBe(0);
  });

  test("of one piece larger than the bound is kept all the same", () => {
    const directory = makeDirectory();
    const journal = open(directory, { outputLimit: 10 });
    journal.output(0, "stdout", Buffer.from("one"));
    journal.output(0, "stdout", Buffer.from("two"));
    expect(printed(directory)).toBe("onetwo");
  });

  test("of an earlier writer counts towards the bound", () => {
    const directory = makeDirectory();
    open(directory, { outputLimit: 300 }).output(0, "stdout", Buffer.from("x".repeat(200)));
    const journal = open(directory, { outputLimit: 300 });
    journal.output(0, "stdout", Buffer.from("y"));
    journal.output(0, "stdout", Buffer.from("z"));
    expect(printed(directory)).toMatch(/^x+yz$/);
    expect(readdirSync(directory)).toContain("output.1.jsonl");
  });

  test("is lost rather than beyond its bound, where the file cannot be put aside", () => {
    const directory = makeDirectory();
    mkdirSync(join(directory, "output.1.jsonl", "full"), { recursive: true });
    const journal = open(directory, { outputLimit: 100 });
    for (const text of ["kept", "lost"]) journal.output(0, "stdout", Buffer.from(text.padEnd(30)));
    expect(readFileSync(join(directory, "output.jsonl"), "utf8")).not.toContain("lost");
    expect(journal.lost).toBeGreaterThan(30);
  });
});

describe("what cannot be written", () => {
  test("is counted, and said once it can be", () => {
    const directory = join(makeDirectory(), "session");
    const journal = open(directory);
    journal.event({ kind: "session-started" });
    journal.output(0, "stdout", Buffer.from("nobody sees this"));
    const { lost } = journal;
    expect(lost).toBeGreaterThan(100);
    mkdirSync(directory);
    journal.event({ kind: "warning", text: "back" });
    journal.event({ kind: "warning", text: "still" });
    expect(readEvents(directory).events).toMatchObject([
      { seq: 1, kind: "journal-lost", bytes: lost },
      { seq: 2, kind: "warning", text: "back" },
      { seq: 3, kind: "warning", text: "still" },
    ]);
    expect(journal.lost).toBe(lost);
  });

  test("is said also when only output comes", () => {
    const directory = join(makeDirectory(), "session");
    const journal = open(directory);
    journal.output(0, "stdout", Buffer.from("lost"));
    const { lost } = journal;
    mkdirSync(directory);
    journal.output(0, "stdout", Buffer.from("kept"));
    expect(printed(directory)).toBe("kept");
    expect(readEvents(directory).events).toMatchObject([{ kind: "journal-lost", bytes: lost }]);
  });

  test("is said at the latest when the journal is closed, after which nothing is written", () => {
    const directory = join(makeDirectory(), "session");
    const journal = open(directory);
    journal.output(0, "stdout", Buffer.from("lost"));
    mkdirSync(directory);
    journal.close();
    journal.close();
    expect(readEvents(directory).events).toMatchObject([{ kind: "journal-lost" }]);
    const { lost } = journal;
    journal.event({ kind: "session-started" });
    journal.output(0, "stdout", Buffer.from("late"));
    expect(journal.lost).toBeGreaterThan(lost);
    expect(readEvents(directory).events).toHaveLength(1);
  });

  test("is found out when the directory vanishes under the writer's hands", () => {
    const directory = makeDirectory();
    const journal = open(directory);
    journal.event({ kind: "session-started" });
    journal.output(0, "stdout", Buffer.from("seen"));
    expect(journal.lost).toBe(0);
    rmSync(directory, { recursive: true });
    for (let count = 0; count < 3; count += 1) journal.output(0, "stdout", Buffer.from("unseen"));
    journal.event({ kind: "warning", text: "unseen" });
    expect(journal.lost).toBeGreaterThan(300);
    mkdirSync(directory);
    journal.output(0, "stdout", Buffer.from("again"));
    expect(printed(directory)).toBe("again");
    expect(readEvents(directory).events).toMatchObject([{ kind: "journal-lost", bytes: journal.lost }]);
  });

  test("is not written through a link", () => {
    const directory = makeDirectory();
    const victim = join(directory, "victim");
    writeFileSync(victim, "mine");
    symlinkSync(victim, join(directory, "journal.jsonl"));
    const journal = open(directory);
    journal.event({ kind: "session-started" });
    expect(readFileSync(victim, "utf8")).toBe("mine");
    expect(journal.lost).toBeGreaterThan(0);
  });

  test("for want of space is not written, and does not throw", () => {
    const full = new Appender("/dev/full");
    expect(full.append("line\n")).toBe(false);
    expect(full.append("line\n")).toBe(false);
    full.close();
  });

  test("for want of space in the middle of a line damages that line only", () => {
    const directory = makeDirectory();
    const program = join(directory, "program.mjs");
    buildSync({
      entryPoints: [fileURLToPath(new URL("../../src/journal/journal.ts", import.meta.url))],
      bundle: true,
      platform: "node",
      format: "esm",
      outfile: program,
    });
    const session = join(directory, "session");
    mkdirSync(session);
    // A limit on the size of files stands for a full disk: the kernel writes what still fits.
    const script = `
      const { openJournal } = await import(${JSON.stringify(program)});
      const journal = openJournal(${JSON.stringify(session)}, () => new Date());
      for (let count = 0; count < 50; count += 1) journal.output(0, "stdout", Buffer.from("line " + count + "\\n"));
      console.log(journal.lost);
    `;
    const lost = Number(
      execFileSync("sh", ["-c", 'ulimit -f 2; exec "$@"', "sh", process.execPath, "--input-type=module", "-e", script]),
    );
    expect(lost).toBeGreaterThan(1000);
    const before = readOutput(session);
    expect(before.skipped).toBe(1);
    open(session).output(0, "stdout", Buffer.from("space again\n"));
    const after = readOutput(session);
    expect(after.entries).toHaveLength(before.entries.length + 1);
    expect(after.entries.at(-1)?.bytes.toString()).toBe("space again\n");
    expect(after.skipped).toBe(1);
  });

  test("because a file was moved away begins a new one", () => {
    const directory = makeDirectory();
    const journal = open(directory, { outputLimit: 200 });
    journal.output(0, "stdout", Buffer.from("x".repeat(100)));
    rmSync(join(directory, "output.jsonl"));
    journal.output(0, "stdout", Buffer.from("y".repeat(100)));
    expect(printed(directory)).toBe("y".repeat(100));
    renameSync(join(directory, "output.jsonl"), join(directory, "elsewhere"));
    journal.event({ kind: "session-started" });
    expect(readEvents(directory).events).toHaveLength(1);
  });
});
