// @module-tag security
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { deniedSyscalls, type SeccompArch, seccompProgram } from "../../src/wall/seccomp.ts";
import { patience } from "../faults/thorough.ts";
import { syscallNumbers } from "./syscall-numbers.ts";

const arch = process.arch as SeccompArch;
const directory = await mkdtemp(join(tmpdir(), "podbot-seccomp-"));
afterAll(() => rm(directory, { recursive: true }));

const filters = {
  plain: join(directory, "plain.bpf"),
  nesting: join(directory, "nesting.bpf"),
  containers: join(directory, "containers.bpf"),
};
await writeFile(filters.plain, seccompProgram({ arch, nesting: false }));
await writeFile(filters.nesting, seccompProgram({ arch, nesting: true }));
await writeFile(filters.containers, seccompProgram({ arch, nesting: true, containers: true }));

/** Every capability over the box's own namespaces, so that no other part of the wall answers before the filter. */
const mighty = ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"];
/** As an agent would run. */
const humble = ["--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"];

const work = join(directory, "work");
await mkdir(work);

/** Runs a command in a box of bare bubblewrap, with a filter or without. Only `work` can be written to. */
function box(options: readonly string[], filter: string | undefined, command: readonly string[]) {
  const args = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", work, work, "--chdir", work];
  args.push("--setenv", "HOME", work, "--setenv", "TMPDIR", work);
  args.push("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", ...options);
  const descriptor = filter === undefined ? undefined : openSync(filter, "r");
  try {
    return spawnSync("bwrap", [...args, ...(filter === undefined ? [] : ["--seccomp", "3"]), ...command], {
      // Nothing of the caller's: what it preloads may need the IPC of the machine.
      env: { PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "pipe", descriptor],
      encoding: "utf8",
      timeout: patience * 100_000,
    });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

const probe = fileURLToPath(new URL("seccomp-probe.c", import.meta.url));
const compiled = spawnSync("gcc", ["-Wall", "-O1", "-o", join(directory, "probe"), probe], { encoding: "utf8" });
if (compiled.status !== 0) throw new Error(compiled.stderr);

/** What the probe reports, by the name of the call. */
function report(filter: string | undefined, calls: readonly string[] = []): ReadonlyMap<string, string> {
  const { stdout, stderr, status } = box(mighty, filter, [join(directory, "probe"), ...calls]);
  if (status !== 0) throw new Error(`probe: ${status} ${stderr}`);
  const lines = stdout.trim().split("\n");
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]));
}

