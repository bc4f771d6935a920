import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

const version = "0.0.83";

/** Installs srt if it is missing, and returns the directory of its `node_modules`. */
export function installSrt(): string {
  const prefix = join(resolve("."), ".make/bench");
  if (existsSync(join(prefix, "node_modules/.bin/srt"))) return prefix;
  const words = ["install", "--silent", "--no-save", "--prefix", prefix, `@anthropic-ai/sandbox-runtime@${version}`];
  mkdirSync(prefix, { recursive: true });
  const { status, stderr } = spawnSync("npm", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`srt could not be installed: ${stderr}`);
  return prefix;
}
