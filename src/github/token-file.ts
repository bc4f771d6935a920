import { randomBytes } from "node:crypto";
import { chmod, constants, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { FilesystemError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import type { Token } from "../token-source.ts";

/** The file's name in the secrets directory. */
export const tokenFileName = "ghapp_token";

const temporary = /^ghapp_token\.tmp\.[0-9a-f]{16}$/;

/** Makes the directory, or checks that what is there is one that nobody else can enter. */
export async function makeSecretsDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 });
    // The umask may have taken rights that are needed.
    await chmod(directory, 0o700);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw failed(directory, "cannot be made", error);
  }
  await checkDirectory(directory);
}

/**
 * Puts a token in the place of the one before: whoever reads sees either, whole. There is one writer (see lease.ts), so
 * what another attempt has left is nobody's.
 */
export async function writeToken(directory: string, { value }: Pick<Token, "value">): Promise<void> {
  await checkDirectory(directory);
  const path = join(directory, `${tokenFileName}.tmp.${randomBytes(8).toString("hex")}`);
  try {
    await sweep(directory);
    await writeNew(path, value);
    await rename(path, join(directory, tokenFileName));
    await syncDirectory(directory);
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw failed(join(directory, tokenFileName), "cannot be written", error);
  }
}

async function checkDirectory(directory: string): Promise<void> {
  const stats = await lstat(directory).catch((error: unknown) => {
    throw failed(directory, "cannot be looked at", error);
  });
  const obstacle = !stats.isDirectory()
    ? stats.isSymbolicLink()
      ? "is a link"
      : "is not a directory"
    : stats.uid !== thisHost().uid
      ? `belongs to user ${stats.uid}`
      : (stats.mode & 0o777) !== 0o700
        ? `has mode ${(stats.mode & 0o777).toString(8)}, not 700`
        : null;
  if (obstacle !== null) throw failed(directory, `is not safe for a token: it ${obstacle}`);
}

async function writeNew(path: string, value: string): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    // Before anything is in it. The umask may have taken rights, and some filesystems give more.
    await file.chmod(0o600);
    const { mode } = await file.stat();
    if ((mode & 0o777) !== 0o600)
      throw failed(path, `has mode ${(mode & 0o777).toString(8)} although it was set to 600`);
    await file.writeFile(value);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function sweep(directory: string): Promise<void> {
  const left = (await readdir(directory)).filter((name) => temporary.test(name));
  await Promise.all(left.map((name) => rm(join(directory, name), { force: true })));
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function failed(path: string, what: string, cause?: unknown): FilesystemError {
  if (cause instanceof FilesystemError) return cause;
  const code = cause === undefined ? "" : ` (${codeOf(cause)})`;
  return new FilesystemError("FILESYSTEM", `${path} ${what}${code}.`, {
    hint: "It lies in the session's runtime directory: is there space, and is it yours alone?",
    details: { path },
    ...(cause === undefined ? {} : { cause }),
  });
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
