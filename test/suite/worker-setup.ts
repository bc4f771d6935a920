// Vitest runs this in each worker, before the test file: the watchdog must know which worker runs which file.
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";

writeFileSync(join(tmpdir(), "../workers", `${process.pid}`), expect.getState().testPath ?? "");
