// @module-tag security
import { describe, expect, test } from "vitest";
import { disguiseOf, parametersOf, secondPathsOf, speaksForProxy } from "../../src/policy/network-disguise.ts";

const request = { method: "POST", path: "/ok", query: "?a=b" };

describe("a request is in disguise", () => {
  test.each([
    ["x-http-method-override", "DELETE"],
    ["X-HTTP-Method", "DELETE"],
    ["X_Method_Override", "DELETE"],
    ["X-HTTP-Method-Override", "post"],
    ["X-Original-URL", "/admin"],
    ["X-Rewrite-URL", "/admin"],
    ["x-forwarded-uri", "/ok?a=c"],
  ])("where %s says %s", (name, value) => {
    expect(
      disguiseOf(request, [
        ["accept", "*/*"],
        [name, value],
      ]),
    ).toBe(name);
  });

  test.each(["?_method=DELETE", "?x=1&_METHOD=delete", "?%5fmethod=PUT", "?a;_method=DELETE", "?_method[]=DELETE"])(
    "where its query says %s",
    (query) => {
      expect(disguiseOf({ ...request, query }, [])).toMatch(/^_method$/i);
    },
  );

  test("but not where they say what it says itself, or where there is nothing of that", () => {
    expect(
      disguiseOf(request, [
        ["X-HTTP-Method-Override", " POST "],
        ["X-Original-URL", "/ok"],
        ["X-Rewrite-URL", "/ok?a=b"],
        ["X-Forwarded-For", "192.0.2.1"],
      ]),
    ).toBeNull();
    expect(disguiseOf({ ...request, query: "?_method=POST&method=DELETE" }, [])).toBeNull();
    expect(disguiseOf({ ...request, query: "" }, [])).toBeNull();
  });
});

test("headers that name a second path are known, as a path or as an address", () => {
  const found = secondPathsOf([
    ["Destination", "https://api.example.com/private/x?y#z"],
    ["X-Amz-Copy-Source", "bucket/key?versionId=1"],
    ["x-ms-copy-source", "//other.example.com"],
    ["x-goog-copy-source", " /a/b "],
    ["x-ms-rename-source", "/c"],
    ["source", "/d"],
  ]);
  expect(found.map(({ host, path }) => [host, path])).toEqual([
    ["api.example.com", "/private/x"],
    [null, "/bucket/key"],
    ["other.example.com", "/"],
    [null, "/a/b"],
    [null, "/c"],
  ]);
});

test("what only a proxy says is known in any spelling", () => {
  for (const name of ["Forwarded", "X-Forwarded-Host", "x_forwarded_prefix", "X-Original-Host"]) {
    expect([name, speaksForProxy(name)]).toEqual([name, true]);
  }
  for (const name of ["host", "x-forward", "forwarded-for-me"])
    expect([name, speaksForProxy(name)]).toEqual([name, false]);
});

test("parameters are read as a lenient server reads them", () => {
  expect(parametersOf("?a=1&b+c=d%20e;f=%zz&g&=h&x[y]=z")).toEqual([
    ["a", "1"],
    ["b c", "d e"],
    ["f", "%zz"],
    ["g", ""],
    ["", "h"],
    ["x", "z"],
  ]);
});
