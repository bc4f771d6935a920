import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Plan } from "../../src/plan/plan.ts";
import { openSandbox } from "../../src/sandbox/open.ts";
import type { Command, Process, Sandbox } from "../../src/sandbox/sandbox.ts";
import type { Box, SessionId, Wall } from "../../src/wall/wall.ts";
import { eventually } from "../eventually.ts";

export interface PlanOptions {
  /** Paths that may only be read. */
  readonly ro?: readonly string[];
  /** Paths that are hidden. */
  readonly exclude?: readonly string[];
}

/** A wall on this machine, with a place to work. Inside there must be sh, tar, perl and python3. */
export interface Site extends AsyncDisposable {
  readonly wall: Wall;
  /** The same wall as another process has it: it knows nothing of what the first has started. */
  readonly elsewhere: Wall;
  /** A directory of the host that is the working directory inside, and writable there. */
  readonly workspace: string;
  /** Without network. */
  plan(options?: PlanOptions): Promise<Plan>;
  /** One that this wall must fail to build. */
  impossiblePlan(): Promise<Plan>;
  /** A new runtime directory for a session. */
  newDirectory(): string;
  /** Words that are in the command line of every process of a box on the host. */
  processWord(id: SessionId): string;
  /** Whether processes inside are processes of the host's kernel: those of gVisor are not. */
  readonly sharesKernel: boolean;
}

/** What a wall cannot do, by the title of the test that would show it, and why. */
export interface Lack {
  readonly title: string;
  readonly why: string;
}

interface Started extends AsyncDisposable {
  readonly site: Site;
  readonly box: Box;
  readonly sandbox: Sandbox;
  /** The last stream to the warden. */
  readonly stream: () => Duplex;
}

const variables = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", HOME: "/tmp", GREETING: "hello" };

/** Exchanges two names. */
const renameat2 = process.arch === "arm64" ? 276 : 316;

