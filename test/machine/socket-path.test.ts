import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { openSocketPath } from "../../src/machine/socket-path.ts";

function scratch(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-socket-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

const openDescriptors = () => readdirSync("/proc/self/fd").length;

test("a short path is its own address", () => {
  expect(openSocketPath("/run/keeper.sock").address).toBe("/run/keeper.sock");
  expect(openSocketPath(`/${"x".repeat(106)}`).address).toHaveLength(107);
});

test("bytes count, not letters", () => {
  const directory = join(scratch(), "ü".repeat(50));
  mkdirSync(directory);
  using path = openSocketPath(join(directory, "s"));
  expect(path.address).toMatch(/^\/proc\/self\/fd\/\d+\/s$/);
});

test.each([20, 200])("a server in a directory of %i characters is reached at its own place", async (length) => {
  const directory = join(scratch(), "d".repeat(length));
  mkdirSync(directory);
  const socket = join(directory, "keeper.sock");
  const server = createServer((connection) => connection.end("it is me"));
  const listening = openSocketPath(socket);
  await new Promise<void>((resolve) => server.listen(listening.address, resolve));
  expect(existsSync(socket)).toBe(true);

  const dialling = openSocketPath(socket);
  expect(await text(connect(dialling.address))).toBe("it is me");
  dialling[Symbol.dispose]();

  await closed(server);
  listening[Symbol.dispose]();
  expect(existsSync(socket)).toBe(false);
});

test("a descriptor is closed once, and no other in its place", () => {
  const directory = join(scratch(), "d".repeat(200));
  mkdirSync(directory);
  const before = openDescriptors();
  const path = openSocketPath(join(directory, "s"));
  expect(openDescriptors()).toBe(before + 1);
  path[Symbol.dispose]();
  const another = openSocketPath(join(directory, "s"));
  path[Symbol.dispose]();
  expect(openDescriptors()).toBe(before + 1);
  another[Symbol.dispose]();
});

test("a directory that is missing is said to be", () => {
  expect(() => openSocketPath(join("/", "d".repeat(200), "s"))).toThrow(expect.objectContaining({ code: "ENOENT" }));
});

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
