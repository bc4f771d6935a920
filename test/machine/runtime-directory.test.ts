// @module-tag security
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { MachineError } from "../../src/errors.ts";
import {
  existingRuntimeDirectories,
  findRuntimeDirectory,
  runtimeCandidates,
} from "../../src/machine/runtime-directory.ts";
import { failure } from "../failure.ts";

const uid = process.getuid?.() ?? -1;
let root: string;
let places: { uid: number; state: string; run: string };

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-runtime-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  places = { uid, state: join(root, "state", "podbot"), run: join(root, "run") };
});

function directory(name: string, mode = 0o700): string {
  const path = join(root, name);
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
  return path;
}

function file(name: string): string {
  writeFileSync(join(root, name), "");
  return join(root, name);
}

/** A directory of another user: root can make one, and everybody else knows one of root's. */
function foreignDirectory(): string {
  if (uid !== 0) return "/usr";
  const path = directory("foreign");
  chownSync(path, 12345, 12345);
  return path;
}

const modeOf = (path: string) => lstatSync(path).mode & 0o777;

describe("the places for runtime directories", () => {
  test("are, for a user, what the environment names, the system's place for users, and the state directory", () => {
    expect(runtimeCandidates({ env: { XDG_RUNTIME_DIR: "/x" }, uid: 1000, state: "/s" })).toEqual([
      "/x/podbot",
      "/run/user/1000/podbot",
      "/s/run",
    ]);
  });

  test("are one more for root", () => {
    expect(runtimeCandidates({ env: {}, uid: 0, state: "/s" })).toEqual([
      "/run/user/0/podbot",
      "/run/podbot",
      "/s/run",
    ]);
  });

  test.each(["", "run", "./x"])("do not hang on where the caller stands: %j is ignored", (value) => {
    expect(runtimeCandidates({ env: { XDG_RUNTIME_DIR: value }, uid: 7, state: "/s" })[0]).toBe("/run/user/7/podbot");
  });

  test("are named once, where the environment says what the system does", () => {
    expect(runtimeCandidates({ env: { XDG_RUNTIME_DIR: "/run/user/7" }, uid: 7, state: "/s" })).toEqual([
      "/run/user/7/podbot",
      "/s/run",
    ]);
  });

  test("are looked at without being made, and only one's own", () => {
    const env = { XDG_RUNTIME_DIR: directory("xdg") };
    expect(existingRuntimeDirectories({ ...places, env })).toEqual([]);
    expect(existsSync(join(root, "xdg", "podbot"))).toBe(false);
    directory("xdg/podbot");
    expect(existingRuntimeDirectories({ ...places, env })).toEqual([join(root, "xdg", "podbot")]);
    expect(existingRuntimeDirectories({ ...places, env, uid: uid + 1 })).toEqual([]);
  });
});

describe("the runtime directory", () => {
  test("is made in XDG_RUNTIME_DIR, for its owner alone, whatever the umask", () => {
    const umask = process.umask(0);
    onTestFinished(() => void process.umask(umask));
    const found = findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: directory("xdg") } });
    expect(found).toEqual({ path: join(root, "xdg", "podbot"), warning: null });
    expect(modeOf(found.path)).toBe(0o700);
    process.umask(0o777);
    rmSync(found.path, { recursive: true });
    expect(modeOf(findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: join(root, "xdg") } }).path)).toBe(0o700);
  });

  test("is found again", () => {
    const env = { XDG_RUNTIME_DIR: directory("xdg") };
    expect(findRuntimeDirectory({ ...places, env })).toEqual(findRuntimeDirectory({ ...places, env }));
  });

  test("is closed to others where it was open", () => {
    const open = directory("xdg/podbot", 0o777);
    findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: join(root, "xdg") } });
    expect(modeOf(open)).toBe(0o700);
  });

  test("lies in the system's place for the user, without XDG_RUNTIME_DIR", () => {
    const user = directory(`run/user/${uid}`);
    expect(findRuntimeDirectory({ ...places, env: {} })).toEqual({ path: join(user, "podbot"), warning: null });
  });

  test("may lie where everybody writes, if nobody can rename another's", () => {
    const sticky = directory("tmp", 0o1777);
    expect(findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: sticky } }).warning).toBeNull();
  });

  test("lies in the state directory where there is nothing else, with a warning", () => {
    const { path, warning } = findRuntimeDirectory({ ...places, env: {}, run: join(root, "none") });
    expect(path).toBe(join(places.state, "run"));
    expect(modeOf(path)).toBe(0o700);
    expect(warning).toMatch(/shared or slow.*XDG_RUNTIME_DIR/);
  });

  test("lies in a state directory that the owner has moved", () => {
    const moved = directory("moved", 0o755);
    directory("state");
    symlinkSync(moved, places.state);
    expect(findRuntimeDirectory({ ...places, env: {} }).path).toBe(join(places.state, "run"));
    expect(modeOf(moved)).toBe(0o700);
  });
});

describe("an XDG_RUNTIME_DIR that cannot be used is passed over with a warning", () => {
  const cases: readonly [string, () => string, RegExp][] = [
    ["missing", () => join(root, "missing"), /does not exist/],
    ["a file", () => file("file"), /not a directory/],
    ["another user's, as after sudo", () => foreignDirectory(), /belongs to another user/],
    ["open to others", () => directory("open", 0o777), /written by other users/],
    // Ours, and nobody can make anything there.
    ["not writable", () => `/proc/${process.pid}/task`, /cannot be made \(E/],
  ];
  test.each(cases)("%s", (_, make, why) => {
    const user = directory(`run/user/${uid}`);
    const found = findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: make() } });
    expect(found.path).toBe(join(user, "podbot"));
    expect(found.warning).toMatch(why);
  });
});

describe("nothing is put where somebody else waits", () => {
  test.each([
    ["a link", (path: string) => symlinkSync(directory("elsewhere"), path), /is a link/],
    ["a link to nowhere", (path: string) => symlinkSync(join(root, "nowhere"), path), /is a link/],
    ["a file", (path: string) => writeFileSync(path, ""), /not a directory/],
    [
      "another user's directory",
      (path: string) => symlinkOrMove(foreignDirectory(), path),
      uid === 0 ? /belongs to user 12345/ : /is a link/,
    ],
  ])("%s", (_, make, why) => {
    make(join(directory("xdg"), "podbot"));
    directory(`run/user/${uid}`);
    const error = failure(MachineError, () =>
      findRuntimeDirectory({ ...places, env: { XDG_RUNTIME_DIR: join(root, "xdg") } }),
    );
    expect(error).toMatchObject({ code: "RUNTIME_DIRECTORY", hint: expect.stringContaining("XDG_RUNTIME_DIR") });
    expect(error.message).toMatch(why);
    expect(error.message).toContain(join(root, "xdg", "podbot"));
    expect(existsSync(join(root, "nowhere"))).toBe(false);
  });

  test("nor into a state directory of another user", () => {
    directory("state/podbot");
    const error = failure(MachineError, () => findRuntimeDirectory({ ...places, env: {}, uid: uid + 1 }));
    expect(error).toMatchObject({ code: "RUNTIME_DIRECTORY", hint: expect.stringContaining("0700") });
    expect(error.message).toContain("belongs to another user");
  });

  test("and a state directory that cannot be made is an error too", () => {
    writeFileSync(join(root, "state"), "");
    expect(() => findRuntimeDirectory({ ...places, env: {} })).toThrow(/no directory for the sockets.*ENOTDIR/);
  });
});

function symlinkOrMove(from: string, to: string): void {
  if (uid === 0) renameSync(from, to);
  else symlinkSync(from, to);
}
