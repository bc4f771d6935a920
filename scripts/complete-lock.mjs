// Completes package-lock.json after `npm install` through a registry mirror that lacks packages of other platforms.
// npm leaves such optional packages out of the lock, and `npm ci` then refuses it. They are written here without
// an integrity hash: npm installs none of them on the platform that the lock was made on.
import { readFileSync, writeFileSync } from "node:fs";

const systems = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const processors = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const path = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));
const added = [];
for (const [parent, { optionalDependencies = {}, dev }] of Object.entries(lock.packages)) {
  if (parent === "") continue;
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const place = `node_modules/${name}`;
    if (place in lock.packages || `${parent}/${place}` in lock.packages) continue;
    const words = name.split("/").at(-1)?.split("-") ?? [];
    const cpu = processors.filter((word) => words.includes(word));
    const os = systems.filter((word) => words.includes(word));
    const libc = words.some((word) => word.startsWith("musl")) ? ["musl"] : [];
    if (!/^\d/.test(version) || (cpu.length === 0 && os.length === 0))
      throw new Error(`cannot place ${name}@${version}`);
    lock.packages[place] = {
      version,
      ...(cpu.length > 0 && { cpu }),
      ...(dev && { dev }),
      ...(libc.length > 0 && { libc }),
      optional: true,
      ...(os.length > 0 && { os }),
    };
    added.push(name);
  }
}
const order = new Intl.Collator("en");
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => order.compare(a, b)));
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(added.map((name) => `added ${name}\n`).join(""));
