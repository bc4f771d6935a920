import { UsageError } from "../errors.ts";
import { openSession } from "../keeper/sessions.ts";
import type { Command } from "../sandbox/sandbox.ts";
import { attachPipes, attachTerminal, ordinarySize } from "./attach.ts";
import { allValues, lastValue, type Parsed } from "./command.ts";
import { holdSignal } from "./interrupt.ts";
import type { Io } from "./io.ts";
import { parseTime, splitPair } from "./sandbox-flags.ts";

const graceMs = 10_000;

/** `podbot exec`: one more process in a session, on the caller's terminal or streams. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [program, ...args] = parsed.rest;
  if (program === undefined) {
    throw new UsageError("USAGE", "podbot exec: there is no command to run.", {
      hint: "For example: podbot exec SESSION -- git status",
    });
  }
  const command = commandOf(parsed, [program, ...args], io);
  const detached = parsed.switches.has("detach");
  const terminal = detached || parsed.switches.has("no-tty") ? null : await io.terminal();
  const note = { argv: command.argv, tty: terminal !== null };
  const sandbox = await openSession(io.env, parsed.words[0] as string, note);
  const holding = holdSignal(io);
  if (terminal !== null) {
    const process = await sandbox.exec(command, terminal.size() ?? ordinarySize);
    return (await attachTerminal(process, terminal, await io.streams(), holding, graceMs)).code;
  }
  const process = await sandbox.exec(command);
  if (!detached) return (await attachPipes(process, await io.streams(), holding, graceMs)).code;
  process.stdin.end();
  process.stdout.resume();
  process.stderr.resume();
  const forget = holding.onSignal((signal) => process.kill(signal));
  const { code } = await process.exited.finally(forget);
  return code;
}

function commandOf(parsed: Parsed, argv: readonly [string, ...string[]], io: Io): Command {
  const cwd = lastValue(parsed, "cwd");
  const timeoutMs = parseTime(lastValue(parsed, "timeout"));
  return {
    argv,
    graceMs,
    env: variablesOf(parsed, io),
    ...(cwd === undefined ? {} : { cwd }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

/** The caller's terminal may be another than the one that the session was started from. */
function variablesOf(parsed: Parsed, io: Io): Readonly<Record<string, string>> {
  const named = allValues(parsed, "env").map((word) => splitPair(word, "--env"));
  const passed = ["TERM", "COLORTERM"].map((name) => [name, undefined] as const);
  return Object.fromEntries(
    [...passed, ...named].flatMap(([name, value]) => {
      const chosen = value ?? io.env[name];
      return chosen === undefined ? [] : [[name, chosen]];
    }),
  );
}
