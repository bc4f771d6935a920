/** Archives are made of blocks of this many bytes. */
export const blockSize = 512;

export interface Entry {
  /** Relative to where it will be unpacked, as bytes: a name need not be text. */
  readonly name: Buffer;
  readonly kind: "file" | "directory" | "link";
  readonly mode: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  /** Of a file: how many bytes follow. */
  readonly size?: number;
  /** Of a link: where it points to, as it is written. */
  readonly target?: Buffer;
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * GNU's format, and not pax: every reader knows it (BusyBox passes over pax headers), it carries any bytes as a name,
 * and it spends a second header only on long names. Times are whole seconds in it.
 */
const magic = "ustar  \0";

/** How long a name may be where it stands in the header itself. */
const nameSize = 100;

const types = { file: "0", directory: "5", link: "2", longName: "L", longTarget: "K" } as const;

/** All that stands before the content of an entry. */
export function encodeEntry(entry: Entry): Buffer {
  const name = entry.kind === "directory" ? Buffer.concat([entry.name, Buffer.from("/")]) : entry.name;
  const target = entry.target ?? Buffer.alloc(0);
  return Buffer.concat([
    ...(target.length < nameSize ? [] : encodeLong(types.longTarget, target)),
    ...(name.length < nameSize ? [] : encodeLong(types.longName, name)),
    encodeHeader({ ...entry, name, target, size: entry.size ?? 0, type: types[entry.kind] }),
  ]);
}

/** A name that is too long for a header is the content of an entry before it. */
function encodeLong(type: string, name: Buffer): readonly Buffer[] {
  const owner = { uid: 0, gid: 0 };
  const size = name.length + 1;
  const header = { name: Buffer.from("././@LongLink"), target: Buffer.alloc(0), mode: 0o644, modifiedMs: 0, owner };
  return [encodeHeader({ ...header, size, type }), name, Buffer.alloc(1 + paddingOf(size))];
}

interface Header extends Omit<Entry, "kind"> {
  readonly size: number;
  readonly target: Buffer;
  readonly type: string;
}

function encodeHeader(header: Header): Buffer {
  const block = Buffer.alloc(blockSize);
  header.name.copy(block, 0, 0, nameSize - 1);
  writeNumber(block, 100, 8, header.mode & 0o7777);
  writeNumber(block, 108, 8, header.owner.uid);
  writeNumber(block, 116, 8, header.owner.gid);
  writeNumber(block, 124, 12, header.size);
  writeNumber(block, 136, 12, Math.floor(header.modifiedMs / 1000));
  block.write(header.type, 156);
  header.target.copy(block, 157, 0, nameSize - 1);
  block.write(magic, 257);
  // The sum is taken with spaces where it will stand.
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Octal digits; what does not fit, such as 8 GiB or a time before 1970, is binary and says so in its first bit. */
function writeNumber(block: Buffer, at: number, length: number, value: number): void {
  const digits = value.toString(8);
  if (value >= 0 && digits.length < length) {
    block.write(digits.padStart(length - 1, "0"), at);
    return;
  }
  let rest = BigInt.asUintN(8 * length, BigInt(value));
  for (let index = at + length - 1; index >= at; index--, rest >>= 8n) block[index] = Number(rest & 0xffn);
  block.writeUInt8(block.readUInt8(at) | 0x80, at);
}

/** How many zeros follow a content of this size. */
export function paddingOf(size: number): number {
  return (blockSize - (size % blockSize)) % blockSize;
}
