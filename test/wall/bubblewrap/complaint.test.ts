import { describe, expect, test } from "vitest";
import { WallError } from "../../../src/errors.ts";
import { executionFailure, wallFailure } from "../../../src/wall/bubblewrap/complaint.ts";
import { planFor } from "../../plan/ordinary.ts";

const plan = planFor([], {}, { request: { command: ["no such", "x"] } });

describe("a command that could not be executed", () => {
  test.each([
    ["ENOENT", 2, 127, "COMMAND_NOT_FOUND"],
    ["ENOTDIR", 20, 127, "COMMAND_NOT_FOUND"],
    ["EACCES", 13, 126, "COMMAND_NOT_EXECUTABLE"],
    ["ENOEXEC", 8, 126, "COMMAND_NOT_EXECUTABLE"],
  ])("for %s (%i), ending with %i, is %s", (_, errno, status, code) => {
    const error = executionFailure(`podbot-enter: exec: ${errno}\n`, status, plan);
    expect(error).toBeInstanceOf(WallError);
    expect(error).toMatchObject({ code, exitStatus: status });
    expect(error?.message).toContain('"no such"');
    expect(error?.details).toMatchObject({ command: "no such" });
    expect(error?.hint).toBeTruthy();
  });

  test.each([
    ["it was executed and ended so itself", "", 127],
    ["it ended otherwise", "podbot-enter: exec: 2\n", 0],
    ["the first program said something else", "podbot-enter: chdir: 2\n", 127],
    ["the sentence was cut off", "podbot-enter: exec: 2", 127],
  ])("is none where %s", (_, complaint, status) => {
    expect(executionFailure(complaint, status, plan)).toBeNull();
  });
});

describe("a wall that could not be built", () => {
  test.each([
    ["bwrap: Unknown option --bind-fd", "BWRAP_TOO_OLD"],
    ["bwrap: setting up uid map: Permission denied", "USERNS_REFUSED"],
    ["bwrap: No permissions to create new namespace, likely because the kernel does not allow", "USERNS_REFUSED"],
    ["bwrap: No permissions to creating new namespace", "USERNS_REFUSED"],
    ["bwrap: Creating new namespace failed: Operation not permitted", "USERNS_REFUSED"],
    ["podbot-enter: landlock: EOPNOTSUPP", "GAP"],
    ["podbot-launch: cannot make a user namespace for the mounts: Operation not permitted", "USERNS_REFUSED"],
    ["podbot-launch: cannot keep mounts to itself: Permission denied", "GAP"],
    ["podbot-launch: cannot copy mounts: Function not implemented", "GAP"],
    ["podbot-gate: cannot listen at port 443: Address in use\npodbot-enter: the box has no doors", "DOORS_FAILED"],
    ["podbot-enter: the box has no doors", "DOORS_FAILED"],
    ["bwrap: Can't chdir to /x\npodbot-gate: cannot look at the network of the process", "WALL_FAILED"],
    ["bwrap: Can't mkdir /home/u/x: Read-only file system", "WALL_FAILED"],
  ])("saying %j, is %s", (complaint, code) => {
    const error = wallFailure(`${complaint}\n`);
    expect(error).toBeInstanceOf(WallError);
    expect(error).toMatchObject({ code, exitStatus: 125, details: { complaint } });
    expect(error.message).toContain(complaint);
    expect(error.hint).toBeTruthy();
  });

  test.each(["launch", "enter"])("names the path that changed, as podbot-%s says it", (program) => {
    expect(wallFailure(`podbot-${program}: changed: /a: b\n/c: it is a link now\n`)).toMatchObject({
      code: "PATH_CHANGED",
      message: "/a: b\n/c changed between the plan and the start: it is a link now.",
      details: { path: "/a: b\n/c" },
    });
  });

  test("says that bubblewrap said nothing, if so", () => {
    expect(wallFailure(" \n")).toMatchObject({
      code: "WALL_FAILED",
      message: "The wall could not be built: bubblewrap ended without a word",
    });
  });

  test("does not repeat everything to the end", () => {
    expect(wallFailure("x".repeat(1_000_000)).message.length).toBeLessThan(2_100);
  });
});
