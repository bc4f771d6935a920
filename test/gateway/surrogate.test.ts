// @module-tag security
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import { makeSurrogate, shapeInBase64, shapeOf } from "../../src/gateway/surrogate.ts";
import { failure } from "../failure.ts";

/** Bytes that all have one value, so that a test knows what is drawn. */
const always = (value: number) => (bytes: number) => new Uint8Array(bytes).fill(value);

const kinds = (text: string) => text.replace(/[A-Z]/g, "A").replace(/[a-z]/g, "a").replace(/[0-9]/g, "0");

const jwt = (claims: object, signature: string) => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256", typ: "JWT" })}.${part(claims)}.${signature}`;
};

describe("a surrogate", () => {
  test.each([
    ["ghp_", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"],
    ["github_pat_", "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789"],
    ["sk-ant-api03-", "sk-ant-api03-Zm9vYmFyYmF6cXV4-AAAAbbbbCCCCdddd_EEEE"],
    ["sk-proj-", "sk-proj-abcDEF123456abcDEF123456"],
    ["xoxb-", "xoxb-123456789012-abcdefABCDEFabcdef"],
    ["dop_v1_", "dop_v1_0123456789abcdef0123456789abcdef"],
    ["AKIA", "AKIAIOSFODNN7EXAMPLE"],
    ["", "550e8400-e29b-41d4-a716-446655440000"],
    ["", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"],
    // What only looks like a prefix, and would be half of a passphrase.
    ["", "correct-horse-battery-staple"],
    ["", "summer-winter-autumnspringtime2024"],
    ["hf_", "hf_abcdefghijABCDEFGHIJ0123456789"],
  ])("keeps what a kind of token is known by: %j of %s", (prefix, real) => {
    const surrogate = makeSurrogate(real, randomBytes);
    expect(kinds(surrogate)).toBe(kinds(real));
    expect(surrogate.startsWith(prefix)).toBe(true);
    const changed = makeSurrogate(real, always(1));
    const other = makeSurrogate(real, always(2));
    // Both draw something else in every place behind the prefix.
    expect(changed.slice(prefix.length).replace(/[^A-Za-z0-9]/g, "")).not.toBe("");
    for (let at = prefix.length; at < real.length; at++) {
      if (/[A-Za-z0-9]/.test(real[at] as string)) expect(changed[at]).not.toBe(other[at]);
    }
    expect(shapeOf(real).places.findIndex(({ length }) => length > 1)).toBe(prefix.length);
  });

  test("has the same kind of character in every place, and is never the secret itself", () => {
    const secret = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      minLength: 8,
      maxLength: 80,
    });
    const seed = fc.uint8Array({ minLength: 80, maxLength: 80 });
    fc.assert(
      fc.property(secret, seed, (real, bytes) => {
        fc.pre((real.match(/[A-Za-z0-9]/g)?.length ?? 0) >= 8);
        const surrogate = makeSurrogate(real, (count) => bytes.subarray(0, count));
        expect(kinds(surrogate)).toBe(kinds(real));
        expect(surrogate).not.toBe(real);
      }),
    );
  });

  test("differs although chance has drawn the secret", () => {
    expect(makeSurrogate("aaaaaaaaaa00", always(0))).toBe("baaaaaaaaa00");
    expect(makeSurrogate("!ZZZZZZZZZZ", always(25))).toBe("!AZZZZZZZZZ");
  });

  test("of a hexadecimal number is one", () => {
    expect(makeSurrogate("0123456789abcdef", randomBytes)).toMatch(/^[0-9]{10}[a-f]{6}$/);
    expect(makeSurrogate("0123456789ABCDEF", randomBytes)).toMatch(/^[0-9]{10}[A-F]{6}$/);
  });

  test("of a signed token can be read, and has another signature", () => {
    const real = jwt({ exp: 1_900_000_000, sub: "somebody" }, "c2lnbmF0dXJlLW9mLXRoZS10b2tlbg");
    const surrogate = makeSurrogate(real, randomBytes);
    const signed = real.lastIndexOf(".") + 1;
    expect(surrogate.slice(0, signed)).toBe(real.slice(0, signed));
    expect(surrogate).not.toBe(real);
    expect(kinds(surrogate)).toBe(kinds(real));
  });

  test("in Base64 tells what is made of known letters alone", () => {
    const encoded = Buffer.from("git:aB3").toString("base64");
    const { places, bits } = shapeInBase64([..."git:", "ab", "AB", "12"], encoded);
    expect(places.map(({ length }) => length)).toEqual([1, 1, 1, 1, 1, 65, 65, 65, 65, 65, 1, 1]);
    expect(bits).toBe(3);
  });

  test("of what has three parts and is no signed token shows none of them", () => {
    const real = "abcdefgh.ijklmnop.qrstuvwx";
    expect(makeSurrogate(real, always(25))).toBe("zzzzzzzz.zzzzzzzz.zzzzzzzz");
  });

  test.each([
    ["is too short", "abc1234", "fewer than 8 letters and digits"],
    ["has too few places", "----------------a1", "fewer than 8 letters and digits"],
    ["has none", "----------------", "fewer than 8 letters and digits"],
    ["is empty", "", "no header can carry"],
    ["is a signed token with hardly a signature", jwt({}, "abc"), "fewer than 8 letters and digits"],
    ["has several lines", "-----BEGIN KEY-----\nabcdefghijkl\n-----END KEY-----", "several lines"],
    ["ends in a carriage return", "abcdefghijkl\r", "several lines"],
    ["holds a zero byte", "abcdef\0ghijkl", "no header can carry"],
    ["holds letters beyond ASCII", "pässwörd-abcdefgh", "no header can carry"],
    ["ends in a space, which headers lose", "abcdefghijkl ", "no header can carry"],
  ])("is refused where the secret %s", (_, real, why) => {
    const error = failure(ConfigError, () => makeSurrogate(real, randomBytes, 'The secret "x"'));
    expect(error).toMatchObject({ code: "SECRET_UNMASKABLE" });
    expect(error.message).toContain('The secret "x" cannot be masked');
    expect(error.message).toContain(why);
    if (real !== "") expect(error.message).not.toContain(real);
  });
});
