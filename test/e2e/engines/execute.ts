import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { promisify } from "node:util";

/**
 * What every program needs, whoever starts it; nothing of the developer's own environment is inherited. Without TMPDIR,
 * a Podman that is killed leaves parts of images in /var/tmp.
 */
export const base = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8", TMPDIR: tmpdir() };

/** Far more than any of these programs needs. One that hangs must not hold up the run. */
const usualTimeoutMs = 5 * 60_000;

/** Runs a program to its end; that it fails is an error with what it said. */
export async function execute(
  words: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly uid?: number;
    readonly gid?: number;
    readonly timeoutMs?: number;
  } = {},
): Promise<string> {
  const [program = "", ...args] = words;
  const { timeoutMs = usualTimeoutMs, ...rest } = options;
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: "/",
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    ...rest,
    env: { ...base, ...options.env },
  });
  return stdout.trim();
}