describe("under the filter, the kernel", () => {
  const without = report(undefined);
  const plain = report(filters.plain);
  const nesting = report(filters.nesting);

  /** Some kernels are built without these, so that they give the same answer unfiltered. */
  const optional = ["socket AF_ALG", "socket AF_VSOCK", "getpid through i386", "getpid through x32"];

  test.each([
    ["keyctl", "ENOSYS"],
    ["add_key", "ENOSYS"],
    ["request_key", "ENOSYS"],
    ["bpf", "EPERM"],
    ["userfaultfd", "EPERM"],
    ["perf_event_open", "EPERM"],
    ["fanotify_init", "EPERM"],
    ["kcmp", "EPERM"],
    ["move_pages", "EPERM"],
    ["io_uring_setup", "ENOSYS"],
    ["io_uring_enter", "ENOSYS"],
    ["ioctl TIOCSTI", "EPERM"],
    ["ioctl TIOCSTI, upper half set", "EPERM"],
    ["ioctl TIOCLINUX", "EPERM"],
    ["ioctl TIOCEXCL", "EPERM"],
    ["ioctl TIOCSETD", "EPERM"],
    ["ioctl KDSKBMODE", "EPERM"],
    ["ioctl VT_ACTIVATE", "EPERM"],
    ["setpriority PRIO_PGRP", "EPERM"],
    ["setpriority PRIO_USER, upper half set", "EPERM"],
    ["ioprio_set IOPRIO_WHO_PGRP", "EPERM"],
    ["socket AF_VSOCK", "EAFNOSUPPORT"],
    ["socket AF_ALG", "EAFNOSUPPORT"],
    ["socket AF_PACKET", "EAFNOSUPPORT"],
    ["socket AF_PACKET, upper half set", "EAFNOSUPPORT"],
    ["socket AF_INET SOCK_PACKET", "EAFNOSUPPORT"],
    ["socketpair AF_PACKET", "EAFNOSUPPORT"],
    ["netlink AUDIT", "EPROTONOSUPPORT"],
    ["netlink KOBJECT_UEVENT", "EPROTONOSUPPORT"],
    ...(arch === "x64" ? ["getpid through i386", "getpid through x32"].map((name) => [name, "ENOSYS"]) : []),
  ] as [string, string][])("answers %s with %s, also where nesting is on, and otherwise without it", (name, errno) => {
    const same = optional.includes(name) && [errno, undefined].includes(without.get(name));
    if (!same) expect(without.get(name)).not.toBe(errno);
    expect([plain.get(name), nesting.get(name)]).toEqual(
      same ? [without.get(name), without.get(name)] : [errno, errno],
    );
  });

  test.each([
    ["mount", "EPERM"],
    ["umount2", "EPERM"],
    ["pivot_root", "EPERM"],
    ["chroot", "EPERM"],
    ["setns", "EPERM"],
    ["fsopen", "EPERM"],
    ["open_tree", "EPERM"],
    ["unshare NEWUSER", "EPERM"],
    ["unshare NEWNS", "EPERM"],
    ["unshare NEWTIME", "EPERM"],
    ["clone NEWUSER", "EPERM"],
    ["clone NEWNET", "EPERM"],
    ["clone3", "ENOSYS"],
  ])("answers %s with %s, unless nesting is on", (name, errno) => {
    expect(plain.get(name)).toBe(errno);
    expect(without.get(name)).not.toBe(errno);
    expect(nesting.get(name)).toBe(without.get(name));
  });

  test.each([
    "clone",
    "unshare FS FILES",
    "ioctl TIOCGWINSZ",
    "setpriority PRIO_PROCESS",
    "ioprio_set IOPRIO_WHO_PROCESS",
    "netlink ROUTE",
    "socket AF_UNIX",
    "socket AF_INET",
    "socket AF_INET, upper half set",
    "socket AF_INET6",
    "socketpair AF_UNIX",
  ])("still does %s", (name) => {
    expect([without.get(name), plain.get(name), nesting.get(name)]).toEqual(["ok", "ok", "ok"]);
  });

  test("refuses openat2 also where nesting is on: it can make a file with any mode", () => {
    const call = [`openat2=${syscallNumbers("asm/unistd.h").get("openat2")}`];
    const answers = [undefined, filters.plain, filters.nesting, filters.containers].map((filter) =>
      report(filter, call).get("openat2"),
    );
    expect(answers[0]).not.toBe("ENOSYS");
    // Where containers are built inside, there is root with the right to mount: that is no wall any more.
    expect(answers.slice(1)).toEqual(["ENOSYS", "ENOSYS", answers[0]]);
  });

  test("refuses every call of the list", () => {
    const numbers = syscallNumbers("asm/unistd.h");
    const known = deniedSyscalls.filter(({ name, when }) => when === undefined && numbers.has(name));
    const outcome = report(
      filters.plain,
      known.map(({ name }) => `${name}=${numbers.get(name)}`),
    );
    expect(Object.fromEntries(outcome)).toEqual(Object.fromEntries(known.map(({ name, errno }) => [name, errno])));
    expect(known.length).toBeGreaterThan(40);
  });
});

describe("sandboxes inside the box", () => {
  const inner = ["bwrap", "--unshare-user", "--unshare-uts", "--ro-bind", "/", "/", "echo", "inside"];

  test("work where nesting is on", () => {
    expect(box(humble, filters.nesting, inner)).toMatchObject({ status: 0, stdout: "inside\n" });
  });

  test("do not where it is off", () => {
    expect(box(humble, filters.plain, inner)).toMatchObject({ status: 1, stdout: "" });
  });
});

