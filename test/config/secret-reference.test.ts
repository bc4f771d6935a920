import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { looksLikeReference, parseReference, secretName, toVariable } from "../../src/config/secret-reference.ts";

describe("a reference to a secret", () => {
  test.each([
    ["!secret GH_TOKEN", { kind: "secret", name: "GH_TOKEN", optional: false }],
    ["!secret? GH_TOKEN", { kind: "secret", name: "GH_TOKEN", optional: true }],
    ["!secret \t a.b-c ", { kind: "secret", name: "a.b-c", optional: false }],
  ])("%j is read", (text, reference) => {
    expect(parseReference(text)).toEqual(reference);
  });

  test.each(["!secret", "!secret ", "!secret?", "!secretX", "!secret a b", "!secret? a/b", "!secret \n x"])(
    "%j is malformed, yet never taken for plain text",
    (text) => {
      expect(parseReference(text)).toBeUndefined();
      expect(looksLikeReference(text)).toBe(true);
    },
  );

  test.each(["", "plain", " !secret X", "secret X", "! secret X"])("%j is plain text", (value) => {
    expect(looksLikeReference(value)).toBe(false);
    expect(toVariable(value)).toEqual({ kind: "literal", value });
  });

  test("reaches every name that a secret can have", () => {
    fc.assert(
      fc.property(fc.stringMatching(secretName), fc.boolean(), (name, optional) => {
        expect(toVariable(`!secret${optional ? "?" : ""} ${name}`)).toEqual({ kind: "secret", name, optional });
      }),
    );
  });
});
