// @module-tag security
import { request as requestHttp } from "node:http";
import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { bodyOf, ended, Inside, Outside, parse, policyOf, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "plain.example.com";
const close = "Connection: close\r\n\r\n";

/** A gateway that leads to one server, which writes as it likes. */
async function leading(port: number, more: ConstructorParameters<typeof Inside>[2] = {}): Promise<Inside> {
  return new Inside(outside, policyOf([rule(host)], { reach: { [host]: `127.0.0.1:${port}` } }), more);
}

/** Answers every head with the same bytes, and notes what it was asked. */
async function rawServer(
  answer: string | ((socket: Socket, head: string) => void),
): Promise<{ port: number; heads: string[] }> {
  const heads: string[] = [];
  const port = await outside.tcp((socket) => {
    let seen = "";
    socket.on("data", (bytes) => {
      seen += bytes.toString("latin1");
      for (let end = seen.indexOf("\r\n\r\n"); end >= 0; end = seen.indexOf("\r\n\r\n")) {
        const head = seen.slice(0, end + 4);
        seen = seen.slice(end + 4);
        heads.push(head);
        if (typeof answer === "string") socket.write(answer, "latin1");
        else answer(socket, head);
      }
    });
    socket.on("end", () => socket.end());
  });
  return { port, heads };
}

const get = (path = "/", more = "") => `GET http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\n${more}`;

describe("what is said is passed on as it was", () => {
  test("headers keep their order, spelling and duplicates both ways", async () => {
    const { port, heads } = await rawServer(
      "HTTP/1.1 200 Fine\r\nX-Odd-CASE: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nset-cookie: c=3\r\nContent-Length: 2\r\n\r\nok",
    );
    await using inside = await leading(port);
    const answer = await say(await inside.knock(proxyPort), get("/", `X-b: 2\r\nx-A: 1\r\nX-b: 3\r\n${close}`));
    expect(heads[0]).toBe(
      `GET / HTTP/1.1\r\nHost: ${host}\r\nX-b: 2\r\nx-A: 1\r\nX-b: 3\r\nConnection: keep-alive\r\n\r\n`,
    );
    expect(parse(answer).head).toContain(
      "X-Odd-CASE: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nset-cookie: c=3\r\nContent-Length: 2",
    );
  });

  test("chunks, trailers and a length of any size arrive whole", async () => {
    const port = await outside.http(async (request, response) => {
      const body = await bodyOf(request);
      response.writeHead(200, { Trailer: "X-Sum" });
      response.write(body.slice(0, 3));
      response.addTrailers({ "X-Sum": `${body.length}` });
      response.end(body.slice(3));
    });
    await using inside = await leading(port);
    const answer = await say(
      await inside.knock(proxyPort),
      `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Mine: 1\r\n\r\n`,
    );
    expect(parse(answer).body).toBe("abcdefg");
    expect(answer).toMatch(/\r\n0\r\nX-Sum: 7\r\n\r\n$/);
    expect(inside.audit).toMatchObject([{ verdict: "allowed", sent: 7, received: 7, status: 200 }]);
  });

  test("HEAD, 204 and 304 have no body, and the connection goes on", async () => {
    const port = await outside.http((request, response) => {
      if (request.url === "/204") return response.writeHead(204).end();
      if (request.url === "/304") return response.writeHead(304, { ETag: '"x"', "Content-Length": "5" }).end();
      response.setHeader("Content-Length", "5").end("hello");
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(get("/head", "\r\n").replace("GET", "HEAD"));
    expect(await readUntil(socket, "\r\n\r\n")).toMatch(/200 OK[\s\S]*Content-Length: 5\r\n[\s\S]*\r\n\r\n$/);
    socket.write(get("/204", "\r\n"));
    expect(await readUntil(socket, "\r\n\r\n")).toMatch(/^HTTP\/1.1 204/);
    socket.write(get("/304", "\r\n"));
    expect(await readUntil(socket, "\r\n\r\n")).toMatch(/^HTTP\/1.1 304/);
    expect(parse(await say(socket, get("/", close))).body).toBe("hello");
    expect(inside.audit.map(({ status, received }) => [status, received])).toEqual([
      [200, 0],
      [204, 0],
      [304, 0],
      [200, 5],
    ]);
  });

  test("requests that do not wait for each other are answered in their order", async () => {
    const port = await outside.http((request, response) => {
      setTimeout(() => response.end(request.url), request.url === "/1" ? 60 : 0);
    });
    await using inside = await leading(port);
    const answer = await say(await inside.knock(proxyPort), get("/1", "\r\n") + get("/2", "\r\n") + get("/3", close));
    expect(answer.match(/(?<=\r\n)\/[123]/g)).toEqual(["/1", "/2", "/3"]);
    expect(inside.audit).toHaveLength(3);
  });

  test("an answer that ends with its connection ends properly inside", async () => {
    const { port } = await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nall of it"));
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(get("/", "\r\n"));
    expect(await readUntil(socket, "0\r\n\r\n")).toContain("all of it");
    socket.destroy();
  });

  test("events arrive one by one, when they happen", async () => {
    let tell = (_: string) => {};
    const port = await outside.http((_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
      tell = (text) => response.write(text);
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(get("/", "\r\n"));
    expect(await readUntil(socket, "\r\n\r\n")).toContain("text/event-stream");
    for (const event of ["data: one\n\n", "data: two\n\n"]) {
      tell(event);
      expect(await readUntil(socket, event)).toContain(event);
    }
    socket.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "failed", status: 200, received: 22 }]);
  });

  test("whoever waits to be told to go on is, after the verdict and not before", async () => {
    const port = await outside.http(async (request, response) => response.end(await bodyOf(request)));
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(
      `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n${close}`,
    );
    expect(await readUntil(socket, "\r\n\r\n")).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(parse(await say(socket, "hi")).body).toBe("hi");
    const refused = await say(
      await inside.knock(proxyPort),
      `POST http://no.example.com/ HTTP/1.1\r\nHost: no.example.com\r\nContent-Length: 2\r\nExpect: 100-continue\r\n${close}`,
    );
    expect(refused).toMatch(/^HTTP\/1.1 403/);
    expect(inside.audit).toHaveLength(2);
  });

  test("a POST without a body stays one", async () => {
    const { port, heads } = await rawServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    await using inside = await leading(port);
    await say(await inside.knock(proxyPort), get("/", close).replace("GET", "POST"));
    expect(heads[0]).toContain("Content-Length: 0\r\n");
    expect(heads[0]).not.toContain("chunked");
  });

  test("what a client says of its connection stays here, and what it says of others is not believed", async () => {
    const { port, heads } = await rawServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=9\r\n\r\n");
    await using inside = await leading(port);
    const answer = await say(
      await inside.knock(proxyPort),
      get("/", "Proxy-Authorization: Basic eDp5\r\nConnection: close, X-Mine, Host\r\nX-Mine: 1\r\nTE: gzip\r\n\r\n"),
    );
    expect(answer).toMatch(/^HTTP\/1.1 200/);
    expect(answer).not.toContain("Keep-Alive: timeout=9");
    expect(heads[0]).toBe(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`);
  });

  test("an offer of another protocol is passed over, and what was sent along is not lost", async () => {
    const port = await outside.http(async (request, response) => {
      response.end(`${request.headers.upgrade} ${await bodyOf(request)}`);
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(
      `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 5\r\n\r\nhel`,
    );
    socket.write("lo");
    expect(await readUntil(socket, "undefined hello")).toMatch(/^HTTP\/1.1 200/);
    expect(parse(await say(socket, get("/", close))).body).toBe("undefined ");
    expect(inside.audit).toMatchObject([{ verdict: "allowed", sent: 5 }, { verdict: "allowed" }]);
  });
});

describe("a body that takes its time", () => {
  const head = `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\n`;

  test("does not hold its head back", async () => {
    const port = await outside.http((request, response) => {
      request.resume().once("end", () => response.end(" last"));
      response.write("first");
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(head);
    // Nothing of the body is there yet.
    await readUntil(socket, "first");
    socket.write("0123456789");
    await readUntil(socket, "last");
    socket.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", sent: 10 }]);
  });

  test("is told of when it has ended, though the answer was over before", async () => {
    let heard = "";
    const port = await outside.http((request, response) => {
      response.end("early");
      request.on("data", (bytes) => {
        heard += bytes;
      });
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(`${head}01234`);
    await readUntil(socket, "early");
    expect(inside.audit).toEqual([]);
    socket.write("56789");
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", status: 200, sent: 10 }]);
    await expect.poll(() => heard).toBe("0123456789");
    // And the connection is as good as before.
    expect(parse(await say(socket, get("/", close))).body).toBe("early");
  });

  test("is not waited for longer than is polite after the answer, and then is not carried any more", async () => {
    let heard = 0;
    const port = await outside.http((request, response) => {
      request
        .on("error", () => {})
        .once("data", () => response.end("early"))
        .on("data", ({ length }) => {
          heard += length;
        });
    });
    await using inside = await leading(port, { limits: { lingerMs: 60 } });
    const socket = await inside.knock(proxyPort);
    socket.write(head.replace("10", "99999999"));
    const endless = setInterval(() => socket.write("x".repeat(100)), 5);
    await readUntil(socket, "early");
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", status: 200 }]);
    await ended(socket);
    clearInterval(endless);
    expect(inside.audit[0]?.sent).toBeGreaterThanOrEqual(heard);
  });
});

describe("back-pressure", () => {
  const total = 64 << 20;
  const chunk = Buffer.alloc(1 << 16, "x");

  test("holds a server back whose answer nobody reads", async () => {
    let written = 0;
    const port = await outside.http((_, response) => {
      const more = () => {
        while (written < total) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.pause();
    socket.write(get("/", close));
    await expect.poll(() => written > 0).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(written).toBeLessThan(total / 2);
    let received = 0;
    socket.on("data", (bytes) => {
      received += bytes.length;
    });
    await ended(socket);
    expect(received).toBeGreaterThan(total);
    socket.destroy();
    expect(inside.audit).toMatchObject([{ verdict: "allowed", received: total }]);
  });

  test("holds a box back whose request nobody reads", async () => {
    let go = () => {};
    const port = await outside.http((request, response) => {
      go = () => {
        let received = 0;
        request.on("data", (bytes: Buffer) => {
          received += bytes.length;
        });
        request.on("end", () => response.end(`${received}`));
      };
    });
    await using inside = await leading(port);
    const through = await inside.door(proxyPort);
    let sent = 0;
    const answer = await new Promise<string>((resolve, reject) => {
      const request = requestHttp(
        { port: through, method: "PUT", path: `http://${host}/`, headers: { Host: host, "Content-Length": total } },
        (response) => bodyOf(response).then(resolve),
      );
      const more = () => {
        while (sent < total) {
          sent += chunk.length;
          if (!request.write(chunk)) return void request.once("drain", more);
        }
        request.end();
      };
      request.on("error", reject);
      more();
      setTimeout(() => {
        expect(sent).toBeLessThan(total / 2);
        go();
      }, 300);
    });
    expect(answer).toBe(`${total}`);
    expect(inside.audit).toMatchObject([{ verdict: "allowed", sent: total }]);
  });
});

