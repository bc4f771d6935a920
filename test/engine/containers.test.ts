import { describe, expect, test } from "vitest";
import {
  createContainer,
  killContainer,
  removeContainer,
  startContainer,
  waitContainer,
} from "../../src/engine/containers.ts";
import { inspectImage } from "../../src/engine/images.ts";
import { inspectContainer, listContainers } from "../../src/engine/inspection.ts";
import { containerLogs } from "../../src/engine/logs.ts";
import { failureOf, type Route, readAll, say, startEngine } from "./engine-server.ts";
import { frame } from "./frame.ts";

const answering =
  (status: number, value?: unknown): Route =>
  (_request, response) =>
    say(response, status, value);

describe("creating a container", () => {
  const create = (route: Route) => startEngine({ "POST /v1.40/containers/create": route });

  test("tells its id and the engine's warnings", async () => {
    const { client, calls } = await create(answering(201, { Id: "abc", Warnings: ["careful"] }));
    expect(await createContainer(client, "box", { Image: "i" })).toEqual({ id: "abc", warnings: ["careful"] });
    expect(calls.at(-1)?.query.get("name")).toBe("box");
    const silent = await create(answering(201, { Id: "abc", Warnings: null }));
    expect((await createContainer(silent.client, "box", { Image: "i" })).warnings).toEqual([]);
  });

  test("speaks to Podman in its own words, where the name stands in the body", async () => {
    const heard: unknown[] = [];
    const { client, calls } = await startEngine({
      "POST /v4.0.0/libpod/containers/create": async (request, response) => {
        heard.push(JSON.parse((await readAll(request)).toString()));
        say(response, 201, { Id: "abc", Warnings: [] });
      },
    });
    const body = { name: "box", mounts: [{ source: "/a,src=/etc", destination: '/b"\n' }] };
    expect(await createContainer(client, "box", body, { api: "libpod" })).toEqual({ id: "abc", warnings: [] });
    expect(heard).toEqual([body]);
    expect(calls.at(-1)?.query.size).toBe(0);
  });

  test.each<[string, number, string, object]>([
    ["a missing image, to Docker", 404, "No such image: i:latest", { code: "IMAGE_NOT_FOUND" }],
    [
      "a missing image, to Podman",
      404,
      "no such image: i: image not known",
      { code: "IMAGE_NOT_FOUND", details: { image: "i" } },
    ],
    [
      "a taken name, to Docker",
      409,
      'Conflict. The container name "/box" is already in use',
      { details: { conflict: true } },
    ],
    [
      "a taken name, to Podman",
      500,
      'the container name "box" is already in use by x',
      { details: { conflict: true } },
    ],
    ["anything else", 500, "no", { code: "CONTAINER_CREATE_FAILED", details: { conflict: false, container: "box" } }],
    ["a missing network", 404, "network x not found", { code: "CONTAINER_CREATE_FAILED" }],
  ])("names %s", async (_what, status, message, expected) => {
    const { client } = await create(answering(status, { message }));
    expect(await failureOf(createContainer(client, "box", { Image: "i" }))).toMatchObject(expected);
  });
});

