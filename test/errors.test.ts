import { describe, expect, test } from "vitest";
import {
  ConfigError,
  EngineError,
  type ErrorCode,
  errorTable,
  FilesystemError,
  GitHubError,
  MachineError,
  PodbotError,
  PolicyError,
  SessionError,
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
  SECRET_UNMASKABLE: 2,
  PRESET_UNKNOWN: 2,
  PATTERN_INVALID: 2,
  NETWORK_RULE_INVALID: 2,
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
  DOORS_FAILED: 125,
  DOCKER_SOCKET_MISSING: 125,
  FILESYSTEM: 125,
  COMMAND_NOT_FOUND: 127,
  COMMAND_NOT_EXECUTABLE: 126,
  AGENT_UNKNOWN: 2,
  AGENT_MISSING: 127,
  SESSION_NOT_FOUND: 125,
  SESSION_AMBIGUOUS: 2,
  SESSION_ENDED: 125,
  SESSION_UNREACHABLE: 125,
  BOX_LOST: 125,
  PROTOCOL: 125,
  EXEC_FAILED: 125,
  UPLOAD_FAILED: 125,
  ENGINE_NOT_FOUND: 125,
  ENGINE_SOCKET_NOT_FOUND: 125,
  ENGINE_PERMISSION_DENIED: 125,
  ENGINE_CONNECTION_FAILED: 125,
  ENGINE_HEALTH_CHECK_FAILED: 125,
  ENGINE_HEALTH_CHECK_TIMEOUT: 125,
  ENGINE_REFUSED: 125,
  IMAGE_REQUIRED: 2,
  IMAGE_NOT_FOUND: 125,
  IMAGE_BASE_MISSING: 125,
  IMAGE_BUILD_FAILED: 125,
  OCI_RUNTIME_MISSING: 125,
  CONTAINER_CREATE_FAILED: 125,
  CONTAINER_START_FAILED: 125,
  GITHUB_CONFIG: 2,
  GITHUB_KEY_INVALID: 2,
  GITHUB_AUTHENTICATION: 125,
  GITHUB_FORBIDDEN: 125,
  GITHUB_RATE_LIMITED: 125,
  GITHUB_NOT_FOUND: 125,
  GITHUB_UNAVAILABLE: 125,
  GITHUB_UNEXPECTED: 125,
  GITHUB_TOKEN_EXPIRED: 125,
  GITHUB_TOKEN_REFRESH: 125,
  REPOSITORY_INVALID: 2,
  CLONE_FAILED: 125,
  MOUNT_REFUSED: 2,
  RUNTIME_DIRECTORY: 125,
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
    ["SessionError", SessionError],
    ["EngineError", EngineError],
    ["GitHubError", GitHubError],
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
