import { diagnose, isAble } from "../machine/diagnosis.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { type Colour, painter } from "./paint.ts";
import { visible } from "./visible.ts";

const looks = { ok: "green", weak: "yellow", missing: "red" } as const satisfies Record<string, Colour>;

/** `podbot doctor`: exit status 0 where sandboxes can be started, 125 where not. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const findings = diagnose(io.env["PATH"] ?? "");
  const able = isAble(findings);
  if (parsed.switches.has("json")) io.stdout.write(`${JSON.stringify({ able, findings }, null, 2)}\n`);
  else {
    const paint = painter(io.stdout, io.env);
    for (const { name, state, found, remedy } of findings) {
      io.stdout.write(`${paint(looks[state], state.padEnd(7))}  ${name.padEnd(16)}  ${visible(found)}\n`);
      if (remedy !== null) io.stdout.write(`         ${" ".repeat(16)}  → ${remedy}\n`);
    }
    io.stdout.write(able ? "\nSandboxes can be started here.\n" : "\nNo sandbox can be started here yet.\n");
  }
  return able ? 0 : 125;
}
