import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Evidence } from "../../src/registry/evidence.ts";
import { type Action, cleaning, reconcile } from "../../src/registry/reconcile.ts";
import { ended, sampleRecord } from "./sessions.ts";

const id = "abcdefgh23";
const directory = `/run/podbot/${id}`;
const record = sampleRecord();

function evidence(change: Partial<Evidence> = {}): Evidence {
  const keeper = change.keeper ?? "answers";
  return {
    id,
    record,
    damaged: null,
    keeper,
    socket: keeper === "answers" ? `${directory}/keeper.sock` : null,
    process: "alive",
    box: "there",
    runtime: [directory],
    ...change,
  };
}

const nothing = { record: null, process: "unknown" } as const;
const kinds = (actions: readonly Action[]) => actions.map(({ kind }) => kind);
const viewOf = (one: Evidence) => reconcile([one]).sessions[0] as ReturnType<typeof reconcile>["sessions"][number];
const clean = (one: Evidence) => kinds(cleaning(viewOf(one), one));
const leavings = ["destroy-box", "remove-runtime"];

describe("a session is", () => {
  const starting = sampleRecord({ phase: "starting" });
  const prepared = sampleRecord({ phase: "prepared" });
  const over = sampleRecord(ended);
  const cases: readonly [string, Partial<Evidence>, string][] = [
    ["running, when its keeper says so", {}, "running"],
    ["running, when its keeper says so and the record is gone", nothing, "running"],
    ["running, when its keeper says so and nobody can see its process", { process: "elsewhere" }, "running"],
    ["ending, when its keeper answers and its box is gone", { box: "gone" }, "ending"],
    ["running, when its box cannot be seen from here", { box: "gone", process: "elsewhere" }, "running"],
    ["running, when its engine does not say whether there is a box", { box: "unknown" }, "running"],
    [
      "died, when its keeper is dead and its engine silent",
      { keeper: "refused", process: "dead", box: "unknown" },
      "died",
    ],
    ["prepared, when its keeper says so", { record: prepared }, "prepared"],
    [
      "ending, when its keeper answers and the box that was prepared is gone",
      { record: prepared, box: "gone" },
      "ending",
    ],
    [
      "died, when its keeper died before anybody took it",
      { record: prepared, keeper: "refused", process: "dead" },
      "died",
    ],
    ["starting, when its keeper answers already", { record: starting }, "starting"],
    ["starting, before there is a socket", { record: starting, keeper: "absent" }, "starting"],
    ["starting, just before the socket is listened on", { record: starting, keeper: "refused" }, "starting"],
    ["unreachable, when its keeper hangs while it starts", { record: starting, keeper: "silent" }, "unreachable"],
    ["suspended, when its keeper is stopped", { keeper: "silent", process: "stopped" }, "suspended"],
    [
      "suspended, when its keeper was stopped early",
      { record: starting, keeper: "absent", process: "stopped" },
      "suspended",
    ],
    ["suspended, when its container is paused", { box: "paused" }, "suspended"],
    [
      "died, when its keeper is dead and its container paused",
      { keeper: "refused", process: "dead", box: "paused" },
      "died",
    ],
    ["unreachable, when its keeper does not answer", { keeper: "silent" }, "unreachable"],
    ["unreachable, when its socket is gone", { keeper: "absent" }, "unreachable"],
    ["unreachable, when nobody listens on its socket", { keeper: "refused" }, "unreachable"],
    ["unreachable, when its keeper is elsewhere", { keeper: "absent", process: "elsewhere" }, "unreachable"],
    ["unreachable, when somebody without a record is silent", { ...nothing, keeper: "silent" }, "unreachable"],
    ["ended, when its keeper has said so", { record: over, keeper: "absent", process: "dead" }, "ended"],
    ["ended, when its keeper lives on without it", { record: over, keeper: "absent" }, "ended"],
    ["ended, when its keeper still answers", { record: over }, "ended"],
    ["died, when its keeper is dead", { keeper: "refused", process: "dead" }, "died"],
    ["died, when it died while starting", { record: starting, keeper: "absent", process: "dead" }, "died"],
    ["stray, when there is only a box", { ...nothing, keeper: "absent", runtime: [] }, "stray"],
    ["stray, when there is only a directory", { ...nothing, keeper: "absent", box: "gone" }, "stray"],
    ["stray, when its record is damaged", { ...nothing, keeper: "absent", damaged: "it is torn" }, "stray"],
  ];
  test.each(cases)("%s", (_, change, state) => {
    const view = viewOf(evidence(change));
    expect(view.state).toBe(state);
    const plain = ["running", "prepared", "starting", "ending", "ended"];
    expect(view.why === null).toBe(plain.includes(state));
  });

  test("explained: with the process that must go on", () => {
    expect(viewOf(evidence({ keeper: "silent", process: "stopped" })).why).toContain("kill -CONT 4711");
  });

  test("explained: that a container may be left, where its engine does not answer", () => {
    const dead = { keeper: "refused", process: "dead" } as const;
    expect(viewOf(evidence({ ...dead, box: "unknown" })).why).toContain("its container may still be there");
    expect(viewOf(evidence({ ...dead, box: "gone" })).why).not.toContain("container");
  });

  test("explained: with where to stop it, and what to do if that is gone", () => {
    const { why } = viewOf(evidence({ keeper: "absent", process: "elsewhere" }));
    expect(why).toMatch(/another container or on another machine.*sessions\/abcdefgh23/);
  });

  test.each(["absent", "silent"] as const)("explained: with what is wrong with its record (%s)", (keeper) => {
    expect(viewOf(evidence({ ...nothing, keeper, damaged: "it is torn" })).why).toBe("it is torn");
  });
});

