import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeDemultiplexer, type OutputPiece } from "../../src/engine/multiplex.ts";
import { EngineError } from "../../src/errors.ts";
import { frame } from "./frame.ts";

/** What each stream has said. */
function gather(pieces: readonly OutputPiece[]): Record<string, string> {
  const said: Record<string, string> = {};
  for (const { stream, bytes } of pieces) said[stream] = (said[stream] ?? "") + bytes.toString("latin1");
  return said;
}

describe("what an engine sends of a process", () => {
  const sent = Buffer.concat([frame(1, "out"), frame(2, "err"), frame(1, ""), frame(1, "put"), frame(0, "in")]);

  test("comes apart the same wherever it is cut", () => {
    for (let first = 0; first <= sent.length; first++) {
      for (let second = first; second <= sent.length; second++) {
        const take = makeDemultiplexer();
        const parts = [sent.subarray(0, first), sent.subarray(first, second), sent.subarray(second)];
        expect(gather(parts.flatMap(take))).toEqual({ stdout: "output", stderr: "err", stdin: "in" });
      }
    }
  });

  test("is handed on before its frame is complete", () => {
    const take = makeDemultiplexer();
    expect(gather(take(frame(1, "abcdef").subarray(0, 10)))).toEqual({ stdout: "ab" });
  });

  test("is refused where it is not framed", () => {
    for (const bytes of [
      Buffer.from("plain text"),
      Buffer.from([3, 0, 0, 0, 0, 0, 0, 0]),
      Buffer.from([1, 0, 1, 0, 0, 0, 0, 0]),
    ])
      expect(() => makeDemultiplexer()(bytes)).toThrow(EngineError);
  });

  test("keeps every byte of every stream, in order", () => {
    const text = fc.string({ unit: "binary-ascii", maxLength: 50 });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(1, 2), text)), fc.integer({ min: 1, max: 20 }), (frames, step) => {
        const all = Buffer.concat(frames.map(([stream, said]) => frame(stream, said)));
        const take = makeDemultiplexer();
        const pieces: OutputPiece[] = [];
        for (let at = 0; at < all.length; at += step) pieces.push(...take(all.subarray(at, at + step)));
        const of = (stream: number) => frames.flatMap(([number, said]) => (number === stream ? [said] : [])).join("");
        const said = gather(pieces);
        expect([said["stdout"] ?? "", said["stderr"] ?? ""]).toEqual([of(1), of(2)]);
      }),
    );
  });
});
