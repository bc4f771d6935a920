/** The mode by which git's index says that a path is another repository's commit. */
const gitlinkMode = 0o160000;

/** The paths in an index at which git looks for another repository. None where it is damaged: git refuses that. */
export function readGitlinks(index: Buffer, hashBytes: 20 | 32): readonly string[] {
  if (index.length < 12 || index.toString("latin1", 0, 4) !== "DIRC") return [];
  const version = index.readUInt32BE(4);
  const count = index.readUInt32BE(8);
  const found: string[] = [];
  let previous: Buffer = Buffer.alloc(0);
  let at = 12;
  for (let entry = 0; entry < count && at + 42 + hashBytes <= index.length; entry++) {
    const mode = index.readUInt32BE(at + 24);
    const flags = at + 40 + hashBytes;
    const name = flags + (version >= 3 && (index.readUInt16BE(flags) & 0x4000) !== 0 ? 4 : 2);
    const path = version === 4 ? unpack(index, name, previous) : plain(index, name);
    if (path === null) return found;
    if (mode === gitlinkMode) found.push(path.name.toString("utf8"));
    previous = path.name;
    // Entries of versions 2 and 3 are filled up with 1 to 8 NULs, to a multiple of eight.
    at = version === 4 ? path.end + 1 : at + 8 * (Math.floor((path.end - at) / 8) + 1);
  }
  return found;
}

interface Name {
  readonly name: Buffer;
  /** Where its NUL stands. */
  readonly end: number;
}

function plain(index: Buffer, from: number): Name | null {
  const end = index.indexOf(0, from);
  return end < 0 ? null : { name: index.subarray(from, end), end };
}

/** In version 4 a name begins with how much of the end of the previous one it takes away. */
function unpack(index: Buffer, from: number, previous: Buffer): Name | null {
  let at = from;
  let byte = index[at++] ?? 0;
  let strip = byte & 0x7f;
  while ((byte & 0x80) !== 0 && at < index.length) {
    byte = index[at++] as number;
    strip = (strip + 1) * 128 + (byte & 0x7f);
  }
  const rest = plain(index, at);
  if (rest === null || strip > previous.length) return null;
  return { name: Buffer.concat([previous.subarray(0, previous.length - strip), rest.name]), end: rest.end };
}
