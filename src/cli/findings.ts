import type { Finding } from "../machine/diagnosis.ts";
import type { Io } from "./io.ts";
import { type Colour, painter } from "./paint.ts";
import { visible } from "./visible.ts";

const looks = { ok: "green", weak: "yellow", missing: "red" } as const satisfies Record<string, Colour>;

/** A line for each, and another for what mends it. */
export function printFindings(findings: readonly Finding[], io: Io): void {
  const paint = painter(io.stdout, io.env);
  for (const { name, state, found, remedy } of findings) {
    io.stdout.write(`${paint(looks[state], state.padEnd(7))}  ${name.padEnd(16)}  ${visible(found)}\n`);
    if (remedy !== null) io.stdout.write(`         ${" ".repeat(16)}  → ${remedy}\n`);
  }
}
