// @module-tag security
import { describe, expect, test } from "vitest";
import { type Place, readConnect, readTarget } from "../../src/gateway/target.ts";

const proxy: Place = { host: "127.0.0.1", port: 3128, named: false, secure: false, proxy: true };

describe("a request at the proxy's door", () => {
  test.each([
    ["http://x.org/a?b", "/a", "?b"],
    ["http://x.org?b", "/", "?b"],
    ["http://x.org", "/", ""],
    ["HTTP://x.org/", "/", ""],
  ])("leads where it says, %s", (written, path, query) => {
    expect(readTarget(proxy, "GET", written, null, [["Host", "x.org"]])).toEqual({
      kind: "target",
      target: { host: "x.org", port: 80, method: "GET", path, query },
    });
  });

  test.each(["/a", "https://x.org/", "//x.org/", "http:x.org"])("is none: %s", (written) => {
    expect(readTarget(proxy, "GET", written, null, [["Host", "x.org"]])).toMatchObject({ kind: "bad" });
  });
});

test("a request names its host once, or says the same twice", () => {
  const place: Place = { host: "x.org", port: 443, named: true, secure: true, proxy: false };
  const read = (...hosts: readonly string[]) =>
    readTarget(
      place,
      "GET",
      "/",
      "x.org",
      hosts.map((each) => ["host", each] as const),
    );
  expect([read(), read("x.org")]).toMatchObject([{ kind: "target" }, { kind: "target" }]);
  expect(read("y.org")).toMatchObject({ kind: "bad" });
});

describe("a tunnel", () => {
  test.each([
    [[], "to"],
    [[["Host", "x.org"]], "to"],
    [[["Host", "x.org:443"]], "to"],
    [[["Host", "y.org"]], "bad"],
    [[["Content-Length", "0"]], "to"],
    [[["Content-Length", "5"]], "bad"],
    [[["Transfer-Encoding", "chunked"]], "bad"],
  ] as const)("with %j is %s", (headers, kind) => {
    expect(readConnect("x.org:443", headers)).toMatchObject({ kind });
  });
});
