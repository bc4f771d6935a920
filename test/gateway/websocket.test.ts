import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { ended, Inside, Outside, parse, policyOf, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "ws.example.com";
const key = "dGhlIHNhbXBsZSBub25jZQ==";
const asking = (path: string, named = host) =>
  `GET ${path} HTTP/1.1\r\nHost: ${named}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`;
const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

const heads: string[] = [];
/** Grants a WebSocket and says back what is said, or declines. */
function serve(socket: Socket): void {
  let head = "";
  const onData = (bytes: Buffer) => {
    head += bytes.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    heads.push(head.slice(0, end));
    socket.off("data", onData);
    if (head.startsWith("GET /ok/declined")) {
      socket.end("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope");
      return;
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nhello`,
    );
    socket.write(head.slice(end + 4), "latin1");
    socket.pipe(socket);
  };
  socket.on("data", onData).on("error", () => {});
}

const plain = outside.tcp(serve);
const secure = outside.tls(host, serve);
const policy = async (port: Promise<number>) =>
  policyOf([rule(host, { paths: ["/ok/**"], methods: ["GET"] })], { reach: { [host]: `127.0.0.1:${await port}` } });

describe("a WebSocket", () => {
  test.each(["http", "https"])(
    "that is allowed carries bytes both ways until either end closes (%s)",
    async (scheme) => {
      await using inside = new Inside(outside, await policy(scheme === "http" ? plain : secure));
      const socket = scheme === "http" ? await inside.knock(proxyPort) : await inside.secure(host);
      socket.write(`${asking(scheme === "http" ? `http://${host}/ok/1` : "/ok/1")}\r\nfirst`);
      const answer = await readUntil(socket, "hellofirst");
      expect(answer).toContain("101 Switching Protocols");
      expect(answer).toContain(`Sec-WebSocket-Accept: ${accept}`);
      expect(heads.at(-1)).toContain(`Sec-WebSocket-Key: ${key}`);
      socket.write("second");
      expect(await readUntil(socket, "second")).toBe("second");
      socket.end();
      await ended(socket);
      await expect
        .poll(() => inside.audit)
        .toMatchObject([
          { kind: "http", scheme, verdict: "allowed", path: "/ok/1", status: 101, sent: 11, received: 16 },
        ]);
    },
  );

  test("that the server declines is declined", async () => {
    await using inside = new Inside(outside, await policy(secure));
    const answer = await say(await inside.secure(host), `${asking("/ok/declined")}\r\n`);
    expect(parse(answer)).toMatchObject({ status: 426, body: "nope" });
    expect(inside.audit).toMatchObject([{ verdict: "allowed", status: 426, received: 4 }]);
  });

  test("to another host, path or by another method is refused in words, and asks nobody", async () => {
    const before = heads.length;
    await using inside = new Inside(outside, await policy(plain));
    const ask = async (text: string) => parse(await say(await inside.knock(proxyPort), text));
    const host403 = await ask(`${asking("http://no.example.com/ok/1", "no.example.com")}\r\n`);
    const path403 = await ask(`${asking(`http://${host}/no`)}\r\n`);
    const method403 = await ask(`${asking(`http://${host}/ok/1`).replace("GET", "PUT")}Connection: close\r\n\r\n`);
    for (const [answer, reason] of [
      [host403, "host"],
      [path403, "path"],
      [method403, "method"],
    ] as const) {
      expect(answer.status).toBe(403);
      expect(JSON.parse(answer.body)).toMatchObject({ code: "NETWORK_DENIED", reason });
    }
    expect(inside.audit.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ["refused", "host"],
      ["refused", "path"],
      ["refused", "method"],
    ]);
    expect(heads).toHaveLength(before);
  });

  test("that breaks outside breaks inside", async () => {
    const port = outside.tcp((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        setTimeout(() => socket.resetAndDestroy(), 20);
      });
    });
    await using inside = new Inside(outside, await policy(port));
    const answer = await say(await inside.knock(proxyPort), `${asking(`http://${host}/ok/1`)}\r\n`);
    expect(answer).toContain("101");
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", status: 101 }]);
  });

  test("that nobody waits for any more is not opened", async () => {
    let asked: () => void = () => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const sockets: Socket[] = [];
    const port = outside.tcp((socket) => {
      sockets.push(socket);
      socket.once("data", () => asked());
    });
    await using inside = new Inside(outside, await policy(port));
    const socket = await inside.knock(proxyPort);
    socket.write(`${asking(`http://${host}/ok/1`)}\r\n`);
    await isAsked;
    socket.destroy();
    await Promise.all(sockets.map(ended));
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "failed", reason: "the box has broken it off" }]);
  });

  test("cannot be asked for while something else is still to be answered", async () => {
    const port = outside.http(() => {});
    await using inside = new Inside(outside, await policy(port));
    const answer = await say(
      await inside.knock(proxyPort),
      `GET http://${host}/ok/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n${asking(`http://${host}/ok/2`)}\r\n`,
    );
    expect(answer).toBe("");
    await expect.poll(() => inside.audit.map(({ verdict }) => verdict).sort()).toEqual(["failed", "refused"]);
  });
});
