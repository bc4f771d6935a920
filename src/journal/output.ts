import { isUtf8 } from "node:buffer";
import { isCount, parseObject } from "./event.ts";

export type Stream = "stdout" | "stderr";

/** What a process printed in one piece. Order is that of the file. */
export interface OutputEntry {
  readonly at: string;
  readonly process: number;
  readonly stream: Stream;
  readonly bytes: Buffer;
}

/** As text where it can be, so that people and other programs can read the file; otherwise as base64. */
export function encodeOutput({
  at,
  process,
  stream,
  bytes,
}: Omit<OutputEntry, "bytes"> & { bytes: Uint8Array }): string {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const content = isUtf8(view) ? { text: view.toString("utf8") } : { base64: view.toString("base64") };
  return `${JSON.stringify({ at, process, stream, ...content })}\n`;
}

/** Null for a damaged line. */
export function parseOutput(line: string): OutputEntry | null {
  const value = parseObject(line);
  if (value === null) return null;
  const { at, process, stream, text, base64 } = value;
  if (typeof at !== "string" || !isCount(process) || (stream !== "stdout" && stream !== "stderr")) return null;
  if (typeof text === "string" && base64 === undefined)
    return { at, process, stream, bytes: Buffer.from(text, "utf8") };
  if (typeof base64 !== "string" || text !== undefined) return null;
  return { at, process, stream, bytes: Buffer.from(base64, "base64") };
}
