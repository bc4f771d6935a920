import { closeSync, constants, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { PolicyError } from "../errors.ts";
import { knownCopies } from "../policy/commands.ts";
import { parentOf } from "../policy/paths.ts";
import { identityOf, type Reader, statOf } from "./reader.ts";
import type { Script, Target } from "./survey.ts";

/** Every program that a command's name leads to: on PATH, through links, as known copies, by other hard links. */
export function findTargets(name: string, path: string, cwd: string, reader: Reader): readonly Target[] {
  const directories = path.split(":").map((directory) => (directory === "" ? cwd : directory));
  const found = new Map<string, Target>();
  for (const candidate of [...directories.map((directory) => join(directory, name)), ...knownCopies(name)]) {
    const target = programAt(candidate, reader);
    if (target === null || found.has(target.path)) continue;
    found.set(target.path, target);
    for (const twin of twinsOf(target, [...directories, parentOf(target.path)], reader)) found.set(twin.path, twin);
  }
  return [...found.values()];
}

function programAt(path: string, reader: Reader): Target | null {
  const resolved = reader.resolve(path);
  const stats = resolved === null ? null : statOf(resolved);
  if (resolved === null || !stats?.isFile() || (stats.mode & 0o111) === 0) return null;
  reader.look(resolved);
  return { path: resolved, identity: identityOf(stats), package: packageAround(resolved, reader) };
}

/** Scripts of Node packages reach for `../lib`; three levels are as deep as their `bin` entries lie. */
function packageAround(program: string, reader: Reader): Target["package"] {
  if (!/\.[cm]?js$/.test(program)) return null;
  for (let at = parentOf(program), level = 0; level < 3; at = parentOf(at), level++) {
    if (statOf(join(at, "package.json")) === null) continue;
    const node = reader.look(at);
    return node === null ? null : { path: at, identity: node.identity };
  }
  return null;
}

/** Other names of the same inode, where one would look for programs. */
function twinsOf(target: Target, directories: readonly string[], reader: Reader): readonly Target[] {
  if ((reader.look(target.path)?.links ?? 1) < 2) return [];
  const places = new Set(directories.map((directory) => reader.resolve(directory)).filter((place) => place !== null));
  return [...places].flatMap((place) =>
    namesIn(place)
      .map((name) => join(place, name))
      .filter((path) => path !== target.path && identityAt(path) === target.identity)
      .map((path) => ({ path, identity: target.identity, package: null })),
  );
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function identityAt(path: string): string | null {
  const stats = statOf(path);
  return stats?.isFile() ? identityOf(stats) : null;
}

/** A wrapper script, with the program that its first line names: the wall must be able to run it even if wrapped. */
export function readScript(name: string, path: string, reader: Reader): Script {
  const resolved = reader.resolve(path);
  const node = resolved === null ? null : reader.look(resolved);
  if (resolved === null || node?.kind !== "file") {
    throw new PolicyError(
      "COMMAND_RULE_INVALID",
      `The script for the command ${JSON.stringify(name)} is ${node === null ? "missing" : "not a file"}: ${path}`,
      { hint: "Name an existing script, false to block the command, or true to leave it alone.", details: { path } },
    );
  }
  const { interpreter, argument } = interpreterOf(firstLine(resolved, name));
  const program = reader.resolve(interpreter);
  if (program === null) {
    throw new PolicyError("COMMAND_RULE_INVALID", `The script ${path} asks for ${interpreter}, which does not exist.`, {
      hint: "Correct its first line.",
      details: { path, interpreter },
    });
  }
  reader.look(program);
  return { path: resolved, identity: node.identity, interpreter: program, interpreterArgument: argument };
}

/** As the kernel reads it: one program, then everything else as a single argument. */
function interpreterOf(line: string): { readonly interpreter: string; readonly argument: string } {
  const shebang = /^#![ \t]*(\S+)[ \t]*(.*?)[ \t]*$/.exec(line);
  return { interpreter: shebang?.[1] ?? "/bin/sh", argument: shebang?.[2] ?? "" };
}

function firstLine(path: string, name: string): string {
  try {
    // It was a plain file; opening what has taken its place must not wait.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const start = Buffer.alloc(256);
      return start.toString("latin1", 0, readSync(descriptor, start)).split("\n", 1)[0] ?? "";
    } finally {
      closeSync(descriptor);
    }
  } catch (cause) {
    throw new PolicyError("COMMAND_RULE_INVALID", `The script for the command ${name} cannot be read: ${path}`, {
      hint: "Make it readable.",
      cause,
    });
  }
}
