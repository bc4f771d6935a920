import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { getArchive, isLinkAt, putArchive } from "../../src/engine/archive.ts";
import { connectTo, failureOf, readAll, say, startEngine, startRaw } from "./engine-server.ts";

const archive = "/v1.40/containers/box/archive";
const mebibyte = 1_024 * 1_024;

describe("an upload", () => {
  test("arrives whole, at the path that was named", async () => {
    const sent = randomBytes(3 * mebibyte);
    let got: Buffer = Buffer.alloc(0);
    const { client, calls } = await startEngine({
      [`PUT ${archive}`]: async (request, response) => {
        got = await readAll(request);
        say(response, 200);
      },
    });
    await putArchive(client, "box", "/a b", Readable.from([sent.subarray(0, 10), sent.subarray(10)]));
    expect(got.equals(sent)).toBe(true);
    expect(calls.at(-1)?.query.get("path")).toBe("/a b");
    expect(calls.at(-1)?.headers["content-type"]).toBe("application/x-tar");
  });

  test("is never held whole: memory stays flat", async () => {
    const total = 192 * mebibyte;
    let got = 0;
    const { client } = await startEngine({
      [`PUT ${archive}`]: async (request, response) => {
        for await (const piece of request) got += (piece as Buffer).length;
        say(response, 200);
      },
    });
    const piece = Buffer.alloc(mebibyte);
    let most = 0;
    const before = process.memoryUsage().arrayBuffers;
    const source = function* () {
      for (let sent = 0; sent < total; sent += piece.length) {
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
        yield piece;
      }
    };
    await putArchive(client, "box", "/", Readable.from(source(), { objectMode: false, highWaterMark: 65_536 }));
    expect(got).toBe(total);
    expect(most).toBeLessThan(64 * mebibyte);
  });

  test("that is refused at once is not sent, and its source is closed", async () => {
    const { client } = await startEngine({
      [`PUT ${archive}`]: (_request, response) => say(response, 404, { message: "no such container: box" }),
    });
    let pulled = 0;
    const source = Readable.from(
      (function* () {
        for (; pulled < 1_000; pulled++) yield Buffer.alloc(mebibyte);
      })(),
    );
    const error = await failureOf(putArchive(client, "box", "/x", source));
    expect(error).toMatchObject({ code: "UPLOAD_FAILED", details: { container: "box", path: "/x", status: 404 } });
    expect(error.message).toContain("no such container: box");
    expect(source.destroyed).toBe(true);
    expect(pulled).toBeLessThan(100);
  });

  test("whose source breaks fails with its reason, and leaves the engine usable", async () => {
    const { client } = await startEngine({ [`PUT ${archive}`]: (request) => void request.resume() });
    const source = Readable.from(
      (function* () {
        yield Buffer.alloc(100);
        throw new Error("the disk is gone");
      })(),
    );
    const error = await failureOf(putArchive(client, "box", "/", source));
    expect(error.code).toBe("UPLOAD_FAILED");
    expect(error.message).toContain("the disk is gone");
  });

  test("whose source was closed before fails too", async () => {
    const { client } = await startEngine({ [`PUT ${archive}`]: (request) => void request.resume() });
    const source = Readable.from([Buffer.alloc(10)]);
    source.destroy();
    expect(await failureOf(putArchive(client, "box", "/", source))).toMatchObject({ code: "UPLOAD_FAILED" });
  });

  test("goes also to an engine that never asks for it", async () => {
    const path = await startRaw((socket) => {
      let said = "";
      socket.on("data", (bytes) => {
        said += bytes.toString("latin1");
        if (said.startsWith("GET /_ping")) {
          said = "";
          socket.write("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n");
        } else if (said.endsWith("0\r\n\r\n")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      });
    });
    await putArchive(connectTo(path), "box", "/", Readable.from([Buffer.from("tar")]));
  });

  test("to an engine that is not there closes its source", async () => {
    const { client, server } = await startEngine();
    server.close();
    const source = Readable.from([Buffer.alloc(10)]);
    expect(await failureOf(putArchive(client, "box", "/", source))).toMatchObject({ code: "UPLOAD_FAILED" });
    expect(source.destroyed).toBe(true);
  });

  test("ends when its caller says so, with the caller's reason", async () => {
    const { client } = await startEngine({ [`PUT ${archive}`]: (request) => void request.resume() });
    const reason = new Error("enough");
    const controller = new AbortController();
    const endless = new Readable({ read() {} });
    setTimeout(() => controller.abort(reason), 30);
    expect(await failureOf(putArchive(client, "box", "/", endless, { signal: controller.signal }))).toBe(reason);
    expect(endless.destroyed).toBe(true);
  });
});

describe("a download", () => {
  test("is a stream, or null where there is nothing", async () => {
    const { client } = await startEngine({
      [`GET ${archive}`]: (_request, response, { query }) =>
        query.get("path") === "/there" ? response.end("tar") : say(response, 404, { message: "no such path" }),
    });
    const stream = await getArchive(client, "box", "/there");
    expect(String(await buffer(stream as Readable))).toBe("tar");
    expect(await getArchive(client, "box", "/nowhere")).toBeNull();
  });
});

describe("a look at a path", () => {
  test("tells a link from other files and from nothing, and does not guess", async () => {
    const modes: Readonly<Record<string, number>> = {
      "/link": 2 ** 27 + 0o777,
      "/directory": 2 ** 31 + 0o755,
      "/file": 0o644,
    };
    const { client } = await startEngine({
      [`HEAD ${archive}`]: (_request, response, { query }) => {
        const path = query.get("path") as string;
        if (path === "/nowhere") return response.writeHead(404).end();
        const stat = Buffer.from(JSON.stringify({ mode: modes[path] })).toString("base64");
        return response.writeHead(200, { "X-Docker-Container-Path-Stat": stat }).end();
      },
    });
    expect(await isLinkAt(client, "box", "/link")).toBe(true);
    expect(await isLinkAt(client, "box", "/directory")).toBe(false);
    expect(await isLinkAt(client, "box", "/file")).toBe(false);
    expect(await isLinkAt(client, "box", "/nowhere")).toBeNull();
    expect(await failureOf(isLinkAt(client, "box", "/odd"))).toMatchObject({ code: "PROTOCOL" });
  });
});
