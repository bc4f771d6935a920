import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connectEngine } from "../../src/engine/client.ts";
import { ping } from "../../src/engine/ping.ts";
import {
  connectTo,
  failureOf,
  freshPath,
  pong,
  readAll,
  say,
  startEngine,
  startRaw,
  startTcpEngine,
} from "./engine-server.ts";

const get = (path: string, more: object = {}) => ({ method: "GET", path, ...more }) as const;

describe("connecting to a socket", () => {
  test("that is missing fails at once", async () => {
    const error = await failureOf((async () => connectTo("/nowhere/podman/podman.sock"))());
    expect(error).toMatchObject({ code: "ENGINE_SOCKET_NOT_FOUND", details: { path: "/nowhere/podman/podman.sock" } });
    expect(error.hint).toContain("systemctl --user enable --now podman.socket");
    const docker = await failureOf((async () => connectTo("/nowhere/docker.sock"))());
    expect(docker.hint).toContain("systemctl start docker");
  });

  test("that is closed to this user fails at once", async () => {
    const closed = freshPath("closed");
    mkdirSync(closed);
    await startRaw(() => {}, join(closed, "docker.sock"));
    chmodSync(closed, 0);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      const error = await failureOf((async () => connectTo(join(closed, "docker.sock")))());
      expect(error).toMatchObject({ code: "ENGINE_PERMISSION_DENIED", details: { path: join(closed, "docker.sock") } });
      expect(error.hint).toContain("usermod -aG docker");
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(closed, 0o700);
    }
  });

  test("that is a file fails at once", async () => {
    const path = freshPath("file");
    writeFileSync(path, "");
    expect(await failureOf((async () => connectTo(path))())).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });

  test("works however long its path is", async () => {
    const deep = join(freshPath("deep"), "d".repeat(100), "e".repeat(100));
    mkdirSync(deep, { recursive: true });
    const at = process.cwd();
    process.chdir(deep);
    try {
      await startEngine({}, "s").catch(() => {});
    } finally {
      process.chdir(at);
    }
    await ping(connectTo(join(deep, "s")));
  });

  test("that nobody listens on any more fails at the first call", async () => {
    const { server, client, path } = await startEngine();
    // To close removes the name; put a dead socket there instead.
    const dead = await deadSocket();
    server.close();
    expect(await failureOf(ping(connectTo(dead)))).toMatchObject({
      code: "ENGINE_CONNECTION_FAILED",
      details: { reason: "ECONNREFUSED" },
    });
    expect(await failureOf(ping(client))).toMatchObject({ code: "ENGINE_SOCKET_NOT_FOUND", details: { path } });
  });

  test("to a pipe of Windows is refused here", async () => {
    const error = await failureOf((async () => connectEngine({ kind: "npipe", path: "//./pipe/x" }))());
    expect(error).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
    expect(error.message).toContain("Linux");
  });
});

describe("connecting over TCP", () => {
  test("is lazy: only the first call fails", async () => {
    using client = connectEngine({ kind: "http", host: "127.0.0.1", port: 1 });
    expect(await failureOf(ping(client))).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });

  test("works", async () => {
    using client = connectEngine({ kind: "http", host: "127.0.0.1", port: await startTcpEngine() });
    await ping(client);
  });
});