describe("what breaks", () => {
  test("an answer that is broken off outside is broken off inside", async () => {
    const { port } = await rawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
      setTimeout(() => socket.resetAndDestroy(), 30);
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    const answer = await say(socket, get("/", close));
    expect(answer).toMatch(/part$/);
    expect(inside.audit).toMatchObject([{ verdict: "failed", status: 200, received: 4 }]);
  });

  test("a server that hangs up, or speaks nonsense, is told of", async () => {
    for (const answer of [
      "",
      "HTTP/1.1 banana\r\n\r\n",
      "SSH-2.0-x\r\n",
      "HTTP/1.1 101 Sure\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ]) {
      const { port } = await rawServer((socket) => socket.end(answer));
      await using inside = await leading(port);
      const told = await say(await inside.knock(proxyPort), get("/", close));
      expect(parse(told)).toMatchObject({ status: 502 });
      expect(JSON.parse(parse(told).body)).toMatchObject({ code: "NETWORK_FAILED", host, path: "/", method: "GET" });
      expect(inside.audit).toMatchObject([{ verdict: "failed", status: 502 }]);
    }
  });

  test("a request that is broken off inside is broken off outside", async () => {
    let seen: Promise<void> = Promise.resolve();
    const port = await outside.http((request) => {
      seen = new Promise((resolve) => request.once("close", resolve));
      request.on("error", () => {}).resume();
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(`POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100\r\n\r\npart`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await seen;
    await expect
      .poll(() => inside.audit)
      .toMatchObject([{ verdict: "failed", sent: 4, reason: "the box has broken it off" }]);
  });

  test("a server that answers before it has heard everything is heard", async () => {
    const port = await outside.http((_, response) => {
      response.writeHead(413, { Connection: "close" }).end("enough");
    });
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(`POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000\r\n\r\npart`);
    expect(await readUntil(socket, "enough")).toMatch(/^HTTP\/1.1 413/);
    socket.destroy();
    expect(inside.audit).toMatchObject([{ verdict: "allowed", status: 413, received: 6 }]);
  });

  test("a connection that was kept and has died is replaced, where nothing is asked twice that should not be", async () => {
    let served = 0;
    const { port, heads } = await rawServer((socket) => {
      served += 1;
      // The second request on a connection is never answered.
      if (served % 2 === 0) return socket.resetAndDestroy();
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    await using inside = await leading(port);
    const ask = async (method: string) =>
      parse(await say(await inside.knock(proxyPort), get("/", close).replace("GET", method))).status;
    expect([await ask("GET"), await ask("GET")]).toEqual([200, 200]);
    expect(heads).toHaveLength(3);
    expect(await ask("POST")).toBe(502);
    expect(inside.audit).toHaveLength(3);
  });

  test("a body that is not what it says breaks its request, and nothing of the rest is a request", async () => {
    const port = await outside.http(async (request, response) => response.end(await bodyOf(request)));
    await using inside = await leading(port);
    const answer = await say(
      await inside.knock(proxyPort),
      `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n${get("/smuggled", close)}`,
    );
    expect(answer).not.toContain("200 OK");
    await expect.poll(() => inside.audit).toHaveLength(1);
    expect(inside.audit).toMatchObject([{ method: "POST", verdict: "failed" }]);
  });
});
