import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A session's directory on disk, removed when the test ends. */
export function makeDirectory(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-journal-")));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
