import { SessionError } from "../errors.ts";
import {
  encodeDirectory,
  encodeGo,
  encodeTerminal,
  encodeUser,
  encodeVariable,
  encodeWord,
  mostOrder,
  mostRecords,
  mostWord,
} from "../wire/frames.ts";
import type { Command, Size } from "./sandbox.ts";

/** PATH_MAX, without the final NUL. */
const mostPath = 4095;
/** One less than the number that means "no user". */
const mostId = 0xffff_fffe;

/** The whole order for one process. What cannot be said to the warden is refused here, before anything is sent. */
export function writeOrder({ argv, env = {}, cwd, user }: Command, terminal: Size | undefined): Buffer {
  if (!argv[0]) throw refuse("The command is empty.", "Name a program.");
  const records = [
    ...argv.map((word) => encodeWord(checkWord(word, "A word of the command"))),
    ...Object.entries(env).map(([name, value]) => writeVariable(name, value)),
    ...(cwd === undefined ? [] : [encodeDirectory(checkPath(cwd))]),
    ...(user === undefined ? [] : [encodeUser(checkId(user.uid, "user"), checkId(user.gid, "group"))]),
    ...(terminal === undefined ? [] : [encodeTerminal(clamp(terminal.rows), clamp(terminal.columns))]),
    encodeGo(),
  ];
  const order = Buffer.concat(records);
  if (records.length > mostRecords || order.length > mostOrder) {
    throw tooLong(`The command has ${records.length} words and variables of ${order.length} bytes together.`);
  }
  return order;
}

/** A terminal has at least one character, and no more than its numbers can say. */
export function clamp(characters: number): number {
  return Math.min(65_535, Math.max(1, Math.trunc(characters) || 1));
}

function writeVariable(name: string, value: string | null): Buffer {
  if (name === "" || name.includes("=")) {
    throw refuse(`${JSON.stringify(name)} cannot be the name of a variable.`, "A name is not empty and has no `=`.");
  }
  checkWord(value === null ? name : `${name}=${value}`, `The variable ${JSON.stringify(name)}`);
  return encodeVariable(name, value);
}

function checkWord(word: string, what: string): string {
  checkNul(word, what);
  const length = Buffer.byteLength(word);
  if (length > mostWord) throw tooLong(`${what} is ${length} bytes long; the most is ${mostWord}.`);
  return word;
}

function checkPath(path: string): string {
  if (path === "") throw refuse("The working directory is empty.", "Name a directory that exists inside.");
  checkNul(path, "The working directory");
  if (Buffer.byteLength(path) > mostPath) {
    throw refuse("The working directory is too long for a path.", `The most is ${mostPath} bytes.`);
  }
  return path;
}

function checkNul(text: string, what: string): void {
  if (text.includes("\0")) throw refuse(`${what} contains a NUL byte.`, "No program can be given one.");
}

function checkId(id: number, what: string): number {
  if (Number.isInteger(id) && id >= 0 && id <= mostId) return id;
  throw refuse(`${id} is not the id of a ${what}.`, `Give a whole number from 0 to ${mostId}.`);
}

function refuse(message: string, hint: string): SessionError {
  return new SessionError("EXEC_FAILED", message, { hint });
}

function tooLong(message: string): SessionError {
  return new SessionError("COMMAND_NOT_EXECUTABLE", message, {
    hint: "Pass long texts through standard input or a file.",
    details: { errno: "E2BIG" },
  });
}
