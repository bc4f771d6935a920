// @module-tag security
import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patience } from "../faults/thorough.ts";
import { buildPrograms, environment, makeScratch, ordinary, sanitized } from "./programs.ts";
import { answerEnosys } from "./seccomp.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

/** Said before the command starts: what comes to an end without it was not the command. */
const ready = "podbot-enter: ready\n";

interface Entered {
  readonly status: number | null;
  readonly stdout: string;
  readonly complaints: string;
  readonly stderr: string;
}

/** Enters with complaints on descriptor 2 and the caller's stderr on descriptor 4, as behind the wall. */
function enter(program: string, words: readonly string[], env = environment, more: readonly number[] = []): Entered {
  const run = spawnSync(program, words, {
    encoding: "utf8",
    env,
    cwd: scratch,
    timeout: patience * 100_000,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", ...more],
  }) as SpawnSyncReturns<string> & { output: string[] };
  return { status: run.status, stdout: run.stdout, complaints: run.stderr, stderr: run.output[4] ?? "" };
}

function addFile(path: string, content: string, mode: number): string {
  const whole = join(scratch, path);
  mkdirSync(join(whole, ".."), { recursive: true });
  writeFileSync(whole, content);
  chmodSync(whole, mode);
  return whole;
}

describe.each([ordinary, sanitized])("podbot-enter, $build build", ({ build, enter: program }) => {
  const script = (text: string) => ["4", "--", "sh", "-c", text];

  it("becomes the command, with its arguments, status and process number", () => {
    const run = spawnSync(program, [...script('echo $$ "$@"; exit 7'), "sh", "a b", ""], {
      encoding: "utf8",
      env: environment,
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
    });
    expect([run.status, run.stdout, run.stderr]).toEqual([7, `${run.pid} a b \n`, ready]);
  });

  it("gives the command the caller's stderr, and says on the complaints that it is ready", () => {
    const run = enter(program, script("echo loud >&2"));
    expect([run.stderr, run.complaints]).toEqual(["loud\n", ready]);
  });

  it("leaves stderr alone when it is in place already", () => {
    const run = enter(program, ["2", "--", "sh", "-c", "echo loud >&2"]);
    expect([run.complaints, run.stderr]).toEqual(["loud\n", ""]);
    expect(enter(program, ["2", "--", "/nonexistent"]).complaints).toBe("podbot-enter: exec: 2\n");
  });

  it("closes every descriptor but the standard ones", () => {
    const secret = openSync(addFile("secret", "secret", 0o600), "r");
    const root = openSync("/", "r");
    const run = enter(program, ["4", "--", "ls", "/proc/self/fd"], environment, [secret, secret, root, secret]);
    closeSync(secret);
    closeSync(root);
    expect(run.stdout).toBe("0\n1\n2\n3\n"); // 3 is the listing itself
  });

  it("resets signals that were ignored or blocked", () => {
    const prefix = ["--ignore-signal=INT,QUIT,HUP,TERM,USR1,PIPE,RTMIN,RTMAX", "--block-signal=USR2,CHLD,RTMIN"];
    const status = (words: readonly string[]) => {
      const env = { PATH: process.env["PATH"] };
      const { stdout } = spawnSync("env", [...prefix, ...words, "cat", "/proc/self/status"], { env, encoding: "utf8" });
      return stdout.match(/^Sig(Blk|Ign):\s*\w+$/gm)?.map((line) => line.split(/\s+/)[1]);
    };
    const none = "0000000000000000";
    expect(status([])).not.toContain(none);
    expect(status([program, "2", "--"])).toEqual([none, none]);
  });

  it.each([
    ["nothing of that name", "nonexistent-command", 2, 127],
    ["no file at that path", "/nonexistent/command", 2, 127],
    ["a path through a file", "/etc/passwd/command", 20, 127],
    ["an empty name", "", 2, 127],
    ["a file that is not executable", "/etc/passwd", 13, 126],
    ["a directory", "/etc", 13, 126],
  ])("says that the command is %s", (_, command, error, status) => {
    const run = enter(program, ["4", "--", command]);
    expect(run).toEqual({ status, stdout: "", complaints: `${ready}podbot-enter: exec: ${error}\n`, stderr: "" });
  });

  it("searches PATH as shells do", () => {
    const tool = `tool-${build}`;
    addFile(`locked/${tool}`, "", 0o644);
    addFile(`open/${tool}`, "#!/bin/sh\necho found", 0o755);
    const found = (path: string) => enter(program, ["4", "--", tool], { ...environment, PATH: path });
    const [locked, open] = [join(scratch, "locked"), join(scratch, "open")];
    expect(found(`/nonexistent:/etc/passwd:${locked}:${open}`).stdout).toBe("found\n");
    expect(found(`${locked}:/nonexistent`).complaints).toBe(`${ready}podbot-enter: exec: 13\n`);
    mkdirSync(join(scratch, `closed-${build}`), { mode: 0 });
    expect(found(join(scratch, `closed-${build}`)).status).toBe(127);
    expect(found("").status).toBe(127);
    addFile(tool, "#!/bin/sh\necho here", 0o755);
    expect(found(`${locked}:`).stdout).toBe("here\n");
    expect(found(`${"x".repeat(5000)}:${open}`).stdout).toBe("found\n");
    const { PATH: _, ...withoutPath } = environment;
    expect(enter(program, ["4", "--", "true"], withoutPath).status).toBe(0);
  });

  it("gives a script without interpreter line to the shell", () => {
    addFile("plain", 'echo "$0 $*"', 0o755);
    expect(enter(program, ["4", "--", "./plain", "a", "b"]).stdout).toBe("./plain a b\n");
    expect(enter(program, ["4", "--", "plain"], { ...environment, PATH: `${scratch}` }).stdout).toBe(
      `${scratch}/plain \n`,
    );
  });

  it.each([
    [[]],
    [["4"]],
    [["4", "--"]],
    [["4", "ls", "--"]],
    [["--", "ls"]],
    [["4x", "--", "ls"]],
    [["-4", "--", "ls"]],
    [["", "--", "ls"]],
    [["1", "--", "ls"]],
    [["4294967301", "--", "ls"]],
    [["--isolated", "4", "--", "ls"]],
    [["--isolate", "--isolate", "4", "--", "ls"]],
    [["--isolate"]],
    [["--isolate-abstract"]],
    [["--doors"]],
    [["--doors", "5"]],
    [["--doors", "x", "4", "--", "ls"]],
    [["--doors", "5", "--doors", "5", "4", "--", "ls"]],
    [["--doors", "5", "--isolate", "4", "--", "ls"]],
  ])("refuses the arguments %j", (words) => {
    const run = enter(program, words);
    expect(run.status).toBe(125);
    expect(run.complaints).toMatch(/^podbot-enter: usage: .*\n$/);
  });

  it("refuses a stderr that is not open", () => {
    const run = enter(program, ["9", "--", "echo", "ran"]);
    expect(run).toMatchObject({ status: 125, stdout: "", complaints: "podbot-enter: STDERR_FD is not open\n" });
  });

  it("begins when it is told that the box has its doors", async () => {
    const words = ["--isolate", "--doors", "5", "4", "--", "ls", "/proc/self/fd"];
    const child = spawn(program, words, {
      env: environment,
      stdio: ["ignore", "pipe", "pipe", "ignore", "pipe", "pipe"],
    });
    let said = "";
    child.stderr?.on("data", (bytes) => {
      said += String(bytes);
    });
    const doors = (child.stdio as readonly unknown[])[5] as NodeJS.WritableStream;
    await sleep(50);
    expect(said).toBe("");
    doors.write("\0");
    expect(await text(child.stdout as NodeJS.ReadableStream)).toBe("0\n1\n2\n3\n");
    expect(said).toBe(ready);
  });

  it.each([
    ["closed", "exec 5</dev/null"],
    ["not there", "exec 5<&-"],
    ["one that cannot be read", "exec 5>/dev/null"],
  ])("begins nothing in a box whose doors are %s", (_, redirect) => {
    const words = ["-c", `${redirect}; exec "$0" --doors 5 2 -- echo ran`, program];
    const run = spawnSync("sh", words, { encoding: "utf8", env: environment });
    expect([run.status, run.stdout, run.stderr]).toEqual([125, "", "podbot-enter: the box has no doors\n"]);
  });

  it("keeps the command from abstract sockets outside, if asked to", async ({ skip }) => {
    skip(!process.env["CI"] && !hasScopes(program), "this kernel's Landlock has no scopes");
    const server = createServer((socket) => socket.end());
    server.listen(`\0podbot-${process.pid}-${build}`);
    await once(server, "listening");
    // The client leaves by itself: the server cannot answer while this process waits for it.
    const say = "(result) => { console.log(result); process.exit() }";
    const connect = `require("net").connect("\\0podbot-${process.pid}-${build}")`;
    const listen = `.on("connect", () => say("connected")).on("error", (e) => say(e.code))`;
    const client = ["4", "--", process.execPath, "-e", `const say = ${say}; ${connect}${listen}`];
    expect(enter(program, client).stdout).toBe("connected\n");
    expect(enter(program, ["--isolate-abstract", ...client]).stdout).toBe("EPERM\n");
    server.close();
  });

  it("keeps the command from signalling outside, if asked to", ({ skip }) => {
    skip(!process.env["CI"] && !hasScopes(program), "this kernel's Landlock has no scopes");
    const signal = script(`kill -0 ${process.pid} && echo reached; kill -0 $$ && echo itself`);
    expect(enter(program, signal).stdout).toBe("reached\nitself\n");
    for (const how of ["--isolate", "--isolate-abstract"]) {
      expect(enter(program, [how, ...signal]).stdout).toBe("itself\n");
    }
  });

  it("keeps a signal to the command's own group inside, if asked to", ({ skip }) => {
    skip(!process.env["CI"] && !hasScopes(program), "this kernel's Landlock has no scopes");
    const outside = (...words: string[]) => {
      // A group of its own, with somebody in it who would tell of a signal.
      const around = "trap 'echo reached' USR1; \"$@\" 4>&2; exit 0";
      const signal = ["4", "--", "sh", "-c", "trap '' USR1; kill -USR1 0"];
      const options = { encoding: "utf8", env: environment } as const;
      return spawnSync("setsid", ["-w", "sh", "-c", around, "sh", program, ...words, ...signal], options).stdout;
    };
    expect(outside()).toBe("reached\n");
    for (const how of ["--isolate", "--isolate-abstract"]) expect(outside(how)).toBe("");
  });

  it("starts nothing where it cannot set abstract sockets apart", () => {
    const filter = join(scratch, "filter");
    writeFileSync(filter, answerEnosys("landlock_create_ruleset"));
    const inside = 'exec 9<"$1"; shift; exec bwrap --seccomp 9 --dev-bind / / -- "$@" 4 -- echo ran 4>&2';
    const run = (...words: string[]) => {
      const options = { encoding: "utf8", env: environment } as const;
      return spawnSync("sh", ["-c", inside, "sh", filter, program, ...words], options);
    };
    expect(run().stdout).toBe("ran\n");
    expect(run("--isolate").stdout).toBe("ran\n"); // as well as the kernel can
    const isolated = run("--isolate-abstract");
    expect([isolated.status, isolated.stdout, isolated.stderr]).toEqual([125, "", "podbot-enter: landlock: ENOSYS\n"]);
  });
});

function hasScopes(program: string): boolean {
  return enter(program, ["--isolate-abstract", "4", "--", "true"]).status === 0;
}
