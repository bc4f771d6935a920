import { realpathSync } from "node:fs";
import { FilesystemError } from "../errors.ts";

/** The caller's home, with every link resolved. */
export function homeOf(env: Readonly<Record<string, string | undefined>>): string {
  const home = env["HOME"];
  if (home?.startsWith("/")) return resolved(home);
  throw new FilesystemError("HOME_INVALID", home ? `HOME is not an absolute path: ${home}` : "HOME is not set.", {
    hint: "Set HOME to your home directory.",
  });
}

/** Links on the way are followed once, here; what does not exist stays as it is, for those who look at it to report. */
export function resolved(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
