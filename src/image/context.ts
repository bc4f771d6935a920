import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { Readable } from "node:stream";
import { encodeEntry, paddingOf } from "../credentials/tar-header.ts";
import { MachineError } from "../errors.ts";
import type { ContextFile } from "./recipe.ts";

export interface ImageSources {
  readonly template: string;
  readonly files: readonly ContextFile[];
}

/** What this installation has in `image/`: the text to begin with, and the files that go into every image. */
export function readImageSources(): ImageSources {
  const directory = findSources();
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name));
  const files = paths.sort().flatMap((path) => {
    const stats = statSync(path);
    // Of the mode only what is meant: the rest is whoever unpacked it.
    const mode = (stats.mode & 0o100) === 0 ? 0o644 : 0o755;
    return stats.isFile() ? [{ name: relative(directory, path), mode, content: readFileSync(path) }] : [];
  });
  const template = files.find(({ name }) => name === "Containerfile")?.content.toString("utf8") ?? "";
  return { template, files: files.filter(({ name }) => name !== "Containerfile") };
}

function findSources(): string {
  for (let at = import.meta.dirname, level = 0; level < 5; at = dirname(at), level++) {
    const candidate = join(at, "image");
    if (existsSync(join(candidate, "Containerfile"))) return candidate;
  }
  throw new MachineError("NATIVE_MISSING", "What Podbot's image is made of is not installed.", {
    hint: "Reinstall the package; it has it in `image/`.",
  });
}

/** As an archive. It is small: scripts, settings and certificates. */
export function contextArchive(files: readonly ContextFile[]): Readable {
  const owner = { uid: 0, gid: 0 };
  const common = { owner, modifiedMs: 0 };
  const directories = new Set(["certificates", ...files.flatMap(({ name }) => parentsOf(name))]);
  const parts = [...directories].sort().map((name) => {
    return encodeEntry({ ...common, name: Buffer.from(name), kind: "directory", mode: 0o755 });
  });
  for (const { name, mode, content } of files) {
    const size = content.length;
    parts.push(encodeEntry({ ...common, name: Buffer.from(name), kind: "file", mode, size }), content);
    parts.push(Buffer.alloc(paddingOf(size)));
  }
  return Readable.from([Buffer.concat([...parts, Buffer.alloc(1_024)])]);
}

function parentsOf(name: string): readonly string[] {
  const parent = dirname(name);
  return parent === "." ? [] : [...parentsOf(parent), parent];
}
