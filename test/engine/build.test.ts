import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { type BuildRequest, buildLayers } from "../../src/engine/build.ts";
import { importImage, pullImage, removeImage, tagImage } from "../../src/engine/image-store.ts";
import { failureOf, type Route, readAll, say, startEngine } from "./engine-server.ts";

const id = "0123456789abcdef".repeat(4);

/** Lines of JSON, in the pieces given. */
const saying = (...pieces: string[]): Route => {
  return async (request, response) => {
    await readAll(request);
    response.writeHead(200);
    for (const piece of pieces) response.write(piece);
    response.end();
  };
};
const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\r\n`).join("");

function build(client: Parameters<typeof buildLayers>[0], more: Partial<BuildRequest> = {}) {
  const said: string[] = [];
  const built = buildLayers(client, {
    flavour: "podman",
    context: Readable.from([Buffer.from("a tar")]),
    args: { A: "1" },
    ulimits: [{ name: "nofile", soft: 5, hard: 7 }],
    onSaid: (text) => said.push(text),
    ...more,
  });
  return { said, built };
}

describe("a build", () => {
  test("is asked of Podman in its own words, and its id is the last of them", async () => {
    let context = "";
    const { client, calls } = await startEngine({
      "POST /v4.0.0/libpod/build": async (request, response) => {
        context = (await readAll(request)).toString();
        response.end(lines({ stream: "STEP 1/1: FROM x\n" }, { stream: `${id}\n` }));
      },
    });
    const { said, built } = build(client, { tag: "t:1", labels: { l: "v" }, hostNetwork: true, fresh: true });
    expect(await built).toBe(id);
    expect([said, context]).toEqual([["STEP 1/1: FROM x\n", `${id}\n`], "a tar"]);
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({
      dockerfile: "Containerfile",
      rm: "true",
      forcerm: "true",
      layers: "true",
      outputformat: "application/vnd.oci.image.manifest.v1+json",
      buildargs: '{"A":"1"}',
      ulimits: '["nofile=5:7"]',
      labels: '{"l":"v"}',
      t: "t:1",
      networkmode: "host",
      nocache: "true",
    });
  });

  test("is asked of Docker in its words, and its id comes aside", async () => {
    const { client, calls } = await startEngine({
      "POST /v1.40/build": saying(lines({ stream: "Step" }, { aux: { ID: `sha256:${id}` } }, { stream: "Done\n" })),
    });
    expect(await build(client, { flavour: "docker" }).built).toBe(id);
    const query = calls.at(-1)?.query;
    expect([query?.get("ulimits"), query?.get("layers"), query?.get("networkmode")]).toEqual([
      '[{"Name":"nofile","Soft":5,"Hard":7}]',
      null,
      null,
    ]);
  });

  test("is heard in whatever pieces, even if one is no JSON", async () => {
    const whole = lines({ stream: "ä\n" }, { aux: { ID: id } });
    const [one, other] = [whole.slice(0, 9), whole.slice(9)];
    const { client } = await startEngine({ "POST /v4.0.0/libpod/build": saying(one, other, "\n", "plain words") });
    const { said, built } = build(client);
    expect([await built, said]).toEqual([id, ["ä\n", "plain words\n"]]);
  });

  test.each([
    ["says why", saying(lines({ stream: "x\n" }, { error: "exit status 1\n" })), "exit status 1"],
    ["says why in detail", saying(lines({ errorDetail: { message: "bad" } })), "bad"],
    ["says nothing", saying(""), "The engine ended the build without a word."],
    ["refuses", ((_, response) => say(response, 400, { message: "no such parameter" })) as Route, "no such parameter"],
  ])("that fails, and the engine %s", async (_how, route, words) => {
    const { client } = await startEngine({ "POST /v4.0.0/libpod/build": route });
    const { code, message } = await failureOf(build(client).built);
    expect([code, message]).toEqual(["IMAGE_BUILD_FAILED", expect.stringContaining(words)]);
  });

  test("that breaks off is told", async () => {
    const { client } = await startEngine({
      "POST /v4.0.0/libpod/build": async (request, response) => {
        await readAll(request);
        response.write(lines({ stream: "x" }));
        setTimeout(() => response.destroy(), 20);
      },
    });
    expect((await failureOf(build(client).built)).code).toBe("ENGINE_CONNECTION_FAILED");
  });

  test("that is called off ends its connection", async () => {
    const interrupt = new AbortController();
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const { client } = await startEngine({
      "POST /v4.0.0/libpod/build": async (request, response) => {
        response.on("close", leave);
        await readAll(request);
        response.write(lines({ stream: "x" }));
        interrupt.abort();
      },
    });
    await expect(build(client, { signal: interrupt.signal }).built).rejects.toThrow();
    await left;
  });
});

describe("an image", () => {
  const create = "POST /v1.40/images/create";

  test.each([
    ["docker.io/library/debian:trixie-slim", "docker.io/library/debian", "trixie-slim"],
    ["localhost:5000/x", "localhost:5000/x", "latest"],
  ])("is pulled by its name and tag: %s", async (name, fromImage, tag) => {
    const { client, calls } = await startEngine({ [create]: saying(lines({ status: "Pulling" })) });
    await pullImage(client, name, { silenceMs: 1_000 });
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({ fromImage, tag });
  });

  test("that its registry does not have is told", async () => {
    const { client } = await startEngine({ [create]: saying(lines({ error: "no such host" })) });
    const { code, message } = await failureOf(pullImage(client, "x", { silenceMs: 1_000 }));
    expect([code, message]).toEqual(["ENGINE_REFUSED", "The engine says: no such host"]);
  });

  test("is waited for only as long as something is said", async () => {
    const talk = async (response: ServerResponse, times: number) => {
      for (let at = 0; at < times; at++) {
        response.write(lines({ status: "still here" }));
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    };
    const patient = await startEngine({ [create]: async (_, response) => void response.end(await talk(response, 8)) });
    await pullImage(patient.client, "x", { silenceMs: 1_500 });
    const silent = await startEngine({ [create]: (_, response) => void talk(response, 1) });
    const { code, message } = await failureOf(pullImage(silent.client, "x", { silenceMs: 200 }));
    expect([code, message]).toEqual(["ENGINE_REFUSED", "The registry has said nothing for 0.2 seconds."]);
  });

  test("is imported with its tag and labels", async () => {
    let got = "";
    const { client, calls } = await startEngine({
      [create]: async (request, response) => {
        got = (await readAll(request)).toString();
        response.end(lines({ status: id }));
      },
    });
    await importImage(client, "localhost/base:1", Readable.from([Buffer.from("root")]), { labels: { a: 'b"c' } });
    expect(got).toBe("root");
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({
      fromSrc: "-",
      repo: "localhost/base:1",
      changes: 'LABEL a="b\\"c"',
    });
  });

  test("gets one name more", async () => {
    const { client, calls } = await startEngine({
      "POST /v1.40/images/a%3A1/tag": (_, response) => say(response, 201),
    });
    await tagImage(client, "a:1", "localhost:5000/b:2");
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({ repo: "localhost:5000/b", tag: "2" });
  });

  test.each([
    [200, true],
    [404, false],
    [409, false],
    [500, false],
  ])("is removed, unless it is needed: %i", async (status, removed) => {
    const { client } = await startEngine({ "DELETE /v1.40/images/x": (_, response) => say(response, status, []) });
    expect(await removeImage(client, "x")).toBe(removed);
  });

  test("is not removed by a name that climbs elsewhere, nor where the engine means something else", async () => {
    const { client, calls } = await startEngine({ "DELETE /v1.40/images/x": (_, response) => say(response, 403, {}) });
    expect(await removeImage(client, "../x")).toBe(false);
    expect(calls).toEqual([]);
    expect((await failureOf(removeImage(client, "x"))).code).toBe("ENGINE_REFUSED");
  });
});