describe("a container", () => {
  const at = (path: string, method = "POST") => `${method} /v1.40/containers/box${path}`;

  test("that starts, also for the second time, is no news", async () => {
    for (const status of [204, 304]) {
      const { client } = await startEngine({ [at("/start")]: answering(status) });
      await startContainer(client, "box");
    }
  });

  test("that does not start is an error with the runtime's words", async () => {
    const { client } = await startEngine({ [at("/start")]: answering(500, { message: "runc: no such program" }) });
    const error = await failureOf(startContainer(client, "box"));
    expect(error.code).toBe("CONTAINER_START_FAILED");
    expect(error.message).toContain("runc: no such program");
  });

  test.each<[number, string, boolean]>([
    [204, "", true],
    [404, "no such container", false],
    [409, "is not running", false],
    [500, "can only kill running containers. x is in state exited", false],
  ])("is killed, or was not there: %i %s", async (status, message, killed) => {
    const { client, calls } = await startEngine({ [at("/kill")]: answering(status, { message }) });
    expect(await killContainer(client, "box", "SIGTERM")).toBe(killed);
    expect(calls.at(-1)?.query.get("signal")).toBe("SIGTERM");
  });

  test("that cannot be killed is an error", async () => {
    const { client } = await startEngine({ [at("/kill")]: answering(500, { message: "stuck" }) });
    expect(await failureOf(killContainer(client, "box", "SIGKILL"))).toMatchObject({ code: "ENGINE_REFUSED" });
  });

  test.each<[number, string]>([
    [204, ""],
    [404, "no such container"],
    [409, "removal of container box is already in progress"],
  ])("is removed, or is going anyway: %i", async (status, message) => {
    const { client, calls } = await startEngine({ [at("", "DELETE")]: answering(status, { message }) });
    await removeContainer(client, "box");
    expect(Object.fromEntries(calls.at(-1)?.query ?? [])).toEqual({ force: "true", v: "true", timeout: "0" });
  });

  test("that cannot be removed is an error", async () => {
    const { client } = await startEngine({ [at("", "DELETE")]: answering(409, { message: "it is running" }) });
    expect(await failureOf(removeContainer(client, "box", { force: false }))).toMatchObject({
      details: { status: 409 },
    });
  });

  test("is waited for", async () => {
    const { client } = await startEngine({
      [at("/wait")]: (_request, response) =>
        void setTimeout(() => say(response, 200, { StatusCode: 7, Error: null }), 50),
    });
    expect(await waitContainer(client, "box")).toEqual({ exitCode: 7, error: null });
    const failed = await startEngine({ [at("/wait")]: answering(200, { StatusCode: 1, Error: { Message: "odd" } }) });
    expect(await waitContainer(failed.client, "box")).toEqual({ exitCode: 1, error: "odd" });
    expect(await waitContainer(failed.client, "none")).toBeNull();
  });

  test("is looked at", async () => {
    const { client } = await startEngine({
      [at("/json", "GET")]: answering(200, {
        Id: "abc",
        Name: "/box",
        Image: "sha256:1",
        Created: "1970-01-01T00:00:05Z",
        Config: { Image: "i", Labels: { a: "b" }, Tty: false },
        State: {
          Status: "running",
          Pid: 42,
          ExitCode: 0,
          Error: "",
          StartedAt: "s",
          FinishedAt: "f",
          OOMKilled: false,
        },
        HostConfig: { Runtime: "runc" },
      }),
    });
    expect(await inspectContainer(client, "box")).toEqual({
      id: "abc",
      name: "box",
      image: "i",
      labels: { a: "b" },
      createdAt: 5,
      status: "running",
      pid: 42,
      exitCode: 0,
      error: "",
      oomKilled: false,
      startedAt: "s",
      finishedAt: "f",
      tty: false,
      runtime: "runc",
    });
    expect(await inspectContainer(client, "none")).toBeNull();
  });

  test("whose name is a path is refused before any call", async () => {
    const { client, calls } = await startEngine();
    for (const id of ["", "..", "a/b", "a?b", "-x"]) {
      expect(await failureOf(inspectContainer(client, id))).toMatchObject({ code: "ENGINE_REFUSED" });
    }
    expect(calls).toEqual([]);
  });

  test.each<[string, string]>([
    ["configured", "created"],
    ["initialized", "created"],
    ["stopped", "exited"],
    ["paused", "paused"],
  ])("that Podman calls %s is %s", async (State, status) => {
    const { client, calls } = await startEngine({
      "GET /v1.40/containers/json": answering(200, [{ Id: "abc", Names: ["/box"], State, Created: 5, Labels: null }]),
    });
    expect(await listContainers(client, { a: "b", c: "" })).toEqual([
      { id: "abc", name: "box", image: "", labels: {}, createdAt: 5, status },
    ]);
    const { all, filters } = Object.fromEntries(calls.at(-1)?.query ?? []);
    expect([all, JSON.parse(filters ?? "")]).toEqual(["true", { label: ["a=b", "c"] }]);
  });

  test("has logs, of which the end is kept", async () => {
    const log = Buffer.concat([frame(1, "one\n"), frame(2, "two\n"), frame(1, "three\n")]);
    const inspect = (Tty: boolean) => answering(200, { Config: { Tty }, State: {} });
    const { client } = await startEngine({
      [at("/json", "GET")]: inspect(false),
      [at("/logs", "GET")]: (_request, response) => response.end(log),
    });
    expect(await containerLogs(client, "box")).toBe("one\ntwo\nthree\n");
    expect(await containerLogs(client, "box", { longest: 6 })).toBe("three\n");
    expect(await containerLogs(client, "none")).toBe("");
    const terminal = await startEngine({
      [at("/json", "GET")]: inspect(true),
      [at("/logs", "GET")]: (_request, response) => response.end("raw\r\n"),
    });
    expect(await containerLogs(terminal.client, "box")).toBe("raw\r\n");
  });
});

describe("an image", () => {
  test("is looked at under its whole name", async () => {
    const Config = {
      Env: ["A=b"],
      User: "7",
      WorkingDir: "/w",
      Labels: { l: "1" },
      Volumes: { "/v": {} },
      Cmd: ["sh"],
    };
    const { client } = await startEngine({
      "GET /v1.40/images/ghcr.io/a/b%3A1/json": answering(200, {
        Id: "sha256:1",
        Config,
        Architecture: "amd64",
        Size: 7,
      }),
    });
    expect(await inspectImage(client, "ghcr.io/a/b:1")).toEqual({
      id: "sha256:1",
      env: ["A=b"],
      user: "7",
      workingDir: "/w",
      labels: { l: "1" },
      volumes: ["/v"],
      entrypoint: [],
      cmd: ["sh"],
      architecture: "amd64",
      size: 7,
    });
    expect(await inspectImage(client, "none")).toBeNull();
  });

  test("whose name climbs elsewhere is none", async () => {
    const { client, calls } = await startEngine();
    expect(await inspectImage(client, "../containers/json?")).toBeNull();
    expect(await inspectImage(client, "a//b")).toBeNull();
    expect(calls).toEqual([]);
  });
});
