import type { Readable } from "node:stream";
import { blockSize, encodeEntry, type Owner, paddingOf } from "./tar-header.ts";

export interface ContainerUser extends Owner {
  readonly name: string;
  readonly home: string;
}

/** No system has a larger list of users that an image would carry. */
const largest = 1_048_576;

/**
 * An image's list of users with one more in it, as an archive to be unpacked at the root; null where the user is known,
 * or the list cannot be read. Programs that ask who they are fail where nobody by their number is listed.
 */
export async function packUser(list: Readable, user: ContainerUser): Promise<Buffer | null> {
  const known = firstFile(await readStart(list));
  if (known === null) return null;
  const text = known.toString("latin1");
  const { uid, gid, name, home } = user;
  if (text.split("\n").some((line) => line.split(":")[2] === String(uid))) return null;
  const end = text === "" || text.endsWith("\n") ? "" : "\n";
  const content = Buffer.from(`${text}${end}${name}:x:${uid}:${gid}::${home}:/bin/sh\n`, "latin1");
  const entry = { name: Buffer.from("etc/passwd"), kind: "file", mode: 0o644, modifiedMs: 0 } as const;
  return Buffer.concat([
    encodeEntry({ ...entry, owner: { uid: 0, gid: 0 }, size: content.length }),
    content,
    Buffer.alloc(paddingOf(content.length) + 2 * blockSize),
  ]);
}

async function readStart(stream: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream as AsyncIterable<Buffer>) {
    parts.push(part);
    size += part.length;
    if (size > largest) break;
  }
  return Buffer.concat(parts);
}

/** The content of the first ordinary file of an archive that is read whole. */
function firstFile(archive: Buffer): Buffer | null {
  for (let at = 0; at + blockSize <= archive.length; ) {
    // Digits only: a number below zero would lead back to where we are.
    const size = Number.parseInt(/^[0-7]*/.exec(archive.toString("latin1", at + 124, at + 136))?.[0] ?? "", 8) || 0;
    const type = String.fromCharCode(archive[at + 156] ?? 0);
    const begins = at + blockSize;
    if (type === "0" || type === "\0") {
      return begins + size <= archive.length && size > 0 ? archive.subarray(begins, begins + size) : null;
    }
    at = begins + size + paddingOf(size);
  }
  return null;
}
