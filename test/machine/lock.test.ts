import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { withLock } from "../../src/machine/lock.ts";
import { ownMark } from "../../src/machine/process.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-lock-"));
afterAll(() => rmSync(directory, { recursive: true }));

let count = 0;
const fresh = () => join(directory, `${count++}`, "lock");

describe("a lock", () => {
  test("is there while something is done, and not afterwards", () => {
    const path = fresh();
    expect(withLock(path, ownMark(), () => readlinkSync(path))).toBe(Object.values(ownMark()).join(" "));
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  test("is given back by what fails", () => {
    const path = fresh();
    const fail = () => {
      throw new Error("mine");
    };
    expect(() => withLock(path, ownMark(), fail)).toThrow("mine");
    expect(existsSync(path)).toBe(false);
  });

  test("is taken from a dead process, and from one that only has its number", () => {
    const { pid, started, space } = ownMark();
    for (const holder of [`4194304 ${started} ${space}`, `${pid} 1 ${space}`]) {
      const path = fresh();
      withLock(path, ownMark(), () => {});
      symlinkSync(holder, path);
      expect(withLock(path, ownMark(), () => "mine")).toBe("mine");
    }
  });

  test("is waited for while its holder lives, wherever that is", async () => {
    const { started, space } = ownMark();
    const path = fresh();
    withLock(path, ownMark(), () => {});
    const holder = spawn("sh", [
      "-c",
      'ln -s "$2" "$1"; echo there; sleep 0.3; rm "$1"',
      "sh",
      path,
      `1 ${started} else`,
    ]);
    await once(holder.stdout, "data");
    withLock(path, ownMark(), () => expect(readlinkSync(path)).toContain(space));
    await once(holder, "close");
  });

  test("lets only one in at a time, of many processes", async () => {
    const path = fresh();
    const counter = join(directory, "counter");
    writeFileSync(counter, "0");
    withLock(path, ownMark(), () => {});
    const script = `import { withLock } from ${JSON.stringify(join(import.meta.dirname, "../../src/machine/lock.ts"))};
import { ownMark } from ${JSON.stringify(join(import.meta.dirname, "../../src/machine/process.ts"))};
import { readFileSync, writeFileSync } from "node:fs";
for (let i = 0; i < 50; i++) withLock(${JSON.stringify(path)}, ownMark(), () =>
  writeFileSync(${JSON.stringify(counter)}, String(Number(readFileSync(${JSON.stringify(counter)}, "utf8")) + 1)));`;
    const entry = join(directory, "count.ts");
    writeFileSync(entry, script);
    const { build } = await import("esbuild");
    const outfile = join(directory, "count.mjs");
    await build({ entryPoints: [entry], bundle: true, platform: "node", format: "esm", outfile, logLevel: "error" });
    const all = Array.from({ length: 4 }, () =>
      spawn(process.execPath, [outfile], { stdio: ["ignore", "ignore", "inherit"] }),
    );
    const codes = await Promise.all(all.map(async (child) => (await once(child, "close"))[0]));
    expect({ codes, sum: readFileSync(counter, "utf8") }).toEqual({ codes: [0, 0, 0, 0], sum: "200" });
  });

  test("is not lost for ever to one who was killed while taking it over", () => {
    const { started, space } = ownMark();
    const path = fresh();
    withLock(path, ownMark(), () => {});
    for (const name of [path, `${path}.turn`]) symlinkSync(`4194304 ${started} ${space}`, name);
    expect(withLock(path, ownMark(), () => "mine")).toBe("mine");
  });
});
