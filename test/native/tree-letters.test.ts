// @module-tag security
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { letter, record } from "./letter.ts";
import { compile, environment, makeRandom, sanitized } from "./programs.ts";
import { bind, emptyRoot, give, openBench, snapshot, starts, step, withContent } from "./tree.ts";

const bench = openBench(beforeAll, afterAll);

const unterminated = step("tmpfs", "0755", "/a").subarray(0, -1);

// Who starts it makes no difference to how a letter is read.
describe.each(starts.filter(([, user]) => user !== "root"))("podbot-launch, %s build, started by %s", (build, user) => {
  const post = (steps: readonly Buffer[], script = "true") => bench.post({ build, user, steps, script });

  it.each<readonly [string, readonly Buffer[], string]>([
    ["an empty step", [Buffer.alloc(0)], "the letter holds a step without its words"],
    ["an unknown step", [emptyRoot, step("tmpf", "0755", "/a")], "the letter holds an unknown step"],
    ["a step's name alone", [step("bind")], "the letter holds a step without its words"],
    ["too few words", [step("tmpfs", "0755")], "the letter holds a step without its words"],
    ["a word without its end", [unterminated], "the letter holds a step without its words"],
    ["too many words", [step("tmpfs", "0755", "/", "")], "the letter holds a step with too many words"],
    [
      "bytes behind its words",
      [Buffer.concat([emptyRoot, Buffer.from("x")])],
      "the letter holds a step with too many words",
    ],
    ["a relative place", [emptyRoot, step("tmpfs", "0755", "a")], "the letter names a path that is not absolute"],
    ["an empty place", [emptyRoot, step("tmpfs", "0755", "")], "the letter names a path that is not absolute"],
    ["a relative source", [step("bind", "ro", "1:1", "etc", "/")], "the letter names a path that is not absolute"],
    ["an unknown access", [step("bind", "wr", "1:1", "/", "/")], "the letter names an unknown access"],
    ["an unknown point", [emptyRoot, step("point", "fifo", "/a")], "the letter names an unknown kind of point"],
    ["no mode", [emptyRoot, step("directory", "", "/a")], "the letter names no mode"],
    ["a mode that is none", [emptyRoot, step("directory", "0789", "/a")], "the letter names no mode"],
    ["a first step elsewhere", [step("tmpfs", "0755", "/a")], "the letter's first step is not about the root"],
    [
      "a first file elsewhere",
      [withContent("file", "0755", "/a", "")],
      "the letter's first step is not about the root",
    ],
    ["a first mode", [step("mode", "0755", "/")], "the letter's first step is not about the root"],
    ["a first seal", [step("seal", "/")], "the letter's first step is not about the root"],
    [
      "a name too long",
      [emptyRoot, step("tmpfs", "0755", `/${"x".repeat(256)}`)],
      "the letter names a path that cannot be",
    ],
  ])("refuses %s", (_, steps, complaint) => {
    expect(post(steps)).toEqual({ status: 125, stdout: "", stderr: `podbot-launch: ${complaint}\n` });
  });

  it.each(["", ":", "1", "1:", ":1", "1:x", "nan:nan", "inf:1", "0x1:1", " 1:1", "1:1 ", "-1:1", "1:1:1", "1e9:1"])(
    "refuses the identity %j",
    (identity) => {
      const { status, stderr } = post([step("bind", "ro", identity, "/", "/")]);
      expect([status, stderr]).toEqual([125, "podbot-launch: the letter names no identity\n"]);
    },
  );

  it.each([["A"], ["D"], ["C"]] as const)("refuses a step behind a record %s", (type) => {
    const records = [[type, "x"] as const, ["M", emptyRoot] as const, ["C", "true"] as const];
    const { status, stderr } = bench.post({ build, user, steps: [emptyRoot], records });
    expect([status, stderr]).toEqual([125, "podbot-launch: the letter mounts too late\n"]);
  });

  it("takes the longest names, and refuses paths that no kernel takes", () => {
    const name = "ü".repeat(127);
    const deep = `/${name}`.repeat(15);
    expect(post([emptyRoot, step("directory", "0755", deep)], `test -d '/tmp/tree${deep}'`).status).toBe(0);
    const refused = post([emptyRoot, step("directory", "0755", `/${name}`.repeat(17))]);
    expect([refused.status, refused.stderr.slice(0, 24)]).toEqual([125, "podbot-launch: changed: "]);
    expect(refused.stderr).toMatch(/File ?name too long\n$/i);
  });

  it("takes contents of any bytes and size", () => {
    const content = Buffer.alloc(3 * 2 ** 20, "\0\u00ff\n").toString("latin1");
    const steps = [emptyRoot, withContent("file", "0600", "/a", content), withContent("cover", "0600", "/b", content)];
    const { stdout } = post(steps, "cd /tmp/tree; wc -c <a; cmp a b && echo same");
    expect(stdout).toBe(`${Buffer.byteLength(content)}\nsame\n`);
  });

  it("builds three thousand mounts", () => {
    const source = give(join(bench.scratch, `many-${build}-${user}`), user, null);
    const steps = Array.from({ length: 3_000 }, (_, at) => bind("ro", source, `/${at % 50}/${at}`));
    const { status, stdout, stderr } = post([emptyRoot, ...steps], "grep -c ' /tmp/tree/' /proc/self/mountinfo");
    expect([status, stdout, stderr]).toEqual([0, "3000\n", ""]);
  });
});

