import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Machine } from "./machine.ts";

/**
 * An agent that works: it writes numbered lines to a file of the workspace, each of them to the disk, and only then
 * says its number. After so many it ends by itself.
 */
export function writer(lines: number): readonly string[] {
  const script = `import os, sys, time
file = os.open("work.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for number in range(${lines}):
    os.write(file, b"%d\\n" % number)
    os.fsync(file)
    print(number, flush=True)
    time.sleep(0.002)`;
  return ["/usr/bin/python3", "-c", script];
}

/** Without an end of its own. */
export const endless = 1_000_000;

/** Every line that was acknowledged is there, and none is torn. Several agents may have written, each from 0 on. */
export function expectNothingLost({ world }: Pick<Machine, "world">, acknowledged: string): void {
  const written = lines(readFileSync(join(world.project, "work.txt"), "utf8"));
  const said = lines(acknowledged);
  expect(written.slice(0, said.length)).toEqual(said);
  expect(written).toEqual(written.map((_, at) => `${at}`));
}

/** Whole lines only: what was on its way when its carrier died is nobody's promise. */
function lines(text: string): readonly string[] {
  return text.split("\n").slice(0, -1);
}
