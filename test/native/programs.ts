import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** The native programs, built once for all test files: a lock on the Makefile keeps parallel runs apart. */
const native = resolve(import.meta.dirname, "../../native");

export interface Programs {
  readonly build: "ordinary" | "sanitized";
  readonly launch: string;
  readonly enter: string;
  readonly shim: string;
  readonly warden: string;
  readonly gate: string;
  readonly reclaim: string;
  readonly peer: string;
}

/** What `unshare` needs besides where it is not root who asks. */
export const asRoot: readonly string[] = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];

export function buildPrograms(): void {
  execFileSync("flock", [join(native, "Makefile"), "make", "-s", "-C", native, "all", "sanitized"]);
}

export const ordinary = programsIn("ordinary", process.arch);
export const sanitized = programsIn("sanitized", "sanitized");

/** What every program gets in its environment. A sanitizer's finding ends it with a status that nothing else uses. */
export const environment: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  LANG: "C",
  // By this, what is left of them is found when the tests are interrupted.
  PODBOT_TEST_RUN: process.env["PODBOT_TEST_RUN"] ?? "",
  ASAN_OPTIONS: "detect_leaks=0:exitcode=99",
  UBSAN_OPTIONS: "exitcode=99",
};

/** Compiles a program that only the tests need, with sources of the native programs where it tests one alone. */
export function compile(source: string, output: string, ...more: string[]): void {
  execFileSync("cc", [
    "-std=c11",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    ...(more.length === 0 ? [] : ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", `-I${native}`]),
    "-o",
    output,
    join(import.meta.dirname, source),
    ...more.map((name) => join(native, name)),
  ]);
}

/** A temporary directory that vanishes with the test file. */
export function makeScratch(onEnd: (remove: () => void) => void): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-native-")));
  onEnd(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The same numbers in every run. */
export function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function programsIn(build: Programs["build"], directory: string): Programs {
  const at = (name: string) => join(native, "bin", directory, `podbot-${name}`);
  return {
    build,
    launch: at("launch"),
    enter: at("enter"),
    shim: at("shim"),
    warden: at("warden"),
    gate: at("gate"),
    reclaim: at("reclaim"),
    peer: at("peer"),
  };
}
