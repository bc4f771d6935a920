import { ConfigError } from "../errors.ts";
import { showPath } from "./display.ts";

/** One thing that is wrong with the configuration. Holds only what may be printed. */
export interface Problem {
  /** `secret`: a reference to a secret that does not exist. */
  readonly kind: "value" | "secret";
  readonly source: string;
  /** As the reader knows it: a key of a file, or the name of a variable. */
  readonly key: string;
  /** The key of the table that it is about, absent when there is none. */
  readonly field?: string;
  /** The value as it may be shown, absent where it must not be. */
  readonly shown?: string;
  readonly wrong: string;
  readonly wayOut: string;
}

/** A file of nothing but mistakes should not fill the screen. */
export const mostListed = 50;

/** All problems as the one error that is thrown. */
export function configError(problems: readonly Problem[]): ConfigError {
  const code = problems.every((problem) => problem.kind === "secret") ? "SECRET_MISSING" : "CONFIG_INVALID";
  const listed = problems.slice(0, mostListed);
  const lines = listed.map(problemLine);
  if (problems.length > mostListed) lines.push(`and ${problems.length - mostListed} more`);
  const message =
    problems.length === 1
      ? `${lines[0]}`
      : [`${problems.length} problems in the configuration:`, ...lines.map((line) => `  ${line}`)].join("\n");
  return new ConfigError(code, message, { details: { problems: listed } });
}

function problemLine({ source, key, shown, wrong, wayOut }: Problem): string {
  const value = shown === undefined ? "" : ` = ${shown}`;
  return `${showPath(source)}: ${key}${value}: ${wrong}; ${wayOut}`;
}
