import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
export function runInBox(script: string, { scratch, shim, targets = [], table, files = {}, env, input }: BoxOptions): BoxResult {
  const own = mkdtempSync(join(scratch, "box-"));
  writeFileSync(join(own, "script"), script);
  writeFileSync(join(own, "table"), table ?? "");
  const mounts = [
    ...(table === undefined ? [] : [[join(own, "table"), "/run/podbot/commands"] as const]),
    ...Object.entries(files),
    ...(shim === undefined ? [] : targets.map((target) => [shim, target] as const)),
  ];
  const wall = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--bind", scratch, scratch];
  const isolation = ["--unshare-user", "--unshare-pid", "--die-with-parent", "--chdir", scratch];
  const binds = mounts.flatMap(([from, to]) => ["--ro-bind", from, to]);
  return spawnSync("bwrap", [...wall, ...isolation, ...binds, "--", "sh", join(own, "script")], {
    encoding: "utf8",
    env: { ...environment, ...env },
    input: input ?? "",
    timeout: 60_000,
  });
}
