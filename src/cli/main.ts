import { nearestName } from "../config/nearest.ts";
import { UsageError } from "../errors.ts";
import { reportFailure } from "./failure.ts";
import { commandHelp, mainHelp } from "./help.ts";
import type { Io } from "./io.ts";
import { parseArguments } from "./parse.ts";
import { commands } from "./table.ts";
import { version } from "./version.ts";

/** The program: words in, exit status out. It never ends the process and prints errors in one place only. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return reportFailure(error, io, wantsJson(argv));
  }
}

async function dispatch([name, ...rest]: readonly string[], io: Io): Promise<number> {
  if (name === undefined || name === "--help" || name === "-h") return showHelp(undefined, io);
  if (name === "help") return showHelp(rest[0], io);
  if (name === "--version" || name === "-v" || name === "version") {
    io.stdout.write(`podbot ${version}\n`);
    return 0;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw unknownCommand(name);
  const parsed = parseArguments(command, rest);
  if (parsed.switches.has("help")) return showHelp(name, io);
  const { run } = await command.load();
  return run(parsed, io);
}

function showHelp(name: string | undefined, io: Io): number {
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined && name !== undefined) throw unknownCommand(name);
  io.stdout.write(command === undefined ? mainHelp() : commandHelp(command));
  return 0;
}

function unknownCommand(name: string): UsageError {
  const near = nearestName(
    name,
    commands.map((command) => command.name),
  );
  return new UsageError("USAGE", `There is no command ${JSON.stringify(name)}.`, {
    hint: near === undefined ? "`podbot --help` lists the commands." : `Did you mean \`podbot ${near}\`?`,
  });
}

/** Before the words are understood, all that can be asked is whether the caller wants to read JSON. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
