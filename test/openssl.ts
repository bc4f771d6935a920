import { execFileSync } from "node:child_process";

/**
 * Runs openssl in a directory. Under `make soak` the clock of the tests jumps by libfaketime: openssl is then a day
 * behind, so that a certificate does not begin after the time that its reader sees.
 */
export function openssl(cwd: string, ...words: readonly string[]): void {
  const { FAKETIME_TIMESTAMP_FILE: _, ...env } = process.env as Record<string, string>;
  execFileSync("openssl", words, { cwd, env: { ...env, FAKETIME: "-1d" }, stdio: "pipe" });
}
