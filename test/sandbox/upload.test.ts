import { execFileSync, spawn } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RealSandbox, startWarden, textOf } from "./harness.ts";
import { outcome } from "./peer.ts";

let real: RealSandbox;
beforeAll(async () => {
  real = await startWarden();
});
afterAll(() => real[Symbol.asyncDispose]());

function directory(name: string): string {
  const path = join(real.directory, name);
  mkdirSync(path, { recursive: true });
  return path;
}

/** What a shell inside finds running of a name's uploads: none, whatever happened. */
async function tarsFor(target: string): Promise<string> {
  const { stdout } = await real.sandbox.exec({ argv: ["sh", "-c", `grep -zlsF ${target} /proc/[0-9]*/cmdline`] });
  const files = (await textOf(stdout)).split("\n").filter((line) => line !== "");
  return files
    .map((file) => {
      try {
        return readFileSync(file, "latin1");
      } catch {
        return "";
      }
    })
    .filter((line) => line.startsWith("tar"))
    .join();
}

test("an archive arrives with its modes, links and long names", async () => {
  const source = directory("source");
  const target = directory("-a target");
  const long = `${"d".repeat(200)}/${"f".repeat(200)}`;
  mkdirSync(join(source, "d".repeat(200)));
  writeFileSync(join(source, long), "long");
  writeFileSync(join(source, "script"), "#!/bin/sh\n");
  chmodSync(join(source, "script"), 0o755);
  writeFileSync(join(source, "private"), "x");
  chmodSync(join(source, "private"), 0o600);
  writeFileSync(join(source, "open"), "x");
  chmodSync(join(source, "open"), 0o666);
  writeFileSync(join(source, "large"), Buffer.alloc(5_000_000, "large"));
  symlinkSync("no/such/file", join(source, "link"));
  await real.sandbox.upload(spawn("tar", ["-c", "-C", source, "."]).stdout, target);
  const mode = (name: string) => lstatSync(join(target, name)).mode & 0o777;
  expect([mode("script"), mode("private"), mode("open")]).toEqual([0o755, 0o600, 0o666]);
  expect(readFileSync(join(target, long), "utf8")).toBe("long");
  expect(readlinkSync(join(target, "link"))).toBe("no/such/file");
  execFileSync("diff", ["-r", "--no-dereference", source, target]);
});

test("a directory that does not exist is told in tar's own words", async () => {
  const archive = spawn("tar", ["-c", "-C", "/", "etc/passwd"]).stdout;
  expect(await outcome(real.sandbox.upload(archive, "/no/such/directory"))).toMatchObject({
    error: {
      code: "UPLOAD_FAILED",
      message: expect.stringMatching(/\/no\/such\/directory.*No such file/s),
      hint: expect.stringContaining("must exist"),
    },
  });
  expect(archive.destroyed).toBe(true);
});

test("what is no archive is refused", async () => {
  const target = directory("refused");
  const garbage = Readable.from([Buffer.alloc(100_000, "garbage")]);
  expect(await outcome(real.sandbox.upload(garbage, target))).toMatchObject({ error: { code: "UPLOAD_FAILED" } });
});

test("half an archive is refused", async () => {
  const target = directory("half");
  const whole = execFileSync("tar", ["-c", "-C", "/", "etc/passwd"]);
  const half = Readable.from([whole.subarray(0, 600)]);
  expect(await outcome(real.sandbox.upload(half, target))).toMatchObject({ error: { code: "UPLOAD_FAILED" } });
});

test("an archive that fails ends tar, and its reason is told", async () => {
  const target = directory("failing");
  const cause = new Error("disk on fire");
  const failing = new PassThrough();
  failing.write(execFileSync("tar", ["-c", "-C", "/", "etc/passwd"]).subarray(0, 600));
  const upload = outcome(real.sandbox.upload(failing, target));
  setTimeout(() => failing.destroy(cause), 50);
  expect(await upload).toMatchObject({
    error: { code: "UPLOAD_FAILED", message: expect.stringContaining("disk on fire"), cause },
  });
  expect(await tarsFor(target)).toBe("");
});

test.each<[string, () => Readable]>([
  ["failed", () => new PassThrough().on("error", () => {}).destroy(new Error("too early"))],
  ["closed", () => new PassThrough().destroy()],
])("an archive that had %s before is refused", async (_name, archive) => {
  const target = directory("early");
  expect(await outcome(real.sandbox.upload(archive(), target))).toMatchObject({ error: { code: "UPLOAD_FAILED" } });
});

test("an archive that is closed before its end is refused, and one that was read already", async () => {
  const target = directory("closed");
  const open = new PassThrough();
  const upload = outcome(real.sandbox.upload(open, target));
  setTimeout(() => open.destroy(), 50);
  expect(await upload).toMatchObject({
    error: { code: "UPLOAD_FAILED", message: expect.stringContaining("before its end") },
  });
  const spent = Readable.from([]);
  await textOf(spent);
  expect(await outcome(real.sandbox.upload(spent, target))).toMatchObject({ error: { code: "UPLOAD_FAILED" } });
  expect(await tarsFor(target)).toBe("");
});

test("an archive that fails at once is no crash, though nothing runs yet", async () => {
  const failing = new Readable({ read: () => failing.destroy(new Error("at once")) });
  failing.read();
  expect(await outcome(real.sandbox.upload(failing, "/tmp"))).toMatchObject({
    error: { code: "UPLOAD_FAILED", message: expect.stringContaining("at once") },
  });
});

test("a sandbox without tar says so", async () => {
  const empty = directory("empty");
  const bare = await startWarden(["env", `PATH=${empty}`]);
  try {
    expect(await outcome(bare.sandbox.upload(Readable.from([Buffer.alloc(1)]), "/tmp"))).toMatchObject({
      error: { code: "UPLOAD_FAILED", message: expect.stringContaining("no tar"), hint: expect.any(String) },
    });
  } finally {
    await bare[Symbol.asyncDispose]();
  }
});

test("a target that cannot be said is refused", async () => {
  expect(await outcome(real.sandbox.upload(Readable.from([]), "/\0"))).toMatchObject({
    error: { code: "UPLOAD_FAILED", message: expect.stringContaining("NUL") },
  });
});

test("a large archive takes little memory", async () => {
  const target = directory("large");
  writeFileSync(join(directory("zeros"), "zeros"), "");
  execFileSync("truncate", ["-s", "200M", join(real.directory, "zeros", "zeros")]);
  const before = process.memoryUsage.rss();
  await real.sandbox.upload(spawn("tar", ["-c", "-C", join(real.directory, "zeros"), "zeros"]).stdout, target);
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20);
  expect(lstatSync(join(target, "zeros")).size).toBe(200 * 2 ** 20);
});
