/** Packages of Debian's that somebody may ask for; the rest came along with them. */
export const notablePackages: readonly string[] = [
  "bubblewrap",
  "ca-certificates",
  "catatonit",
  "crun",
  "curl",
  "fuse-overlayfs",
  "gh",
  "git",
  "netavark",
  "nodejs",
  "openssh-client",
  "podman",
  "python3",
  "ripgrep",
  "slirp4netns",
  "uidmap",
];

/** Versions out of the list that dpkg keeps in `/var/lib/dpkg/status`, of those packages that are wholly installed. */
export function installedVersions(status: string, names: readonly string[]): Readonly<Record<string, string>> {
  const versions = new Map<string, string>();
  for (const paragraph of status.split("\n\n")) {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(paragraph)?.[1];
    const name = field("Package");
    const version = field("Version");
    if (name === undefined || version === undefined || !names.includes(name)) continue;
    if (field("Status")?.endsWith(" installed")) versions.set(name, version);
  }
  return Object.fromEntries([...versions.keys()].sort().map((name) => [name, versions.get(name) as string]));
}

const blockSize = 512;

/** The content of the first file of a tar, as engines hand out a single one. Empty where there is none. */
export function firstFile(tar: Buffer): Buffer {
  for (let at = 0; at + blockSize <= tar.length; ) {
    const type = String.fromCharCode(tar.readUInt8(at + 156));
    const size = Number.parseInt(tar.toString("latin1", at + 124, at + 136), 8) || 0;
    const begin = at + blockSize;
    if (type === "0" || type === "\0") return tar.subarray(begin, begin + size);
    at = begin + Math.ceil(size / blockSize) * blockSize;
  }
  return Buffer.alloc(0);
}
