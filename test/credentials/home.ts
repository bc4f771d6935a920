import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterAll } from "vitest";
import { type PackedCredentials, type PackRequest, packCredentials } from "../../src/credentials/pack.ts";

export const isRoot = process.getuid?.() === 0;

/** A throwaway home, and whatever is needed beside it. It is gone when the tests of the file are. */
export class Home {
  readonly directory = mkdtempSync(join(tmpdir(), "podbot-credentials-"));
  readonly path = join(this.directory, "home");

  constructor() {
    homes.push(this);
    mkdirSync(this.path);
    // Other users take part in some tests.
    chmodSync(this.directory, 0o755);
  }

  file(name: string, content: string | Uint8Array = "content\n", mode = 0o644): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  }

  pack(names: readonly string[], part: Partial<PackRequest> = {}): Promise<PackedCredentials> {
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    return packCredentials({ home: this.path, names, target: "/root", owner, ...part });
  }

  /** The archive of the names, which must not be empty. */
  async archive(names: readonly string[], part: Partial<PackRequest> = {}): Promise<Readable> {
    const { archive } = await this.pack(names, part);
    if (archive === null) throw new Error("Nothing was packed.");
    return archive;
  }

  /** Unpacks with the system's own tar; returns where. */
  async unpack(archive: Readable): Promise<string> {
    const target = mkdtempSync(join(this.directory, "unpacked-"));
    await tar(["-x", "-p", "-C", target], archive);
    return target;
  }

  /** What this process has open below the home. */
  opened(): readonly string[] {
    return readdirSync("/proc/self/fd").flatMap((descriptor) => {
      const target = linkOf(`/proc/self/fd/${descriptor}`);
      return target.startsWith(this.directory) ? [target] : [];
    });
  }
}

const homes: Home[] = [];

afterAll(() => {
  // Some of them are too deep for Node.
  for (const { directory } of homes) execFileSync("rm", ["-rf", directory]);
});

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** What tar prints; it must not complain. */
export async function tar(words: readonly string[], archive: Readable): Promise<Buffer> {
  const child = spawn("tar", ["-f", "-", ...words], { env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" } });
  const out: Buffer[] = [];
  const complaints: Buffer[] = [];
  child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
  child.stderr.on("data", (bytes: Buffer) => complaints.push(bytes));
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  await pipeline(archive, child.stdin);
  const status = await closed;
  const complaint = Buffer.concat(complaints).toString();
  if (status !== 0 || complaint !== "") throw new Error(`tar ended with ${status}: ${complaint}`);
  return Buffer.concat(out);
}

/** So much of an archive that its first large file is being read; the rest is made when it is read on. */
export async function begin(archive: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let length = 0; length < 64 * 1024; ) {
    const part = archive.read() as Buffer | null;
    if (part === null) await new Promise<void>((resolve) => archive.once("readable", () => resolve()));
    else {
      parts.push(part);
      length += part.length;
    }
  }
  return Buffer.concat(parts);
}

/** The error that reading to the end meets. */
export async function failureOf(archive: Readable): Promise<Error> {
  try {
    for await (const _ of archive);
  } catch (error) {
    return error as Error;
  }
  throw new Error("The archive came to its end.");
}
