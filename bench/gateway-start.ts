import { openSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { planSandbox } from "../src/keeper/sandbox.ts";
import { atMost, forInformation, type Line, measure, program } from "./measure.ts";
import { makeWorld } from "./start.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 25);
const cli = resolve("dist/podbot.cjs");

/** How much longer a start takes for a box that has doors. */
export async function doorLines(): Promise<readonly Line[]> {
  const { directory, cwd, env } = makeWorld();
  const silent = [openSync("/dev/null", "r"), openSync("/dev/null", "w"), 2] as const;
  const start = (mode: "none" | "allowlist") => async () => {
    const planned = await planSandbox({ command: ["true"], cwd, env, config: { network: { mode } } });
    const { code } = await planned.run(silent);
    if (code !== 0) throw new Error(`true ended with ${code}`);
  };
  const command = (mode: string) =>
    program(process.execPath, [cli, "sandbox", "--network", mode, "--", "true"], { cwd, env });
  try {
    const library = await measure({ none: start("none"), doors: start("allowlist") }, rounds, 5);
    const line = await measure({ none: command("none"), doors: command("allowlist") }, rounds, 5);
    const added = line.doors - line.none;
    return [
      atMost(
        `library: doors add to a start of true (${library.none.toFixed(1)} ms without)`,
        library.doors - library.none,
        { guard: 10 },
        "ms",
      ),
      forInformation(
        `command line: doors add to podbot sandbox -- true (${line.none.toFixed(1)} ms without)`,
        added,
        "ms",
      ),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
