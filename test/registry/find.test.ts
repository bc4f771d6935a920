import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionError } from "../../src/errors.ts";
import { findSession } from "../../src/registry/find.ts";
import type { SessionView } from "../../src/registry/reconcile.ts";
import { failure } from "../failure.ts";

const views = (...ids: string[]): SessionView[] =>
  ids.map((id) => ({ id, state: "running", why: null, socket: null, record: null }));

describe("a session is found", () => {
  test("by its id, also where that begins another", () => {
    expect(findSession(views("abc", "abcdef"), "abc").id).toBe("abc");
  });

  test("by the name of its container", () => {
    expect(findSession(views("abcdefgh23", "abddefgh23"), "podbot-abcdefgh23").id).toBe("abcdefgh23");
  });

  test("by any beginning that fits no other", () => {
    expect(findSession(views("abcdefgh23", "abddefgh23"), "abc").id).toBe("abcdefgh23");
  });
});

describe("no session is found", () => {
  test("by a beginning that fits several: they are listed", () => {
    const error = failure(SessionError, () => findSession(views("abcdefgh23", "abddefgh23", "zzzzzzzzzz"), "ab"));
    expect(error).toMatchObject({ code: "SESSION_AMBIGUOUS", details: { ids: ["abcdefgh23", "abddefgh23"] } });
    expect(error.message).toContain("abcdefgh23, abddefgh23");
  });

  test.each(["", "x", "bcdefgh23", "abcdefgh234"])("by %j", (text) => {
    const error = failure(SessionError, () => findSession(views("abcdefgh23"), text));
    expect(error).toMatchObject({ code: "SESSION_NOT_FOUND", details: {}, hint: "`podbot ps` lists all sessions." });
  });

  test.each(["abcdefgh32", "ABCDEFGH23", "abxd"])("by %s, but the one that was meant is named", (text) => {
    const error = failure(SessionError, () => findSession(views("zzzzefgh32", "abcdxxgh23", "abcdefgh23"), text));
    expect(error.details["nearest"]).toMatch(/^abcd/);
    expect(error.hint).toContain(`Did you mean ${error.details["nearest"]}?`);
  });

  test("by anything that does not begin an id", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{10}$/)), fc.string(), (ids, text) => {
        try {
          expect(findSession(views(...ids), text).id.startsWith(text)).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(SessionError);
        }
      }),
    );
  });
});
