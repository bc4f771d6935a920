// @module-tag security
import { execFile, execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { heading, letter, record } from "./letter.ts";
import { buildPrograms, compile, environment, makeRandom, makeScratch, ordinary, sanitized } from "./programs.ts";
import { answerEnosys } from "./seccomp.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

/** A shell script to stand where bubblewrap would. */
function standIn(name: string, script: string): string {
  const path = join(scratch, name);
  writeFileSync(path, `#!/bin/bash\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

let files = 0;
function inFile(content: Buffer): string {
  const path = join(scratch, `file-${files++}`);
  writeFileSync(path, content);
  return path;
}

interface Post {
  readonly launch: string;
  readonly bwrap: string;
  readonly content: Buffer;
  readonly parent?: number;
  /** What descriptors 5 and up refer to. */
  readonly more?: readonly string[];
}

function post({ launch, bwrap, content, parent = process.pid, more = [] }: Post): SpawnSyncReturns<string> {
  const opened = [inFile(content), ...more].map((path) => openSync(path, "r"));
  const [letterFd, ...rest] = opened as [number, ...number[]];
  try {
    return spawnSync(launch, [String(parent), bwrap], {
      encoding: "utf8",
      env: environment,
      stdio: ["ignore", "pipe", "pipe", letterFd, "pipe", ...rest],
    });
  } finally {
    opened.forEach(closeSync);
  }
}

describe.each([ordinary, sanitized])("podbot-launch, $build build", ({ launch }) => {
  it("becomes bubblewrap with the words of the letter, in order and unchanged", () => {
    const bwrap = standIn("words", `printf '[%s]' "$@"; echo; tr '\\0' '|' <&"$2"`);
    const content = letter(0, [
      ["A", "--bind"],
      ["C", "echo"],
      ["A", "/a b"],
      ["C", ""],
      ["A", ""],
      ["C", "ünï\ncode $x"],
    ]);
    const run = post({ launch, bwrap, content });
    expect(run.stdout).toBe("[--args][5][--][echo][][ünï\ncode $x]\n--bind|/a b||");
    expect([run.status, run.stderr]).toEqual([0, ""]);
  });

  it("puts blobs behind the pins and the options behind the blobs, all at their beginning", () => {
    const bwrap = standIn("layout", `echo "$2"; cat <&7; cat <&8; cat <&9; tr '\\0' '|' <&10`);
    const blob = Buffer.from([0, 255, 10, 0]);
    const content = letter(2, [
      ["D", "first\n"],
      ["A", "--x"],
      ["D", ""],
      ["D", blob],
      ["C", "true"],
    ]);
    const run = post({ launch, bwrap, content, more: ["/", "/etc"] });
    expect(run.stdout).toBe(`10\nfirst\n${blob.toString()}--x|`);
    expect(run.status).toBe(0);
  });

  it("gives bubblewrap the promised descriptors and none that it inherited", () => {
    const content = letter(2, [
      ["D", "blob"],
      ["C", "true"],
    ]);
    const secret = inFile(Buffer.from("secret"));
    const run = post({ launch, bwrap: lister(), content, more: ["/", "/etc", "/", secret, secret, "/usr"] });
    expect(run.stderr).toBe("");
    expect(listing(run)).toEqual(promised);
  });

  it("closes descriptors on kernels without close_range too", () => {
    const content = letter(2, [
      ["D", "blob"],
      ["C", "true"],
    ]);
    const secret = inFile(Buffer.from("secret"));
    const filter = inFile(answerEnosys("close_range"));
    // The filter's descriptor must lie outside the layout; bubblewrap closes it when it has read it.
    const script = 'exec 30<"$1"; exec bwrap --seccomp 30 --dev-bind / / --unshare-pid -- "$2" 1 "$3"';
    const opened = [inFile(content), "/", "/etc", "/", secret].map((path) => openSync(path, "r"));
    const [letterFd, ...rest] = opened as [number, ...number[]];
    const run = spawnSync("bash", ["--norc", "-c", script, "bash", filter, launch, lister()], {
      encoding: "utf8",
      env: environment,
      stdio: ["ignore", "pipe", "pipe", letterFd, "pipe", ...rest],
    });
    opened.forEach(closeSync);
    expect(run.stderr).toBe("");
    expect(listing(run)).toEqual(promised);
  });

  it("reads a letter that comes in pieces through Node's own pipe", async () => {
    const bwrap = standIn("pieces", 'cat <&5; shift 3; echo "$@"');
    const child = spawn(launch, [String(process.pid), bwrap], {
      env: environment,
      stdio: ["ignore", "pipe", "inherit", "pipe", "pipe"],
    });
    const content = letter(0, [
      ["D", "x".repeat(300_000)],
      ["C", "done"],
    ]);
    const pipe = child.stdio[3] as NodeJS.WritableStream;
    pipe.write(content.subarray(0, 5));
    await sleep(20);
    pipe.write(content.subarray(5, 200_000));
    await sleep(20);
    pipe.end(content.subarray(200_000));
    expect(await text(child.stdout as NodeJS.ReadableStream)).toBe(`${"x".repeat(300_000)}done\n`);
  });

  it("ignores the terminal's signals and blocks none", () => {
    const bwrap = standIn("signals", "exec cat /proc/self/status");
    const content = inFile(letter(0, [["C", "true"]]));
    // The shell stays the parent, so that its number is the one to expect.
    const script = 'env --block-signal=USR1 "$1" $$ "$2" 3<"$3" 4<&0; true';
    const status = execFileSync("sh", ["-c", script, "sh", launch, bwrap, content], {
      encoding: "utf8",
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ignored = BigInt(`0x${/SigIgn:\s*(\w+)/.exec(status)?.[1]}`);
    for (const signal of [1, 2, 3, 15]) expect(ignored & (1n << BigInt(signal - 1)), `signal ${signal}`).not.toBe(0n);
    expect(/SigBlk:\s*(\w+)/.exec(status)?.[1]).toBe("0000000000000000");
  });

  it("refuses to start for a parent that is gone", () => {
    const run = post({ launch, bwrap: "/bin/true", content: letter(0, [["C", "true"]]), parent: process.pid + 1 });
    expect([run.status, run.stderr]).toEqual([125, "podbot-launch: the parent process is gone\n"]);
  });

  it("dies when its parent dies", async () => {
    const bwrap = standIn("sleeper", "echo $$; exec sleep 60");
    const content = inFile(letter(0, [["C", "true"]]));
    const script = '"$1" $$ "$2" 3<"$3" 4<&0; true';
    const parent = spawn("sh", ["-c", script, "sh", launch, bwrap, content], {
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(parent.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    const sleeper = Number(line.toString());
    expect(isAlive(sleeper)).toBe(true);
    parent.kill("SIGKILL");
    await expect.poll(() => isAlive(sleeper)).toBe(false);
  });

  it.each<readonly [string, Buffer, RegExp]>([
    ["an empty letter", Buffer.alloc(0), /truncated/],
    ["another magic", Buffer.from("podbot2\n\0\0\0\0"), /does not begin/],
    ["no end", heading(0), /truncated/],
    ["no command", letter(0, [["A", "--x"]]), /no command/],
    ["an unknown record", letter(0, [["X", "y"]]), /unknown record/],
    ["an end with content", Buffer.concat([heading(0), record("C", "a"), record("E", "x")]), /goes on/],
    ["bytes after the end", Buffer.concat([letter(0, [["C", "a"]]), Buffer.from("C")]), /goes on/],
    [
      "an option with a NUL",
      letter(0, [
        ["A", "a\0b"],
        ["C", "x"],
      ]),
      /NUL/,
    ],
    ["a command word with a NUL", letter(0, [["C", "\0"]]), /NUL/],
    ["a length beyond the letter", Buffer.concat([heading(0), record("A", "abc", 4)]), /truncated/],
    ["the longest length", Buffer.concat([heading(0), record("D", "abc", 0xffffffff)]), /truncated/],
    ["a length with the sign bit", Buffer.concat([heading(0), record("C", "abc", 0x80000000)]), /truncated/],
    ["a pin that is not open", letter(1, [["C", "x"]]), /descriptor 5 is missing/],
    ["the most pins", letter(0xffffffff, [["C", "x"]]), /too many pins/],
    [
      "too many words",
      Buffer.concat([heading(0), Buffer.concat(Array(65_537).fill(record("A", "")))]),
      /too many words/,
    ],
    [
      "too many blobs",
      Buffer.concat([heading(0), Buffer.concat(Array(4097).fill(record("D", "")))]),
      /too many blobs|memory file/,
    ],
    ["too long a letter", letter(0, [["D", Buffer.alloc(16 * 2 ** 20)]]), /too long/],
  ])("refuses %s", (_, content, complaint) => {
    const run = post({ launch, bwrap: "/bin/true", content });
    expect(run.status).toBe(125);
    expect(run.stderr).toMatch(/^podbot-launch: .*\n$/);
    expect(run.stderr).toMatch(complaint);
  });

  it("takes as many words and as long a letter as it promises", () => {
    const bwrap = standIn("counts", 'stat -L -c %s /proc/self/fd/5; tr -dc "\\0" <&6 | wc -c');
    const blob = Buffer.alloc(16 * 2 ** 20 - 2 ** 20);
    const words = Buffer.concat(Array(65_535).fill(record("A", "")));
    const content = Buffer.concat([heading(0), record("D", blob), words, record("C", "x"), record("E", "")]);
    const run = post({ launch, bwrap, content });
    expect(run.stdout).toBe(`${blob.length}\n65535\n`);
  });

  it("says when bubblewrap cannot be executed", () => {
    const run = post({ launch, bwrap: "/nonexistent/bwrap", content: letter(0, [["C", "x"]]) });
    expect(run.status).toBe(125);
    expect(run.stderr).toBe("podbot-launch: cannot execute bubblewrap: No such file or directory\n");
  });

  it.each([
    [[]],
    [["1"]],
    [["x", "/bin/true"]],
    [["-1", "/bin/true"]],
    [["1x", "/bin/true"]],
    [["1", "bwrap"]],
    [["99999999999999999999", "/bin/true"]],
    [["1", "/bin/true", "more"]],
  ])("refuses the arguments %j", (words) => {
    const run = spawnSync(launch, words, { encoding: "utf8", env: environment, stdio: "pipe" });
    expect(run.status).toBe(125);
    expect(run.stderr).toMatch(/^podbot-launch: usage/);
  });

  it("starts the real bubblewrap, with a file made of a blob and a directory given by a pin", () => {
    const directory = mkdtempSync(join(scratch, "pinned-"));
    writeFileSync(join(directory, "there"), "pinned");
    const options = ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--ro-bind-fd", "5", "/tmp", "--tmpfs", "/run"];
    const more = ["--ro-bind-data", "6", "/run/blob", "--die-with-parent"];
    const content = letter(1, [
      ...[...options, ...more].map((word) => ["A", word] as const),
      ["D", "from memory"],
      ...["sh", "-c", "cat /run/blob /tmp/there; exit 7"].map((word) => ["C", word] as const),
    ]);
    const run = post({ launch, bwrap: "/usr/bin/bwrap", content, more: [directory] });
    expect([run.stderr, run.stdout, run.status]).toEqual(["", "from memorypinned", 7]);
  });
});

describe("podbot-launch, sanitized build, under many damaged letters", () => {
  const sound = letter(2, [
    ["A", "--ro-bind-data"],
    ["D", Buffer.from("some\0data")],
    ["A", "7"],
    ["A", "/run/x"],
    ["C", "sh"],
    ["D", ""],
    ["C", "-c"],
    ["C", "exit 0"],
  ]);

  it("accepts the sound one and refuses it cut at any byte", async () => {
    const cuts = Array.from({ length: sound.length }, (_, length) => sound.subarray(0, length));
    const statuses = await postAll([sound, ...cuts]);
    expect(statuses).toEqual([0, ...cuts.map(() => 125)]);
  });

  it("never crashes on 2000 random mutations", async () => {
    const random = makeRandom(1);
    const mutations = Array.from({ length: 2000 }, () => mutate(sound, random));
    const statuses = await postAll(mutations);
    const wrong = mutations.filter((_, i) => ![0, 125].includes(statuses[i] ?? -1)).map((m) => m.toString("hex"));
    expect(wrong).toEqual([]);
    expect(statuses.filter((status) => status === 125).length).toBeGreaterThan(500);
  });

  async function postAll(letters: readonly Buffer[]): Promise<number[]> {
    const driver = join(scratch, "letters");
    compile("letters.c", driver);
    const file = inFile(Buffer.concat(letters.flatMap((content) => [record("", content)])));
    const half = async (first: number) => {
      const words = [sanitized.launch, "/bin/true", file, String(first), "2"];
      return (await promisify(execFile)(driver, words, { env: environment })).stdout.trim().split("\n");
    };
    const lines = (await Promise.all([half(0), half(1)])).flat().filter((line) => line !== "");
    const byNumber = new Map(lines.map((line) => line.split(" ").map(Number) as [number, number]));
    return letters.map((_, number) => byNumber.get(number) ?? -1);
  }

  function mutate(original: Buffer, random: (below: number) => number): Buffer {
    let bytes = Buffer.from(original);
    for (let changes = 1 + random(4); changes > 0; changes--) {
      const at = random(bytes.length);
      const kind = random(5);
      if (kind === 0) bytes[at] = random(256);
      else if (kind === 1) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
      else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(6))]);
      else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(random(bytes.length))]);
      else bytes[at] = [0, 1, 127, 255][random(4)] ?? 0;
      if (bytes.length === 0) break;
    }
    return bytes;
  }
});

function lister(): string {
  return standIn("lister", "exec ls -l /proc/self/fd");
}

/** With two pins and one blob. Number 9 is the lister's own. */
const promised = ["0 null", "1 pipe", "2 pipe", "3 pidfd", "4 pipe", "5 /", "6 /etc", "7 memfd", "8 memfd", "9 fd"];

function listing(run: SpawnSyncReturns<string>): string[] {
  return [...run.stdout.matchAll(/ (\d+) -> (\S+)/g)]
    .sort((a, b) => Number(a[1]) - Number(b[1]))
    .map(([, number, target = ""]) => `${number} ${describeTarget(target)}`);
}

function describeTarget(target: string): string {
  if (/^(pipe|socket):/.test(target)) return "pipe";
  if (target.startsWith("/memfd:")) return "memfd";
  if (/\[pidfd\]|^pidfd:/.test(target)) return "pidfd";
  return target.replace("/dev/null", "null").replace(/^\/proc\/.*\/fd$/, "fd");
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
