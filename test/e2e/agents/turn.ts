import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { Result } from "../shipped.ts";

/** Runs words to their end, with this environment and no other. */
export async function runWords(
  [file = "", ...words]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  input: string,
  cwd = "/",
): Promise<Result> {
  const child = spawn(file, words, { cwd, env: env as NodeJS.ProcessEnv, stdio: "pipe" });
  child.stdin.on("error", () => {}).end(input);
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { status, stdout, stderr };
}

/** Variables as flags of Podbot's. */
export function envFlags(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
}
