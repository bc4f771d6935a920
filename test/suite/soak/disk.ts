import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Kind, startBackground } from "./disturbance.ts";

/** Writes 16 MiB again and again. */
const writer = `process.stdin.on("end", () => process.exit()).resume();
  const fs = require("node:fs"), file = fs.openSync(process.argv[1], "w"), bytes = Buffer.alloc(16 << 20);
  const again = () => fs.write(file, bytes, 0, bytes.length, 0, () => fs.fsync(file, again));
  again();`;

/** Writers that call fsync constantly, so that every other write must wait. */
export const disk: Kind = {
  name: "disk",
  obstacle: () => null,
  async start({ chance, run }) {
    const files = Array.from({ length: 2 + chance(3) }, (_, at) => join(run.directory, `written-${at}`));
    const writers = files.map((file) => startBackground(process.execPath, ["-e", writer, file]));
    return {
      prefix: [],
      env: {},
      async [Symbol.asyncDispose]() {
        await Promise.all(writers.map((each) => each.end()));
        for (const file of files) rmSync(file, { force: true });
      },
    };
  },
};
