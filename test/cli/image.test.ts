import { describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { encodeEntry } from "../../src/credentials/tar-header.ts";
import type { Signal } from "../../src/wall/wall.ts";
import { type Route, readAll, say, startEngine } from "../engine/engine-server.ts";
import { newWorld } from "../world.ts";

const world = newWorld();
const built = "b".repeat(64);
const status = "Package: git\nStatus: install ok installed\nVersion: 1:2.47\n\n";
const steps = [
  "STEP 1/3: FROM base\n",
  "STEP 2/3: RUN sh /usr/local/lib/podbot/install-packages a\n--> Using cache 1\n",
  `STEP 3/3: RUN sh /usr/local/lib/podbot/install-agent @openai/codex@${versionOf("codex")} -- codex --version\nfine\n`,
];

function versionOf(name: string): string {
  return agents.find((agent) => agent.name === name)?.package.version ?? "";
}

const adapterVersion = agents.find(({ name }) => name === "codex")?.acp?.package?.version ?? "";

/** A tar with one file, as an engine hands it out. */
function fileTar(content: string): Buffer {
  const owner = { uid: 0, gid: 0 };
  const header = { name: Buffer.from("status"), mode: 0o644, modifiedMs: 0, owner, size: content.length };
  return Buffer.concat([encodeEntry({ ...header, kind: "file" }), Buffer.from(content.padEnd(1_024, "\0"))]);
}

/** An engine that has a base, and an image where one has been built. */
async function openEngine(more: Readonly<Record<string, Route>> = {}) {
  const images = new Map<string, unknown>([["localhost/base:1", { Id: "sha256:1", Config: {}, Size: 5 }]]);
  const builds: { readonly context: string; readonly query: URLSearchParams }[] = [];
  const lookUp =
    (name: string): Route =>
    (_, response) =>
      images.has(name) ? say(response, 200, images.get(name)) : say(response, 404, { message: "no such image" });
  const engine = await startEngine({
    "GET /v1.40/images/localhost/base%3A1/json": lookUp("localhost/base:1"),
    "GET /v1.40/images/localhost/podbot%3Alatest/json": lookUp("localhost/podbot:latest"),
    "POST /v4.0.0/libpod/build": async (request, response, { query }) => {
      const context = (await readAll(request)).toString("latin1");
      builds.push({ context, query });
      const labels = query.get("labels");
      const tag = query.get("t");
      if (tag !== null) {
        const Config = { Labels: JSON.parse(labels ?? "{}") as unknown };
        images.set(tag, { Id: `sha256:${builds.length}`, Config, Size: 1_250_000_000 });
      }
      for (const stream of labels === null ? steps : []) response.write(`${JSON.stringify({ stream })}\n`);
      response.end(`${JSON.stringify({ stream: built })}\n`);
    },
    "POST /v1.40/containers/create": (_, response) => say(response, 201, { Id: "c1" }),
    "GET /v1.40/containers/c1/archive": (_, response) => void response.end(fileTar(status)),
    "DELETE /v1.40/containers/c1": (_, response) => say(response, 204),
    "DELETE /v1.40/images/2": (_, response) => say(response, 200, []),
    ...more,
  });
  const image = (...words: string[]) => ["image", ...words, "--engine-socket", engine.path];
  const build = (...words: string[]) => image("build", "--agents", "codex", "--base", "localhost/base:1", ...words);
  return { ...engine, builds, images, image, build };
}

describe("podbot image build", () => {
  test("builds, labels, tells, and has nothing to do the second time", async () => {
    const { builds, calls, build, image } = await openEngine();
    const first = await world.podbot(build());
    expect(first).toEqual({
      status: 0,
      stdout: expect.stringMatching(
        /^built localhost\/podbot:latest, 1\.25 GB, with codex \S+, codex-acp \S+ \(\d+ s\)\n$/,
      ),
      stderr: [
        "podbot: building localhost/podbot:latest on localhost/base:1",
        "podbot: 2/3 Debian packages, as before",
        `podbot: 3/3 Codex ${versionOf("codex")}`,
        "",
      ].join("\n"),
    });
    const [contents, labels] = builds;
    expect(JSON.parse(contents?.query.get("buildargs") ?? "")).toMatchObject({ BASE: "1" });
    expect(contents?.context).toContain(`install-agent @openai/codex@${versionOf("codex")} -- codex --version`);
    expect(labels?.context).toContain(`FROM ${built}\n`);
    expect(JSON.parse(labels?.query.get("labels") ?? "")).toEqual({
      "org.podbot.inputs": expect.stringMatching(/^[0-9a-f]{64}$/),
      "org.podbot.base": "localhost/base:1",
      "org.podbot.agents": JSON.stringify({ codex: versionOf("codex"), "codex-acp": adapterVersion }),
      "org.podbot.software": '{"git":"1:2.47"}',
    });
    // Nothing of ours stays.
    expect(calls.map(({ method, path }) => `${method} ${path}`)).toContain("DELETE /v1.40/containers/c1");

    const second = await world.podbot(build());
    expect(second).toEqual({ status: 0, stdout: expect.stringMatching(/^up to date: /), stderr: "" });
    expect(builds.length).toBe(2);
    const shown = await world.podbot(image("show"));
    expect(shown.stdout).toBe(
      [
        "image     localhost/podbot:latest",
        "id        2",
        "size      1.25 GB",
        "base      localhost/base:1",
        `agents    codex ${versionOf("codex")}, codex-acp ${adapterVersion}`,
        "software  git 1:2.47",
        "",
      ].join("\n"),
    );
  });

  test("builds again where something is another, and removes what nobody finds any more", async () => {
    const { builds, calls, build } = await openEngine();
    await world.podbot(build("--quiet"));
    const { stdout, stderr } = await world.podbot(build("--quiet", "--json", "--agents", "gemini,codex"));
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toMatchObject({
      tag: "localhost/podbot:latest",
      upToDate: false,
      agents: { codex: versionOf("codex"), gemini: versionOf("gemini") },
      seconds: expect.any(Number),
    });
    expect(builds.length).toBe(4);
    expect(calls.at(-1)).toMatchObject({ method: "DELETE", path: "/v1.40/images/2" });
  });

  test("takes nothing from earlier builds where it is told so, and another network", async () => {
    const pulling: Route = (_, response) => void response.end('{"status":"Pulled"}\n');
    const { builds, build } = await openEngine({ "POST /v1.40/images/create": pulling });
    await world.podbot(build());
    const { stderr } = await world.podbot(build("--fresh", "--host-network"));
    expect(stderr).toMatch(/^podbot: fetching localhost\/base:1\npodbot: building /);
    expect([builds[2]?.query.get("nocache"), builds[2]?.query.get("networkmode")]).toEqual(["true", "host"]);
  });

  test("hands on proxies, and uses this machine's network where one is on its loopback", async () => {
    const { builds, build } = await openEngine();
    const env = { ...world.env, HTTPS_PROXY: "http://a:b@127.0.0.1:9" };
    await world.podbot(build(), { env });
    expect(JSON.parse(builds[0]?.query.get("buildargs") ?? "")).toMatchObject({ https_proxy: env.HTTPS_PROXY });
    expect(builds[0]?.query.get("networkmode")).toBe("host");
    expect(builds[1]?.query.get("labels")).not.toContain("127.0.0.1");
  });

  test("says what failed, with the last words of the build and a way out", async () => {
    const { build } = await openEngine({
      "POST /v4.0.0/libpod/build": async (request, response) => {
        await readAll(request);
        for (const stream of steps) response.write(`${JSON.stringify({ stream })}\n`);
        response.end('{"stream":"npm error code EAI_AGAIN\\n"}\n{"error":"exit status 1"}\n');
      },
    });
    const { status, stderr } = await world.podbot(build("--quiet"));
    expect(status).toBe(125);
    expect(stderr).toContain(`it failed at Codex ${versionOf("codex")}.\n    fine\n    npm error code EAI_AGAIN\n`);
    expect(stderr).toContain("way out: The build does not reach its packages.");
    expect(stderr).toContain("(IMAGE_BUILD_FAILED; docs/errors.md)");
  });

  test("can be interrupted", async () => {
    let interrupt: (signal: Signal) => void = () => {};
    const { build } = await openEngine({
      "POST /v4.0.0/libpod/build": async (request, response) => {
        await readAll(request);
        response.write(`${JSON.stringify({ stream: "x" })}\n`);
        interrupt("SIGINT");
      },
    });
    const onSignal = (listener: (signal: Signal) => void) => {
      interrupt = listener;
      return () => {};
    };
    expect((await world.podbot(build("--quiet"), { onSignal })).status).toBe(130);
  });

  test.each([
    [["--agents", "codex,kodex"], 2, "AGENT_UNKNOWN"],
    [["--tag", "No Such Thing"], 2, "USAGE"],
    [["--base", "../x"], 125, "IMAGE_BASE_MISSING"],
  ])("refuses %j", async (words, expected, code) => {
    const refusing: Route = (_, response) => say(response, 500, { message: "invalid reference" });
    const { build } = await openEngine({ "POST /v1.40/images/create": refusing });
    const { status, stderr } = await world.podbot(build("--quiet", ...words));
    expect([status, stderr]).toEqual([expected, expect.stringContaining(`(${code};`)]);
  });
});

describe("podbot image", () => {
  test("shows only what is there, and knows two verbs", async () => {
    const { image, images } = await openEngine();
    expect(await world.podbot(image("show"))).toMatchObject({
      status: 125,
      stderr: expect.stringContaining("`podbot image build` builds it"),
    });
    images.set("localhost/podbot:latest", { Id: "sha256:9", Config: {}, Size: 5_000_000 });
    expect((await world.podbot(image("show", "--tag", "localhost/podbot"))).stdout).toContain(
      "not known: Podbot has not built it",
    );
    expect(JSON.parse((await world.podbot(image("show", "--json"))).stdout)).toMatchObject({
      size: 5_000_000,
      inputs: null,
    });
    expect(await world.podbot(image("push"))).toMatchObject({ status: 2 });
    expect(await world.podbot(["image"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("BUILD|SHOW is missing"),
    });
  });

  test("may have no agents", async () => {
    const { build } = await openEngine();
    expect((await world.podbot(build("--agents", "none"))).stdout).toContain("with no agents");
    expect((await world.podbot(build("--agents", "all"))).stdout).toContain("qwen");
  });
});