describe("ordinary programs work under the filter:", () => {
  const works = (command: readonly string[]) => {
    const { status, stdout, stderr } = box(humble, filters.plain, command);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "done\n", stderr: "" });
  };

  test("bash, with jobs, pipes and process substitution", () => {
    works([
      "bash",
      "-c",
      `set -euo pipefail
       for i in 1 2 3; do sleep 0.01 & done; wait
       diff <(echo same) <(echo same)
       [[ $(seq 100 | sort -rn | sed -n 1p) == 100 ]]
       timeout 5 true
       echo done`,
    ]);
  });

  test("git, from init to clone and gc", () => {
    works([
      "bash",
      "-c",
      `set -euo pipefail
       git init -q -b main one && cd one
       git config user.name A && git config user.email a@example.org
       echo text > file && git add file && git commit -q -m first
       git checkout -q -b other && git commit -q --allow-empty -m second
       git gc -q && cd .. && git clone -q one two
       [[ $(git -C two log --oneline | wc -l) == 2 ]]
       echo done`,
    ]);
  });

  test("node, with workers, children, files, HTTP and WebAssembly", () => {
    works([
      process.execPath,
      "--input-type=module",
      "-e",
      `import { execFileSync } from "node:child_process";
       import { once } from "node:events";
       import { readFile, writeFile } from "node:fs/promises";
       import { createServer } from "node:http";
       import { Worker } from "node:worker_threads";
       const code = "import('node:worker_threads').then(({ parentPort }) => parentPort.postMessage(42))";
       const [answer] = await once(new Worker(code, { eval: true }), "message");
       if (answer !== 42) throw new Error("worker");
       if (execFileSync("echo", ["child"], { encoding: "utf8" }) !== "child\\n") throw new Error("child");
       await writeFile("file", "text");
       if (await readFile("file", "utf8") !== "text") throw new Error("file");
       const server = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
       await once(server, "listening");
       const response = await fetch("http://127.0.0.1:" + server.address().port);
       if (await response.text() !== "hello") throw new Error("http");
       server.close();
       server.closeAllConnections();
       await WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
       console.log("done");`,
    ]);
  });

  test("python, with threads, processes, asyncio and sockets", async () => {
    await writeFile(
      join(directory, "ordinary.py"),
      `import asyncio, multiprocessing, socket, subprocess, threading

def double(number):
    return number * 2

async def talk():
    async def echo(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"line\\n")
    assert await reader.readline() == b"line\\n"
    child = await asyncio.create_subprocess_exec("true")
    assert await child.wait() == 0

if __name__ == "__main__":
    found = []
    threads = [threading.Thread(target=found.append, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(found) == list(range(8))
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(double, range(5)) == [0, 2, 4, 6, 8]
    asyncio.run(talk())
    left, right = socket.socketpair()
    left.send(b"x")
    assert right.recv(1) == b"x"
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    assert socket.if_nameindex()[0][1] == "lo"
    subprocess.run(["true"], check=True)
    print("done")
`,
    );
    works(["python3", join(directory, "ordinary.py")]);
  });

  test("gcc, and a debugger's ptrace in what it built", async () => {
    await writeFile(
      join(directory, "trace.c"),
      `#include <signal.h>
       #include <stdio.h>
       #include <sys/ptrace.h>
       #include <sys/wait.h>
       #include <unistd.h>
       int main(void) {
         int status;
         pid_t child = fork();
         if (child == 0) {
           if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(1);
           raise(SIGSTOP);
           execlp("true", "true", (char *)0);
         }
         waitpid(child, &status, 0);
         if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) return 2;
         if (ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC) || ptrace(PTRACE_CONT, child, 0, 0)) return 3;
         waitpid(child, &status, 0);
         if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8)) return 4;
         if (ptrace(PTRACE_CONT, child, 0, 0)) return 5;
         waitpid(child, &status, 0);
         if (!WIFEXITED(status) || WEXITSTATUS(status)) return 6;
         puts("done");
       }`,
    );
    works(["bash", "-c", "gcc -Wall -o trace ../trace.c && exec ./trace"]);
  });
});
