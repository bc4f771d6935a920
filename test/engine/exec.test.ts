import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { execAttach } from "../../src/engine/exec.ts";
import { failureOf, type Route, readAll, say, startEngine } from "./engine-server.ts";
import { frame } from "./frame.ts";

const create = "POST /v1.40/containers/box/exec";

/** An engine whose exec is a program given as what happens on its stream. */
async function startWith(program: (socket: Duplex) => void, more: Readonly<Record<string, Route>> = {}) {
  const bodies: unknown[] = [];
  const engine = await startEngine({
    [create]: async (request, response) => {
      bodies.push(JSON.parse(String(await readAll(request))));
      say(response, 201, { Id: "e1" });
    },
    ...more,
  });
  engine.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    expect(request.url).toBe("/v1.40/exec/e1/start");
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    // The request's own body comes first, and may have come already.
    if (head.length >= Number(request.headers["content-length"])) program(socket);
    else socket.once("data", () => program(socket));
  });
  return { ...engine, bodies };
}

describe("an exec", () => {
  test("is a stream of its input and its output; its errors go elsewhere", async () => {
    const { client, bodies } = await startWith((socket) => {
      socket.write(Buffer.concat([frame(1, "hello "), frame(2, "trouble"), frame(1, "world")]));
      socket.end();
    });
    const heard: string[] = [];
    const stream = await execAttach(client, "box", {
      argv: ["prog", "arg"],
      user: "1000:1000",
      env: { A: "b" },
      onStderr: (bytes) => heard.push(String(bytes)),
    });
    expect(await text(stream)).toBe("hello world");
    expect(heard).toEqual(["trouble"]);
    expect(bodies).toEqual([
      {
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        Cmd: ["prog", "arg"],
        Env: ["A=b"],
        User: "1000:1000",
      },
    ]);
  });

  test("still speaks after its input has ended", async () => {
    const { client } = await startWith((socket) => {
      let said = "";
      socket.on("data", (bytes) => {
        said += bytes;
      });
      socket.on("end", () => {
        setTimeout(() => socket.end(frame(1, `you said ${said}`)), 20);
      });
    });
    const stream = await execAttach(client, "box", { argv: ["cat"] });
    stream.write("one ");
    stream.end("two");
    expect(await text(stream)).toBe("you said one two");
  });

  test("is not read faster than it is used", async () => {
    let written = 0;
    const { client } = await startWith((socket) => {
      const pour = () => {
        while (socket.write(frame(1, "x".repeat(65_536)))) written += 65_536;
      };
      socket.on("drain", pour);
      pour();
    });
    const stream = await execAttach(client, "box", { argv: ["yes"] });
    stream.once("readable", () => {});
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(written).toBeLessThan(8 * 1_024 * 1_024);
    stream.destroy();
  });

  test("that breaks off ends its stream with an error or an end, never with silence", async () => {
    const { client } = await startWith((socket) => socket.destroy());
    const stream = await execAttach(client, "box", { argv: ["x"] });
    await Promise.race([text(stream), new Promise((resolve) => stream.once("error", resolve))]);
  });

  test("that is not framed is an error", async () => {
    const { client } = await startWith((socket) => void socket.write("this is not a frame"));
    const stream = await execAttach(client, "box", { argv: ["x"] });
    expect(await failureOf(text(stream))).toMatchObject({ code: "PROTOCOL" });
  });

  test("that is refused says why", async () => {
    const refusing = await startEngine({
      [create]: (_request, response) => say(response, 409, { message: "container is not running" }),
    });
    const error = await failureOf(execAttach(refusing.client, "box", { argv: ["x"] }));
    expect(error).toMatchObject({ code: "EXEC_FAILED", details: { status: 409 } });
    const late = await startEngine({
      [create]: (_request, response) => say(response, 201, { Id: "e1" }),
      "POST /v1.40/exec/e1/start": (_request, response) => say(response, 500, { message: "cannot start" }),
    });
    expect((await failureOf(execAttach(late.client, "box", { argv: ["x"] }))).message).toContain("cannot start");
    const stubborn = await startEngine({
      [create]: (_request, response) => say(response, 201, { Id: "e1" }),
      "POST /v1.40/exec/e1/start": (_request, response) => say(response, 200),
    });
    expect(await failureOf(execAttach(stubborn.client, "box", { argv: ["x"] }))).toMatchObject({ code: "PROTOCOL" });
  });
});
