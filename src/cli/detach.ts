import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { SessionError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { findOwnProgram } from "../machine/programs.ts";
import type { Signal } from "../wall/wall.ts";
import { allValues, type Parsed } from "./command.ts";
import { holdSignal, statuses } from "./interrupt.ts";
import type { Io } from "./io.ts";
import { handedOn } from "./keep.ts";

/** Leaves a session to a process of its own, `podbot keep`, and goes when that says that all is well. */
export async function detach(parsed: Parsed, io: Io): Promise<number> {
  const holding = holdSignal(io);
  const child = spawn(thisHost().node, [findOwnProgram(), "keep", ...wordsOf(parsed)], {
    // Whoever stands in a directory hands that on, and not its name: another may be called so by now.
    ...(io.cwdIdentity === undefined ? { cwd: io.cwd } : {}),
    env: { ...io.env, [handedOn]: JSON.stringify(valuesOf(parsed)) } as NodeJS.ProcessEnv,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit") as Promise<[number | null, string | null]>;
  const complaint = text(child.stderr).catch(() => "");
  // Called off before anybody was told its id, it must not run on unknown.
  let calledOff = null as Signal | null;
  const forget = holding.onSignal((signal) => {
    calledOff = signal;
    child.kill(signal);
  });
  try {
    const announced = await firstLine(child.stdout);
    if (announced !== null) {
      io.stdout.write(`${announced}\n`);
      if (calledOff === null) return 0;
    }
    const [status, signal] = await ended;
    io.stderr.write(await complaint);
    if (calledOff !== null) return statuses[calledOff];
    if (status !== null) return status;
    throw new SessionError("SESSION_ENDED", `The session's keeper was ended by ${signal} before it had started.`, {
      hint: "Start it again; `podbot ps` shows whether anything is left.",
    });
  } finally {
    forget();
    child.unref();
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

/** The command line again, as it was understood. Plan and warnings have been shown already. */
function wordsOf({ switches, values, rest }: Parsed): readonly string[] {
  const done = ["detach", "no-tty", "debug", "quiet"];
  return [
    "--quiet",
    ...[...switches].filter((name) => !done.includes(name)).map((name) => `--${name}`),
    ...[...values].flatMap(([name, list]) =>
      list.filter((value) => name !== "env" || !value.includes("=")).map((value) => `--${name}=${value}`),
    ),
    "--",
    ...rest,
  ];
}

/**
 * Values of variables go by the environment: an argument list can be read by everybody on the machine. And all in one
 * variable of ours: NODE_OPTIONS or HOME, meant for the agent, would act on the keeper.
 */
function valuesOf(parsed: Parsed): readonly string[] {
  return allValues(parsed, "env").filter((word) => word.includes("="));
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<string | null> {
  let said = "";
  for await (const chunk of stream) {
    said += String(chunk);
    const end = said.indexOf("\n");
    if (end >= 0) return said.slice(0, end);
  }
  return null;
}
