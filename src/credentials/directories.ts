import { blockSize, encodeEntry, type Owner } from "./tar-header.ts";

/** An archive of empty directories, to be unpacked at the root. Whoever unpacks it makes those above them. */
export function* packDirectories(paths: readonly string[], owner: Owner): Generator<Buffer> {
  for (const path of paths) {
    const name = Buffer.from(path.replace(/^\/+/, ""));
    yield encodeEntry({ name, kind: "directory", mode: 0o755, modifiedMs: 0, owner });
  }
  yield Buffer.alloc(2 * blockSize);
}
