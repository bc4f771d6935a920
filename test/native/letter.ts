/** Writes letters for podbot-launch, good and bad. */
export type LetterRecord = readonly [type: string, content: string | Buffer];

export const heading = (pins: number): Buffer => Buffer.concat([Buffer.from("podbot1\n"), number(pins)]);

export function record(type: string, content: string | Buffer, length = Buffer.byteLength(content)): Buffer {
  return Buffer.concat([Buffer.from(type), number(length), Buffer.from(content)]);
}

export function letter(pins: number, records: readonly LetterRecord[]): Buffer {
  return Buffer.concat([heading(pins), ...records.map(([type, content]) => record(type, content)), record("E", "")]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
