import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { patience } from "../faults/thorough.ts";
import { type LetterRecord, letter } from "./letter.ts";
import { buildPrograms, environment, ordinary, type Programs, sanitized } from "./programs.ts";

/** Who starts podbot-launch. Only root can start it as another user too. */
export const users = process.getuid?.() === 0 ? (["root", "ordinary user"] as const) : (["ordinary user"] as const);
export type User = (typeof users)[number];

/** Each build, and each user. */
export const starts: readonly (readonly [Programs["build"], User])[] = [
  ...users.map((user) => ["ordinary", user] as const),
  ["sanitized", "ordinary user"],
];

export interface Post {
  readonly build: Programs["build"];
  readonly user: User;
  readonly steps: readonly Buffer[];
  /** What follows the steps; a script that runs where bubblewrap would, unless `bwrap` is given. */
  readonly records?: readonly LetterRecord[];
  readonly script?: string;
  readonly bwrap?: string;
  /** A script of root's that prepares the host, in a mount namespace of its own. */
  readonly before?: string;
}

export interface Posted {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A place for what the tests mount, and the programs where every user can start them. */
export interface Bench {
  /** Outside of /tmp, which the tree covers while the stand-in for bubblewrap runs. */
  readonly scratch: string;
  readonly programs: Readonly<Record<Programs["build"], Pick<Programs, "launch" | "enter">>>;
  post(post: Post): Posted;
}

const nobody = 65_534;

/** Gives a path to a user, and makes it first where that is asked for: a directory, or a file with this content. */
export function give(path: string, user: User, content?: string | null): string {
  if (content === null) mkdirSync(path);
  else if (content !== undefined) writeFileSync(path, content);
  if (user !== "root" && process.getuid?.() === 0) chownSync(path, nobody, nobody);
  return path;
}

export function openBench(onStart: (prepare: () => void) => void, onEnd: (remove: () => void) => void): Bench {
  const scratch = mkdtempSync("/var/tmp/podbot-tree-");
  onEnd(() => rmSync(scratch, { recursive: true, force: true }));
  chmodSync(scratch, 0o755);
  const copies = [ordinary, sanitized].map(({ build, launch, enter }) => {
    const copy = { launch: join(scratch, `launch-${build}`), enter: join(scratch, `enter-${build}`) };
    return { build, copy, originals: { launch, enter } };
  });
  onStart(() => {
    buildPrograms();
    for (const { copy, originals } of copies) {
      copyFileSync(originals.launch, copy.launch);
      copyFileSync(originals.enter, copy.enter);
      for (const path of Object.values(copy)) chmodSync(path, 0o755);
    }
  });
  const programs = Object.fromEntries(copies.map(({ build, copy }) => [build, copy])) as unknown as Bench["programs"];
  const standIn = join(scratch, "stand-in");
  writeFileSync(standIn, '#!/bin/sh\nshift 3\nexec "$@"\n', { mode: 0o755 });
  const letterPath = join(scratch, "letter");

  const post = ({ build, user, steps, script = "true", bwrap = standIn, before, ...more }: Post): Posted => {
    const records = more.records ?? ["sh", "-c", script].map((word) => ["C", word] as const);
    writeFileSync(letterPath, letter(0, [...steps.map((step) => ["M", step] as const), ...records]));
    const drop = user !== "root" && process.getuid?.() === 0 ? dropped : "";
    const start = `${before ?? ""}\n${drop} "$0" $$ "$1"; exit $?`;
    const apart = before === undefined ? [] : ["unshare", "--mount", "--propagation", "shared", "--"];
    const [program = "", ...words] = [...apart, "sh", "-c", start, programs[build].launch, bwrap];
    const letterFd = openSync(letterPath, "r");
    const { status, stdout, stderr } = spawnSync(program, words, {
      cwd: "/",
      encoding: "utf8",
      env: environment,
      timeout: patience * 60_000,
      stdio: ["ignore", "pipe", "pipe", letterFd, "pipe"],
    });
    closeSync(letterFd);
    return { status, stdout, stderr };
  };
  return { scratch, programs, post };
}

const dropped = `setpriv --reuid=${nobody} --regid=${nobody} --clear-groups`;

export function step(...words: readonly string[]): Buffer {
  return Buffer.from(words.map((word) => `${word}\0`).join(""));
}

export function withContent(kind: "file" | "cover", mode: string, target: string, content: string): Buffer {
  return Buffer.concat([step(kind, mode, target), Buffer.from(content)]);
}

function identityOf(path: string): string {
  const { dev, ino } = lstatSync(path);
  return `${dev}:${ino}`;
}

export function bind(access: string, source: string, target = source): Buffer {
  return step("bind", access, identityOf(source), source, target);
}

/** An empty root in memory. */
export const emptyRoot = step("tmpfs", "0755", "/");

/** Everything that there is to be known of a directory, save when it was read. */
export function snapshot(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    const { mode, ino, uid, nlink, size, mtimeMs, ctimeMs } = lstatSync(path);
    const content = entry.isFile() ? readFileSync(path, "utf8") : "";
    const line = [path, mode, ino, uid, nlink, size, mtimeMs, ctimeMs, content].join();
    return entry.isDirectory() ? [line, ...snapshot(path)] : [line];
  });
}
