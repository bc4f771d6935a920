import { statSync } from "node:fs";
import { resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import { homeOf, resolved } from "../keeper/standpoint.ts";
import { lastValue, type Parsed } from "./command.ts";
import type { Io } from "./io.ts";

/** Where a command that reads configuration stands: the directory of `-C` or the caller's, and the caller's home. */
export function placeOf(
  parsed: Parsed,
  io: Io,
): { readonly cwd: string; readonly home: string; readonly env: Io["env"] } {
  const cwd = resolve(io.cwd, lastValue(parsed, "cwd") ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new PolicyError("PATH_REFUSED", `There is no directory ${JSON.stringify(cwd)}.`, {
      hint: "Go to an existing directory or name one with -C.",
    });
  }
  return { cwd: resolved(cwd), home: homeOf(io.env), env: io.env };
}