describe("what can be cleaned away unasked", () => {
  const cases: readonly [string, Partial<Evidence>, readonly string[]][] = [
    ["box and directory of one that died", { keeper: "refused", process: "dead" }, leavings],
    ["what one that ended has left", { record: sampleRecord(ended), keeper: "absent", process: "dead" }, leavings],
    ["a stray box", { ...nothing, keeper: "absent", runtime: [] }, ["destroy-box"]],
    ["a stray directory with a dead socket", { ...nothing, keeper: "refused", box: "gone" }, ["remove-runtime"]],
    ["a damaged record's, with a dead socket", { ...nothing, damaged: "torn", keeper: "refused" }, leavings],
    ["a box that its engine may have", { keeper: "refused", process: "dead", box: "unknown" }, leavings],
    ["not a box that is gone", { keeper: "refused", process: "dead", box: "gone" }, ["remove-runtime"]],
    ["not a box of which nothing else is known", { ...nothing, keeper: "absent", runtime: [], box: "unknown" }, []],
    ["not a directory that may just have been made", { ...nothing, keeper: "absent", box: "gone" }, []],
    ["not a damaged record's, whose keeper may live", { ...nothing, damaged: "torn", keeper: "absent" }, []],
    ["not where somebody listens, though the keeper is dead", { keeper: "silent", process: "dead" }, []],
    ["not that of an ended session whose keeper lives", { record: sampleRecord(ended), keeper: "absent" }, []],
    ["not that of a keeper elsewhere", { keeper: "refused", process: "elsewhere" }, []],
    ["not that of a suspended one", { keeper: "silent", process: "stopped" }, []],
    ["not that of a running one", {}, []],
  ];
  test.each(cases)("is %s", (_, change, expected) => {
    expect(kinds(reconcile([evidence(change)]).remains)).toEqual(expected);
  });
});

describe("stopping", () => {
  const cases: readonly [string, Partial<Evidence>, readonly string[]][] = [
    ["asks a keeper that answers", {}, ["ask-keeper", ...leavings, "remove-state"]],
    ["asks one that answers from elsewhere", { process: "elsewhere" }, ["ask-keeper", ...leavings, "remove-state"]],
    [
      "ends a keeper that is stopped",
      { keeper: "silent", process: "stopped" },
      ["continue-keeper", "kill-keeper", ...leavings, "remove-state"],
    ],
    [
      "ends a keeper that cannot be reached",
      { keeper: "absent" },
      ["continue-keeper", "kill-keeper", ...leavings, "remove-state"],
    ],
    [
      "touches no program that keeps it among other things",
      { record: sampleRecord({ dedicated: false }), keeper: "absent" },
      [...leavings, "remove-state"],
    ],
    ["touches no process of a dead keeper", { keeper: "refused", process: "dead" }, [...leavings, "remove-state"]],
    [
      "touches no process of an ended session",
      { record: sampleRecord(ended), keeper: "absent" },
      [...leavings, "remove-state"],
    ],
    ["does nothing to a keeper elsewhere", { keeper: "absent", process: "elsewhere" }, []],
    ["does nothing to a keeper that nobody can see", { keeper: "absent", process: "unknown" }, []],
    [
      "removes a damaged record",
      { ...nothing, damaged: "torn", keeper: "absent", box: "gone", runtime: [] },
      ["remove-state"],
    ],
    ["removes what is stray", { ...nothing, keeper: "absent" }, [...leavings, "remove-state"]],
  ];
  test.each(cases)("%s", (_, change, expected) => {
    expect(clean(evidence(change))).toEqual(expected);
  });

  test("names the process so that no other can be hit", () => {
    const one = evidence({ keeper: "absent" });
    expect(cleaning(viewOf(one), one)[1]).toEqual({ kind: "kill-keeper", id, keeper: record.keeper });
  });
});

