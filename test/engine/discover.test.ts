import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DiscoverInputs, discoverEngine } from "../../src/engine/discover.ts";
import { failureOf, freshPath, startEngine } from "./engine-server.ts";

const uid = process.getuid?.() ?? 0;
/** Where this machine has no engine, whatever it has elsewhere. */
const nowhere = freshPath("root");

/** A home and a runtime directory in which nothing is. */
function emptyPlaces() {
  const home = freshPath("home");
  const run = freshPath("run");
  mkdirSync(join(home, ".config/containers"), { recursive: true });
  mkdirSync(join(home, ".docker/run"), { recursive: true });
  mkdirSync(join(run, "podman"), { recursive: true });
  return { home, run };
}

async function find(inputs: Partial<DiscoverInputs>) {
  const { client, origin } = await discoverEngine({ env: {}, home: null, uid, root: nowhere, ...inputs });
  client[Symbol.dispose]();
  return { endpoint: client.endpoint, origin };
}

describe("the engine that the owner has named", () => {
  test("is used", async () => {
    const { path } = await startEngine();
    expect(await find({ configured: { text: `unix://${path}`, origin: "--engine-socket" } })).toEqual({
      endpoint: { kind: "unix", path },
      origin: "--engine-socket",
    });
    expect(await find({ env: { DOCKER_HOST: path } })).toMatchObject({ origin: "DOCKER_HOST" });
  });

  test("is never replaced by another that answers", async () => {
    const { run } = emptyPlaces();
    await startEngine({}, join(run, "podman/podman.sock"));
    const env = {
      XDG_RUNTIME_DIR: run,
      DOCKER_HOST: "/nowhere/docker.sock",
      CONTAINER_HOST: join(run, "podman/podman.sock"),
    };
    const error = await failureOf(find({ env }));
    expect(error).toMatchObject({ code: "ENGINE_SOCKET_NOT_FOUND", details: { origin: "DOCKER_HOST" } });
    expect(error.message).toContain("DOCKER_HOST");
    expect(error.hint).toBeDefined();
  });

  test("is refused under its origin where its address makes no sense", async () => {
    const error = await failureOf(find({ configured: { text: "what://ever", origin: "engine_socket" } }));
    expect(error).toMatchObject({ code: "CONFIG_INVALID", details: { origin: "engine_socket", text: "what://ever" } });
  });

  test("does not repeat a password that was in its address", async () => {
    const error = await failureOf(find({ env: { DOCKER_HOST: "tcp://me:hunter2@far" } }));
    expect(JSON.stringify([error.message, error.details])).not.toContain("hunter2");
  });
});

describe("an engine at a usual place", () => {
  test("is found, the user's own Podman first", async () => {
    const { home, run } = emptyPlaces();
    const docker = await startEngine({}, join(home, ".docker/run/docker.sock"));
    const inputs = { env: { XDG_RUNTIME_DIR: run }, home };
    expect(await find(inputs)).toEqual({ endpoint: { kind: "unix", path: docker.path }, origin: "default" });
    const podman = await startEngine({}, join(run, "podman/podman.sock"));
    expect((await find(inputs)).endpoint).toEqual({ kind: "unix", path: podman.path });
  });

  test("is passed over where it does not answer as an engine", async () => {
    const { home, run } = emptyPlaces();
    await startEngine({ "GET /_ping": (_request, response) => response.end() }, join(run, "podman/podman.sock"));
    const docker = await startEngine({}, join(run, "docker.sock"));
    expect((await find({ env: { XDG_RUNTIME_DIR: run }, home })).endpoint).toEqual({ kind: "unix", path: docker.path });
  });

  test("is passed over where it belongs to another user", async () => {
    const { home, run } = emptyPlaces();
    const podman = await startEngine({}, join(run, "podman/podman.sock"));
    // Root gives it away; anybody else becomes another.
    if (uid === 0) chownSync(podman.path, 65_534, 65_534);
    const me = uid === 0 ? uid : uid + 1;
    const error = await failureOf(find({ env: { XDG_RUNTIME_DIR: run }, home, uid: me }));
    expect(error.code).toBe("ENGINE_NOT_FOUND");
    expect(error.message).toContain(`belongs to user ${uid === 0 ? 65_534 : uid}`);
  });

  test("comes after the connection that Podman's files name", async () => {
    const { home, run } = emptyPlaces();
    await startEngine({}, join(run, "podman/podman.sock"));
    const inputs = { env: { XDG_RUNTIME_DIR: run }, home };
    const other = await startEngine();
    writeFileSync(
      join(home, ".config/containers/containers.conf"),
      `[engine]\nactive_service = "mine"\n[engine.service_destinations.mine]\nuri = "unix://${other.path}"\n`,
    );
    expect(await find(inputs)).toEqual({
      endpoint: { kind: "unix", path: other.path },
      origin: "podman connection mine",
    });
    const third = await startEngine();
    const json = { Connection: { Default: "j", Connections: { j: { URI: `unix://${third.path}` } } } };
    writeFileSync(join(home, ".config/containers/podman-connections.json"), JSON.stringify(json));
    expect(await find(inputs)).toMatchObject({ origin: "podman connection j" });
    writeFileSync(join(home, ".config/containers/podman-connections.json"), "{ broken");
    writeFileSync(join(home, ".config/containers/containers.conf"), "active_service = broken");
    expect(await find(inputs)).toMatchObject({ origin: "default" });
  });
});

describe("where no engine is", () => {
  test("every place is listed with its reason", async () => {
    const { home, run } = emptyPlaces();
    await startEngine({ "GET /_ping": (_request, response) => response.end() }, join(run, "docker.sock"));
    const error = await failureOf(find({ env: { XDG_RUNTIME_DIR: run }, home, uid }));
    expect(error.code).toBe("ENGINE_NOT_FOUND");
    expect(error.message).toContain(`${join(run, "podman/podman.sock")}: not there`);
    expect(error.message).toContain("is not a container engine");
    expect(error.message).toContain(`${nowhere}/var/run/docker.sock: not there`);
    expect(error.hint).toContain("apt install podman");
    expect(error.details["tried"]).toHaveLength(7);
    expect((error.cause as AggregateError).errors).toHaveLength(7);
  });
});
