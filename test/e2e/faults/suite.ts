import { describe } from "vitest";
import type { TestEngine } from "../engines/engine.ts";
import { disk } from "./disk.ts";
import { moments } from "./moments.ts";
import { start } from "./start.ts";
import { steps } from "./steps.ts";
import { trouble } from "./trouble.ts";

/** Everybody dies, at every moment, and the engine too: what is said then must be true, and nothing may be left. */
export function faults(title: string, engine: TestEngine): void {
  describe(title, () => {
    steps(() => engine);
    start(() => engine);
    moments(() => engine);
    trouble(engine.name, () => engine);
    // Only root can mount a disk that is small enough to be full.
    if (engine.caller.uid === 0) disk(() => engine);
  });
}
