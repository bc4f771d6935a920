import { describe, expect, test } from "vitest";
import {
  ConfigError,
  type ErrorCode,
  errorTable,
  FilesystemError,
  MachineError,
  PodbotError,
  PolicyError,
  UsageError,
  WallError,
} from "../src/errors.ts";

/** Scripts and people rely on these: a change is a change of the interface. */
const statuses: Readonly<Record<ErrorCode, number>> = {
  USAGE: 2,
  CONFIG_INVALID: 2,
  CONFIG_UNREADABLE: 2,
  CONFIG_AMBIGUOUS: 2,
  CONFIG_NOT_FOUND: 2,
  CONFIG_UNTRUSTED: 2,
  SECRET_MISSING: 2,
  PRESET_UNKNOWN: 2,
  PATTERN_INVALID: 2,
  PATH_REFUSED: 2,
  COMMAND_RULE_INVALID: 2,
  HOME_INVALID: 125,
  PLATFORM_UNSUPPORTED: 125,
  BWRAP_MISSING: 125,
  BWRAP_TOO_OLD: 125,
  NATIVE_MISSING: 125,
  USERNS_REFUSED: 125,
  NESTED: 125,
  GAP: 125,
  PATH_CHANGED: 125,
  WALL_FAILED: 125,
  DOCKER_SOCKET_MISSING: 125,
  FILESYSTEM: 125,
  COMMAND_NOT_FOUND: 127,
  COMMAND_NOT_EXECUTABLE: 126,
  INTERNAL: 125,
};

describe("the table of errors", () => {
  test("has these codes and exit statuses, in this order", () => {
    expect(Object.entries(errorTable).map(([code, { exit }]) => [code, exit])).toEqual(Object.entries(statuses));
  });

  test.each(Object.entries(errorTable))("says in a sentence what %s means", (_, { about }) => {
    expect(about).toMatch(/^[A-Z`b].+\.$/);
  });
});

describe("an error", () => {
  test.each(Object.entries(statuses))("of code %s ends the command line with status %i", (code, exit) => {
    expect(new PodbotError(code as ErrorCode, "No.").exitStatus).toBe(exit);
  });

  test.each([
    ["PodbotError", PodbotError],
    ["UsageError", UsageError],
    ["ConfigError", ConfigError],
    ["PolicyError", PolicyError],
    ["MachineError", MachineError],
    ["WallError", WallError],
    ["FilesystemError", FilesystemError],
  ])("of the family %s goes by that name and is a PodbotError", (name, Family) => {
    const error = new Family("INTERNAL", "No.");
    expect(error).toBeInstanceOf(PodbotError);
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe(name);
    expect(String(error)).toBe(`${name}: No.`);
  });

  test("keeps what it was told", () => {
    const cause = new Error("first");
    const error = new WallError("GAP", "No.", { hint: "Do this.", details: { path: "/x" }, cause });
    expect(error).toMatchObject({ code: "GAP", message: "No.", hint: "Do this.", details: { path: "/x" }, cause });
  });

  test("has neither hint, details nor cause where there are none", () => {
    const error = new WallError("GAP", "No.");
    expect(error.hint).toBeUndefined();
    expect(error.details).toEqual({});
    expect("cause" in error).toBe(false);
  });
});
