import { detectSandbox } from "../machine/inside.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";

export async function run(parsed: Parsed, io: Io): Promise<number> {
  const inside = detectSandbox();
  if (parsed.switches.has("json")) {
    io.stdout.write(`${JSON.stringify(inside === null ? { inside: false } : { inside: true, ...inside })}\n`);
  } else if (!parsed.switches.has("quiet")) {
    io.stdout.write(inside === null ? "outside sandbox\n" : "inside sandbox\n");
  }
  return inside === null ? 1 : 0;
}
