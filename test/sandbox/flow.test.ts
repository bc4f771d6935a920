import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSandbox } from "../../src/sandbox/open.ts";
import { hear, type RealSandbox, startWarden, textOf } from "./harness.ts";
import { started, startPeer } from "./peer.ts";

let real: RealSandbox;
beforeAll(async () => {
  real = await startWarden();
});
afterAll(() => real[Symbol.asyncDispose]());

const MiB = 2 ** 20;

describe("much data goes through in little memory", () => {
  /** The most by which this process grew while something was done. */
  async function growthOf(work: () => Promise<void>): Promise<number> {
    const before = process.memoryUsage.rss();
    let most = before;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 10);
    await work();
    clearInterval(timer);
    return most - before;
  }

  async function count(stream: Readable): Promise<number> {
    let bytes = 0;
    stream.on("data", (part: Buffer) => {
      bytes += part.length;
    });
    await once(stream, "end");
    return bytes;
  }

  async function write(stream: Writable, bytes: number, size: number): Promise<void> {
    const part = Buffer.alloc(size);
    for (let sent = 0; sent < bytes; sent += size) {
      if (!stream.write(part)) await once(stream, "drain");
    }
    stream.end();
  }

  test("1 GiB of output", async () => {
    const growth = await growthOf(async () => {
      const process = await real.sandbox.exec({ argv: ["head", "-c", "1G", "/dev/zero"] });
      expect(await count(process.stdout)).toBe(1024 * MiB);
      expect((await process.exited).code).toBe(0);
    });
    expect(growth).toBeLessThan(64 * MiB);
  });

  test("1 GiB of input", async () => {
    const growth = await growthOf(async () => {
      const process = await real.sandbox.exec({ argv: ["sh", "-c", "cat >/dev/null"] });
      await write(process.stdin, 1024 * MiB, 65_536);
      expect((await process.exited).code).toBe(0);
    });
    expect(growth).toBeLessThan(64 * MiB);
  });

  test("256 MiB both ways, in large writes", async () => {
    const growth = await growthOf(async () => {
      const process = await real.sandbox.exec({ argv: ["cat"] });
      const [, bytes] = await Promise.all([write(process.stdin, 256 * MiB, MiB), count(process.stdout)]);
      expect(bytes).toBe(256 * MiB);
    });
    expect(growth).toBeLessThan(64 * MiB);
  });
});

test("every byte arrives in its place, both ways", async () => {
  const bytes = Buffer.alloc(3_000_017);
  for (let at = 0; at < bytes.length; at++) bytes[at] = (at * 31 + (at >> 8)) & 255;
  const process = await real.sandbox.exec({ argv: ["cat"] });
  for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 3) % 100_003) {
    process.stdin.write(bytes.subarray(at, at + size));
  }
  process.stdin.end();
  const parts: Buffer[] = [];
  for await (const part of process.stdout) parts.push(part as Buffer);
  expect(Buffer.concat(parts).equals(bytes)).toBe(true);
});

test.each([3, 300])("what is written in one go, in %s pieces, takes one frame where it has room", async (count) => {
  await using peer = await startPeer(({ socket }) => socket.write(started));
  const process = await openSandbox(peer).exec({ argv: ["cat"] });
  const pieces = Array.from({ length: count }, (_, number) => Buffer.alloc(number === 1 ? 50_000 : 100, number % 256));
  process.stdin.cork();
  for (const piece of pieces) process.stdin.write(piece);
  process.stdin.uncork();
  process.stdin.end();
  const [talk] = peer.talks;
  await talk?.heard("E");
  const frames = talk?.frames.filter(({ type }) => type === "I").map(({ payload }) => payload) ?? [];
  const bytes = Buffer.concat(pieces);
  expect(Buffer.concat(frames).equals(bytes)).toBe(true);
  expect(frames.map(({ length }) => length)).toEqual(
    bytes.length > 65_536 ? [65_536, bytes.length - 65_536] : [bytes.length],
  );
});

describe("output that nobody reads", () => {
  /** Says on standard error how often it could write 64 KiB to standard output. */
  const producer = "while :; do head -c 65536 /dev/zero; echo >&2; done";

  /** Waits until the producer says nothing more. */
  async function untilSilent(output: { said(): string }): Promise<number> {
    for (let last = -1; ; await sleep(200)) {
      const lines = output.said().length;
      if (lines === last && lines > 0) return lines;
      last = lines;
    }
  }

  test("blocks the process, while its errors and its end still arrive", async () => {
    const process = await real.sandbox.exec({ argv: ["sh", "-c", producer] });
    const lines = await untilSilent(hear(process.stderr));
    // The credit, and what the pipe and the warden hold.
    expect(lines).toBeLessThan(60);
    expect(process.stdout.readableLength).toBeLessThanOrEqual(1_048_576);
    process.kill("SIGTERM");
    process.stdout.resume();
    expect(await process.exited).toEqual({ code: 143, killed: false });
  });

  test("lets the process go on as it is read, as far as it is read", async () => {
    const process = await real.sandbox.exec({ argv: ["sh", "-c", producer] });
    const errors = hear(process.stderr);
    const lines = await untilSilent(errors);
    const part = process.stdout.read() as Buffer;
    expect(part.length).toBeGreaterThan(0);
    for (let read = part.length; read < 32 * 65_536; ) {
      const more = process.stdout.read() as Buffer | null;
      if (more === null) await once(process.stdout, "readable");
      else read += more.length;
    }
    const later = await untilSilent(errors);
    expect(later).toBeGreaterThan(lines);
    expect(later).toBeLessThan(100);
    process.kill("SIGKILL");
    process.stdout.resume();
    await process.exited;
  });

  test("has nobody to read it once its stream is destroyed, and whoever writes feels it", async () => {
    const script = "head -c 10M /dev/zero; echo $? >&2; exec 2>&-; sleep 300";
    const process = await real.sandbox.exec({ argv: ["bash", "-c", script] });
    await sleep(50);
    process.stdout.destroy();
    expect(await textOf(process.stderr)).toBe("141\n");
    process.kill("SIGKILL");
    expect(await process.exited).toEqual({ code: 137, killed: false });
  });

  test("is thrown away by resuming its stream, and the process runs on", async () => {
    const process = await real.sandbox.exec({ argv: ["sh", "-c", "head -c 10M /dev/zero; echo done >&2"] });
    process.stdout.resume();
    expect(await textOf(process.stderr)).toBe("done\n");
    expect(await process.exited).toEqual({ code: 0, killed: false });
  });

  test("within the credit does not keep the process from ending, and can be read later", async () => {
    const process = await real.sandbox.exec({ argv: ["head", "-c", "1048576", "/dev/zero"] });
    expect(await process.exited).toEqual({ code: 0, killed: false });
    expect((await textOf(process.stdout)).length).toBe(1_048_576);
  });

  test("does not keep a process alive whose time is over", async () => {
    const process = await real.sandbox.exec({ argv: ["sh", "-c", producer], timeoutMs: 100, graceMs: 1_000 });
    expect(await process.exited).toEqual({ code: 124, killed: true });
  });
});
