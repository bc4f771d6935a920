import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Endpoint, endpointText, isLocal, parseEndpoint } from "../../src/engine/endpoint.ts";
import { ConfigError } from "../../src/errors.ts";
import { failure } from "../failure.ts";

const unix = (path: string) => ({ kind: "unix", path });
const ssh = (more: object) => ({ kind: "ssh", user: null, host: "far", port: null, path: null, ...more });

describe("an engine's address", () => {
  test.each<[string, object]>([
    ["unix:///run/podman/podman.sock", unix("/run/podman/podman.sock")],
    ["UNIX:///run/x", unix("/run/x")],
    ["/run/x", unix("/run/x")],
    ["/with space and ? and %41", unix("/with space and ? and %41")],
    ["npipe:////./pipe/docker_engine", { kind: "npipe", path: "//./pipe/docker_engine" }],
    ["\\\\.\\pipe\\docker_engine", { kind: "npipe", path: "\\\\.\\pipe\\docker_engine" }],
    ["//some/path", { kind: "npipe", path: "//some/path" }],
    ["tcp://far:1234", { kind: "http", host: "far", port: 1234 }],
    ["tcp://far", { kind: "http", host: "far", port: 2375 }],
    ["http://far/", { kind: "http", host: "far", port: 2375 }],
    ["https://far", { kind: "https", host: "far", port: 2376 }],
    ["https://[::1]:5000", { kind: "https", host: "::1", port: 5000 }],
    ["ssh://far", ssh({})],
    ["ssh://far/", ssh({})],
    ["ssh://me@far:22", ssh({ user: "me", port: 22 })],
    ["ssh://me@[fe80::1]:22/run/x.sock", ssh({ user: "me", host: "fe80::1", port: 22, path: "/run/x.sock" })],
  ])("%s is read by its syntax", (text, endpoint) => {
    expect(parseEndpoint(text)).toEqual(endpoint);
  });

  test("tcp means TLS where Docker's variables say so, and only tcp", () => {
    expect(parseEndpoint("tcp://far", { tls: true })).toEqual({ kind: "https", host: "far", port: 2376 });
    expect(parseEndpoint("http://far", { tls: true })).toEqual({ kind: "http", host: "far", port: 2375 });
  });

  test.each<[string, string]>([
    ["", "empty"],
    ["run/x.sock", "not absolute"],
    ["unix://run/x.sock", "not absolute"],
    ["unix://", "missing"],
    ["npipe://", "missing"],
    ["/run/\0x", "control character"],
    ["/run/x\n", "control character"],
    ["ftp://far", '"ftp" is not a way'],
    ["fd://", '"fd" is not a way'],
    ["tcp://", "host is missing"],
    ["tcp://:2375", "host is missing"],
    ["http://far:0", "port"],
    ["http://far:65536", "port"],
    ["http://far:", "port"],
    ["http://far:2375x", "port"],
    ["http://::1:2375", "brackets"],
    ["http://[far]:2375", "IPv6"],
    ["http://fa r", "not a name"],
    ["http://far/path", "no path"],
    ["http://far?x=1", "no query"],
    ["https://far#x", "no fragment"],
    ["ssh://-oProxyCommand=x", "not a name"],
    ["ssh://-x@far", "name is odd"],
    ["ssh://me:secret@far", "name is odd"],
    ["ssh://far/run/a:b", "ssh would not pass on"],
    ["ssh://far/run/%h", "ssh would not pass on"],
  ])("%j is refused", (text, why) => {
    const error = failure(ConfigError, () => parseEndpoint(text));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toContain(why);
    expect(error.hint).toContain("unix:///run/podman/podman.sock");
  });

  test("is refused without repeating a password", () => {
    const error = failure(ConfigError, () => parseEndpoint("https://me:hunter2@far"));
    expect(error.message).toContain("https://…@far");
    expect(JSON.stringify([error.message, error.details])).not.toContain("hunter2");
  });

  test("is the same after being written and read again", () => {
    fc.assert(
      fc.property(endpoints, (endpoint) => {
        expect(parseEndpoint(endpointText(endpoint))).toEqual(endpoint);
      }),
    );
  });

  test("of any spelling is read or refused, never something else", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.webUrl({ validSchemes: ["http", "https", "ssh", "tcp", "unix"] })),
        (text) => {
          try {
            const endpoint = parseEndpoint(text);
            expect(parseEndpoint(endpointText(endpoint))).toEqual(endpoint);
          } catch (error) {
            expect(error).toBeInstanceOf(ConfigError);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test.each<[string, boolean]>([
    ["/run/x", true],
    ["http://localhost:1", true],
    ["https://LOCALHOST:1", true],
    ["http://127.0.0.53", true],
    ["https://[::1]", true],
    ["http://127.0.0.1.example.com", false],
    ["http://10.0.0.1", false],
    ["ssh://localhost/run/x", false],
    ["//./pipe/x", false],
  ])("%s is local: %j", (text, local) => {
    expect(isLocal(parseEndpoint(text))).toBe(local);
  });
});

const clean = fc.string().filter((text) => !/\p{Cc}/u.test(text));
const host = fc.oneof(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/), fc.ipV6());
const port = fc.integer({ min: 1, max: 65_535 });
const endpoints: fc.Arbitrary<Endpoint> = fc.oneof(
  fc.record({ kind: fc.constant("unix" as const), path: clean.map((text) => `/${text}`) }),
  fc.record({ kind: fc.constant("npipe" as const), path: clean.map((text) => `//${text}`) }),
  fc.record({ kind: fc.constantFrom("http" as const, "https" as const), host, port }),
  fc.record({
    kind: fc.constant("ssh" as const),
    user: fc.option(fc.stringMatching(/^[a-z_][a-z0-9_-]{0,10}$/)),
    host,
    port: fc.option(port),
    path: fc.option(fc.stringMatching(/^\/[A-Za-z0-9_./@+,=~-]{1,20}$/)),
  }),
);
