import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import { goesDirect, readUpstream, type Upstream, variablesFor } from "../../src/upstream/upstream.ts";
import { failure } from "../failure.ts";

const corp = "http://proxy.corp:3128";
const read = (env: Record<string, string>, setting = "environment") => readUpstream(setting, env);

describe("the proxy of the environment", () => {
  test.each<[Record<string, string>, string | null, string | null]>([
    [{}, null, null],
    [{ HTTPS_PROXY: "" }, null, null],
    [{ NO_PROXY: "*" }, null, null],
    [{ HTTPS_PROXY: corp }, corp, "HTTPS_PROXY"],
    [{ https_proxy: corp, HTTPS_PROXY: "http://other:1" }, corp, "HTTPS_PROXY"],
    [{ https_proxy: corp, http_proxy: "http://other:1", all_proxy: "http://third:1" }, corp, "HTTPS_PROXY"],
    [{ HTTP_PROXY: corp, all_proxy: "http://third:1" }, corp, "HTTP_PROXY"],
    [{ ALL_PROXY: corp }, corp, "ALL_PROXY"],
    [{ all_proxy: "socks5://proxy.corp:1080" }, null, null],
    [{ HTTPS_PROXY: "proxy.corp:3128" }, corp, "HTTPS_PROXY"],
    [{ HTTPS_PROXY: `${corp}/some/path?x#y` }, corp, "HTTPS_PROXY"],
  ])("of %j", (env, shown, origin) => {
    const upstream = read(env);
    expect([upstream?.shown ?? null, upstream?.origin ?? null]).toEqual([shown, origin]);
  });

  test.each(["socks5://me:hunter2@proxy.corp:1080", "http://me:hun/ter2@proxy.corp", "http://", "ftp://x"])(
    "that cannot be used is not passed over: %s",
    (HTTPS_PROXY) => {
      const { code, message, hint } = failure(ConfigError, () => read({ HTTPS_PROXY }));
      expect([code, message]).toEqual(["CONFIG_INVALID", "HTTPS_PROXY names no proxy that Podbot can use."]);
      expect(hint).toContain('network.upstream_proxy to one, or to "none"');
    },
  );
});

describe("the proxy of the configuration", () => {
  test("is taken instead of the environment's, and has its exceptions", () => {
    expect(read({ HTTPS_PROXY: "http://other:1", no_proxy: "a.org b.org" }, corp)).toMatchObject({
      shown: corp,
      origin: "network.upstream_proxy",
      host: "proxy.corp",
      port: 3128,
      secure: false,
      authorization: null,
      secrets: [],
      exceptions: { words: ["a.org", "b.org"] },
    });
  });

  test.each([
    ["http://proxy.corp", "proxy.corp", 80, false],
    ["https://proxy.corp", "proxy.corp", 443, true],
    ["https://[fd00::1]:8443", "fd00::1", 8443, true],
  ])("may leave out its port: %s", (address, host, port, secure) => {
    expect(read({}, address)).toMatchObject({ host, port, secure });
  });

  test.each([
    ["http://me:p%40ss%3Aword@proxy.corp:3128", "me:p@ss:word"],
    ["http://me@proxy.corp:3128", "me:"],
    ["http://:word@proxy.corp:3128", ":word"],
    ["http://me:100%@proxy.corp:3128", "me:100%"],
  ])("knows who may use it, and does not show it: %s", (address, login) => {
    const { authorization, secrets, shown } = read({}, address) as Upstream;
    const encoded = Buffer.from(login).toString("base64");
    expect([authorization, shown]).toEqual([`Basic ${encoded}`, corp]);
    expect(secrets).toEqual(expect.arrayContaining([login, encoded]));
  });
});

test("programs that use it themselves are told all of it", () => {
  const address = "http://me:hunter2@proxy.corp:3128";
  expect(variablesFor(read({}, address) as Upstream)).toEqual({
    http_proxy: `${address}/`,
    https_proxy: `${address}/`,
  });
  expect(variablesFor(read({ NO_PROXY: " .corp, 10.0.0.0/8 " }, address) as Upstream)).toMatchObject({
    no_proxy: ".corp,10.0.0.0/8",
  });
});

describe("what is reached without it", () => {
  const isDirect = (none: string, host: string, port = 443) =>
    goesDirect(read({ NO_PROXY: none }, corp) as Upstream, host, port);

  test.each<[string, string, number?]>([
    ["*", "anything.org"],
    ["example.org", "example.org"],
    ["example.org", "a.b.example.org"],
    [".example.org", "a.example.org"],
    [".example.org", "example.org"],
    ["*.example.org", "a.example.org"],
    ["EXAMPLE.org.", "example.org"],
    ["a.org,b.org", "b.org"],
    ["a.org  b.org", "b.org"],
    ["example.org:8443", "example.org", 8443],
    ["10.0.0.0/8", "10.1.2.3"],
    ["10.1.2.3", "10.1.2.3"],
    ["10.1.2.3:80", "10.1.2.3", 80],
    ["0.0.0.0/0", "8.8.8.8"],
    ["fd00::/8", "fd00::1"],
    ["fd00::1", "fd00::1"],
    ["[fd00::1]:443", "fd00::1"],
    ["[fd00::1]", "fd00::1"],
    ["", "localhost"],
    ["", "app.localhost"],
    ["", "127.0.0.1"],
    ["", "127.8.8.8"],
    ["", "::1"],
  ])("by %j: %s", (none, host, port) => {
    expect(isDirect(none, host, port)).toBe(true);
  });

  test.each<[string, string, number?]>([
    ["", "example.org"],
    ["example.org", "badexample.org"],
    ["example.org", "example.org.evil"],
    ["example.org:8443", "example.org", 443],
    ["10.0.0.0/8", "11.0.0.1"],
    ["10.0.0.0/8", "fd00::1"],
    ["10.0.0.0/33", "10.0.0.1"],
    ["10.0.0.0/x", "10.0.0.1"],
    ["fd00::/129", "fd00::1"],
    ["3.4", "1.2.3.4"],
    [", ,", "example.org"],
    [".", "example.org"],
    ["http://example.org", "example.org"],
    ["", "127.0.0.1.evil.org"],
    ["", "notlocalhost"],
    ["", "::2"],
  ])("not by %j: %s", (none, host, port) => {
    expect(isDirect(none, host, port)).toBe(false);
  });
});
