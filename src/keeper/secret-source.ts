import { spawnSync } from "node:child_process";
import type { SecretSource } from "../config/types.ts";
import { followWay, readOwnersFile } from "../machine/owners-file.ts";
import { findOnPath, systemPath } from "../machine/programs.ts";
import { expandPath } from "../policy/paths.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the values of secrets are looked up. */
export interface Outside {
  readonly env: Environment;
  /** Whether the agent may write at a path: then nothing there is read or executed out here. Default: nowhere. */
  readonly isWritableInside?: (path: string) => boolean;
  /** Where a program is looked for that is given by its name. Default: among the system's. */
  readonly findProgram?: (name: string) => string | null;
  /** How long a command may take. It may ask its owner something. Default: a minute. */
  readonly commandMs?: number;
}

/** A value, or why there is none, in words that follow "has no value:". */
export type Reading = { readonly value: string } | { readonly missing: string };

/** Looks a secret up. Nothing of what a failed command has printed is in the words, but its complaint. */
export function readSecret(source: SecretSource | undefined, outside: Outside): Reading {
  if (source?.env !== undefined) return present(outside.env[source.env], `the variable ${source.env}`);
  if (source?.file !== undefined) return readFile(source.file, outside);
  if (source?.command !== undefined) return askCommand(source.command, outside);
  if (source?.keyring !== undefined) return askKeyring(source.keyring, outside);
  return { missing: "nothing says where it comes from" };
}

function present(value: string | undefined, place: string): Reading {
  return value === undefined || value === "" ? { missing: `${place} is empty or missing` } : { value };
}

/** What holds more is no secret that could be sent in a header. */
const largestFile = 64 * 1024;

/** Where the agent may write, it could have put a link to any other secret of the owner's, and be handed that. */
function readFile(file: string, { env, isWritableInside = () => false }: Outside): Reading {
  const read = readOwnersFile(expand(file, env), isWritableInside, largestFile);
  if (read.kind === "agents") return { missing: `the file ${file} ${mayBeTheAgents(read.at)}, so it is not read` };
  const text = read.kind === "owners" ? withoutNewline(read.bytes.toString("utf8")) : undefined;
  return present(text, `the file ${file}`);
}

function mayBeTheAgents(at: string): string {
  return `lies where the agent may write (${at}) and may be the agent's`;
}

/** What writes secrets ends them with a newline more often than secrets end in one. */
function withoutNewline(text: string): string {
  return text.replace(/\r?\n$/, "");
}

function expand(path: string, env: Environment): string {
  const home = env["HOME"] ?? "/";
  return expandPath(path, { home, cwd: home });
}

function askCommand([name = "", ...words]: readonly string[], outside: Outside): Reading {
  const program = /^[/~]/.test(name) ? expand(name, outside.env) : find(name, outside);
  if (program === null) return { missing: `there is no ${name} among the system's programs` };
  return ask(program, name, words, outside);
}

/** `service/account`, as most programs store them: under these two attributes. */
function askKeyring(entry: string, outside: Outside): Reading {
  const program = find("secret-tool", outside);
  if (program === null) return { missing: "the keyring is asked by secret-tool, which is not installed" };
  const cut = entry.indexOf("/");
  const words = ["lookup", "service", entry.slice(0, cut), "username", entry.slice(cut + 1)];
  const reading = ask(program, "secret-tool", words, outside);
  // It says nothing where it finds nothing.
  if ("value" in reading || !reading.missing.endsWith("status 1")) return reading;
  return { missing: `the keyring has no entry ${entry}` };
}

/** A bare name is looked for where no agent can have put another program of that name. */
function find(name: string, { env, findProgram }: Outside): string | null {
  if (name.includes("/")) return null;
  return findProgram === undefined ? findOnPath(name, systemPath(env["PATH"] ?? "")) : findProgram(name);
}

/** In the root directory: what lies where the caller stands may be the agent's. */
function ask(program: string, name: string, words: readonly string[], outside: Outside): Reading {
  const { env, isWritableInside = () => false, commandMs = 60_000 } = outside;
  const way = followWay(program, isWritableInside);
  if (way.kind === "agents") return { missing: `${name} ${mayBeTheAgents(way.at)}, so it is not executed` };
  if (way.kind === "nowhere") return { missing: `there is no ${name}` };
  const { status, signal, error, stdout, stderr } = spawnSync(program, words, {
    cwd: "/",
    env: { ...env, PATH: systemPath(env["PATH"] ?? "") },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: commandMs,
    killSignal: "SIGKILL",
    maxBuffer: 1024 * 1024,
  });
  if (status === 0 && error === undefined) {
    const value = withoutNewline(stdout);
    return value === "" ? { missing: `${name} has printed nothing` } : { value };
  }
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "ETIMEDOUT") return { missing: `${name} did not answer within ${commandMs / 1000} seconds` };
  const end = code ?? (status === null ? `signal ${signal}` : `status ${status}`);
  return { missing: `${name} ended with ${end}${complaint(stderr ?? "")}` };
}

/** The end of what it said, on one line. */
function complaint(text: string): string {
  const words = text.replace(/\p{Cc}+/gu, " ").trim();
  return words === "" ? "" : `: ${words.slice(-400)}`;
}
