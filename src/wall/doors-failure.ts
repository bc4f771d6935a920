import { WallError } from "../errors.ts";

/** In the words of whoever tried to open them. */
export function doorsFailure(words: string, cause?: unknown): WallError {
  const said = words.trim() || "the gate ended without a word";
  return new WallError("DOORS_FAILED", `The doors of the sandbox's network could not be opened: ${said}`, {
    hint: "Nothing was started. `--network none` and `--network open` need no doors.",
    details: { complaint: said },
    cause,
  });
}
