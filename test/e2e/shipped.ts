import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { program } from "../world.ts";
import type { EngineWorld } from "./engine-box.ts";

export interface Result {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  said(): string;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Result>;
}

/** The program as it is shipped, in a process of its own. */
export function start(
  world: EngineWorld,
  words: readonly string[],
  options: { readonly input?: string } = {},
): Running {
  const child = spawn(process.execPath, [program, ...words], {
    cwd: world.project,
    env: world.env as NodeJS.ProcessEnv,
    stdio: "pipe",
  });
  child.stdin.on("error", () => {}).end(options.input ?? "");
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    said += part;
  });
  const stderr = text(child.stderr);
  const ended = once(child, "close").then(
    async ([status]) => ({ status, stdout: said, stderr: await stderr }) as Result,
  );
  return { said: () => said, kill: (signal) => void child.kill(signal), ended };
}

/** The same, to its end. */
export function podbot(
  world: EngineWorld,
  words: readonly string[],
  options: { readonly input?: string } = {},
): Promise<Result> {
  return start(world, words, options).ended;
}
