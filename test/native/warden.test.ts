import { createHash, randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPrograms, environment, makeScratch, ordinary, sanitized } from "./programs.ts";
import {
  Conversation,
  childrenOf,
  firstInput,
  firstOutput,
  frame,
  isAlive,
  Keeper,
  number32,
  order,
  socketPathIn,
  startWardenIn,
  Warden,
} from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

const { errno, signals } = constants;
const isRoot = userInfo().uid === 0;
const sh = (script: string, ...words: string[]) => ["sh", "-c", script, "sh", ...words];
const startWarden = (program: string, env = environment) => startWardenIn(scratch, program, env);
const socketPath = () => socketPathIn(scratch);
const hash = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

describe.each([ordinary, sanitized])("podbot-warden, $build build", ({ warden: program }) => {
  let keeper: Keeper;
  let warden: Warden;

  beforeAll(async () => {
    ({ keeper, warden } = await startWarden(program));
  });

  afterAll(async () => {
    const ended = await warden.end();
    await keeper.close();
    expect(ended).toEqual({ status: 143, signal: null, complaints: "" });
  });

  describe("on pipes", () => {
    it("says that it has executed the command, passes output and errors on, and says how it ended", async () => {
      const outcome = await keeper.run(sh("echo out; echo err >&2; exit 7"));
      expect(outcome).toMatchObject({ end: [0, 7], output: Buffer.from("out\n"), errors: Buffer.from("err\n") });
      expect(outcome.told).toMatch(/^Pi?(oi?r|ri?o)i?X$/); // nobody reads its input when it ends
    });

    it("passes words on unchanged", async () => {
      const words = ["", "a b", "ünï\ncode $x", "x".repeat(131_071)];
      const { output } = await keeper.run(["printf", "%s\\0", ...words]);
      expect(output.toString()).toBe(words.map((word) => `${word}\0`).join(""));
    });

    it("passes every byte through input and output", async () => {
      const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 256));
      const { output, end } = await keeper.run(["cat"], { input: bytes });
      expect([hash(output), end]).toEqual([hash(bytes), [0, 0]]);
    });

    it("takes input that comes before the command runs", async () => {
      const words = [order(["cat"]), frame("I", "early "), frame("I", "bird"), frame("E")];
      expect((await keeper.converse(...words)).output.toString()).toBe("early bird");
    });

    it("carries 64 MiB each way, and errors besides", async () => {
      const bytes = Buffer.alloc(64 * 2 ** 20);
      randomBytes(2 ** 20).copy(bytes, 1000);
      randomBytes(2 ** 20).copy(bytes, bytes.length - 2 ** 20);
      const { output, errors, end } = await keeper.run(sh("tee /dev/stderr"), { input: bytes });
      expect([hash(output), hash(errors), end]).toEqual([hash(bytes), hash(bytes), [0, 0]]);
    });

    it("ends input only when it is told to", async () => {
      const conversation = await keeper.start(sh("cat; echo after"));
      await conversation.input("one ");
      await conversation.untilOutput("one ");
      await conversation.input("two ");
      await conversation.untilOutput("one two ");
      conversation.send("E");
      expect((await conversation.outcome()).output.toString()).toBe("one two after\n");
    });

    it("says that nobody reads input any more, and still takes what comes", async () => {
      const conversation = await keeper.start(sh("exec <&-; echo closed; sleep 100"));
      await conversation.untilTold("i");
      await conversation.input(Buffer.alloc(2 ** 20));
      conversation.signal(signals.SIGTERM);
      expect(await conversation.outcome()).toMatchObject({
        end: [1, signals.SIGTERM],
        told: expect.stringMatching(/^Pi/),
      });
    });

    it("closes a stream that nobody reads, under those who write there", async () => {
      const script = "trap '' PIPE; yes 2>/dev/null; echo $? >&2; sleep 100";
      const conversation = await keeper.start(["bash", "-c", script]);
      await conversation.until(() => conversation.received.O > 100_000);
      conversation.send("D", [1]);
      await conversation.untilTold("o");
      await conversation.until(() => conversation.received.R > 0);
      conversation.signal(signals.SIGKILL);
      const { errors, told } = await conversation.outcome();
      expect([errors.toString(), told]).toEqual(["1\n", expect.stringMatching(/^Po.*X$/)]);
    });

    it("leaves a terminal open that nobody reads", async () => {
      const conversation = await keeper.start(sh("read line; echo $line again"), { terminal: [1, 40] });
      conversation.send("D", [1]);
      await conversation.input("once\n");
      expect((await conversation.outcome()).output.toString()).toContain("once again");
    });

    it("gives the rest of unread input back as credit", async () => {
      const conversation = await keeper.start(sh("sleep 0.05; exec <&-; sleep 100"));
      await conversation.input(Buffer.alloc(2 ** 20));
      conversation.signal(signals.SIGKILL);
      expect(await conversation.outcome()).toMatchObject({ end: [1, signals.SIGKILL] });
    });

    it("gives the command no descriptors but three, a session of its own and ordinary signals", async () => {
      const script =
        "ls /proc/self/fd; cut -d' ' -f1,5,6 /proc/$$/stat; grep -E '^Sig(Blk|Ign)' /proc/self/status; umask";
      const { output } = await keeper.run(sh(script));
      const [pid, group, session] = (output.toString().split("\n")[4] ?? "").split(" ");
      expect([group, session]).toEqual([pid, pid]);
      const none = "0000000000000000";
      const umask = process.umask().toString(8).padStart(4, "0");
      expect(output.toString()).toBe(
        `0\n1\n2\n3\n${pid} ${pid} ${pid}\nSigBlk:\t${none}\nSigIgn:\t${none}\n${umask}\n`, // 3 is the listing itself
      );
    });

    it("carries exit statuses from 0 to 255", async () => {
      const statuses = Array.from({ length: 256 }, (_, status) => status);
      const outcomes = await Promise.all(statuses.map((status) => keeper.run(sh(`exit ${status}`))));
      expect(outcomes.map(({ end }) => end)).toEqual(statuses.map((status) => [0, status]));
    });

    it("carries every signal that ends a process, to the command and back", async () => {
      const harmless = [
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGWINCH",
      ] as const;
      const numbers = new Set(Array.from({ length: 64 }, (_, i) => i + 1));
      for (const name of harmless) numbers.delete(signals[name]);
      const ends = [...numbers].map(async (number) => {
        const conversation = await keeper.start(sh("ulimit -c 0; exec sleep 100"));
        await conversation.untilTold("P");
        conversation.signal(number);
        return (await conversation.outcome()).end;
      });
      expect(await Promise.all(ends)).toEqual([...numbers].map((number) => [1, number]));
    });

    it("says that the command was stopped and goes on", async () => {
      const conversation = await keeper.start(["sleep", "100"]);
      await conversation.untilTold("P");
      conversation.signal(signals.SIGSTOP);
      expect([...(await conversation.untilTold("Z"))]).toEqual([signals.SIGSTOP]);
      conversation.signal(signals.SIGCONT);
      await conversation.untilTold("Y");
      conversation.signal(signals.SIGINT);
      expect(await conversation.outcome()).toMatchObject({ end: [1, signals.SIGINT] });
    });

    it("signals the whole group, even when it has no leader any more", async () => {
      const conversation = await keeper.start(sh("sleep 100 & echo $$ $! >&2; head -c 1100000 /dev/zero; exit 3"));
      conversation.grants = false; // without credit for the rest of the output, the end does not come
      await conversation.until(() => conversation.received.O === firstOutput && conversation.received.R > 0);
      const numbers = Buffer.concat(conversation.chunks.R).toString().trim().split(" ").map(Number);
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, true]);
      conversation.signal(signals.SIGKILL);
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, false]);
      conversation.grant(1, 1_100_000);
      expect(await conversation.outcome()).toMatchObject({ end: [0, 3] });
      expect(conversation.received.O).toBe(1_100_000);
    });

    it("lets a background process live that holds the output open", async () => {
      // It ends after its input has: who ends before leaves it open, and that is told, too.
      const { output, end, told } = await keeper.run(sh("sleep 100 & echo $!; cat; exit 4"));
      const sleeper = Number(output);
      expect({ end, told, alive: isAlive(sleeper) }).toEqual({ end: [0, 4], told: "PX", alive: true });
      process.kill(sleeper, "SIGKILL");
    });

    it("passes on what background processes say while they do not fall silent", async () => {
      const { output, end } = await keeper.run(sh("head -c 2000000 /dev/zero & exit 6"));
      expect([output.length, end]).toEqual([2_000_000, [0, 6]]);
    });

    it("runs fifty commands at once", async () => {
      const numbers = Array.from({ length: 50 }, (_, i) => i);
      const conversations = await Promise.all(numbers.map(() => keeper.start(["cat"])));
      for (const conversation of conversations) await conversation.untilTold("P");
      const outcomes = numbers.map(async (i) => {
        const conversation = conversations[i] as Conversation;
        await conversation.input(`${i} `.repeat(100_000));
        conversation.send("E");
        return (await conversation.outcome()).output.toString();
      });
      expect((await Promise.all(outcomes)).map(hashText)).toEqual(
        numbers.map((i) => hashText(`${i} `.repeat(100_000))),
      );
    });
  });

  describe("keeps to credit", () => {
    it("sends no more than that, hears signals meanwhile, and goes on when there is more", async () => {
      const script = "trap '' TERM; head -c 4000000 /dev/zero & trap 'echo caught >&2' TERM; wait; wait";
      const conversation = await keeper.start(sh(script));
      conversation.grants = false;
      await conversation.until(() => conversation.received.O === firstOutput);
      conversation.signal(signals.SIGTERM);
      await conversation.until(() => conversation.received.R > 0);
      expect(conversation.received.O).toBe(firstOutput);
      conversation.grant(1, 1);
      await conversation.until(() => conversation.received.O === firstOutput + 1);
      conversation.grant(1, 4_000_000);
      expect(await conversation.outcome()).toMatchObject({ end: [0, 0] });
      expect(conversation.received.O).toBe(4_000_000);
    });

    it("counts errors apart from output", async () => {
      const conversation = await keeper.start(sh("head -c 4000000 /dev/zero >&2 & echo fine; wait"));
      conversation.grants = false;
      await conversation.until(() => conversation.received.R === firstOutput);
      await conversation.untilOutput("fine\n");
      conversation.grant(2, 4_000_000 - firstOutput); // to the last byte: the end itself needs no credit
      expect((await conversation.outcome()).told).toMatch(/^Pi?(oi?r|ri?o)i?X$/);
      expect(conversation.received.R).toBe(4_000_000);
    });

    it("takes a bounded amount that nobody reads, and hears signals behind it", async () => {
      const conversation = await keeper.start(
        sh("trap '' TERM; sleep 100 & trap 'echo caught' TERM; echo ready; wait; wait"),
      );
      const pumping = conversation.input(Buffer.alloc(2 ** 20)).catch(() => {});
      await conversation.untilOutput("ready");
      await expect.poll(() => conversation.inputCredit).toBe(0);
      conversation.signal(signals.SIGTERM);
      await conversation.untilOutput("caught\n");
      expect(conversation.inputSent).toBeLessThanOrEqual(2 * firstInput); // half of it in the pipe
      conversation.signal(signals.SIGKILL);
      expect(await conversation.outcome()).toMatchObject({ end: [1, signals.SIGKILL] });
      await pumping;
    });
  });

  describe("starts commands", () => {
    it("in the directory, with the variables set and unset", async () => {
      const { keeper: own, warden } = await startWarden(program, { ...environment, KEPT: "kept", GONE: "gone" });
      const script = 'pwd; echo "$KEPT ${GONE-unset} $NEW [$EMPTY] $TWICE"';
      const env = ["GONE", "NEW=a=b c", "EMPTY=", "TWICE=1", "TWICE=2", "NEVER"];
      const { output } = await own.run(sh(script), { cwd: scratch, env });
      expect(output.toString()).toBe(`${scratch}\nkept unset a=b c [] 2\n`);
      const { output: next } = await own.run(sh(script));
      expect(next.toString()).toBe("/\nkept gone  [] \n");
      await warden.end();
      await own.close();
    });

    it("found on the PATH that they are given, relative to their directory", async () => {
      const directory = mkdtempSync(join(scratch, "path-"));
      mkdirSync(join(directory, "bin"));
      writeFileSync(join(directory, "bin/tool"), '#!/bin/sh\necho found "$@"', { mode: 0o755 });
      writeFileSync(join(directory, "plain"), 'echo plain "$@"');
      chmodSync(join(directory, "plain"), 0o755);
      const found = async (words: string[], env: string[] = []) => {
        const { output, failure } = await keeper.run(words, { cwd: directory, env });
        return failure ?? output.toString();
      };
      expect(await found(["tool", "x"])).toEqual([3, errno.ENOENT]);
      expect(await found(["tool", "x"], [`PATH=/nonexistent:${directory}/bin`])).toBe("found x\n");
      expect(await found(["tool", "x"], ["PATH=bin"])).toBe("found x\n");
      expect(await found(["bin/tool"])).toBe("found\n");
      expect(await found(["./plain", "y"])).toBe("plain y\n");
      expect(await found(["true"], ["PATH"])).toBe("");
    });

    it.each([
      ["nothing of that name", ["nonexistent-command"], {}, [3, errno.ENOENT]],
      ["no file at that path", ["/nonexistent/command"], {}, [3, errno.ENOENT]],
      ["an empty name", [""], {}, [3, errno.ENOENT]],
      ["a file that is not executable", ["/etc/passwd"], {}, [3, errno.EACCES]],
      ["a directory", ["/etc"], {}, [3, errno.EACCES]],
      ["a missing directory to work in", ["true"], { cwd: "/nonexistent" }, [1, errno.ENOENT]],
      ["a file to work in", ["true"], { cwd: "/etc/passwd" }, [1, errno.ENOTDIR]],
      ["too many words", ["true", ...Array(60_000).fill("x".repeat(100))], {}, [3, errno.E2BIG]],
    ] as const)("says that it is %s", async (_, words, options, failure) => {
      expect(await keeper.run(words, options)).toMatchObject({ told: "F", failure });
      expect(await keeper.run(words, { ...options, terminal: [24, 80] })).toMatchObject({ told: "F", failure });
    });

    it("as another user, without other groups, if it may", async () => {
      const options = { user: [12_345, 23_456] } as const;
      const script = sh("id -u; id -g; id -G; grep -E '^(Uid|Gid|Groups)' /proc/self/status");
      for (const more of [{}, { terminal: [24, 80] as const }]) {
        const outcome = await keeper.run(script, { ...options, ...more });
        if (isRoot) {
          const ids = (id: number) => `\t${id}`.repeat(4);
          expect(outcome.output.toString().replaceAll("\r", "")).toBe(
            `12345\n23456\n23456\nUid:${ids(12_345)}\nGid:${ids(23_456)}\nGroups:\t \n`,
          );
        } else {
          expect(outcome).toMatchObject({ told: "F", failure: [2, errno.EPERM] });
        }
      }
    });

    it("with the largest order that it promises to take", async () => {
      const variables = Buffer.concat(Array.from({ length: 65_534 }, () => frame("V", "X=1")));
      expect(await keeper.converse(variables, frame("A", "true"), frame("G"))).toMatchObject({ end: [0, 0] });
    });
  });

  describe("on a terminal", () => {
    const terminal = [24, 80] as const;

    it("gives the command a terminal of the size", async () => {
      const script = "test -t 0 && test -t 1 && test -t 2 && stty size && stty -a | grep -o ' iutf8'; tty </dev/tty";
      const { output, told, end } = await keeper.run(sh(script), { terminal: [33, 111] });
      expect(output.toString()).toMatch(/^33 111\r\n iutf8\r\n\/dev\/(pts\/\d+|tty)\r\n$/);
      expect({ told, end }).toEqual({ told: "PoX", end: [0, 0] });
    });

    it("gives the command no descriptors but three and ordinary signals", async () => {
      const { output } = await keeper.run(sh("ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status"), {
        terminal,
      });
      const none = "0000000000000000";
      expect(output.toString().split(/\s+/)).toEqual(["0", "1", "2", "3", "SigBlk:", none, "SigIgn:", none, ""]);
    });

    it("tells the command of a new size", async () => {
      const script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done";
      const conversation = await keeper.start(sh(script), { terminal });
      await conversation.untilOutput("ready");
      conversation.send("W", [40, 0, 200, 0]);
      expect(await conversation.outcome()).toMatchObject({ end: [0, 0], output: Buffer.from("ready\r\n40 200\r\n") });
    });

    it("turns Ctrl-C, Ctrl-\\ and Ctrl-D into what they mean", async () => {
      const at = async (key: string) => {
        const conversation = await keeper.start(sh("ulimit -c 0; echo ready; exec cat"), { terminal });
        await conversation.untilOutput("ready");
        await conversation.input(key);
        return (await conversation.outcome()).end;
      };
      expect(await at("\x03")).toEqual([1, signals.SIGINT]);
      expect(await at("\x1c")).toEqual([1, signals.SIGQUIT]);
      expect(await at("\x04")).toEqual([0, 0]);
    });

    it("lets Ctrl-Z stop the command, and SIGCONT go on with it", async () => {
      // Not a child of the shell: one that is stopped between vfork and exec keeps its parent from stopping.
      const conversation = await keeper.start(sh("echo ready; exec cat"), { terminal });
      await conversation.untilOutput("ready");
      await conversation.input("\x1a");
      expect([...(await conversation.untilTold("Z"))]).toEqual([signals.SIGTSTP]);
      conversation.signal(signals.SIGCONT);
      await conversation.untilTold("Y");
      await conversation.input("on\n");
      await conversation.untilOutput("on\r\non\r\n");
      await conversation.input("\x04");
      expect((await conversation.outcome()).told).toBe("PZYoX");
    });

    it("carries the job control of a shell inside", async () => {
      const env = ["PS1=<$?>", "TERM=dumb", "HISTFILE="];
      const conversation = await keeper.start(["bash", "--norc", "--noprofile", "-i"], { terminal, env });
      await conversation.untilOutput("<0>");
      await conversation.input("sed -u s/^/got-/\n");
      await conversation.input("one\n"); // may be typed before it is read: then the shell's terminal does not echo it
      await conversation.untilOutput("got-one");
      await conversation.input("\x1a");
      await conversation.untilOutput(/Stopped[^<]*<148>/);
      await conversation.input("fg\n");
      await conversation.input("two\n");
      await conversation.untilOutput("got-two");
      conversation.signal(signals.SIGINT); // reaches the job in the foreground too; bash itself takes no harm
      await conversation.untilOutput(/<130>/);
      await conversation.input("exit 3\n");
      expect(await conversation.outcome()).toMatchObject({ end: [0, 3] });
      expect(conversation.told).not.toContain("Z");
    });

    it("carries much output and input", async () => {
      const script = "stty raw -echo; echo ready; head -c 4000000 | sha256sum; head -c 3000000 /dev/zero";
      const conversation = await keeper.start(sh(script), { terminal });
      await conversation.untilOutput("ready");
      const bytes = randomBytes(4_000_000);
      await conversation.input(bytes);
      const { output, end } = await conversation.outcome();
      expect(end).toEqual([0, 0]);
      expect(output.toString()).toContain(hash(bytes));
      expect(output.filter((byte) => byte === 0)).toHaveLength(3_000_000);
    });

    it("hangs up on what is left when the command has ended", async () => {
      const { output, end } = await keeper.run(sh("sleep 100 & echo $!; exit 5"), { terminal });
      expect(end).toEqual([0, 5]);
      await expect.poll(() => isAlive(Number(output))).toBe(false);
    });

    it("is not troubled by input for nobody", async () => {
      const conversation = await keeper.start(sh("exec </dev/null >/dev/null 2>&1; sleep 100"), { terminal });
      await conversation.untilTold("o");
      await conversation.input(Buffer.alloc(2 ** 20, "x\n"));
      conversation.signal(signals.SIGTERM);
      expect(await conversation.outcome()).toMatchObject({ end: [1, signals.SIGTERM], told: "PoiX" });
    });
  });

  describe("when the client vanishes", () => {
    const family = "sleep 100 & sh -c 'sleep 100 & echo $!; wait' & echo $$ $!; wait";
    const start = async (script: string, count: number, options = {}) => {
      const conversation = await keeper.start(sh(script), options);
      const numbers = () => conversation.output.match(/\d+/g)?.map(Number) ?? [];
      await conversation.until(() => numbers().length === count);
      expect(numbers().map(isAlive)).toEqual(Array(count).fill(true));
      return { conversation, numbers: numbers() };
    };

    it("ends the whole group", async () => {
      const { conversation, numbers } = await start(family, 3);
      conversation.socket.destroy();
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, false, false]);
    });

    it("ends the whole group when only its sending ends", async () => {
      const { conversation, numbers } = await start(family, 3);
      conversation.socket.end();
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, false, false]);
    });

    it("ends those who ignore it, and those who were stopped", async () => {
      const { conversation, numbers } = await start(`trap '' HUP; ${family}`, 3);
      const stopped = await start(family, 3);
      stopped.conversation.signal(signals.SIGSTOP);
      await stopped.conversation.untilTold("Z");
      for (const each of [conversation, stopped.conversation]) each.socket.destroy();
      const all = [...numbers, ...stopped.numbers];
      await expect.poll(() => all.map(isAlive)).toEqual(all.map(() => false));
    });

    it("lets the command clean up", async () => {
      const file = join(mkdtempSync(join(scratch, "clean-")), "file");
      const { conversation, numbers } = await start(`trap 'echo bye >${file}; exit 0' HUP; ${family}`, 3);
      conversation.socket.destroy();
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, false, false]);
      expect(readFileSync(file, "utf8")).toBe("bye\n");
    });

    it("ends what is at the terminal, be it in a group of its own", async () => {
      const script = `trap '' HUP; set -m; sh -c 'echo $$ $PPID; exec sleep 100'; wait`;
      const { conversation, numbers } = await start(script, 2, { terminal: [24, 80] });
      conversation.socket.destroy();
      await expect.poll(() => numbers.map(isAlive)).toEqual([false, false]);
    });

    it("ends the command that nobody reads", async () => {
      const conversation = await keeper.start(sh("echo $$ >&2; exec cat /dev/zero"));
      conversation.grants = false;
      await conversation.until(() => conversation.received.O === firstOutput && conversation.received.R > 0);
      conversation.socket.destroy();
      await expect.poll(() => isAlive(Number(Buffer.concat(conversation.chunks.R)))).toBe(false);
    });
  });

  describe("refuses", () => {
    const go = order(["sleep", "100"]);
    it.each<readonly [string, readonly Buffer[], RegExp]>([
      ["an unknown record", [frame("x")], /unknown/],
      ["a record of the conversation in an order", [frame("I", "x")], /wrong time/],
      ["an order without a command", [frame("V", "X=1"), frame("G")], /without a command/],
      ["a word with a NUL", [frame("A", "a\0b")], /NUL/],
      ["too long a word", [frame("A", "", 131_072)], /wrong length/],
      ["the longest word", [frame("A", "", 0xffffffff)], /wrong length/],
      ["a variable without a name", [frame("V", "=x")], /without a name/],
      ["an empty variable", [frame("V", "")], /wrong length/],
      ["a variable with a NUL", [frame("V", "x=\0")], /NUL/],
      ["a directory with a NUL", [frame("C", "/\0")], /NUL/],
      ["two directories", [frame("C", "/"), frame("C", "/")], /second directory/],
      ["two users", [frame("U", number32(0).concat(number32(0))), frame("U", Buffer.alloc(8))], /second user/],
      ["half a user", [frame("U", number32(0))], /wrong length/],
      ["a user that means nobody", [frame("U", [...number32(0xffffffff), ...number32(0)])], /cannot be/],
      ["a group that means none", [frame("U", [...number32(0), ...number32(0xffffffff)])], /cannot be/],
      ["two terminals", [frame("T", [1, 0, 1, 0]), frame("T", [1, 0, 1, 0])], /second terminal/],
      ["half a terminal", [frame("T", [1, 0])], /wrong length/],
      ["a start with a payload", [frame("A", "true"), frame("G", "x")], /wrong length/],
      ["a Q behind something", [frame("A", "true"), frame("Q")], /after something/],
      ["too many records", [Buffer.concat(Array(65_537).fill(frame("A", "")))], /too large/],
      ["too long an order", [Buffer.concat(Array(65).fill(frame("A", Buffer.alloc(131_071, "x"))))], /too large/],
      ["an order behind an order", [go, frame("A", "x")], /wrong time/],
      ["a second start", [go, frame("G")], /wrong time/],
      ["a second terminal behind the start", [go, frame("T", [1, 0, 1, 0])], /wrong time/],
      ["a Q behind the start", [go, frame("Q")], /wrong time/],
      ["no input", [go, frame("I", "")], /wrong length/],
      ["too much input", [go, frame("I", "", 65_537)], /wrong length/],
      ["input beyond its credit", [go, ...Array<Buffer>(16).fill(frame("I", Buffer.alloc(65_536)))], /beyond/],
      ["input after its end", [go, frame("E"), frame("I", "x")], /after its end/],
      ["an end with a payload", [go, frame("E", "x")], /wrong length/],
      ["signal 0", [go, frame("S", [0])], /signal/],
      ["signal 65", [go, frame("S", [65])], /signal/],
      ["no signal", [go, frame("S")], /wrong length/],
      ["half a size", [go, frame("W", [1, 0])], /wrong length/],
      ["credit for input", [go, frame("K", [0, 1, 0, 0, 0])], /stream/],
      ["credit for a third stream", [go, frame("K", [3, 1, 0, 0, 0])], /stream/],
      ["credit without end", [go, frame("K", [1, ...number32(2 ** 31)])], /more credit/],
      ["half a credit", [go, frame("K", [1])], /wrong length/],
    ])("%s", async (_, bytes, complaint) => {
      const outcome = await keeper.converse(...bytes);
      expect(outcome.complaint).toMatch(complaint);
      expect(outcome.told).toMatch(/B$/);
      expect(outcome.end).toBeUndefined();
    });

    it("and ends the command", async () => {
      const conversation = await keeper.start(sh("echo $$; exec sleep 100"));
      await conversation.untilOutput("\n");
      const sleeper = Number(conversation.output);
      conversation.send("S", [200]);
      await conversation.untilTold("B");
      await expect.poll(() => isAlive(sleeper)).toBe(false);
    });

    it("to end everything where it is not the first process", async () => {
      expect(await keeper.converse(frame("Q"))).toMatchObject({ told: "F", failure: [0, errno.EPERM] });
    });
  });

  it("takes as much credit as can be counted, and a size for no terminal, and a second end", async () => {
    const most = frame("K", [2, ...number32(2 ** 31 - firstOutput)]);
    const outcome = await keeper.converse(order(["cat"]), most, frame("W", [1, 0, 1, 0]), frame("E"), frame("E"));
    expect(outcome).toMatchObject({ end: [0, 0] });
  });

  it("takes an order that comes byte by byte", async () => {
    const conversation = new Conversation(await keeper.connection());
    for (const byte of order(["echo", "slow"], { env: ["X=1"], cwd: "/" })) {
      conversation.socket.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    expect((await conversation.outcome()).output.toString()).toBe("slow\n");
  });

  it("buries orphans, and leaves no attendant behind", async () => {
    const { output } = await keeper.run(sh("(sh -c 'echo $$; sleep 0.05; exit 3' >&2 &) 2>&1 | cat; exit 0"));
    await expect.poll(() => isAlive(Number(output))).toBe(false);
    await expect.poll(() => childrenOf(warden.pid)).toEqual([]);
  });

  it("keeps exactly one connection parked", async () => {
    const { keeper: own, warden } = await startWarden(program);
    await expect.poll(() => own.parked.length).toBe(1);
    for (let i = 0; i < 5; i++) await own.run(["true"]);
    await expect.poll(() => own.parked.length).toBe(1);
    await expect.poll(() => childrenOf(warden.pid)).toEqual([]);
    expect({ accepted: own.accepted, strangers: own.strangers }).toEqual({ accepted: 6, strangers: 0 });
    await warden.end();
    await own.close();
  });

  it("dials again when the keeper comes late, goes away and comes back", async () => {
    const path = socketPath();
    const token = randomBytes(32);
    const warden = new Warden(program, [path], token);
    await sleep(30);
    for (let i = 0; i < 3; i++) {
      const own = new Keeper(path);
      token.copy(own.token);
      await own.listen();
      expect((await own.run(["echo", "there"])).output.toString()).toBe("there\n");
      await own.close();
      rmSync(path, { force: true });
    }
    expect(await warden.end()).toEqual({ status: 143, signal: null, complaints: "" });
  });

  it("takes its attendants with it, and they the terminals of their commands", async () => {
    const { keeper: own, warden } = await startWarden(program);
    const conversation = await own.start(sh("echo $$; exec sleep 100"), { terminal: [24, 80] });
    await conversation.untilOutput("\n");
    const sleeper = Number(conversation.output);
    expect(await warden.end()).toEqual({ status: 143, signal: null, complaints: "" });
    await conversation.until(() => conversation.isClosed);
    await expect.poll(() => isAlive(sleeper)).toBe(false);
    await own.close();
  });

  it("keeps its memory and environment from others who are not root", async () => {
    const look = (pid: number) => `cat /proc/${pid}/environ >/dev/null && ls /proc/${pid}/fd >/dev/null`;
    // Root may look everywhere: so that the test means something, it gives up what lets it.
    const drop = isRoot ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : [];
    const looksInto = async (pid: number) => (await keeper.run([...drop, ...sh(look(pid))])).end?.[1] === 0;
    const child = await keeper.start([...drop, ...sh("echo $$ $PPID; exec sleep 100")]);
    await child.untilOutput("\n");
    const [sleeper = -1, attendant = -1] = child.output.split(" ").map(Number);
    expect(await Promise.all([sleeper, attendant, warden.pid].map(looksInto))).toEqual([true, false, false]);
    child.signal(signals.SIGKILL);
    await child.outcome();
  });

  it.each([
    ["no token", Buffer.alloc(0)],
    ["half a token", Buffer.alloc(31)],
    ["more than a token", Buffer.alloc(33)],
  ])("refuses %s", async (_, token) => {
    const warden = new Warden(program, [socketPath()], token);
    expect(await warden.ended()).toEqual({
      status: 125,
      signal: null,
      complaints: "podbot-warden: the token is not 32 bytes long\n",
    });
  });

  it.each([[[]], [[""]], [["/a", "/b"]], [[`/${"x".repeat(200)}`]]])("refuses the arguments %j", async (words) => {
    const { status, complaints } = await new Warden(program, words, Buffer.alloc(32)).ended();
    expect(status).toBe(125);
    expect(complaints).toMatch(/^podbot-warden: .*\n$/);
  });
});

function hashText(content: string): string {
  return hash(Buffer.from(content));
}
