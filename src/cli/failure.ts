import { PodbotError } from "../errors.ts";
import type { Io } from "./io.ts";
import { painter } from "./paint.ts";
import { visible, visibleJson } from "./visible.ts";

/** The one place where an error becomes words and an exit status. */
export function reportFailure(error: unknown, io: Io, json: boolean): number {
  const failure = error instanceof PodbotError ? error : defect(error);
  if (json) {
    const { code, message, hint, details } = failure;
    io.stderr.write(`${visibleJson({ error: { code, message, hint, details } })}\n`);
    return failure.exitStatus;
  }
  const paint = painter(io.stderr, io.env);
  const lines = [`${paint("red", "podbot: error:")} ${visible(failure.message)}`];
  if (failure.hint !== undefined) lines.push(`  ${paint("bold", "way out:")} ${visible(failure.hint)}`);
  lines.push(paint("dim", `  (${failure.code}; docs/errors.md)`), "");
  io.stderr.write(lines.join("\n"));
  return failure.exitStatus;
}

function defect(error: unknown): PodbotError {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new PodbotError("INTERNAL", `This is a defect in Podbot: ${stack}`, {
    hint: "Please report it with the command that you ran.",
    cause: error,
  });
}