describe("podbot-launch, sanitized build, with damaged steps", () => {
  it("never crashes, and never changes the host", async () => {
    const host = join(bench.scratch, "damage");
    mkdirSync(join(host, "dir"), { recursive: true });
    writeFileSync(join(host, "file"), "content");
    const sound = [
      ...[bind("ro", "/"), bind("rw", host), bind("ro", join(host, "file")), step("tmpfs", "0755", join(host, "dir"))],
      ...[
        withContent("file", "0644", join(host, "dir/new"), "x"),
        withContent("cover", "0000", join(host, "file"), ""),
      ],
      ...[step("link", "../file", join(host, "dir/link")), step("mode", "0700", join(host, "dir/new"))],
      ...[step("point", "file", join(host, "dir/late")), step("seal", join(host, "dir"))],
    ];
    const before = snapshot(host);
    const random = makeRandom(2);
    const damaged = Array.from({ length: 300 }, () => {
      const steps = sound.slice(0, 1 + random(sound.length)).map((bytes) => Buffer.from(bytes));
      for (let changes = 1 + random(3); changes > 0; changes--) {
        const bytes = steps[random(steps.length)] as Buffer;
        bytes[random(bytes.length)] = [0, 47, 46, 255, random(256)][random(5)] ?? 0;
      }
      return steps;
    });
    const letters = [sound, ...damaged].map((steps) =>
      letter(0, [...steps.map((bytes) => ["M", bytes] as const), ["C", "true"]]),
    );
    const driver = join(bench.scratch, "letters");
    compile("letters.c", driver);
    const file = join(bench.scratch, "damaged-letters");
    writeFileSync(file, Buffer.concat(letters.map((content) => record("", content))));
    const half = async (first: number) => {
      const words = [sanitized.launch, "/bin/true", file, String(first), "2"];
      return (await promisify(execFile)(driver, words, { env: environment })).stdout.trim().split("\n");
    };
    const statuses = (await Promise.all([half(0), half(1)])).flat().map((line) => Number(line.split(" ")[1]));
    expect(statuses.filter((status) => status !== 0 && status !== 125)).toEqual([]);
    expect(statuses.length).toBe(301);
    expect(statuses.filter((status) => status === 125).length).toBeGreaterThan(100);
    expect(statuses[0]).toBe(0);
    expect(snapshot(host)).toEqual(before);
  });
});
