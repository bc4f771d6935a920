import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSandbox } from "../../src/sandbox/open.ts";
import type { Command, Process } from "../../src/sandbox/sandbox.ts";
import { until } from "../eventually.ts";
import { hear, type RealSandbox, startWarden, textOf } from "./harness.ts";
import { outcome } from "./peer.ts";

let real: RealSandbox;
beforeAll(async () => {
  real = await startWarden();
});
afterAll(() => real[Symbol.asyncDispose]());

const bubblewrap = "bwrap --unshare-user --unshare-pid --as-pid-1 --die-with-parent --dev-bind / / --proc /proc".split(
  " ",
);

const shell = (script: string, command: Omit<Command, "argv"> = {}) =>
  real.sandbox.exec({ argv: ["sh", "-c", script], ...command });

async function linesOf(script: string, command: Omit<Command, "argv"> = {}): Promise<readonly string[]> {
  const { stdout } = await shell(script, command);
  return (await textOf(stdout)).trimEnd().split("\n");
}

function keepWriting({ stdin }: Process): void {
  stdin.write(Buffer.alloc(65_536), (error) => error ?? keepWriting({ stdin } as Process));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function isGone(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(10);
}

describe("a command", () => {
  test("has its words, variables and directory, and separate output and errors", async () => {
    const process = await shell('echo "$0 $1"; pwd; echo "$A,$B,${HOME-none}"; echo err >&2', {
      env: { A: "a=b", B: "", HOME: null },
      cwd: real.directory,
    });
    const [stdout, stderr, exit] = await Promise.all([textOf(process.stdout), textOf(process.stderr), process.exited]);
    expect(stdout).toBe(`sh \n${real.directory}\na=b,,none\n`);
    expect(stderr).toBe("err\n");
    expect(exit).toEqual({ code: 0, killed: false });
  });

  test("gets words of any bytes but NUL, and as long as the kernel takes them", async () => {
    const odd = ["", " ", "a\nb", "'\"$`\\", "é", "x".repeat(131_071)];
    const { stdout } = await real.sandbox.exec({ argv: ["printf", "%s\\0", ...odd] });
    expect((await textOf(stdout)).split("\0").slice(0, -1)).toEqual(odd);
  });

  test("is watched, whether or not anybody reads what it says", async () => {
    const seen: string[] = [];
    const process = await shell("echo out; read _; echo err >&2; read _; echo more", {
      watch: (stream, bytes) => seen.push(`${stream} ${bytes.toString().trim()}`),
    });
    process.stderr.resume();
    for (const count of [1, 2]) {
      await until("it is seen", () => seen.length === count);
      process.stdin.write("\n");
    }
    await process.exited;
    expect(seen).toEqual(["stdout out", "stderr err", "stdout more"]);
    expect(await textOf(process.stdout)).toBe("out\nmore\n");
  });

  test("reads its input to the end", async () => {
    const process = await real.sandbox.exec({ argv: ["cat"] });
    process.stdin.write("one ");
    process.stdin.end("two");
    expect(await textOf(process.stdout)).toBe("one two");
  });

  test("has its input ended by destroying it, too", async () => {
    const process = await real.sandbox.exec({ argv: ["cat"] });
    process.stdin.destroy();
    expect(await process.exited).toEqual({ code: 0, killed: false });
  });

  test("reports its code as a shell does", async () => {
    expect(await (await shell("exit 7")).exited).toEqual({ code: 7, killed: false });
    expect(await (await shell("kill -9 $$")).exited).toEqual({ code: 137, killed: false });
    expect(await (await shell("exit 255")).exited).toEqual({ code: 255, killed: false });
  });

  test("is signalled with its whole group, and not after its end", async () => {
    const process = await shell("trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.01; done");
    await hear(process.stdout).until("ready\n");
    process.kill("SIGINT");
    expect(await process.exited).toEqual({ code: 3, killed: false });
    process.kill("SIGKILL");
    expect(() => process.kill("SIGNOTHING" as NodeJS.Signals)).toThrow("no signal");
  });

  test("can be stopped and go on", async () => {
    const process = await shell("echo ready; read line; echo $line");
    const output = hear(process.stdout);
    await output.until("ready\n");
    process.kill("SIGSTOP");
    process.stdin.end("on\n");
    process.kill("SIGCONT");
    await output.until("on\n");
    expect((await process.exited).code).toBe(0);
  });

  test("can run beside fifty others, with one signal for all", async () => {
    const { signal } = new AbortController();
    const all = Array.from({ length: 50 }, async (_, index) => {
      const process = await shell(`cat; echo ${index} >&2; exit ${index}`, { signal });
      process.stdin.end(`in ${index}`);
      const [stdout, stderr, { code }] = await Promise.all([
        textOf(process.stdout),
        textOf(process.stderr),
        process.exited,
      ]);
      return `${stdout} ${stderr.trim()} ${code}`;
    });
    expect(await Promise.all(all)).toEqual(Array.from({ length: 50 }, (_, index) => `in ${index} ${index} ${index}`));
  });

  test("that leaves a process in the background still ends", async () => {
    const process = await shell("sleep 60 & echo $!");
    const [pid] = (await textOf(process.stdout)).split("\n");
    expect(await process.exited).toEqual({ code: 0, killed: false });
    globalThis.process.kill(Number(pid), "SIGKILL");
  });
});

describe("input that nobody reads", () => {
  test("fails with EPIPE for whoever listens", async () => {
    const process = await shell("exec <&-; echo closed; sleep 60");
    await hear(process.stdout).until("closed\n");
    const failure = once(process.stdin, "error");
    keepWriting(process);
    const [error] = (await failure) as [NodeJS.ErrnoException];
    expect(error.code).toBe("EPIPE");
    process.kill("SIGKILL");
    expect((await process.exited).code).toBe(137);
  });

  test("is no error where nothing is written", async () => {
    const process = await shell("exec <&-; exit 4");
    let failures = 0;
    process.stdin.on("error", () => failures++);
    expect((await process.exited).code).toBe(4);
    process.stdin.end();
    expect(failures).toBe(0);
  });

  test("never hides how the process ended", async () => {
    const ends = Array.from({ length: 100 }, async () => {
      const process = await shell("exit 5");
      keepWriting(process);
      return (await process.exited).code;
    });
    expect(new Set(await Promise.all(ends))).toEqual(new Set([5]));
  });
});

describe("what cannot be executed", () => {
  const refused = async (command: Command) => (await outcome(real.sandbox.exec(command))).error;

  test("a command that is not there", async () => {
    for (const name of ["no-such-command", "/no/such/command", "/dev/null/command"]) {
      expect(await refused({ argv: [name] })).toMatchObject({
        code: "COMMAND_NOT_FOUND",
        exitStatus: 127,
        message: expect.stringContaining(name),
        hint: expect.any(String),
      });
    }
  });

  test("a file that is not a program", async () => {
    const plain = join(real.directory, "plain");
    writeFileSync(plain, "no program", { mode: 0o600 });
    for (const name of [plain, real.directory]) {
      expect(await refused({ argv: [name] })).toMatchObject({ code: "COMMAND_NOT_EXECUTABLE", exitStatus: 126 });
    }
  });

  test("a script whose interpreter is missing", async () => {
    const script = join(real.directory, "script");
    writeFileSync(script, "#!/no/such/interpreter\n", { mode: 0o700 });
    expect(await refused({ argv: [script] })).toMatchObject({
      code: "COMMAND_NOT_FOUND",
      hint: expect.stringContaining("interpreter"),
    });
  });

  test("a directory that is not there, or is none", async () => {
    for (const cwd of ["/no/such/directory", "/dev/null"]) {
      expect(await refused({ argv: ["true"], cwd })).toMatchObject({
        code: "EXEC_FAILED",
        message: expect.stringContaining(cwd),
        details: { stage: "directory" },
      });
    }
  });

  test("a user that may not be taken", async () => {
    // Without privileges, whoever runs this: root of a user namespace in which nobody else is mapped.
    const box = await startWarden(bubblewrap);
    try {
      const exec = box.sandbox.exec({ argv: ["true"], user: { uid: 12_345, gid: 12_345 } });
      expect((await outcome(exec)).error).toMatchObject({
        code: "EXEC_FAILED",
        message: expect.stringContaining("12345:12345"),
        details: { stage: "user" },
      });
    } finally {
      await box[Symbol.asyncDispose]();
    }
  });

  test("words and variables that are too long together", async () => {
    const words = Array<string>(40).fill("x".repeat(131_071));
    expect(await refused({ argv: ["true", ...words] })).toMatchObject({
      code: "COMMAND_NOT_EXECUTABLE",
      details: { errno: "E2BIG" },
    });
  });

  test.each<[string, Command, string]>([
    ["an empty command", { argv: [""] }, "EXEC_FAILED"],
    ["no command", { argv: [] as unknown as [string] }, "EXEC_FAILED"],
    ["NUL in a word", { argv: ["echo", "a\0b"] }, "EXEC_FAILED"],
    ["NUL in a variable", { argv: ["true"], env: { A: "\0" } }, "EXEC_FAILED"],
    ["NUL in a name", { argv: ["true"], env: { "A\0": null } }, "EXEC_FAILED"],
    ["a name with =", { argv: ["true"], env: { "A=B": "c" } }, "EXEC_FAILED"],
    ["an empty name", { argv: ["true"], env: { "": "c" } }, "EXEC_FAILED"],
    ["NUL in the directory", { argv: ["true"], cwd: "/\0" }, "EXEC_FAILED"],
    ["an empty directory", { argv: ["true"], cwd: "" }, "EXEC_FAILED"],
    ["a directory that is too long", { argv: ["true"], cwd: "/x".repeat(3000) }, "EXEC_FAILED"],
    ["half a user", { argv: ["true"], user: { uid: 0.5, gid: 0 } }, "EXEC_FAILED"],
    ["no user", { argv: ["true"], user: { uid: 0, gid: 0xffff_ffff } }, "EXEC_FAILED"],
    ["a long word", { argv: ["echo", "é".repeat(65_536)] }, "COMMAND_NOT_EXECUTABLE"],
    ["a long variable", { argv: ["true"], env: { A: "x".repeat(131_070) } }, "COMMAND_NOT_EXECUTABLE"],
    ["too many words", { argv: ["true", ...Array<string>(65_536).fill("")] }, "COMMAND_NOT_EXECUTABLE"],
    ["too much", { argv: ["true", ...Array<string>(70).fill("x".repeat(131_000))] }, "COMMAND_NOT_EXECUTABLE"],
  ])("%s is not even sent", async (_name, command, code) => {
    const { id } = real.connector;
    const connect = () => Promise.reject(new Error("connected"));
    expect(await outcome(openSandbox({ id, connect }).exec(command))).toMatchObject({ error: { code } });
  });
});

describe("an end that is asked for", () => {
  const stubborn = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 60 & wait' & echo $$; wait; sleep 60";

  test("comes when the time is over, and the code is 124", async () => {
    const process = await shell("sleep 60", { timeoutMs: 20 });
    expect(await process.exited).toEqual({ code: 124, killed: true });
  });

  test("is not in the way of what is done in time", async () => {
    const process = await shell("exit 3", { timeoutMs: Number.POSITIVE_INFINITY });
    expect(await process.exited).toEqual({ code: 3, killed: false });
  });

  test("lets the process clean up, and tells what became of it", async () => {
    const controller = new AbortController();
    const process = await shell("trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.01; done", {
      signal: controller.signal,
    });
    const output = hear(process.stdout);
    await output.until("ready\n");
    controller.abort();
    expect(await process.exited).toEqual({ code: 9, killed: true });
    await output.until("bye\n");
  });

  test("ends a process that is stopped", async () => {
    const controller = new AbortController();
    const process = await shell("kill -STOP $$", { signal: controller.signal });
    controller.abort();
    expect(await process.exited).toEqual({ code: 143, killed: true });
  });

  test.each(["time", "signal"])("kills the whole group that does not listen: %s", async (by) => {
    const controller = new AbortController();
    const process = await shell(stubborn, {
      graceMs: 20,
      ...(by === "time" ? { timeoutMs: 1000 } : { signal: controller.signal }),
    });
    const output = hear(process.stdout);
    while (output.said().split("\n").length < 3) await once(process.stdout, "data");
    controller.abort();
    expect(await process.exited).toEqual({ code: by === "time" ? 124 : 137, killed: true });
    const pids = output.said().trim().split("\n").map(Number);
    expect(pids).toHaveLength(2);
    await Promise.all(pids.map(isGone));
  });

  test("leaves nothing when it comes before the start", async () => {
    const mark = join(real.directory, "mark");
    const attempts = Array.from({ length: 20 }, async (_, index) => {
      const controller = new AbortController();
      const starting = outcome(
        shell(`trap '' HUP TERM; echo $$ >>${mark}; exec sleep 60`, { signal: controller.signal, graceMs: 0 }),
      );
      setTimeout(() => controller.abort(new Error("enough")), index / 4);
      const { value, error } = await starting;
      if (value === undefined) expect(error).toMatchObject({ message: "enough" });
      else expect(await (value as Process).exited).toMatchObject({ killed: true });
    });
    await Promise.all(attempts);
    const pids = (await linesOf(`cat ${mark} 2>/dev/null; true`)).filter((line) => line !== "");
    await Promise.all(pids.map((pid) => isGone(Number(pid))));
  });
});

describe("on a terminal", () => {
  test("a command sees its size, and a new one", async () => {
    const process = await real.sandbox.exec(
      { argv: ["sh", "-c", "stty size; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"] },
      { rows: 30, columns: 101 },
    );
    const output = hear(process.stdout);
    await output.until("ready\r\n");
    process.resize({ rows: 40, columns: 90 });
    await output.until("40 90\r\n");
    expect(await process.exited).toEqual({ code: 0, killed: false });
    expect(output.said()).toBe("30 101\r\nready\r\n40 90\r\n");
  });

  test("Ctrl-C interrupts it, and Ctrl-D ends its input", async () => {
    const sleeper = await real.sandbox.exec(
      { argv: ["sh", "-c", "echo ready; exec sleep 60"] },
      { rows: 1, columns: 1 },
    );
    await hear(sleeper.stdout).until("ready");
    sleeper.stdin.write("\x03");
    expect((await sleeper.exited).code).toBe(130);
    const reader = await real.sandbox.exec({ argv: ["cat"] }, { rows: 1, columns: 1 });
    reader.stdin.write("\x04");
    reader.stdin.end();
    expect((await reader.exited).code).toBe(0);
  });

  test("Ctrl-Z stops it, which is told, and it goes on", async () => {
    const process = await real.sandbox.exec(
      { argv: ["sh", "-c", "echo ready; read line; echo got $line"] },
      { rows: 24, columns: 80 },
    );
    const output = hear(process.stdout);
    await output.until("ready");
    const stopped = new Promise<void>((resolve) => process.onStop(resolve));
    process.stdin.write("\x1a");
    await stopped;
    process.kill("SIGCONT");
    process.stdin.write("on\r");
    await output.until("got on");
    expect(await process.exited).toEqual({ code: 0, killed: false });
  });
});

test("quitting where the warden is not the first process asks nobody, and does not fail", async () => {
  const process = await shell("sleep 60");
  await real.sandbox.quit(10_000);
  process.kill("SIGKILL");
  expect((await process.exited).code).toBe(137);
});

test("quitting a box ends all that is in it, and its end is a lost sandbox", async () => {
  const box = await startWarden(bubblewrap);
  try {
    const process = await box.sandbox.exec({
      argv: ["sh", "-c", "trap 'exit 6' TERM; echo; while :; do sleep 0.01; done"],
    });
    await once(process.stdout, "data");
    await box.sandbox.quit(10_000);
    expect(await process.exited).toEqual({ code: 6, killed: false });
    const last = await box.sandbox.exec({ argv: ["sleep", "60"] });
    box.warden.kill("SIGKILL");
    expect(await outcome(last.exited)).toMatchObject({ error: { code: "BOX_LOST" } });
    const gone = AbortSignal.timeout(50);
    await box.sandbox.quit(50);
    expect((await outcome(box.sandbox.exec({ argv: ["true"], signal: gone }))).error).toBeDefined();
  } finally {
    await box[Symbol.asyncDispose]();
  }
});