/** What every wall must do, and what nobody behind it may. */
export function conformance(name: string, open: () => Promise<Site>, lacks: readonly Lack[] = []): void {
  const missing = new Set(lacks.map(({ title }) => title));
  /** Registers a test, unless this wall is known to lack what it shows. */
  const check = (title: string, body: () => Promise<void>) => {
    if (!missing.delete(title)) test(title, body);
  };

  async function start(options: PlanOptions = {}, env: Readonly<Record<string, string>> = {}): Promise<Started> {
    const site = await open();
    const birth = { id: newId(), directory: site.newDirectory(), env: { ...variables, ...env } };
    const box = await site.wall.start(await site.plan(options), birth);
    let stream: Duplex | undefined;
    const connect = async (signal?: AbortSignal) => {
      stream = await box.connect(signal);
      return stream;
    };
    return {
      site,
      box,
      sandbox: openSandbox({ id: box.id, connect }),
      stream: () => stream as Duplex,
      async [Symbol.asyncDispose]() {
        await box[Symbol.asyncDispose]();
        await site[Symbol.asyncDispose]();
      },
    };
  }

  /** One box for all tests of a group that leave it as it was: a start of its own is most of what each would cost. */
  function share(): () => Started {
    let box: Started | undefined;
    beforeAll(async () => {
      box = await start();
    });
    afterAll(async () => {
      await box?.[Symbol.asyncDispose]();
    });
    return () => box as Started;
  }

  describe(`processes in a box of ${name}`, () => {
    const shared = share();

    check("have their own streams and their own status", async () => {
      const box = shared();
      for (const code of [0, 1, 7, 126, 127, 255]) {
        const outcome = await shell(box.sandbox, `echo out; echo err >&2; exit ${code}`);
        expect(outcome).toEqual({ code, stdout: "out\n", stderr: "err\n" });
      }
      expect((await shell(box.sandbox, "kill -KILL $$")).code).toBe(137);
      expect((await shell(box.sandbox, "kill -TERM $$")).code).toBe(143);
    });

    check("that cannot be started are refused in words", async () => {
      const box = shared();
      const exec = (command: Command) => box.sandbox.exec(command);
      await expect(exec({ argv: ["no-such-program"] })).rejects.toMatchObject({ code: "COMMAND_NOT_FOUND" });
      await expect(exec({ argv: ["/etc"] })).rejects.toMatchObject({ code: "COMMAND_NOT_EXECUTABLE" });
      await expect(exec({ argv: ["true"], cwd: "/nowhere" })).rejects.toMatchObject({ code: "EXEC_FAILED" });
      expect((await shell(box.sandbox, "echo fine")).stdout).toBe("fine\n");
    });

    check("have the directory and the environment of the plan, and what the command changes", async () => {
      const box = shared();
      const script = 'pwd; echo "$GREETING $ADDED"; env';
      const plain = await shell(box.sandbox, script);
      expect(plain.stdout).toContain(`${box.site.workspace}\nhello \n`);
      expect(plain.stdout).not.toContain("VITEST");
      expect(process.env["VITEST"]).toBeDefined();
      const changed = await shell(box.sandbox, script, { cwd: "/usr", env: { GREETING: null, ADDED: "new" } });
      expect(changed.stdout).toContain("/usr\n new\n");
      expect(changed.stdout).not.toContain("GREETING");
    });

    check("get every byte, and the end of their input while they still speak", async () => {
      const box = shared();
      const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), randomBytes(300_000)]);
      const running = await box.sandbox.exec({ argv: ["sh", "-c", "cat; echo end"] });
      running.stdin.end(bytes);
      expect((await buffer(running.stdout)).equals(Buffer.concat([bytes, Buffer.from("end\n")]))).toBe(true);
      expect(await running.exited).toEqual({ code: 0, killed: false });
    });

    check("that nobody reads wait, and hold up nobody else", async () => {
      const box = shared();
      const running = await box.sandbox.exec({ argv: ["sh", "-c", "head -c 50000000 /dev/zero; echo >written"] });
      for (let count = 0; count < 20; count++) expect((await shell(box.sandbox, "echo other")).stdout).toBe("other\n");
      expect(existsSync(join(box.site.workspace, "written"))).toBe(false);
      expect(running.stdout.readableLength).toBeLessThanOrEqual(262_144);
      let total = 0;
      for await (const part of running.stdout) total += (part as Buffer).length;
      expect(total).toBe(50_000_000);
      expect((await running.exited).code).toBe(0);
      expect(existsSync(join(box.site.workspace, "written"))).toBe(true);
    });

    check("that do not read make the writer wait, and then get all", async () => {
      const box = shared();
      const running = await box.sandbox.exec({
        argv: ["sh", "-c", "until test -e go; do sleep 0.05; done; sha256sum"],
      });
      const bytes = randomBytes(20_000_000);
      let isTaken = false;
      running.stdin.end(bytes, () => {
        isTaken = true;
      });
      expect((await shell(box.sandbox, "echo other")).stdout).toBe("other\n");
      expect(isTaken).toBe(false);
      writeFileSync(join(box.site.workspace, "go"), "");
      expect(await text(running.stdout)).toContain(createHash("sha256").update(bytes).digest("hex"));
    });

    check("get signals as a group", async () => {
      const box = shared();
      const word = newId();
      const script = `trap 'echo got; wait; exit 3' USR1; sh -c 'trap "echo child; exit" USR1; echo ready; while :; do sleep 0.1; done' ${word} & echo go; while :; do sleep 0.1; done`;
      const running = await box.sandbox.exec({ argv: ["sh", "-c", script] });
      const said = lines(running);
      await said.until("go");
      await said.until("ready");
      running.kill("SIGUSR1");
      expect(await running.exited).toEqual({ code: 3, killed: false });
      await said.until("got");
      await said.until("child");
      expect(await insideWith(box.sandbox, word)).toBe("");
    });

    check("have a terminal where one is asked for, with its size and the next", async () => {
      const box = shared();
      const script =
        "trap 'stty size; exit 4' WINCH; test -t 0 && test -t 1 && test -t 2 && stty size; while :; do sleep 0.1; done";
      const running = await box.sandbox.exec({ argv: ["sh", "-c", script] }, { rows: 30, columns: 100 });
      const said = lines(running);
      await said.until("30 100");
      running.resize({ rows: 50, columns: 132 });
      await said.until("50 132");
      expect((await running.exited).code).toBe(4);
    });

    check("on a terminal are interrupted, stopped and continued by its keys and signals", async () => {
      const box = shared();
      const running = await box.sandbox.exec({ argv: ["sh", "-c", "echo go; cat"] }, { rows: 24, columns: 80 });
      const said = lines(running);
      await said.until("go");
      // A shell that has not begun the next program yet cannot be stopped, and its child can.
      running.stdin.write("first\n");
      await said.until("first\r\nfirst");
      const stopped = new Promise<void>((resolve) => running.onStop(resolve));
      running.stdin.write("\u001a");
      await stopped;
      running.kill("SIGCONT");
      running.stdin.write("typed\n");
      await said.until("typed\r\ntyped");
      running.stdin.write("\u0003");
      expect((await running.exited).code).toBe(130);
    });

    check("end when their time is over or nobody wants them any more", async () => {
      const box = shared();
      const late = await box.sandbox.exec({ argv: ["sleep", "300"], timeoutMs: 200 });
      expect(await late.exited).toEqual({ code: 124, killed: true });
      const word = newId();
      const stubborn = await box.sandbox.exec({
        argv: ["sh", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done", word],
        timeoutMs: 200,
        graceMs: 1_000,
      });
      expect(await stubborn.exited).toEqual({ code: 124, killed: true });
      expect(await insideWith(box.sandbox, word)).toBe("");
      const unwanted = new AbortController();
      const running = await box.sandbox.exec({ argv: ["sleep", "300"], signal: unwanted.signal });
      unwanted.abort();
      expect(await running.exited).toEqual({ code: 143, killed: true });
      await expect(box.sandbox.exec({ argv: ["true"], signal: unwanted.signal })).rejects.toThrow(/abort/i);
    });

    check("end, all of their group, when the connection does", async () => {
      const box = shared();
      const word = newId();
      const script = "trap '' HUP; echo go; while :; do sleep 0.1; done";
      const running = await box.sandbox.exec({ argv: ["sh", "-c", `sh -c "$0" $1 & ${script}`, script, word] });
      await lines(running).until("go");
      expect(await insideWith(box.sandbox, word)).not.toBe("");
      running.exited.catch(() => {});
      const mine = await box.sandbox.exec({ argv: ["sh", "-c", `echo go; exec sleep 300`] });
      await lines(mine).until("go");
      box.stream().destroy();
      await expect(mine.exited).rejects.toMatchObject({ code: "BOX_LOST" });
      await eventually(async () => expect(await insideWith(box.sandbox, "sleep 300")).toBe(""));
      running.kill("SIGKILL");
      await running.exited;
      await eventually(async () => expect(await insideWith(box.sandbox, word)).toBe(""));
    });

    check("leave no zombies behind", async () => {
      const box = shared();
      await shell(box.sandbox, "for n in 1 2 3 4 5; do (sleep 0.0$n & sh -c 'sleep 0.1 &' &) ; done");
      await eventually(async () => {
        const { stdout } = await shell(box.sandbox, "cat /proc/[0-9]*/stat 2>/dev/null");
        expect(stdout).toMatch(/^1 \(/m);
        expect(stdout.split("\n").filter((line) => /\) Z /.test(line) || line.includes("(sleep)"))).toEqual([]);
      });
    });

    check("do not disturb each other, twenty at once", async () => {
      const box = shared();
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, async (_, number) => {
          const running = await box.sandbox.exec({ argv: ["sh", "-c", `cat; exit ${number}`] });
          running.stdin.end(`number ${number}\n`.repeat(20_000));
          const said = await text(running.stdout);
          return { said: said === `number ${number}\n`.repeat(20_000), ...(await running.exited) };
        }),
      );
      expect(outcomes).toEqual(outcomes.map((_, code) => ({ said: true, code, killed: false })));
    });

    check("are all asked to end by quit", async () => {
      const box = shared();
      const script = "trap 'echo asked; exit 5' TERM; echo go; while :; do sleep 0.1; done";
      const running = await box.sandbox.exec({ argv: ["sh", "-c", script] });
      const said = lines(running);
      await said.until("go");
      await shell(
        box.sandbox,
        "setsid sh -c 'trap \"echo >orphan-asked; exit\" TERM; echo >orphan; while :; do sleep 0.1; done' >/dev/null 2>&1 &",
      );
      await eventually(() => expect(existsSync(join(box.site.workspace, "orphan"))).toBe(true));
      await box.sandbox.quit(10_000);
      expect((await running.exited).code).toBe(5);
      await said.until("asked");
      expect(existsSync(join(box.site.workspace, "orphan-asked"))).toBe(true);
      expect((await shell(box.sandbox, "echo fine")).stdout).toBe("fine\n");
    });

    check("can be given files, with their modes and links", async () => {
      const box = shared();
      const source = box.site.newDirectory();
      writeFileSync(join(source, "script"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
      writeFileSync(join(source, "private"), "x", { mode: 0o600 });
      mkdirSync(join(source, "deep/er"), { recursive: true });
      writeFileSync(join(source, "deep/er/file"), randomBytes(100_000));
      spawnSync("ln", ["-s", "deep/er/file", join(source, "link")]);
      mkdirSync(join(box.site.workspace, "target"));
      const pack = () => spawn("tar", ["-c", "-C", source, "."], { stdio: ["ignore", "pipe", "inherit"] }).stdout;
      await box.sandbox.upload(pack(), join(box.site.workspace, "target"));
      expect((await shell(box.sandbox, "target/script; wc -c <target/link")).stdout).toBe("ran\n100000\n");
      const at = (path: string) => join(box.site.workspace, "target", path);
      expect(lstatSync(at("script")).mode & 0o777).toBe(0o755);
      expect(lstatSync(at("private")).mode & 0o777).toBe(0o600);
      expect(readlinkSync(at("link"))).toBe("deep/er/file");
      expect(readFileSync(at("deep/er/file")).equals(readFileSync(join(source, "deep/er/file")))).toBe(true);
      const nowhere = box.sandbox.upload(pack(), join(box.site.workspace, "missing"));
      await expect(nowhere).rejects.toMatchObject({ code: "UPLOAD_FAILED" });
    });
  });

  describe(`a box of ${name}`, () => {
    check("is listed while it is there, by whoever looks", async () => {
      await using box = await start();
      expect(await box.site.wall.list()).toContain(box.box.id);
      expect(await box.site.elsewhere.list()).toContain(box.box.id);
      if (box.site.sharesKernel) expect(processesWith(box.site.processWord(box.box.id))).not.toEqual([]);
      await box.box[Symbol.asyncDispose]();
      expect(await box.site.wall.list()).not.toContain(box.box.id);
      expect(processesWith(box.site.processWord(box.box.id))).toEqual([]);
    });

    check("can be destroyed by whoever knows its id, twice as well as once", async () => {
      await using box = await start();
      const running = await box.sandbox.exec({ argv: ["sh", "-c", "trap '' TERM HUP; echo go; sleep 300"] });
      await lines(running).until("go");
      const { elsewhere } = box.site;
      await elsewhere.destroy(box.box.id);
      await box.box.exited;
      expect(await elsewhere.list()).not.toContain(box.box.id);
      expect(processesWith(box.site.processWord(box.box.id))).toEqual([]);
      await expect(running.exited).rejects.toMatchObject({ code: "BOX_LOST" });
      await expect(box.sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "BOX_LOST" });
      await elsewhere.destroy(box.box.id);
      await elsewhere.destroy(newId());
      await box.box[Symbol.asyncDispose]();
    });

    check("ends wholly when it is disposed of, whatever runs in it", async () => {
      await using box = await start();
      const mark = newId();
      const stubborn = "trap '' TERM HUP; while :; do sleep 0.1; done";
      await shell(
        box.sandbox,
        `for n in 1 2 3; do setsid sh -c "${stubborn}" ${mark} >/dev/null 2>&1 & done; sleep 0.2`,
      );
      if (box.site.sharesKernel) await eventually(() => expect(processesWith(mark)).toHaveLength(3));
      else await eventually(async () => expect(await insideWith(box.sandbox, mark)).not.toBe(""));
      await box.box[Symbol.asyncDispose]();
      await box.box.exited;
      await box.box[Symbol.asyncDispose]();
      expect(processesWith(mark)).toEqual([]);
      expect(processesWith(box.site.processWord(box.box.id))).toEqual([]);
    });

    check("that is not wanted any more while it starts is not there", async () => {
      await using site = await open();
      const before = readdirSync(site.workspace);
      const plan = await site.plan();
      for (const delayMs of [null, 0, 5, 10, 20, 30, 45, 60, 90, 120]) {
        const unwanted = new AbortController();
        const birth = { id: newId(), directory: site.newDirectory(), env: variables, signal: unwanted.signal };
        if (delayMs === null) unwanted.abort();
        const starting = site.wall.start(plan, birth);
        if (delayMs !== null) setTimeout(() => unwanted.abort(), delayMs);
        const box = await starting.catch((error: unknown) => {
          expect(unwanted.signal.aborted).toBe(true);
          expect(String(error)).toMatch(/abort/i);
          return null;
        });
        await box?.[Symbol.asyncDispose]();
        await eventually(() => expect(processesWith(site.processWord(birth.id))).toEqual([]));
        expect(await site.wall.list()).not.toContain(birth.id);
        expect(readdirSync(site.workspace)).toEqual(before);
      }
    });

    check("that cannot be built is refused, and leaves nothing", async () => {
      await using site = await open();
      const before = readdirSync(site.workspace);
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      await expect(site.wall.start(await site.impossiblePlan(), birth)).rejects.toMatchObject({
        code: expect.stringMatching(/^[A-Z_]+$/),
      });
      expect(processesWith(site.processWord(birth.id))).toEqual([]);
      expect(await site.wall.list()).not.toContain(birth.id);
      expect(readdirSync(site.workspace)).toEqual(before);
      // The same with a plan that can be built.
      const second = { ...birth, id: newId(), directory: site.newDirectory() };
      await using box = await site.wall.start(await site.plan(), second);
      if (site.sharesKernel) expect(processesWith(site.processWord(box.id))).not.toEqual([]);
      expect(await site.wall.list()).toContain(box.id);
    });

    check("leaves the workspace as what ran in it has left it", async () => {
      await using site = await open();
      const before = readdirSync(site.workspace);
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      const box = await site.wall.start(await site.plan(), birth);
      await shell(openSandbox(box), "echo >kept");
      await box[Symbol.asyncDispose]();
      expect(readdirSync(site.workspace)).toEqual([...before, "kept"].sort());
    });
  });

  describe(`behind the wall of ${name}`, () => {
    const shared = share();

    check("the workspace is one and the same on both sides", async () => {
      const box = shared();
      const at = (path: string) => join(box.site.workspace, path);
      await shell(box.sandbox, "echo inside >made; mkdir -p deep; echo more >deep/file");
      expect(readFileSync(at("made"), "utf8")).toBe("inside\n");
      writeFileSync(at("made"), "outside\n");
      writeFileSync(at("other"), "other\n");
      expect((await shell(box.sandbox, "cat made other")).stdout).toBe("outside\nother\n");
    });

    check("what may be read only cannot be written, renamed or removed", async () => {
      await using site = await open();
      for (const name of ["locked", "free"]) {
        mkdirSync(join(site.workspace, name));
        writeFileSync(join(site.workspace, name, "file"), "as it was\n");
      }
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      await using box = await site.wall.start(await site.plan({ ro: [join(site.workspace, "locked")] }), birth);
      const sandbox = openSandbox(box);
      for (const attempt of [
        "echo x >D/file",
        "echo x >D/new",
        "rm D/file",
        "mv D D2",
        "chmod 777 D/file",
        "rm -r D",
      ]) {
        expect((await shell(sandbox, attempt.replaceAll("D", "locked"))).code, attempt).not.toBe(0);
      }
      expect((await shell(sandbox, "cat locked/file")).stdout).toBe("as it was\n");
      expect(readFileSync(join(site.workspace, "locked/file"), "utf8")).toBe("as it was\n");
      for (const attempt of ["echo x >D/file", "echo x >D/new", "chmod 777 D/file", "rm D/file", "rm -r D"]) {
        expect((await shell(sandbox, attempt.replaceAll("D", "free"))).code, attempt).toBe(0);
      }
      expect(existsSync(join(site.workspace, "free"))).toBe(false);
    });

    check("a directory that a command chooses to work in opens nothing", async () => {
      await using site = await open();
      for (const name of ["locked", "hidden"]) {
        mkdirSync(join(site.workspace, name));
        writeFileSync(join(site.workspace, name, "file"), "as it was\n");
      }
      const at = (name: string) => join(site.workspace, name);
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      await using box = await site.wall.start(await site.plan({ ro: [at("locked")], exclude: [at("hidden")] }), birth);
      const sandbox = openSandbox(box);
      const mounts = "cut -d' ' -f4-6 /proc/self/mountinfo";
      const usual = await shell(sandbox, mounts);
      expect(usual.stdout).not.toBe("");
      for (const cwd of ["/", at("locked"), at("hidden"), at("locked/../..")]) {
        expect((await shell(sandbox, mounts, { cwd })).stdout, cwd).toBe(usual.stdout);
      }
      for (const attempt of [
        "echo x >file",
        "sed -i s/as/AS/ file",
        "cd . && echo x | tee file",
        "ln -f file ../link",
      ]) {
        await shell(sandbox, attempt, { cwd: at("locked") });
      }
      await shell(sandbox, "ln -s locked way; cd way && echo x >file; cd ..; echo x >way/file");
      expect(readFileSync(at("locked/file"), "utf8")).toBe("as it was\n");
      expect((await shell(sandbox, "cat file; ls", { cwd: at("hidden") })).stdout).toBe("");
      expect((await shell(sandbox, "echo x >file && cat file", { cwd: site.workspace })).stdout).toBe("x\n");
    });

    check("no directory above what may be read only, nor the workspace, can be exchanged for a copy", async () => {
      await using site = await open();
      const at = (name: string) => join(site.workspace, name);
      for (const name of ["a/b/locked", "c/d/free"]) {
        mkdirSync(join(at(name), ".."), { recursive: true });
        writeFileSync(at(name), "as it was\n");
      }
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      await using box = await site.wall.start(await site.plan({ ro: [at("a/b/locked")] }), birth);
      const sandbox = openSandbox(box);
      // Both names change hands in one step where the kernel can do that, which gVisor's cannot.
      const exchange = (path: string) => `cp -a '${path}' '${path}-copy' 2>/dev/null; perl -e '
        my ($path, $copy) = ("${path}", "${path}-copy");
        my $done = syscall(${renameat2}, -100, $path, -100, $copy, 2) == 0;
        $done ||= rename($path, "$path-old") && rename($copy, $path);
        print $done ? "exchanged" : "refused"'`;
      for (const place of ["a/b", "a", "."]) {
        const { stdout } = await shell(sandbox, exchange(place === "." ? site.workspace : at(place)));
        expect(stdout, place).toBe("refused");
      }
      await shell(sandbox, "echo x >a/b/locked");
      expect(readFileSync(at("a/b/locked"), "utf8")).toBe("as it was\n");
      for (const place of ["c/d", "c"]) {
        expect((await shell(sandbox, exchange(at(place)))).stdout, place).toBe("exchanged");
      }
    });

    check("what is excluded is not to be seen", async () => {
      await using site = await open();
      for (const name of ["hidden", "shown"]) {
        mkdirSync(join(site.workspace, name));
        writeFileSync(join(site.workspace, name, "file"), `SECRET of ${name}\n`);
      }
      writeFileSync(join(site.workspace, "hidden.txt"), "SECRET too\n");
      const exclude = ["hidden", "hidden.txt"].map((name) => join(site.workspace, name));
      const birth = { id: newId(), directory: site.newDirectory(), env: variables };
      await using box = await site.wall.start(await site.plan({ exclude }), birth);
      const sandbox = openSandbox(box);
      const hidden = await shell(sandbox, "cat hidden/file hidden.txt; ls hidden");
      expect(hidden.stdout).toBe("");
      expect((await shell(sandbox, "cat shown/file")).stdout).toBe("SECRET of shown\n");
    });

    check("there is no network but the box's own loopback", async () => {
      const box = shared();
      const server = createServer((socket) => socket.end("reached"));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { readonly port: number };
      const connect = `import socket; print(socket.create_connection(("127.0.0.1", ${port}), 5).recv(10))`;
      try {
        const outside = spawn("python3", ["-c", connect], { stdio: ["ignore", "pipe", "inherit"] });
        expect(await text(outside.stdout)).toBe("b'reached'\n");
        expect((await python(box.sandbox, connect)).stdout).toBe("");
      } finally {
        server.close();
      }
      const own = `import socket
s = socket.create_server(("127.0.0.1", ${port})); c = socket.create_connection(("127.0.0.1", ${port}))
c.sendall(b"own"); print(s.accept()[0].recv(3))`;
      expect((await python(box.sandbox, own)).stdout).toBe("b'own'\n");
      const { stdout } = await shell(box.sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1");
      expect(stdout.trim()).toBe("lo");
    });

    check("nobody can take the warden's socket away, or put another in its place", async () => {
      const box = shared();
      const attempts = [
        "rm -f P",
        "mv P P2",
        "ln -sf /dev/null P",
        "echo >D/new",
        "chmod 0 P",
        "mv D D2",
        "rmdir D",
        "rm -rf D",
      ];
      const at = (text: string, directory: string, file: string) =>
        text.replaceAll("P", `${directory}/${file}`).replaceAll("D", directory);
      const socket = `${box.box.id}.sock`;
      for (const attempt of attempts) await shell(box.sandbox, at(attempt, "/run/podbot/in", socket));
      const seen = await shell(box.sandbox, `test -S /run/podbot/in/${socket} && ls /run/podbot/in`);
      expect(seen).toEqual({ code: 0, stdout: `${socket}\n`, stderr: "" });
      for (const attempt of attempts.slice(0, 5)) {
        const control = `rm -rf /tmp/in; mkdir -p /tmp/in; echo >/tmp/in/file; ${at(attempt, "/tmp/in", "file")}`;
        expect((await shell(box.sandbox, control)).code, attempt).toBe(0);
      }
    });

    check("nobody can kill the first process, stop it or look into it", async () => {
      await using box = await start({}, { TOKEN_OF_BOX: "visible" });
      for (const signal of ["KILL", "STOP", "TERM", "SEGV", "HUP"]) await shell(box.sandbox, `kill -${signal} 1`);
      expect((await shell(box.sandbox, "echo alive")).stdout).toBe("alive\n");
      expect((await shell(box.sandbox, "sleep 300 & kill -KILL $!; wait $!; echo $?")).stdout).toBe("137\n");
      for (const file of ["environ", "mem", "maps", "fd/0", "root/"]) {
        const look = (pid: string) => `import os
try:
    path = "/proc/${pid}/${file}"
    os.listdir(path) if path.endswith("/") else os.close(os.open(path, os.O_RDONLY))
    print("open", len(open(path, "rb").read()) if path.endswith("environ") else "")
except OSError as error: print("refused", error.errno)`;
        expect((await python(box.sandbox, look("1"))).stdout, file).toMatch(/^(refused 13|open 0)\n$/);
        expect((await python(box.sandbox, look("self"))).stdout, file).toMatch(/^open( [1-9]\d*| )?\n$/);
      }
    });

    check("strangers at the warden's socket are hung up on, and disturb nobody", async () => {
      const box = shared();
      const knock = (words: string) => `import socket, os
s = socket.socket(socket.AF_UNIX); s.connect("/run/podbot/in/${box.box.id}.sock"); print("connected")
s.settimeout(20)
try:
    s.sendall(${words}); print(s.recv(100))
except OSError as error: print(type(error).__name__)`;
      for (const words of [
        'b"podbot\\x001" + os.urandom(32)',
        'b"x" * 40',
        'b"podbot\\x001" + bytes(33)',
        'b"A" * 100000',
        'b""',
      ]) {
        const { stdout } = await python(box.sandbox, knock(words));
        expect(stdout, words).toMatch(/^connected\n(b''|ConnectionResetError|BrokenPipeError)\n$/);
        expect((await shell(box.sandbox, "echo fine")).stdout).toBe("fine\n");
      }
    });

    check("two hundred strangers disturb nobody either", async () => {
      const box = shared();
      const crowd = await box.sandbox.exec({
        argv: [
          "python3",
          "-c",
          `import socket, time, sys
path = "/run/podbot/in/${box.box.id}.sock"
def knock():
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try: s.connect(path); s.send(b"podbot")
    except OSError: pass
    return s
crowd = [knock() for _ in range(200)]
print("go", flush=True)
while True:
    crowd.pop(0).close(); crowd.append(knock()); time.sleep(0.002)`,
        ],
      });
      await lines(crowd).until("go");
      for (let count = 0; count < 20; count++) expect((await shell(box.sandbox, "echo fine")).stdout).toBe("fine\n");
      crowd.kill("SIGKILL");
      expect((await crowd.exited).code).toBe(137);
    });

    check("values of the environment are in no command line of the host", async () => {
      const secret = randomBytes(16).toString("hex");
      await using box = await start({}, { SECRET: secret });
      const running = await box.sandbox.exec({
        argv: ["sh", "-c", 'echo "$SECRET $OTHER"; cat'],
        env: { OTHER: `other-${secret}` },
      });
      await lines(running).until(`${secret} other-${secret}`);
      expect(processesWith(secret)).toEqual([]);
      const careless = spawn("sh", ["-c", "sleep 300", secret], { stdio: "ignore", detached: true });
      try {
        await eventually(() => expect(processesWith(secret)).not.toEqual([]));
      } finally {
        process.kill(-(careless.pid as number), "SIGKILL");
      }
      running.stdin.end();
      await running.exited;
    });
  });

  test(`lacks nothing but what is known to be lacking: ${lacks.length}`, () => expect([...missing]).toEqual([]));
}

