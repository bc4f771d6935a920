import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { patience } from "../faults/thorough.ts";
import { environment } from "./programs.ts";

/** One record of the shim's table. */
export interface CommandRecord {
  readonly target: string;
  readonly command: string;
  readonly kind: string;
  readonly real?: string;
  readonly interpreter?: string;
  readonly argument?: string;
  readonly script?: string;
}

export function encodeTable(records: readonly CommandRecord[]): Buffer {
  const strings = records.flatMap((r) => [r.target, r.command, r.kind, r.real, r.interpreter, r.argument, r.script]);
  return Buffer.from(strings.map((text) => `${text ?? ""}\0`).join(""));
}

export interface BoxOptions {
  /** A writable directory, at the same path inside. */
  readonly scratch: string;
  /** Mounted over every target; without it the targets stay what they are. */
  readonly shim?: string;
  readonly targets?: readonly string[];
  readonly table?: Buffer;
  /** Read-only files, from outside to inside. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface BoxResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a shell script behind a real wall in which the shim stands in for its targets. */
export async function runInBox(script: string, options: BoxOptions): Promise<BoxResult> {
  const { scratch, shim, targets = [], table, files = {}, env, input = "" } = options;
  const own = mkdtempSync(join(scratch, "box-"));
  writeFileSync(join(own, "script"), script);
  writeFileSync(join(own, "table"), table ?? "");
  const mounts: (readonly [from: string, to: string])[] = Object.entries(files);
  if (table !== undefined) mounts.push([join(own, "table"), "/run/podbot/commands"]);
  if (shim !== undefined) mounts.push(...targets.map((target) => [shim, target] as const));
  const root = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/run",
    "--bind",
    scratch,
    scratch,
  ];
  const wall = [...root, "--unshare-user", "--unshare-pid", "--die-with-parent", "--chdir", scratch];
  const binds = mounts.flatMap(([from, to]) => ["--ro-bind", from, to]);
  const child = spawn("bwrap", [...wall, ...binds, "--", "sh", join(own, "script")], {
    env: { ...environment, ...env },
    timeout: patience * 100_000,
  });
  child.stdin.on("error", () => {}).end(input); // a script need not read what it is given
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status, stdout, stderr };
}
