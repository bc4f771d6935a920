import { mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { knownAgent } from "../../src/agents/table.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { LoadedConfig, PartialConfig } from "../../src/config/types.ts";
import { openEngine, ownerName } from "../../src/keeper/engine.ts";
import { freshPath, type Route, say, startEngine } from "../engine/engine-server.ts";

const id = `sha256:${"ab".repeat(32)}`;
const info = { ServerVersion: "27.1", DefaultRuntime: "runc", Runtimes: { runc: {}, runsc: {} }, CgroupVersion: "2" };
/** Images and their labels. */
const images: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  dev: {},
  "localhost/podbot%3Alatest": { "org.podbot.inputs": "1", "org.podbot.agents": '{"claude":"2","codex":"0"}' },
};
const routes = (more: Readonly<Record<string, Route>> = {}): Readonly<Record<string, Route>> => ({
  "GET /_ping": (_request, response) => response.writeHead(200, { "api-version": "1.41", server: "Docker" }).end("OK"),
  ...Object.fromEntries(
    ["1.40", "1.41"].flatMap((version) => [
      [`GET /v${version}/info`, (_request, response) => say(response, 200, info)] as [string, Route],
      ...Object.entries(images).map(([name, Labels]): [string, Route] => [
        `GET /v${version}/images/${name}/json`,
        (_request, response) => say(response, 200, { Id: id, Config: { Labels } }),
      ]),
    ]),
  ),
  ...more,
});

function loaded(value: PartialConfig): LoadedConfig {
  const layers = [defaultLayer(), { name: "flag", source: "command line", trusted: true, value } as const];
  return { ...mergeLayers(layers), layers, warnings: [], files: [] };
}

async function open(value: PartialConfig, agent?: string) {
  const engine = await startEngine(routes());
  const state = freshPath("state");
  mkdirSync(state);
  const env = { HOME: state, PATH: "", XDG_RUNTIME_DIR: state };
  const opened = openEngine(
    loaded({ engine_socket: `unix://${engine.path}`, ...value }),
    { env, state },
    agent === undefined ? undefined : knownAgent(agent),
  );
  return { engine, opened };
}

describe("an engine is opened", () => {
  test("with what a plan must know of it and of the image", async () => {
    const { engine, opened } = await open({ image: " dev " });
    const { client, facts, name } = await opened;
    client[Symbol.dispose]();
    expect(name).toEqual({ endpoint: `unix://${engine.path}`, service: null });
    expect(facts).toMatchObject({
      endpoint: `unix://${engine.path}`,
      local: true,
      flavour: "docker",
      version: "27.1",
      runtime: "runc",
      image: { name: "dev", id, volumes: [], variables: [] },
    });
  });

  test.each([undefined, "", "  ", "\t\n"])(
    "never without an image (%j), and then it is not even asked",
    async (image) => {
      const { engine, opened } = await open(image === undefined ? {} : { image });
      await expect(opened).rejects.toMatchObject({ code: "IMAGE_REQUIRED", hint: expect.stringContaining("--image") });
      expect(engine.connections()).toBe(0);
    },
  );

  test("never for an image that it does not have, and nothing is created", async () => {
    const { engine, opened } = await open({ image: "absent" });
    await expect(opened).rejects.toMatchObject({
      code: "IMAGE_NOT_FOUND",
      hint: expect.stringContaining("docker pull absent"),
    });
    expect(engine.calls.filter(({ method }) => method !== "GET" && method !== "HEAD")).toEqual([]);
  });

  test("with Podbot's own image for a known agent that is in it, where no other is named", async () => {
    const { client, facts } = await (await open({}, "codex")).opened;
    client[Symbol.dispose]();
    expect(facts.image).toEqual({ name: "localhost/podbot:latest", id, volumes: [], variables: [] });
    await expect((await open({}, "goose")).opened).rejects.toMatchObject({
      code: "AGENT_MISSING",
      hint: expect.stringContaining("`podbot image build --agents claude,codex,goose`"),
    });
    // What others have built need not say what is in it.
    (await (await open({ image: "dev" }, "goose")).opened).client[Symbol.dispose]();
  });

  test("with a runtime that it has, and never with another", async () => {
    const good = await open({ image: "dev", sandbox: { runtime: "runsc" } });
    (await good.opened).client[Symbol.dispose]();
    const bad = await open({ image: "dev", sandbox: { runtime: "kata" } });
    await expect(bad.opened).rejects.toMatchObject({
      code: "OCI_RUNTIME_MISSING",
      details: { known: ["runc", "runsc"] },
    });
  });
});

test("a state directory's name for labels is its own, and does not give it away", () => {
  expect(ownerName("/home/u/.local/state/podbot")).toMatch(/^[0-9a-f]{20}$/);
  expect(ownerName("/a")).toBe(ownerName("/a"));
  expect(ownerName("/a")).not.toBe(ownerName("/b"));
});
