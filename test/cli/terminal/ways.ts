import type { World } from "../../world.ts";
import { startIdle } from "./remains.ts";

/** The two ways to have a program on one's terminal. */
export interface Way {
  readonly name: "run" | "exec";
  /** What is written before the program's own words. */
  prepare(world: World): string;
}

export const ways: readonly Way[] = [
  { name: "run", prepare: () => "podbot run --agent custom --" },
  { name: "exec", prepare: (world) => `podbot exec ${startIdle(world)} --` },
];
