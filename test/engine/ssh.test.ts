import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { connectEngine, type EngineClient } from "../../src/engine/client.ts";
import { parseEndpoint } from "../../src/engine/endpoint.ts";
import { execAttach } from "../../src/engine/exec.ts";
import { ping } from "../../src/engine/ping.ts";
import { failureOf, freshPath, say, startEngine } from "./engine-server.ts";
import { frame } from "./frame.ts";

/** Stands in for ssh as a transport: it writes down how it was called, and really forwards, on this machine. */
const forwarding = `#!${process.execPath}
const { appendFileSync } = require("node:fs");
const { connect, createServer } = require("node:net");
const args = process.argv.slice(2);
appendFileSync(process.env.SSH_LOG, JSON.stringify([process.pid, ...args]) + "\\n");
if (args.includes("nowhere")) {
  process.stderr.write("ssh: Could not resolve hostname nowhere\\r\\n");
  process.exit(255);
}
const [near, far] = (args[args.indexOf("-L") + 1] ?? "").split(":");
const join = (a, b, output) => {
  a.on("error", () => a.destroy());
  b.on("error", (error) => {
    process.stderr.write("channel 2: open failed: connect failed: " + error.message + "\\r\\n");
    a.destroy();
  });
  a.pipe(b);
  b.pipe(output);
};
if (args.includes("-N")) createServer({ allowHalfOpen: true }, (a) => join(a, connect({ path: far, allowHalfOpen: true }), a)).listen(near);
else join(process.stdin, connect({ path: process.env.ENGINE, allowHalfOpen: true }), process.stdout);
`;

/** The same for one connection; its socket is there for a while before it listens, as that of ssh is for a moment. */
const hesitant = `#!/usr/bin/python3
import socket, sys, threading, time
near, far = sys.argv[sys.argv.index("-L") + 1].split(":")
listener, engine = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
listener.bind(near)
time.sleep(0.4)
listener.listen()
client = listener.accept()[0]
engine.connect(far)
def copy(one, other):
    while data := one.recv(65536): other.sendall(data)
threading.Thread(target=copy, args=(client, engine), daemon=True).start()
copy(engine, client)
`;

/** The environment for ssh, and what it was called with. */
function fakeSsh(engine: string, program = forwarding) {
  const bin = freshPath("bin");
  const log = freshPath("log");
  mkdirSync(bin);
  writeFileSync(join(bin, "ssh"), program);
  chmodSync(join(bin, "ssh"), 0o755);
  const calls = () =>
    (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []).map((line) => JSON.parse(line) as string[]);
  return { env: { PATH: `${bin}:${dirname(process.execPath)}`, SSH_LOG: log, ENGINE: engine }, calls };
}

// Others make tunnels at the same time.
process.env["TMPDIR"] = dirname(freshPath());
const tunnels = () => readdirSync(tmpdir()).filter((name) => name.startsWith("podbot-ssh-"));

async function echo(client: EngineClient): Promise<string> {
  const stream = await execAttach(client, "box", { argv: ["cat"] });
  stream.end("over there");
  return await text(stream);
}

async function startEcho() {
  const engine = await startEngine({
    "POST /v1.40/containers/box/exec": (_request, response) => say(response, 201, { Id: "e1" }),
  });
  engine.server.on("upgrade", (request, socket, head) => {
    socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    let said = head.subarray(Number(request.headers["content-length"])).toString();
    socket.on("data", (bytes: Buffer) => {
      said += bytes;
    });
    socket.on("end", () => socket.end(frame(1, said.replace(/^\{.*\}/, ""))));
  });
  return engine;
}

describe("an engine behind ssh", () => {
  test("is reached through its forwarded socket, by one login for many connections", async () => {
    const engine = await startEcho();
    const { env, calls } = fakeSsh("");
    const before = tunnels().length;
    {
      using client = connectEngine(parseEndpoint(`ssh://me@far:2222${engine.path}`), { env, identity: "/key" });
      await ping(client);
      await Promise.all([ping(client), ping(client), ping(client)]);
      expect(await echo(client)).toBe("over there");
      const [call = []] = calls();
      expect(calls()).toHaveLength(1);
      expect(call.slice(call.indexOf("-l"))).toEqual([
        ...["-l", "me", "-p", "2222", "-i", "/key", "-N", "-L"],
        expect.stringMatching(new RegExp(`engine\\.sock:${engine.path}$`)),
        "--",
        "far",
      ]);
      expect(call.join(" ")).toContain("BatchMode=yes");
      expect(call.join(" ")).not.toContain("StrictHostKeyChecking");
    }
    expect(tunnels()).toHaveLength(before);
  });

  test("is reached through docker on the far side where no socket is named", async () => {
    const engine = await startEcho();
    const { env, calls } = fakeSsh(engine.path);
    using client = connectEngine(parseEndpoint("ssh://far"), { env });
    for (let turn = 0; turn < 3; turn++) await ping(client);
    expect(calls().map((args) => args.slice(args.indexOf("--")))).toEqual([
      ["--", "far", "docker", "system", "dial-stdio"],
    ]);
    expect(await echo(client)).toBe("over there");
  });

  test.each(["ssh://nowhere", "ssh://nowhere/run/x.sock"])("%s fails with what ssh says", async (text) => {
    const { env } = fakeSsh("");
    using client = connectEngine(parseEndpoint(text), { env });
    const error = await failureOf(ping(client));
    expect(error.code).toBe("ENGINE_CONNECTION_FAILED");
    expect(error.message).toContain("Could not resolve hostname nowhere");
    expect(error.hint).toContain("by hand");
  });

  test("fails with what ssh says where the far socket is missing, and can be tried again", async () => {
    const { env, calls } = fakeSsh("");
    const path = freshPath("late");
    using client = connectEngine(parseEndpoint(`ssh://far${path}`), { env });
    expect((await failureOf(ping(client))).message).toContain("open failed");
    await startEngine({}, path);
    await ping(client);
    expect(calls()).toHaveLength(1);
  });

  test("is waited for where ssh has its socket and does not listen yet", async () => {
    const engine = await startEngine();
    const { env } = fakeSsh(engine.path, hesitant);
    using client = connectEngine(parseEndpoint(`ssh://far${engine.path}`), { env });
    await ping(client);
  });

  test("fails where there is no ssh", async () => {
    using client = connectEngine(parseEndpoint("ssh://far"), { env: { PATH: "/nowhere" } });
    expect((await failureOf(ping(client))).message).toContain("ssh is not on PATH");
  });

  test("leaves no ssh running when it is disposed of", async () => {
    const engine = await startEngine();
    const { env, calls } = fakeSsh(engine.path);
    const client = connectEngine(parseEndpoint(`ssh://far${engine.path}`), { env });
    await ping(client);
    const [pid] = calls()[0] as unknown as readonly number[];
    expect(isAlive(pid)).toBe(true);
    client[Symbol.dispose]();
    for (let waited = 0; isAlive(pid) && waited < 5_000; waited += 20) await sleep(20);
    expect(isAlive(pid)).toBe(false);
  });
});

function isAlive(pid: number | undefined): boolean {
  return pid !== undefined && existsSync(`/proc/${pid}`);
}
