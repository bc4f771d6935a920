import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { dirname, join } from "node:path";

/** A package `tiny` for each of these, made here and now, and the registry that has it: static files, as all of them are. */
export type Files = ReadonlyMap<string, Buffer>;

export function serveFiles(files: Files): RequestListener {
  return (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const content = files.get(path);
    const type = path.endsWith("/") ? "text/html" : "application/octet-stream";
    if (content === undefined || request.method !== "GET") response.writeHead(404).end("there is no such file\n");
    else response.writeHead(200, { "content-type": type, "content-length": content.length }).end(content);
  };
}

export function npmRegistry(directory: string, url: string): Files {
  const manifest = { name: "tiny", version: "1.0.0", main: "index.js" };
  write(directory, "package/package.json", JSON.stringify(manifest));
  write(directory, "package/index.js", 'module.exports = "tiny from npm";\n');
  const archive = run(directory, "tar", "-czf", "-", "package");
  const dist = {
    tarball: `${url}/tiny/-/tiny-1.0.0.tgz`,
    integrity: `sha512-${createHash("sha512").update(archive).digest("base64")}`,
  };
  const about = { name: "tiny", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": { ...manifest, dist } } };
  return new Map([
    ["/tiny", Buffer.from(JSON.stringify(about))],
    ["/tiny/-/tiny-1.0.0.tgz", archive],
  ]);
}

export function pythonIndex(directory: string): Files {
  const name = "tiny-1.0.0-py3-none-any.whl";
  const script = `import sys, zipfile
info = "tiny-1.0.0.dist-info/"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("tiny.py", "word = 'tiny from pip'\\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "tiny.py,,\\n" + info + "METADATA,,\\n" + info + "WHEEL,,\\n" + info + "RECORD,,\\n")
`;
  mkdirSync(directory, { recursive: true });
  run(directory, "/usr/bin/python3", "-c", script, name);
  return new Map([
    [
      "/simple/tiny/",
      Buffer.from(`<!DOCTYPE html><html><body><a href="../../files/${name}">${name}</a></body></html>`),
    ],
    [`/files/${name}`, readFileSync(join(directory, name))],
  ]);
}

export function debianRepository(directory: string): Files {
  const control =
    "Package: tiny\nVersion: 1.0.0\nArchitecture: all\nMaintainer: Test <test@example.com>\nDescription: tiny\n";
  write(directory, "tree/DEBIAN/control", control);
  write(directory, "tree/usr/share/tiny/word", "tiny from apt\n");
  run(directory, "dpkg-deb", "--build", "--root-owner-group", "tree", "tiny_1.0.0_all.deb");
  const archive = readFileSync(join(directory, "tiny_1.0.0_all.deb"));
  const digest = createHash("sha256").update(archive).digest("hex");
  const index = Buffer.from(`${control}Filename: tiny_1.0.0_all.deb\nSize: ${archive.length}\nSHA256: ${digest}\n`);
  const listed = `${createHash("sha256").update(index).digest("hex")} ${index.length} Packages`;
  const release = `Suite: stable\nDate: ${new Date(Date.now() - 3_600_000).toUTCString()}\nSHA256:\n ${listed}\n`;
  return new Map([
    ["/debian/Release", Buffer.from(release)],
    ["/debian/Packages", index],
    ["/debian/tiny_1.0.0_all.deb", archive],
  ]);
}

/** The index is a repository of git, in `index.git`; what it names is a file. */
export function cargoRegistry(
  directory: string,
  url: string,
): { readonly files: Files; readonly repositories: string } {
  const at = join(directory, "tiny-1.0.0");
  write(at, "Cargo.toml", '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2018"\n');
  write(at, "src/lib.rs", 'pub fn word() -> &\'static str { "tiny from cargo" }\n');
  const crate = run(directory, "tar", "-czf", "-", "tiny-1.0.0");
  const cksum = createHash("sha256").update(crate).digest("hex");
  const index = join(directory, "index");
  write(index, "config.json", JSON.stringify({ dl: `${url}/crates` }));
  write(
    index,
    "ti/ny/tiny",
    `${JSON.stringify({ name: "tiny", vers: "1.0.0", deps: [], cksum, features: {}, yanked: false })}\n`,
  );
  const git = (...words: readonly string[]) => run(index, "git", ...words);
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("-c", "user.name=Town", "-c", "user.email=town@example.com", "commit", "-qm", "first");
  run(directory, "git", "clone", "-q", "--bare", "index", "index.git");
  return { files: new Map([["/crates/tiny/1.0.0/download", crate]]), repositories: directory };
}

function write(directory: string, path: string, content: string): void {
  const at = join(directory, path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, content);
}

function run(cwd: string, program: string, ...words: readonly string[]): Buffer {
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
  return execFileSync(program, words, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
}
