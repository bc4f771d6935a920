import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import type { LoadedConfig, LoadOptions } from "../../src/config/types.ts";
import { ConfigError } from "../../src/errors.ts";

/** A home and a project on disk, removed when the test ends. */
export interface Scratch {
  readonly home: string;
  readonly cwd: string;
  /** Writes below the home directory and returns the path. */
  readonly inHome: (path: string, content: string | Uint8Array) => string;
  readonly inProject: (path: string, content: string | Uint8Array) => string;
  readonly load: (options?: Partial<LoadOptions>) => Promise<LoadedConfig>;
}

export function makeScratch(): Scratch {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-config-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [home, cwd] = [join(root, "home"), join(root, "project")];
  mkdirSync(home);
  mkdirSync(cwd);
  return {
    home,
    cwd,
    inHome: (path, content) => write(join(home, path), content),
    inProject: (path, content) => write(join(cwd, path), content),
    load: (options) => loadConfig({ cwd, home, env: {}, ...options }),
  };
}

/** Loads one text as the owner's own file. */
export async function loadText(format: string, text: string | Uint8Array): Promise<LoadedConfig> {
  const scratch = makeScratch();
  scratch.inHome(`.config/podbot/config.${format}`, text);
  return scratch.load();
}

/** The ConfigError that a promise ends in. */
export async function failureOf(promise: Promise<unknown>): Promise<ConfigError> {
  const outcome = await promise.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
  if (outcome instanceof ConfigError) return outcome;
  throw new Error(`expected a ConfigError, got ${String(outcome)}`);
}

function write(file: string, content: string | Uint8Array): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}
