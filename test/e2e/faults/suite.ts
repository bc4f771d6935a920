import { describe } from "vitest";
import type { TestEngine } from "../engines/engine.ts";
import type { Extent } from "../extent.ts";
import { disk } from "./disk.ts";
import { moments } from "./moments.ts";
import { start } from "./start.ts";
import { steps } from "./steps.ts";
import { trouble } from "./trouble.ts";

/**
 * Kills each process, and the engine, at each moment. Afterwards Podbot's messages must be true, and nothing may
 * remain.
 */
export function faults(title: string, engine: TestEngine, extent: Extent): void {
  // Each test has a place of its own, and waits more than it works.
  describe.concurrent(title, () => {
    if (extent !== "the caller's part") trouble(engine.name, () => engine, extent);
    steps(() => engine, extent);
    start(() => engine, extent);
    if (extent === "everything") disk(() => engine);
  });
  // Runs separately, because its random moments assume sessions at normal speed.
  if (extent !== "the caller's part") describe(title, () => moments(() => engine));
}
