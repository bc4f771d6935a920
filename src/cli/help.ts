import type { Command, Flag } from "./command.ts";
import { commands } from "./table.ts";

export function mainHelp(): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    "podbot: run any coding agent behind a wall that its owner can inspect.",
    "",
    "Usage: podbot COMMAND [flags]",
    "",
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "  podbot COMMAND --help explains a command, podbot --version prints the version.",
    "",
    "Start here:",
    "  podbot demo                       see it work",
    "  podbot sandbox -- npm test        only this directory is writable, credentials are hidden, no network",
    "  podbot sandbox --network open -- claude",
    "",
  ].join("\n");
}

export function commandHelp(command: Command): string {
  const left = command.flags.map(flagForm);
  const width = Math.max(...left.map((form) => form.length));
  return [
    command.summary,
    "",
    `Usage: ${command.usage}`,
    "",
    "Flags:",
    ...command.flags.map(
      (flag, at) => `  ${(left[at] as string).padEnd(width)}  ${flag.about}${flag.repeatable ? " Repeatable." : ""}`,
    ),
    ...(command.examples.length > 0 ? ["", "Examples:"] : []),
    ...command.examples.map(([example, about]) => `  ${example}${about === "" ? "" : `    # ${about}`}`),
    "",
  ].join("\n");
}

function flagForm({ name, short, value }: Flag): string {
  return `${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}
