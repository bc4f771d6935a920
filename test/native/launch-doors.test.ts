// @module-tag security
import { type ChildProcess, execFile, type SpawnOptions } from "node:child_process";
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerAt, dialling, type Passed, passThrough } from "./guarded-box.ts";
import { heading, type LetterRecord, letter, record } from "./letter.ts";
import { buildPrograms, compile, environment, makeScratch, ordinary, sanitized } from "./programs.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

function standIn(name: string, script: string): string {
  const path = join(scratch, name);
  writeFileSync(path, `#!/bin/bash\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

function ports(...numbers: readonly number[]): LetterRecord {
  const bytes = Buffer.alloc(2 * numbers.length);
  for (const [at, port] of numbers.entries()) bytes.writeUInt16LE(port, 2 * at);
  return ["G", bytes];
}

interface Launched extends Passed {
  readonly stdout: string;
  readonly stderr: string;
}

let files = 0;

/** Posts a letter, with Node's channel behind the pins. */
async function post(
  launch: string,
  bwrap: string,
  content: Buffer,
  more: {
    readonly pins?: readonly string[];
    readonly channel?: boolean;
    /** Called when the box has all of its doors, and waits. */
    readonly onComplete?: (child: ChildProcess) => unknown;
  } = {},
): Promise<Launched> {
  const { onComplete = (child) => child.send("begin") } = more;
  let doors = 0;
  const at = (name: string) => join(scratch, `${name}-${files}`);
  files++;
  writeFileSync(at("letter"), content);
  const pins = (more.pins ?? []).map((path) => openSync(path, "r"));
  const opened = [openSync(at("letter"), "r"), openSync(at("out"), "w"), openSync(at("err"), "w"), ...pins] as const;
  const [letterFd, out, err] = opened;
  const stdio: SpawnOptions["stdio"] = ["ignore", out, "pipe", letterFd, err, ...pins];
  try {
    const whole: SpawnOptions["stdio"] = more.channel === false ? stdio : [...stdio, "ipc"];
    const passed = await passThrough(launch, [`${process.pid}`, bwrap], { stdio: whole }, (door, child) => {
      answerAt(door);
      if (++doors === doorsOfBox) onComplete(child);
    });
    return { ...passed, stdout: readFileSync(at("out"), "utf8"), stderr: readFileSync(at("err"), "utf8") };
  } finally {
    opened.forEach(closeSync);
  }
}

/** Questions, 53, 443 and 8080. */
const doorsOfBox = 4;

/** A real box, whose first program waits until it has its doors. */
function box(enter: string, ...command: readonly string[]): Buffer {
  const names = ["user", "pid", "ipc", "uts", "net"].map((name) => `--unshare-${name}`);
  const root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
  const inside = ["--ro-bind", enter, "/tmp/enter", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent"];
  return letter(0, [
    ports(443, 8080),
    ...["--info-fd", "5", ...names, ...root, ...inside].map((word) => ["A", word] as const),
    ...["/tmp/enter", "--isolate", "--doors", "6", "4", "--", ...command].map((word) => ["C", word] as const),
  ]);
}

describe.each([ordinary, sanitized])("podbot-launch with doors, $build build", ({ launch, enter }) => {
  it("lets a box begin that has its doors", async () => {
    const script = `${dialling}\ndial("203.0.113.7", 443); dial("2001:db8::7", 8080); dial("203.0.113.7", 80)`;
    using run = await post(launch, "/usr/bin/bwrap", box(enter, "python3", "-c", script));
    expect([run.said, run.stderr]).toEqual(["podbot-enter: ready\n", ""]);
    expect(run.ports).toEqual([53, 443, 8080]);
    expect(run.stdout).toBe(
      "203.0.113.7 443 door ::ffff:203.0.113.7 443\n" +
        "2001:db8::7 8080 door 2001:db8::7 8080\n" +
        "203.0.113.7 80 Connection refused\n",
    );
    expect(run.status).toBe(0);
  });

  it.each<readonly [string, (child: ChildProcess) => unknown, string]>([
    ["hangs up", (child) => setImmediate(() => child.disconnect()), "nobody is behind the doors: .*"],
    ["says something else", (child) => child.send("begone"), "nobody is behind the doors"],
  ])("never lets a box begin where whoever has its doors %s", async (_, onComplete, complaint) => {
    using run = await post(launch, "/usr/bin/bwrap", box(enter, "echo", "ran"), { onComplete });
    expect([run.status, run.stdout, run.ports]).toEqual([125, "", [53, 443, 8080]]);
    expect(run.said).toMatch(new RegExp(`^podbot-gate: ${complaint}\npodbot-enter: the box has no doors\n$`));
  });

  it("leaves the command nothing of all that", async () => {
    const script = "ls -l /proc/self/fd; env";
    using run = await post(launch, "/usr/bin/bwrap", box(enter, "sh", "-c", script));
    const descriptors = [...run.stdout.matchAll(/ (\d+) -> (\S+)/g)].map(([, number]) => number);
    expect(descriptors).toEqual(["0", "1", "2", "3"]); // 3 is the listing itself
    expect(run.stdout).not.toContain("NODE_CHANNEL");
  });

  it("gives bubblewrap two pipes in place of the channel, and an empty environment", async () => {
    const bwrap = standIn("lister", "/bin/ls -l /proc/self/fd; export -p");
    const content = letter(2, [ports(443), ["D", "blob"], ["C", "true"]]);
    using run = await post(launch, bwrap, content, { pins: ["/", "/etc"] });
    const found = [...run.stdout.matchAll(/ (\d+) -> (\S+)/g)].map(([, number, target]) => `${number} ${target}`);
    const kind = (number: number) => found.find((line) => line.startsWith(`${number} `))?.replace(/\d+\]/, "]");
    expect([5, 6, 7, 8, 9, 10].map(kind)).toEqual([
      ...["5 /", "6 /etc", "7 pipe:[]", "8 pipe:[]"],
      ...[expect.stringContaining("/memfd:"), expect.stringContaining("/memfd:")],
    ]);
    expect(kind(11)).toMatch(/^11 \/proc\//);
    expect(kind(12)).toBeUndefined();
    const variables = [...run.stdout.matchAll(/declare -x (\w+)/g)].map(([, name]) => name);
    expect(variables.filter((name) => !["OLDPWD", "PWD", "SHLVL", "_"].includes(name as string))).toEqual([]);
    // bubblewrap ended without a word of the box: it says itself why.
    expect([run.said, run.ports]).toEqual(["", []]);
  });

  it("leaves the gate to itself: nobody's child, in no session of ours, with nothing of the caller's", async () => {
    const script = `
pipe=$(/bin/readlink /proc/$$/fd/5)
read -r children </proc/$$/task/$$/children; echo "children [$children]"
for ((tries = 0; tries < 1000; tries++)); do
  for gate in /proc/[0-9]*; do
    [ "$(/bin/readlink $gate/fd/4 2>/dev/null)" = "$pipe" ] || continue
    [ ! -e $gate/fd/6 ] || continue
    read -r pid name state parent group session rest <$gate/stat
    [ $session != $$ ] && [ $parent != $$ ] && [ $group = $session ] && echo alone
    for at in 0 1 2 3 4 5; do /bin/readlink $gate/fd/$at; done
    /bin/ls $gate/fd
    exit
  done
done`;
    using run = await post(launch, standIn("watcher", script), letter(0, [ports(443), ["C", "true"]]));
    const lines = run.stdout.split("\n").map((line) => line.replace(/\d{3,}/, "N"));
    const kept = ["/dev/null", "/dev/null", "socket:[N]", "socket:[N]", "pipe:[N]", "pipe:[N]"];
    expect(lines).toEqual(["children []", "alone", ...kept, "0", "1", "2", "3", "4", "5", ""]);
  });

  it.each([
    ["says nothing that makes sense", "echo '{}' >&5", "bubblewrap tells nothing of the box that makes sense"],
    ["says too much", "head -c 5000 /dev/zero >&5", "cannot read what bubblewrap tells of the box: .*"],
    [
      "names another network",
      `echo '{"child-pid": ${process.pid}, "net-namespace": 5}' >&5`,
      "the process is in another.*",
    ],
    ["names nobody", `echo '{"child-pid": 2147483647, "net-namespace": 5}' >&5`, "cannot look at the network.*"],
  ])("never lets a box begin where bubblewrap %s", async (_, said, complaint) => {
    const bwrap = standIn("odd", `${said}; exec 5>&-; /bin/cat <&6 | /usr/bin/wc -c`);
    using run = await post(launch, bwrap, letter(0, [ports(443), ["C", "true"]]));
    expect(run.stdout).toBe("0\n");
    expect(run.said).toMatch(new RegExp(`^podbot-gate: ${complaint}\n$`));
    expect(run.ports).toEqual([]);
  });

  it("never lets a box begin whose door cannot be opened", async () => {
    const names = ["--unshare-user", "--unshare-net", "--dev-bind", "/", "/"];
    const words = ["--info-fd", "5", ...names].map((word) => ["A", word] as const);
    const command = [enter, "--doors", "6", "4", "--", "echo", "ran"].map((word) => ["C", word] as const);
    using run = await post(launch, "/usr/bin/bwrap", letter(0, [ports(443, 443), ...words, ...command]));
    expect([run.status, run.stdout, run.ports]).toEqual([125, "", []]);
    expect(run.said).toMatch(/^podbot-gate: cannot listen at port 443: .*\npodbot-enter: the box has no doors\n$/);
  });

  it.each<readonly [string, Buffer, RegExp]>([
    [
      "half a port",
      letter(0, [
        ["G", "x"],
        ["C", "x"],
      ]),
      /no such doors/,
    ],
    ["port 0", letter(0, [ports(80, 0), ["C", "x"]]), /no such doors/],
    ["too many ports", letter(0, [ports(...Array(513).fill(80)), ["C", "x"]]), /no such doors/],
    ["doors that come late", letter(0, [["A", "x"], ports(80), ["C", "x"]]), /unknown record/],
    ["doors that come twice", letter(0, [ports(80), ports(80), ["C", "x"]]), /unknown record/],
    ["more than there is", Buffer.concat([heading(0), record("G", "abcd", 6)]), /truncated/],
  ])("refuses a letter with %s", async (_, content, complaint) => {
    using run = await post(launch, "/bin/true", content);
    expect([run.status, run.ports]).toEqual([125, []]);
    expect(run.said).toMatch(/^podbot-launch: .*\n$/);
    expect(run.said).toMatch(complaint);
  });

  it("refuses to open doors without a channel", async () => {
    using run = await post(launch, "/bin/true", letter(0, [ports(443), ["C", "x"]]), { channel: false });
    expect([run.status, run.said]).toEqual([125, "podbot-launch: descriptor 5 is missing\n"]);
  });
});

describe("podbot-launch with doors, sanitized build", () => {
  it("accepts a sound letter and refuses it cut at any byte", async () => {
    const sound = letter(1, [ports(80, 443), ["A", "--x"], ["D", "data"], ["C", "sh"]]);
    const letters = Array.from({ length: sound.length + 1 }, (_, length) => sound.subarray(0, length));
    const driver = join(scratch, "letters");
    compile("letters.c", driver);
    const file = join(scratch, "cuts");
    writeFileSync(file, Buffer.concat(letters.map((content) => record("", content))));
    const words = [sanitized.launch, "/bin/true", file, "0", "1"];
    const { stdout, stderr } = await promisify(execFile)(driver, words, { env: environment });
    const statuses = stdout
      .trim()
      .split("\n")
      .map((line) => Number(line.split(" ")[1]));
    expect(statuses).toEqual(letters.map((_, at) => (at === sound.length ? 0 : 125)));
    expect(stderr).not.toContain("Sanitizer");
  });
});
