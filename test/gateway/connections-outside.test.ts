// @module-tag security
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import type { NetworkRule } from "../../src/policy/network.ts";
import { Inside, Outside, policyOf, readUntil, rule } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";

/** A server that reads no bodies: what is left of one it takes for the next request, unless the connection ends before. */
function careless(heard: string[]) {
  return (socket: Socket) => {
    let seen = "";
    socket.on("data", (bytes) => {
      seen += bytes.toString("latin1");
      for (let end = seen.indexOf("\r\n\r\n"); end >= 0; end = seen.indexOf("\r\n\r\n")) {
        const head = seen.slice(0, end);
        seen = seen.slice(end + 4);
        heard.push(head.split("\r\n")[0] as string);
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        if (/^connection: close/im.test(head)) return void socket.end();
      }
    });
  };
}

/** Of those that number their connections, and of the gateway's own words. */
const answerEnd = /;|\}\n$/;

async function leading(port: number, more: Partial<NetworkRule>): Promise<Inside> {
  return new Inside(outside, policyOf([rule(host, more)], { reach: { [host]: `127.0.0.1:${port}` } }), {
    limits: { lingerMs: 100 },
  });
}

const request = (line: string, body = "") =>
  `${line} HTTP/1.1\r\nHost: ${host}\r\n${body === "" ? "" : `Content-Length: ${body.length}\r\n`}\r\n${body}`;

describe("a request in the body of another", () => {
  const hidden = request("DELETE /private/x");

  test.each(["GET", "HEAD", "POST", "DELETE", "OPTIONS"])(
    "of %s becomes none where requests are judged",
    async (method) => {
      const heard: string[] = [];
      const port = await outside.tls(host, careless(heard));
      await using inside = await leading(port, { paths: ["/public/**"] });
      const socket = await inside.secure(host);
      for (const line of ["GET /public/1", `${method} /public/2`, "GET /public/3"]) {
        socket.write(request(line, line.endsWith("2") ? hidden : ""));
        await readUntil(socket, line.startsWith("HEAD") ? "\r\n\r\n" : "ok");
      }
      expect(heard).toEqual(["GET /public/1 HTTP/1.1", `${method} /public/2 HTTP/1.1`, "GET /public/3 HTTP/1.1"]);
      expect(inside.audit.map(({ verdict }) => verdict)).toEqual(["allowed", "allowed", "allowed"]);
      socket.write(hidden);
      expect(await readUntil(socket, "}")).toContain(" 403 ");
      socket.destroy();
    },
  );

  test("becomes one where all is allowed, by the server's own mistake", async () => {
    const heard: string[] = [];
    const port = await outside.tcp(careless(heard));
    await using inside = await leading(port, {});
    const socket = await inside.knock(proxyPort);
    socket.write(request(`GET http://${host}/public/x`, hidden));
    await readUntil(socket, "ok");
    await expect.poll(() => heard).toEqual(["GET /public/x HTTP/1.1", "DELETE /private/x HTTP/1.1"]);
    socket.destroy();
  });
});

