import { availableParallelism } from "node:os";
import { type Kind, startBackground } from "./disturbance.ts";

/** Works for 200 ms at a time, so that it notices the end of its stdin in between. */
const burner = `process.stdin.on("end", () => process.exit()).resume();
  setInterval(() => { const end = performance.now() + 200; while (performance.now() < end); });`;

/** Processes that keep every processor busy, up to three for each. */
export const load: Kind = {
  name: "load",
  obstacle: () => null,
  async start({ chance }) {
    const count = availableParallelism() * (1 + chance(3));
    const burners = Array.from({ length: count }, () => startBackground(process.execPath, ["-e", burner]));
    return {
      prefix: [],
      env: {},
      async [Symbol.asyncDispose]() {
        await Promise.all(burners.map((each) => each.end()));
      },
    };
  },
};
