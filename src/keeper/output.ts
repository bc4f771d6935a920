import type { Journal } from "../journal/journal.ts";
import type { SecretPool } from "./secrets.ts";

type Stream = "stdout" | "stderr";

/** Keeps what a process prints, without the secrets that are known by then. */
export function keepOutput(
  journal: Journal | null,
  process: number,
  secrets: SecretPool | null,
  kept: "all" | "errors" = "all",
): { watch(stream: Stream, bytes: Buffer): void; flush(): void } {
  const sieves = { stdout: secrets?.redactor(), stderr: secrets?.redactor() };
  const keep = (stream: Stream, bytes: Uint8Array | undefined) => {
    if (bytes !== undefined && bytes.length > 0) journal?.output(process, stream, bytes);
  };
  return {
    watch: (stream, bytes) => {
      if (kept === "all" || stream === "stderr") keep(stream, sieves[stream]?.push(bytes) ?? bytes);
    },
    flush: () => {
      for (const stream of ["stdout", "stderr"] as const) keep(stream, sieves[stream]?.flush());
    },
  };
}