describe("a request with a body, where requests are judged", () => {
  /** Answers each head with the number of its connection, says nothing about the connection's end, and reads no body. */
  const numbering = (finish: (socket: Socket) => void) => {
    let connections = 0;
    return (socket: Socket) => {
      const number = ++connections;
      let seen = "";
      socket.on("data", (bytes) => {
        seen += bytes.toString("latin1");
        for (let end = seen.indexOf("\r\n\r\n"); end >= 0; end = seen.indexOf("\r\n\r\n")) {
          const said = `${number} ${seen.slice(0, end).split(" ", 2).join(" ")};`;
          seen = seen.slice(end + 4);
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${said.length}\r\n\r\n${said}`);
          finish(socket);
        }
      });
    };
  };

  test.each<[string, number, (socket: Socket) => void]>([
    ["neither closes nor says so", 8, () => {}],
    ["closes without saying so", 8, (socket) => void socket.end()],
    ["closes a moment later", 52, (socket) => void setTimeout(() => socket.end(), 2)],
  ])("has a connection of its own with a server that %s", async (_name, times, finish) => {
    const port = await outside.tls(host, numbering(finish));
    await using inside = await leading(port, { paths: ["/public/**"] });
    const socket = await inside.secure(host);
    for (let number = 1; number <= times; number++) {
      socket.write(request(`POST /public/${number}`, "hello"));
      const answer = await readUntil(socket, answerEnd);
      expect(answer).toMatch(/^HTTP\/1.1 200 /);
      expect(answer).toContain(`${number} POST /public/${number};`);
    }
    socket.destroy();
  });

  test("has none of its answer's rest given to the next request, by a server that ignores the end", async () => {
    const port = await outside.tls(
      host,
      numbering(() => {}),
    );
    await using inside = await leading(port, { paths: ["/public/**"] });
    const socket = await inside.secure(host);
    const hidden = request("DELETE /private/x");
    for (let number = 1; number <= 6; number += 2) {
      socket.write(request("POST /public/a", hidden));
      expect(await readUntil(socket, answerEnd)).toContain("POST /public/a;");
      socket.write(request("GET /public/b"));
      expect(await readUntil(socket, answerEnd)).toContain("GET /public/b;");
    }
    socket.destroy();
  });

  test("goes by HTTP/2 where the server speaks it, all of them by one connection", async () => {
    const heard: string[] = [];
    const sessions = new Set<unknown>();
    const port = await outside.http2(host, (stream, headers) => {
      sessions.add(stream.session);
      let body = "";
      stream.on("data", (bytes) => {
        body += bytes;
      });
      stream.on("end", () => {
        heard.push(`${headers[":method"]} ${headers["x-kind"]} ${body}`);
        stream.respond({ ":status": 201, "content-type": "text/plain" });
        stream.end("done");
      });
    });
    await using inside = await leading(port, { paths: ["/public/**"] });
    const socket = await inside.secure(host);
    for (const body of ["one", "two"]) {
      const head = `POST /public/x HTTP/1.1\r\nHost: ${host}\r\nX-Kind: test\r\n`;
      socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n3\r\n${body}\r\n0\r\n\r\n`);
      const answer = await readUntil(socket, "0\r\n\r\n");
      expect(answer).toMatch(/^HTTP\/1.1 201 Created\r\ncontent-type: text\/plain\r\n[\s\S]*\r\n4\r\ndone\r\n/);
    }
    expect(heard).toEqual(["POST test one", "POST test two"]);
    expect(sessions.size).toBe(1);
    socket.destroy();
  });
});

describe("after a change of policy, what is asked next", () => {
  const where = (name: string) => ({ [host]: `127.0.0.1:${name}` });

  test("is dialled anew, in HTTP/1.1, and what is under way goes on to its end", async () => {
    const finish: (() => void)[] = [];
    const [before, after] = await Promise.all(
      ["before", "after"].map((name) =>
        outside.http((incoming, response) => {
          if (incoming.url === "/slow") finish.push(() => response.end(`slow ${name}`));
          else response.end(name);
        }),
      ),
    );
    const rules = [rule(host)];
    await using inside = new Inside(outside, policyOf(rules, { reach: where(`${before}`) }));
    const [socket, slow] = [await inside.knock(proxyPort), await inside.knock(proxyPort)];
    const ask = (on: Socket, path: string) => on.write(request(`GET http://${host}${path}`));
    ask(socket, "/");
    await readUntil(socket, "before");
    ask(slow, "/slow");
    await expect.poll(() => finish.length).toBe(1);
    inside.gateway.replacePolicy(policyOf(rules, { reach: where(`${after}`) }));
    ask(socket, "/");
    await readUntil(socket, "after");
    finish[0]?.();
    await readUntil(slow, "slow before");
    ask(slow, "/");
    expect(await readUntil(slow, "after")).toContain("after");
    for (const each of [socket, slow]) each.destroy();
  });

  test("is dialled anew, in HTTP/2, and what is under way goes on to its end", async () => {
    const finish: (() => void)[] = [];
    const [before, after] = await Promise.all(
      ["before", "after"].map((name) =>
        outside.http2(host, (stream, headers) => {
          stream.respond({ ":status": 200 });
          if (headers[":path"] === "/slow") finish.push(() => stream.end(`slow ${name}`));
          else stream.end(name);
        }),
      ),
    );
    const rules = [rule(host, { paths: ["/**"] })];
    await using inside = new Inside(outside, policyOf(rules, { reach: where(`${before}`) }));
    const socket = await inside.secure(host, { alpn: ["h2"] });
    const client = connectHttp2(`https://${host}`, { createConnection: () => socket });
    const ask = async (path: string) => {
      let text = "";
      for await (const bytes of client.request({ ":path": path })) text += bytes;
      return text;
    };
    expect(await ask("/")).toBe("before");
    const slow = ask("/slow");
    await expect.poll(() => finish.length).toBe(1);
    inside.gateway.replacePolicy(policyOf(rules, { reach: where(`${after}`) }));
    expect(await ask("/")).toBe("after");
    finish[0]?.();
    expect(await slow).toBe("slow before");
    client.destroy();
  });
});
