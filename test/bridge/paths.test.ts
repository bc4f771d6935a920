import { describe, expect, test } from "vitest";
import { pathLeaves, translatePath, translateUri } from "../../src/bridge/paths.ts";

describe("a path", () => {
  test.each([
    ["/srv/work", "/workspace"],
    ["/srv/work/", "/workspace/"],
    ["/srv/work/a/b c/ü", "/workspace/a/b c/ü"],
    ["/srv/work-evil/a", "/srv/work-evil/a"],
    ["/srv/workspace", "/srv/workspace"],
    ["/srv", "/srv"],
    ["/other/srv/work/a", "/other/srv/work/a"],
    ["srv/work/a", "srv/work/a"],
    ["", ""],
  ])("%j becomes %j", (path, translated) => {
    expect(translatePath(path, "/srv/work", "/workspace")).toBe(translated);
  });

  test("may come from the root, and go there", () => {
    expect(translatePath("/a/b", "/", "/in")).toBe("/in/a/b");
    expect(translatePath("/in/a/b", "/in", "/")).toBe("/a/b");
    expect(translatePath("/in", "/in", "/")).toBe("/");
  });
});

describe("a uri", () => {
  test.each([
    ["file:///srv/my%20work/a%2Fb", "file:///w%C3%BC/x/a%2Fb"],
    ["file:///srv/my%20work", "file:///w%C3%BC/x"],
    ["file:///srv/my%20work#L1-5", "file:///w%C3%BC/x#L1-5"],
    ["file:///srv/my%20work/a?symbol=x#L1", "file:///w%C3%BC/x/a?symbol=x#L1"],
    ["FILE://localhost/%73rv/my%20work/a", "FILE://localhost/w%C3%BC/x/a"],
    ["file:///srv/my%20work-evil/a", "file:///srv/my%20work-evil/a"],
    ["file:///srv", "file:///srv"],
    ["file:///srv/%zz/a", "file:///srv/%zz/a"],
    ["file://host/srv/my%20work/a", "file://host/srv/my%20work/a"],
    ["https://example.com/srv/my%20work/a", "https://example.com/srv/my%20work/a"],
    ["/srv/my work/a", "/srv/my work/a"],
  ])("%s becomes %s", (uri, translated) => {
    expect(translateUri(uri, "/srv/my work", "/wü/x")).toBe(translated);
  });
});

test("only strings are translated, each direction the other way round", () => {
  const paths = { outside: "/srv/wörk", inside: "/w" };
  const latin1 = (text: string) => Buffer.from(text).toString("latin1");
  const { path, uri } = pathLeaves(paths, "to-client");
  expect(path('"/w/\\u0061"')).toBe(latin1('"/srv/wörk/a"'));
  expect(uri('"file:///w/a"')).toBe('"file:///srv/w%C3%B6rk/a"');
  expect(pathLeaves(paths, "to-agent").path(latin1('"/srv/wörk"'))).toBe('"/w"');
  for (const json of ["null", "1", '{"a":"/w"}', '["/w"]', '"/elsewhere"']) expect(path(json)).toBeUndefined();
});