describe("a ping", () => {
  test("that is answered by something else is a failed health check", async () => {
    const web = await startEngine({ "GET /_ping": (_request, response) => response.end("hello") });
    expect(await failureOf(ping(web.client))).toMatchObject({ code: "ENGINE_HEALTH_CHECK_FAILED" });
    const refusing = await startEngine({
      "GET /_ping": (_request, response) => say(response, 500, { message: "broken" }),
    });
    const error = await failureOf(ping(refusing.client));
    expect(error).toMatchObject({ code: "ENGINE_HEALTH_CHECK_FAILED" });
    expect(error.message).toContain("broken");
    const path = await startRaw((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
    expect(await failureOf(ping(connectTo(path)))).toMatchObject({ code: "ENGINE_HEALTH_CHECK_FAILED" });
  });

  test("that is not answered in time says so", async () => {
    const path = await startRaw(() => {});
    expect(await failureOf(ping(connectTo(path), { timeoutMs: 50 }))).toMatchObject({
      code: "ENGINE_HEALTH_CHECK_TIMEOUT",
    });
  });

  test("ends when its caller says so, with the caller's reason", async () => {
    const path = await startRaw(() => {});
    const reason = new Error("enough");
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    expect(await failureOf(ping(connectTo(path), { signal: controller.signal }))).toBe(reason);
    expect(await failureOf(ping(connectTo(path), { signal: AbortSignal.abort(reason) }))).toBe(reason);
  });
});

describe("a call", () => {
  test("carries the version that both sides know, asked for once", async () => {
    const { client, calls } = await startEngine({
      "GET /v1.40/info": (_request, response) => say(response, 200, { a: 1 }),
    });
    const answers = await Promise.all([client.request(get("/info")), client.request(get("/info"))]);
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([{ a: 1 }, { a: 1 }]);
    expect(calls.map(({ path }) => path).sort()).toEqual(["/_ping", "/v1.40/info", "/v1.40/info"]);
  });

  test("speaks 1.44 to engines that know nothing older", async () => {
    const { client } = await startEngine({
      "GET /_ping": (_request, response) => response.writeHead(200, { "api-version": "1.52" }).end("OK"),
      "GET /v1.44/info": (_request, response) => say(response, 200, {}),
    });
    expect(await (await client.request(get("/info"))).json()).toEqual({});
  });

  test("asks for the version again after it could not be had", async () => {
    let healthy = false;
    const { client } = await startEngine({
      "GET /_ping": (_request, response) => (healthy ? pong(response) : response.destroy()),
      "GET /v1.40/info": (_request, response) => say(response, 200, {}),
    });
    expect(await failureOf(client.request(get("/info")))).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
    healthy = true;
    expect((await client.request(get("/info"))).status).toBe(200);
  });

  test("uses the connection of the one before", async () => {
    const { client, connections } = await startEngine();
    for (let turn = 0; turn < 10; turn++) await ping(client);
    expect(connections()).toBe(1);
  });

  test("sends JSON and a query, and leaves out what is undefined", async () => {
    const { client, calls } = await startEngine({
      "POST /v1.40/x": async (request, response) => say(response, 200, JSON.parse(String(await readAll(request)))),
    });
    const query = { all: true, name: "a b&c", none: undefined };
    const answer = await client.request({ method: "POST", path: "/x", query, body: { ü: [1] } });
    expect(await answer.json()).toEqual({ ü: [1] });
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({ all: "true", name: "a b&c" });
  });

  test("that is refused throws the engine's own words", async () => {
    const { client } = await startEngine({
      "GET /v1.40/podman": (_request, response) =>
        say(response, 409, { cause: "inner", message: "outer: inner", response: 409 }),
      "GET /v1.40/cause": (_request, response) => say(response, 400, { cause: "only this" }),
      "GET /v1.40/plain": (_request, response) => response.writeHead(502).end("<h1>Bad gateway</h1>"),
    });
    const error = await failureOf(client.request(get("/podman")));
    expect(error).toMatchObject({
      code: "ENGINE_REFUSED",
      message: "The engine says: outer: inner",
      details: { status: 409, call: "GET /podman", words: "outer: inner" },
    });
    expect((await failureOf(client.request(get("/cause")))).message).toContain("only this");
    expect((await failureOf(client.request(get("/plain")))).message).toContain("502 Bad Gateway <h1>Bad gateway</h1>");
    expect((await client.request(get("/podman", { accept: [409] }))).status).toBe(409);
  });

  test("whose answer is not JSON, or too much of it, is an error", async () => {
    const { client } = await startEngine({
      "GET /v1.40/text": (_request, response) => response.end("hello"),
      "GET /v1.40/flood": (_request, response) => {
        const pour = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", pour);
        pour();
      },
    });
    for (const path of ["/text", "/flood"]) {
      const answer = await client.request(get(path));
      expect(await failureOf(answer.json())).toMatchObject({ code: "PROTOCOL" });
    }
    await ping(client);
  });

  test("whose answer breaks off or stalls is an error", async () => {
    const { client } = await startEngine({
      "GET /v1.40/break": (_request, response) => {
        response.writeHead(200, { "content-length": 100 }).write("{");
        setTimeout(() => response.destroy(), 20);
      },
      "GET /v1.40/stall": (_request, response) => void response.writeHead(200).write("{"),
    });
    const broken = await client.request(get("/break"));
    expect(await failureOf(broken.json())).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
    const stalled = await client.request(get("/stall", { timeoutMs: 50 }));
    expect(await failureOf(stalled.json())).toMatchObject({
      code: "ENGINE_CONNECTION_FAILED",
      details: { reason: "timeout" },
    });
  });
});

/** The name of a socket that outlived its listener. */
async function deadSocket(): Promise<string> {
  const { spawnSync } = await import("node:child_process");
  const path = freshPath("dead");
  spawnSync(process.execPath, [
    "-e",
    `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`,
  ]);
  return path;
}