/** Runs a script of the shell to its end. */
async function shell(sandbox: Sandbox, script: string, more: Partial<Command> = {}) {
  return finish(await sandbox.exec({ ...more, argv: ["sh", "-c", script] }));
}

async function python(sandbox: Sandbox, script: string) {
  return finish(await sandbox.exec({ argv: ["python3", "-c", script] }));
}

async function finish(running: Process) {
  running.stdin.end();
  const [stdout, stderr, { code }] = await Promise.all([text(running.stdout), text(running.stderr), running.exited]);
  return { code, stdout, stderr };
}

/** What a process says, waited for. */
function lines(running: Pick<Process, "stdout">): { until(words: string): Promise<void> } {
  let said = "";
  running.stdout.on("data", (bytes: Buffer) => {
    said += bytes;
  });
  return { until: (words) => eventually(() => expect(said).toContain(words)) };
}

/** Command lines inside that hold a word, but for the one that looks. */
async function insideWith(sandbox: Sandbox, word: string): Promise<string> {
  const script = `import os
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        try: line = open(f"/proc/{pid}/cmdline").read().replace("\\0", " ")
        except OSError: continue
        if ${JSON.stringify(word)} in line: print(pid, line)`;
  return (await python(sandbox, script)).stdout;
}

/** Processes of the host whose command line holds a word. */
function processesWith(word: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word);
    } catch {
      return false;
    }
  });
}

export function newId(): SessionId {
  return Array.from({ length: 10 }, () => "abcdefghjkmnpqrstuvwxyz".charAt(randomInt(23))).join("");
}