/** Evidence as it can come, also where it is strange. */
const anyEvidence: fc.Arbitrary<Evidence> = fc
  .record({
    id: fc.stringMatching(/^[a-z][a-z0-9]{9}$/),
    phase: fc.constantFrom("starting", "prepared", "running", "ended", "damaged", "none"),
    minute: fc.integer({ min: 10, max: 13 }),
    keeper: fc.constantFrom("answers", "refused", "absent", "silent"),
    process: fc.constantFrom("alive", "stopped", "dead", "elsewhere"),
    box: fc.constantFrom("there", "gone", "unknown"),
    roots: fc.subarray(["/run/podbot", "/state/run"]),
  })
  .map(({ id, phase, minute, keeper, process, box, roots }) => {
    const hasRecord = phase !== "none" && phase !== "damaged";
    return {
      id,
      record: hasRecord
        ? sampleRecord({
            id,
            createdAt: `2026-01-02T03:${minute}:00.000Z`,
            ...(phase === "ended" ? ended : { phase }),
          } as Parameters<typeof sampleRecord>[0])
        : null,
      damaged: phase === "damaged" ? "it is torn" : null,
      keeper: keeper as Evidence["keeper"],
      socket: keeper === "answers" ? `/run/podbot/${id}/keeper.sock` : null,
      process: hasRecord ? (process as Evidence["process"]) : "unknown",
      box,
      runtime: roots.map((root) => `${root}/${id}`),
    };
  });

const allEvidence = fc.uniqueArray(anyEvidence, { selector: ({ id }) => id, maxLength: 8 });

/** What the world looks like after an action, if everything does what it should. */
function after(one: Evidence, action: Action): Evidence {
  switch (action.kind) {
    case "ask-keeper":
    case "kill-keeper":
      return { ...one, keeper: "absent", socket: null, process: "dead" };
    case "continue-keeper":
      return { ...one, process: "alive" };
    case "destroy-box":
      return { ...one, box: "gone" };
    case "remove-runtime": {
      const runtime = one.runtime.filter((path) => path !== action.directory);
      return { ...one, runtime, keeper: runtime.length === 0 ? "absent" : one.keeper };
    }
    case "remove-state":
      return { ...one, record: null, damaged: null, process: "unknown" };
  }
}

describe("whatever the evidence", () => {
  test("nobody who lives is touched unasked", () => {
    fc.assert(
      fc.property(allEvidence, (all) => {
        for (const action of reconcile(all).remains) {
          expect(leavings).toContain(action.kind);
          const one = all.find(({ id }) => id === action.id) as Evidence;
          expect(["refused", "absent"]).toContain(one.keeper);
          expect(["dead", "unknown"]).toContain(one.process);
        }
      }),
    );
  });

  test("what was cleaned away unasked does not come again, and no session is lost by it", () => {
    fc.assert(
      fc.property(allEvidence, (all) => {
        const { sessions, remains } = reconcile(all);
        const next = all.map((one) => remains.filter(({ id }) => id === one.id).reduce(after, one));
        const again = reconcile(next);
        expect(again.remains).toEqual([]);
        for (const view of sessions.filter(({ record }) => record !== null)) {
          expect(again.sessions.find(({ id }) => id === view.id)?.state).toBe(view.state);
        }
      }),
    );
  });

  test("a session that is stopped leaves nothing, or it says why not", () => {
    fc.assert(
      fc.property(anyEvidence, (one) => {
        const view = viewOf(one);
        const actions = cleaning(view, one);
        const left = actions.reduce(after, one);
        if (actions.length > 0 || one.process !== "elsewhere") {
          expect(left).toMatchObject({ record: null, damaged: null, box: "gone", runtime: [] });
        } else expect(view).toMatchObject({ state: "unreachable", why: expect.stringContaining("another container") });
      }),
    );
  });

  test("stopping goes in order, and signals only a process that is seen to live", () => {
    const order = ["ask-keeper", "continue-keeper", "kill-keeper", ...leavings, "remove-state"];
    fc.assert(
      fc.property(anyEvidence, (one) => {
        const places = cleaning(viewOf(one), one).map(({ kind }) => order.indexOf(kind));
        expect(places).toEqual([...places].sort((a, b) => a - b));
        if (places.some((place) => place === 1 || place === 2)) expect(["alive", "stopped"]).toContain(one.process);
      }),
    );
  });

  test("every session is shown once, in one order", () => {
    fc.assert(
      fc.property(allEvidence, (all) => {
        const { sessions } = reconcile(all);
        expect(sessions.map(({ id }) => id).sort()).toEqual(all.map(({ id }) => id).sort());
        expect(reconcile([...all].reverse()).sessions).toEqual(sessions);
        const times = sessions.map(({ record }) => record?.createdAt ?? "later");
        expect(times).toEqual([...times].sort());
      }),
    );
  });

  test("also where the same is said twice", () => {
    expect(reconcile([evidence(), evidence()]).sessions).toHaveLength(2);
  });
});
