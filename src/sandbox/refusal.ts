import { constants } from "node:os";
import { type ErrorOptions, SessionError } from "../errors.ts";
import type { Stage } from "../wire/frames.ts";
import type { Command } from "./sandbox.ts";

/** What says that the machine is exhausted, not that the command is wrong. */
const exhaustion: ReadonlySet<string> = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "EIO"]);

/** What the numbers mean for a command. Everything else is called by its name. */
const meanings: Readonly<Record<string, string>> = {
  E2BIG: "its words and variables are too long together",
  EACCES: "permission denied",
  EAGAIN: "there are too many processes",
  EISDIR: "it is a directory",
  ELOOP: "too many symbolic links",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "the name is too long",
  ENFILE: "too many files are open",
  ENOENT: "it does not exist",
  ENOEXEC: "it is not a program for this machine",
  ENOMEM: "there is not enough memory",
  ENOTDIR: "part of its path is not a directory",
  EPERM: "it is not permitted",
  ETXTBSY: "it is being written to",
};

/** Why the warden could not start a command, in words. */
export function explainRefusal(command: Command, stage: Stage, errno: number): SessionError {
  const name = nameOf(errno);
  const why = meanings[name] ?? name;
  const details = { stage, errno: name };
  const failed = (message: string, options: ErrorOptions = {}) =>
    new SessionError("EXEC_FAILED", message, { details, ...options });
  const [program] = command.argv;
  switch (stage) {
    case "order":
      return failed(`The warden refused the order: ${why}.`);
    case "directory":
      return failed(`The working directory ${JSON.stringify(command.cwd ?? ".")} cannot be entered: ${why}.`, {
        hint: "Name a directory that exists inside.",
      });
    case "user":
      return failed(`The user ${command.user?.uid ?? "?"}:${command.user?.gid ?? "?"} was refused: ${why}.`, {
        hint: "Only ids that are mapped into the sandbox can be used, and only by its root.",
      });
    case "means":
      return failed(`Nothing was left to start ${JSON.stringify(program)} with: ${why}.`, {
        hint: "End other processes in the sandbox, or raise its limits.",
      });
    case "execution":
      if (exhaustion.has(name)) return failed(`${JSON.stringify(program)} could not be started: ${why}.`);
      return explainExecution(program, name, why, details);
  }
}

function explainExecution(program: string, name: string, why: string, details: ErrorOptions["details"] & object) {
  if (name !== "ENOENT" && name !== "ENOTDIR") {
    return new SessionError("COMMAND_NOT_EXECUTABLE", `${JSON.stringify(program)} cannot be executed: ${why}.`, {
      hint: "Name an executable file.",
      details,
    });
  }
  const hint = program.includes("/")
    ? "Look whether the file exists inside, and the interpreter that its first line names."
    : "Install it where PATH inside the sandbox finds it, or name it by its path.";
  return new SessionError("COMMAND_NOT_FOUND", `${JSON.stringify(program)} was not found in the sandbox.`, {
    hint,
    details,
  });
}

function nameOf(errno: number): string {
  return Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `error ${errno}`;
}
