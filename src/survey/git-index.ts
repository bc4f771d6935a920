/** The mode by which git's index says that a path is another repository's commit. */
const gitlinkMode = 0o160000;

/** In its flags an entry says how long its name is; this says that the name ends at its NUL. */
const longName = 0xfff;

/**
 * The paths in an index at which git looks for another repository. Null where it is damaged, or says one thing to a
 * reader that goes from entry to entry and another to git: then an entry could be hidden.
 */
export function readGitlinks(index: Buffer, hashBytes: 20 | 32): readonly string[] | null {
  const version = index.length < 12 + hashBytes ? 0 : index.readUInt32BE(4);
  if (index.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return null;
  const body = index.subarray(0, index.length - hashBytes);
  const count = index.readUInt32BE(8);
  const found: string[] = [];
  const offsets: number[] = [];
  let previous: Buffer = Buffer.alloc(0);
  let at = 12;
  for (let entry = 0; entry < count; entry++) {
    const flags = at + 40 + hashBytes;
    // The longest fixed part there is, and a NUL.
    if (flags + 5 > body.length) return null;
    const from = flags + (version >= 3 && (body.readUInt16BE(flags) & 0x4000) !== 0 ? 4 : 2);
    const length = body.readUInt16BE(flags) & longName;
    const path = version === 4 ? unpack(body, from, length, previous) : plain(body, from, length);
    if (path === null) return null;
    offsets.push(at);
    if (body.readUInt32BE(at + 24) === gitlinkMode) found.push(path.name.toString("utf8"));
    previous = path.name;
    // Entries of versions 2 and 3 are filled up with 1 to 8 NULs, to a multiple of eight.
    at = version === 4 ? path.end + 1 : at + 8 * (Math.floor((path.end - at) / 8) + 1);
  }
  return at <= body.length && saysSameByOffsets(body, at, offsets, hashBytes) ? found : null;
}

interface Name {
  readonly name: Buffer;
  /** Where its NUL stands. */
  readonly end: number;
}

/** git takes as many bytes as the flags say and compares them up to the first NUL: both must mean the same name. */
function plain(body: Buffer, from: number, length: number): Name | null {
  const end = body.indexOf(0, from);
  if (end < 0 || (length === longName ? end - from < longName : end - from !== length)) return null;
  return { name: body.subarray(from, end), end };
}

/** In version 4 a name begins with how much of the end of the previous one it takes away. */
function unpack(body: Buffer, from: number, length: number, previous: Buffer): Name | null {
  let at = from;
  let byte = body[at++] ?? 0;
  let strip = byte & 0x7f;
  while ((byte & 0x80) !== 0 && at < body.length) {
    byte = body[at++] as number;
    strip = (strip + 1) * 128 + (byte & 0x7f);
  }
  const end = body.indexOf(0, at);
  if (end < 0 || strip > previous.length) return null;
  const name = Buffer.concat([previous.subarray(0, previous.length - strip), body.subarray(at, end)]);
  return (length === longName ? name.length >= longName : name.length === length) ? { name, end } : null;
}

/**
 * In a large index, git's threads begin at offsets that extensions name: EOIE, the last one, says where the entries end,
 * and IEOT after these where some of them begin. Other offsets would have git read other entries.
 */
function saysSameByOffsets(body: Buffer, end: number, offsets: readonly number[], hashBytes: number): boolean {
  const last = body.length - (12 + hashBytes);
  if (last >= end && body.toString("latin1", last, last + 4) === "EOIE" && body.readUInt32BE(last + 8) !== end)
    return false;
  for (let at = end; at + 8 <= body.length; ) {
    const size = body.readUInt32BE(at + 4);
    if (at + 8 + size > body.length) return false;
    if (body.toString("latin1", at, at + 4) === "IEOT" && !areBlocks(body.subarray(at + 8, at + 8 + size), offsets))
      return false;
    at += 8 + size;
  }
  return true;
}

/** A version, then offset and number of entries of each block. */
function areBlocks(table: Buffer, offsets: readonly number[]): boolean {
  let entry = 0;
  for (let at = 4; at + 8 <= table.length; at += 8) {
    if (table.readUInt32BE(at) !== offsets[entry]) return false;
    entry += table.readUInt32BE(at + 4);
  }
  return entry === offsets.length;
}
