/** A piece of output as engines send it: the stream, its length, and the bytes. */
export function frame(stream: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}
