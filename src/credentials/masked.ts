import { closeSync, constants, fstatSync, readFileSync, type Stats } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { maskContent } from "./masked-content.ts";
import { type MaskedFile, maskedFiles } from "./masked-files.ts";
import { locate, openSource, type PackedCredentials, type PackRequest, packAncestors, type Source } from "./pack.ts";
import { blockSize, encodeEntry, type Owner, paddingOf } from "./tar-header.ts";

export interface MaskedPackRequest extends Omit<PackRequest, "signal"> {
  /** The surrogate of a token that was found in a file; null where there can be none. */
  readonly mask: (real: string, file: MaskedFile, way: readonly string[]) => string | null;
}

export interface MaskedCredentials extends PackedCredentials {
  /** What was left out, and why. */
  readonly warnings: readonly string[];
}

/** Files with logins are small; what is not would be held in memory. */
const largest = 4 * 1024 * 1024;

/**
 * Of the files and directories asked for, those files that are known, with surrogates instead of tokens. What is not
 * known may hold secrets and stays outside.
 */
export function packMaskedCredentials(request: MaskedPackRequest): MaskedCredentials {
  const { home, names, target, owner, mask } = request;
  const warnings: string[] = [];
  const packed: { readonly source: Source; readonly content: Buffer }[] = [];
  for (const name of new Set(names)) {
    const found = locate(home, name);
    if (found === null) continue;
    const known = maskedFiles.filter(({ path }) => path === name || path.startsWith(`${name}/`));
    if (found.stats.isDirectory() || known.length === 0) warnings.push(partly(name, known));
    for (const file of known) {
      const source = locate(home, file.path);
      if (source === null) continue;
      const content = maskContent(file, readLogin(source.path, source.stats), (real, way) => mask(real, file, way));
      if (content === null)
        warnings.push(`creds.mode = "masked": ${file.path} is not what it should be, and not copied.`);
      else packed.push({ source, content: Buffer.from(content) });
    }
  }
  if (packed.length === 0) return { paths: [], archive: null, warnings };
  const made = new Set(packed.map(({ source }) => source.name));
  const parts = packed.flatMap(({ source, content }) => [
    ...packAncestors(source, owner, made),
    ...packContent(source, content, owner),
  ]);
  const archive = Readable.from([Buffer.concat([...parts, Buffer.alloc(2 * blockSize)])]);
  return { paths: packed.map(({ source }) => join(target, source.name)), archive, warnings };
}

function partly(name: string, known: readonly MaskedFile[]): string {
  const what =
    known.length === 0 ? "is not copied" : `is copied only in part (${known.map(({ path }) => path).join(", ")})`;
  return `creds.mode = "masked": ${name} ${what}: what Podbot does not know may hold secrets.`;
}

/** What a login's file holds, if it is one; otherwise nothing. With an identity, only if it is still the same file. */
export function readLogin(path: string, identity?: Pick<Stats, "dev" | "ino">): string {
  const descriptor = openSource(path, constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    const isSame = identity === undefined || (stats.dev === identity.dev && stats.ino === identity.ino);
    return isSame && stats.isFile() && stats.size <= largest ? readFileSync(descriptor, "utf8") : "";
  } finally {
    closeSync(descriptor);
  }
}

function packContent({ name, stats }: Source, content: Buffer, owner: Owner): readonly Buffer[] {
  const size = content.length;
  const entry = { name: Buffer.from(name), kind: "file", mode: 0o600, modifiedMs: stats.mtimeMs, owner, size } as const;
  return [encodeEntry(entry), content, Buffer.alloc(paddingOf(size))];
}
