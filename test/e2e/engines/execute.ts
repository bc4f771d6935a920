import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** What every program needs, whoever starts it; nothing of the developer's own environment is inherited. */
export const base = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };

/** Runs a program to its end; that it fails is an error with what it said. */
export async function execute(
  words: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly uid?: number; readonly gid?: number } = {},
): Promise<string> {
  const [program = "", ...args] = words;
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: "/",
    ...options,
    env: { ...base, ...options.env },
  });
  return stdout.trim();
}
