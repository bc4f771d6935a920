import { describe, expect, test } from "vitest";
import { defaultCandidates, namedCandidate, podmanConnection } from "../../src/engine/candidates.ts";

const nobody = { env: {}, home: null, uid: 1000 };

describe("the place that the owner has named", () => {
  test("is the configured one first, then Docker's and Podman's variables in order", () => {
    const env = { DOCKER_HOST: "/d", CONTAINER_HOST: "/c", PODMAN_HOST: "/p" };
    const configured = { text: "/x", origin: "--engine-socket" };
    expect(namedCandidate({ ...nobody, env, configured })).toMatchObject({
      text: "/x",
      origin: "--engine-socket",
      named: true,
    });
    expect(namedCandidate({ ...nobody, env })).toMatchObject({ text: "/d", origin: "DOCKER_HOST" });
    expect(namedCandidate({ ...nobody, env: { ...env, DOCKER_HOST: "" } })).toMatchObject({ origin: "CONTAINER_HOST" });
    expect(namedCandidate({ ...nobody, env: { PODMAN_HOST: "/p" } })).toMatchObject({ origin: "PODMAN_HOST" });
  });

  test("is none where all are empty", () => {
    const configured = { text: "", origin: "engine_socket" };
    expect(namedCandidate({ ...nobody, env: { DOCKER_HOST: "" }, configured })).toBeNull();
    expect(namedCandidate({ ...nobody, configured: null })).toBeNull();
  });

  test("has TLS and certificates as Docker's clients would", () => {
    const of = (env: Record<string, string>, home: string | null = "/home/me") => {
      const { tls, certificates } = namedCandidate({ env: { DOCKER_HOST: "tcp://far", ...env }, home, uid: 1 }) ?? {};
      return { tls, certificates };
    };
    expect(of({})).toEqual({ tls: false, certificates: null });
    expect(of({ DOCKER_TLS_VERIFY: "", DOCKER_CERT_PATH: "" })).toEqual({ tls: false, certificates: null });
    expect(of({ DOCKER_TLS_VERIFY: "1" })).toEqual({ tls: true, certificates: "/home/me/.docker" });
    expect(of({ DOCKER_TLS_VERIFY: "1" }, null)).toEqual({ tls: true, certificates: null });
    expect(of({ DOCKER_CERT_PATH: "/certs" })).toEqual({ tls: true, certificates: "/certs" });
  });

  test("has the key that belongs to Podman's variable", () => {
    const env = { CONTAINER_HOST: "ssh://far", CONTAINER_SSHKEY: "/key" };
    expect(namedCandidate({ ...nobody, env })?.identity).toBe("/key");
    expect(namedCandidate({ ...nobody, env: { ...env, DOCKER_HOST: "ssh://far" } })?.identity).toBeNull();
  });
});

describe("the usual places", () => {
  test("are the user's own before the machine's", () => {
    const env = { XDG_RUNTIME_DIR: "/xdg" };
    expect(defaultCandidates({ env, home: "/home/me", uid: 1000 }).map(({ text }) => text)).toEqual([
      "/xdg/podman/podman.sock",
      "/run/user/1000/podman/podman.sock",
      "/xdg/docker.sock",
      "/run/user/1000/docker.sock",
      "/home/me/.docker/run/docker.sock",
      "/run/podman/podman.sock",
      "/var/run/docker.sock",
    ]);
  });

  test("are those of the system where no variable names others", () => {
    const texts = defaultCandidates({ env: {}, home: null, uid: 1000, root: "/sys" }).map(({ text }) => text);
    expect(texts[0]).toBe("/sys/run/user/1000/podman/podman.sock");
    expect(texts.at(-1)).toBe("/sys/var/run/docker.sock");
  });

  test("are each looked at once", () => {
    const texts = defaultCandidates({ env: { XDG_RUNTIME_DIR: "/run/user/0" }, home: null, uid: 0 }).map(
      ({ text }) => text,
    );
    expect(texts).toEqual([
      "/run/user/0/podman/podman.sock",
      "/run/user/0/docker.sock",
      "/run/podman/podman.sock",
      "/var/run/docker.sock",
    ]);
  });
});

describe("Podman's own connection", () => {
  const json = {
    Connection: { Default: "a", Connections: { a: { URI: "ssh://a/x", Identity: "/key" }, b: { URI: "/b" } } },
  };
  const conf = { engine: { active_service: "c", service_destinations: { c: { uri: "unix:///c" } } } };

  test("is the default of its file, then the active one of containers.conf", () => {
    expect(podmanConnection(json, conf)).toMatchObject({
      text: "ssh://a/x",
      origin: "podman connection a",
      identity: "/key",
      named: false,
    });
    expect(podmanConnection({}, conf)).toMatchObject({
      text: "unix:///c",
      origin: "podman connection c",
      identity: null,
    });
  });

  test.each([[null], [[]], ["text"], [{ Connection: { Default: "z", Connections: {} } }], [{ Connection: null }]])(
    "is none in %j",
    (odd) => {
      expect(podmanConnection(odd, odd)).toBeNull();
    },
  );
});
