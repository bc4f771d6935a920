import { expect, test } from "vitest";
import type { Happening, JournalEvent } from "../../src/journal/event.ts";
import { reduceJournal } from "../../src/journal/reduce.ts";

/** Each an hour before the one before: nothing may rely on the clock. */
function events(...happenings: Happening[]): JournalEvent[] {
  return happenings.map((happening, at) => ({ seq: at + 1, at: `at ${20 - at}`, ...happening }));
}

test("nothing has happened in an empty journal", () => {
  expect(reduceJournal([])).toEqual({
    session: { startedAt: null, endedAt: null, code: null },
    processes: new Map(),
    warnings: [],
    lost: 0,
  });
});

test("a whole session is summed up", () => {
  const state = reduceJournal(
    events(
      { kind: "session-started" },
      { kind: "process-started", process: 0, argv: ["sh"], tty: true },
      { kind: "warning", text: "one" },
      { kind: "process-started", process: 1, argv: ["ls", "-l"], tty: false },
      { kind: "journal-lost", bytes: 5 },
      { kind: "process-exited", process: 0, code: 137, killed: true },
      { kind: "journal-lost", bytes: 7 },
      { kind: "warning", text: "two" },
      { kind: "session-ended", code: 137 },
    ),
  );
  expect(state).toEqual({
    session: { startedAt: "at 20", endedAt: "at 12", code: 137 },
    processes: new Map([
      [0, { argv: ["sh"], tty: true, startedAt: "at 19", exit: { at: "at 15", code: 137, killed: true } }],
      [1, { argv: ["ls", "-l"], tty: false, startedAt: "at 17", exit: null }],
    ]),
    warnings: [
      { at: "at 18", text: "one" },
      { at: "at 13", text: "two" },
    ],
    lost: 12,
  });
});

test("a process whose beginning was lost still has its end, and a session may end without a code", () => {
  const state = reduceJournal(
    events({ kind: "process-exited", process: 3, code: 0, killed: false }, { kind: "session-ended", code: null }),
  );
  expect(state.processes.get(3)).toEqual({
    argv: [],
    tty: false,
    startedAt: null,
    exit: { at: "at 20", code: 0, killed: false },
  });
  expect(state.session).toEqual({ startedAt: null, endedAt: "at 19", code: null });
});
