// @module-tag security
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { WallError } from "../../src/errors.ts";
import { openPins, readPinned } from "../../src/wall/pin.ts";
import { failure } from "../failure.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-pin-")));
afterAll(() => rmSync(directory, { recursive: true }));

const at = (name: string) => join(directory, name);
mkdirSync(at("directory"));
for (const name of ["file", "other"]) writeFileSync(at(name), "");
symlinkSync("file", at("link"));
symlinkSync("directory", at("to-directory"));
symlinkSync("nowhere", at("broken"));
linkSync(at("file"), at("second-name"));

function identityOf(path: string): string {
  const { dev, ino } = lstatSync(path);
  return `${dev}:${ino}`;
}

const bind = (source: string, identity: string | null = null) =>
  ({ kind: "bind", source, target: source, access: "ro", identity, why: "" }) as const;
/** What this process has open below the directory. */
const opened = () =>
  readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)].filter((path) => path.startsWith(`${directory}/`));
    } catch {
      return [];
    }
  });

test("what is mounted is held, with what it stands for: also what Podbot has made itself", () => {
  const binds = [bind(at("file"), identityOf(at("file"))), bind(at("directory")), bind(at("file")), bind(at("other"))];
  {
    using pins = openPins(binds);
    expect(pins.identities).toEqual(binds.map(({ source }) => identityOf(source)));
    const descriptors = binds.map((bind) => pins.of(bind).descriptor);
    expect(new Set(descriptors).size).toBe(3);
    expect(descriptors[0]).toBe(descriptors[2]);
    expect(opened()).toHaveLength(3);
    // It is what was opened, whatever takes its name.
    renameSync(at("other"), at("moved"));
    expect(readlinkSync(`/proc/self/fd/${descriptors[3]}`)).toBe(at("moved"));
    renameSync(at("moved"), at("other"));
  }
  expect(opened()).toEqual([]);
});

test("what has changed since is seen by a second look", () => {
  for (const name of ["a", "b"]) writeFileSync(at(name), "");
  using pins = openPins([bind(at("file")), bind(at("a"))]);
  pins.lookAgain();
  const swap = (one: string, other: string) => {
    renameSync(at(one), at("spare"));
    renameSync(at(other), at(one));
    renameSync(at("spare"), at(other));
  };
  swap("a", "b");
  expect(failure(WallError, () => pins.lookAgain())).toMatchObject({
    code: "PATH_CHANGED",
    details: { path: at("a") },
  });
  swap("a", "b");
  pins.lookAgain();
  rmSync(at("a"));
  expect(failure(WallError, () => pins.lookAgain()).message).toContain("no longer be opened");
  symlinkSync("b", at("a"));
  expect(failure(WallError, () => pins.lookAgain()).message).toContain("it is a link now");
  expect(opened()).toHaveLength(2);
});

test("nothing is held where nothing is mounted", () => {
  using pins = openPins([]);
  expect(pins.identities).toEqual([]);
});

test.each([
  ["a link, that Podbot would have made", "link", () => null, "it is a link now"],
  ["a link to a directory", "to-directory", () => null, "it is a link now"],
  ["a link to nothing", "broken", () => null, "it is a link now"],
  ["a link with the identity of what it leads to", "link", () => identityOf(at("file")), "it is a link now"],
  ["a link with its own identity", "link", () => identityOf(at("link")), "it is a link now"],
  ["another file", "other", () => identityOf(at("file")), "no longer the file or directory"],
  ["a file in place of a directory", "file", () => identityOf(at("directory")), "no longer the file or directory"],
  ["nothing", "missing", () => null, "it can no longer be opened"],
])("%s is refused, and what was opened before is closed", (_, name, identity, why) => {
  const error = failure(WallError, () => openPins([bind(at("directory")), bind(at(name), identity())]));
  expect(error).toMatchObject({ code: "PATH_CHANGED", details: { path: at(name) } });
  expect(error.message).toContain(why);
  expect(opened()).toEqual([]);
});

test("each bind is compared, also one whose source is held already", () => {
  const error = failure(WallError, () => openPins([bind(at("file")), bind(at("file"), identityOf(at("other")))]));
  expect(error.code).toBe("PATH_CHANGED");
  using pins = openPins([bind(at("second-name"), identityOf(at("file")))]);
  expect(pins.identities).toEqual([identityOf(at("file"))]);
});

test("what is copied is read from the very file that was surveyed, and nothing is left open", () => {
  writeFileSync(at("file"), "its content");
  expect(String(readPinned({ source: at("file"), identity: identityOf(at("file")) }))).toBe("its content");
  for (const source of [at("link"), at("nowhere"), at("file")]) {
    const error = failure(WallError, () => readPinned({ source, identity: identityOf(at("other")) }));
    expect(error).toMatchObject({ code: "PATH_CHANGED", details: { path: source } });
  }
  for (const [name, why] of [
    ["directory", "not a file"],
    ["huge", "too large"],
  ] as const) {
    if (name === "huge") {
      writeFileSync(at(name), "");
      truncateSync(at(name), 5 * 1024 * 1024);
    }
    const error = failure(WallError, () => readPinned({ source: at(name), identity: identityOf(at(name)) }));
    expect(error.message).toContain(why);
  }
  expect(opened()).toEqual([]);
});
