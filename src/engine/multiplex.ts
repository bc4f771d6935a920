import { EngineError } from "../errors.ts";

export interface OutputPiece {
  readonly stream: "stdin" | "stdout" | "stderr";
  readonly bytes: Buffer;
}

const streams = ["stdin", "stdout", "stderr"] as const;
const headerBytes = 8;

/**
 * Takes apart what an engine sends of a process without terminal: frames of a stream's number, three zeros, a length
 * of four bytes, and that many bytes. Bytes are handed on as they come; only a header that was cut is kept.
 */
export function makeDemultiplexer(): (bytes: Buffer) => readonly OutputPiece[] {
  let header = Buffer.alloc(0);
  let stream: OutputPiece["stream"] = "stdout";
  let remaining = 0;

  return (bytes) => {
    const pieces: OutputPiece[] = [];
    for (let at = 0; at < bytes.length; ) {
      if (remaining === 0) {
        const missing = headerBytes - header.length;
        header = Buffer.concat([header, bytes.subarray(at, at + missing)]);
        at += missing;
        if (header.length < headerBytes) break;
        stream = streamOf(header);
        remaining = header.readUInt32BE(4);
        header = Buffer.alloc(0);
      } else {
        const piece = bytes.subarray(at, at + remaining);
        pieces.push({ stream, bytes: piece });
        at += piece.length;
        remaining -= piece.length;
      }
    }
    return pieces;
  };
}

function streamOf(header: Buffer): OutputPiece["stream"] {
  const stream = streams[header[0] as number];
  if (stream !== undefined && header[1] === 0 && header[2] === 0 && header[3] === 0) return stream;
  throw new EngineError("PROTOCOL", "The engine's stream is not framed as it should be.", {
    details: { header: header.toString("hex") },
  });
}
