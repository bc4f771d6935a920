// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { plainNeedle } from "../../src/gateway/needle.ts";
import {
  askForIdentity,
  isIdentity,
  plainNeedles,
  Scrubber,
  scrubHeaders,
  secretNeedles,
  textScrubber,
} from "../../src/gateway/scrub.ts";

/** What comes out when the text arrives in pieces of these sizes, over and over. */
function scrubbed(scrubber: Scrubber, text: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length] as number;
    parts.push(scrubber.push(text.subarray(at, at + size)));
    at += size;
  }
  return Buffer.concat([...parts, scrubber.flush()]);
}

const swaps = [
  { real: "secret-token-1", surrogate: "SECRET-TOKEN-1" },
  { real: "secret-token-10", surrogate: "SECRET-TOKEN-xx" },
  { real: "token-other", surrogate: "TOKEN-OTHER" },
];

describe("a real value in an answer", () => {
  test("is turned back, also where it is cut in two", () => {
    const scrubber = new Scrubber(plainNeedles(swaps));
    const out = [scrubber.push(Buffer.from("before secret-to")), scrubber.push(Buffer.from("ken-1 after"))];
    expect(out.map(String)).toEqual(["before ", "SECRET-TOKEN-1 after"]);
    expect(scrubber.flush().length).toBe(0);
  });

  test("is turned back however the answer is cut, as if it were whole", () => {
    // Few letters, so that values overlap and begin one within another.
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 60 });
    const values = fc.uniqueArray(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 7 }), {
      minLength: 1,
      maxLength: 4,
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(letters, values, sizes, (text, reals, pieces) => {
        const some = reals.map((real) => ({ real, surrogate: real.toUpperCase() }));
        const whole = textScrubber(some)(text);
        expect(scrubbed(new Scrubber(plainNeedles(some)), Buffer.from(text), pieces).toString()).toBe(whole);
        expect(whole.length).toBe(text.length);
        if (some.length === 1) expect(whole).toBe(text.replaceAll(reals[0] as string, some[0]?.surrogate as string));
      }),
      { numRuns: 2000 },
    );
  });

  test("is replaced by text of another length where it must not be seen at all", () => {
    const scrubber = new Scrubber([plainNeedle("pässwörd", "[REDACTED]")]);
    const out = scrubbed(scrubber, Buffer.from("a pässwörd, pässwör, b"), [1]);
    expect(out.toString()).toBe("a [REDACTED], pässwör, b");
  });

  test("does not keep what cannot be one waiting", () => {
    const scrubber = new Scrubber(plainNeedles(swaps));
    const chunk = Buffer.from("data: hello\n\n");
    expect(scrubber.push(chunk)).toEqual(chunk);
    expect(scrubber.push(Buffer.from("data: s"))).toEqual(Buffer.from("data: "));
    expect(scrubber.flush()).toEqual(Buffer.from("s"));
  });

  test("that may go on to be a longer one waits for that", () => {
    const scrubber = new Scrubber(plainNeedles(swaps));
    expect(scrubber.push(Buffer.from("secret-token-1")).toString()).toBe("");
    expect(scrubber.push(Buffer.from("0!")).toString()).toBe("SECRET-TOKEN-xx!");
    expect(scrubber.push(Buffer.from("secret-token-1")).toString()).toBe("");
    expect(scrubber.flush().toString()).toBe("SECRET-TOKEN-1");
  });

  test("gives up what it waits with, as it is, to whoever goes on with it", () => {
    const [before, after] = [new Scrubber(plainNeedles(swaps)), new Scrubber(plainNeedles(swaps))];
    expect(before.push(Buffer.from("a secret-tok")).toString()).toBe("a ");
    const held = before.release();
    expect(before.flush().length).toBe(0);
    const rest = [after.push(Buffer.concat([held, Buffer.from("en-1!")])), after.flush()];
    expect(Buffer.concat(rest).toString()).toBe("SECRET-TOKEN-1!");
  });

  test("is turned back in an answer however that is cut, but for what had to be passed on before it was known", () => {
    const kinds = { "": 11, ghp_: 0, "x-": 11 };
    const letter = fc.constantFrom(..."abXY019");
    const value = fc.tuple(
      fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])),
      fc.array(letter, { minLength: 20, maxLength: 30 }),
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    const around = fc.string({ unit: fc.oneof(letter, fc.constantFrom(..."ghp_- \n")), maxLength: 50 });
    fc.assert(
      fc.property(value, around, around, sizes, ([kind, letters], before, after, pieces) => {
        const real = kind + letters.join("");
        const surrogate = kind + "?".repeat(letters.length);
        const text = before + real + after;
        fc.pre(secretNeedles([{ real, surrogate }]).length === 1);
        const out = scrubbed(new Scrubber(secretNeedles([{ real, surrogate }])), Buffer.from(text), pieces).toString();
        const whole = textScrubber([{ real, surrogate }])(text);
        expect(out.length).toBe(text.length);
        const passed = [...out].filter((each, at) => each !== whole[at]).length;
        expect(passed).toBeLessThanOrEqual(kinds[kind]);
        if (pieces.length === 1 && (pieces[0] as number) > text.length) expect(out).toBe(whole);
      }),
      { numRuns: 1000 },
    );
  });

  test("of which too little is unknown is not looked for, since whether it is there would tell what it is", () => {
    const turned = (real: string) => secretNeedles([{ real, surrogate: real.replace(/[a-z0-9]/g, "?") }]).length;
    expect(["12345678", "abcdefghijkl", "sk-0123456789abc"].map(turned)).toEqual([0, 0, 0]);
    expect(["0123456789012345678", "abcdefghijklm", "sk-0123456789abcdef0123"].map(turned)).toEqual([1, 1, 1]);
  });

  test("leaves bytes that are no text as they are", () => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256));
    expect(scrubbed(new Scrubber(plainNeedles(swaps)), bytes, [7])).toEqual(bytes);
    expect(new Scrubber([]).push(bytes)).toEqual(bytes);
    expect(scrubbed(new Scrubber(plainNeedles([{ real: "", surrogate: "" }])), bytes, [512])).toEqual(bytes);
  });

  test("is turned back in headers", () => {
    const headers = [
      ["X-Echo", "Bearer secret-token-10, secret-token-1"],
      ["x-other", "nothing"],
    ] as const;
    expect(scrubHeaders(plainNeedles(swaps), headers)).toEqual([
      ["X-Echo", "Bearer SECRET-TOKEN-xx, SECRET-TOKEN-1"],
      ["x-other", "nothing"],
    ]);
    expect(scrubHeaders([], headers)).toEqual(headers);
  });

  test("is found although it looks like a pattern", () => {
    expect(textScrubber([{ real: "a.b*c(d)\\+/", surrogate: "x.y*z(w)\\+/" }])("a.b*c(d)\\+/ aXb")).toBe(
      "x.y*z(w)\\+/ aXb",
    );
  });
});

describe("a header of an answer", () => {
  test("is left out where its name holds a real value, in whatever case; others are kept", () => {
    expect(
      scrubHeaders(plainNeedles(swaps), [
        ["X-Secret-Token-1-Seen", "1"],
        ["token-other", "1"],
        ["X-Secret-Token", "token-other"],
      ]),
    ).toEqual([["X-Secret-Token", "TOKEN-OTHER"]]);
    expect(scrubHeaders([], [["token-other", "1"]])).toEqual([["token-other", "1"]]);
  });
});

describe("an answer in which values are looked for", () => {
  test("is asked for as it is", () => {
    expect(
      askForIdentity([
        ["Accept-Encoding", "gzip"],
        ["accept", "*/*"],
        ["accept-encoding", "br"],
      ]),
    ).toEqual([
      ["accept", "*/*"],
      ["accept-encoding", "identity"],
    ]);
  });

  test.each([
    [true, []],
    [true, [["content-type", "gzip"]]],
    [true, [["Content-Encoding", "identity"]]],
    [true, [["content-encoding", ""]]],
    [false, [["Content-Encoding", "gzip"]]],
    [
      false,
      [
        ["content-encoding", "identity"],
        ["content-encoding", "br"],
      ],
    ],
    [false, [["content-encoding", "identity, gzip"]]],
  ] as const)("is known to be so or not: %j for %j", (expected, headers) => {
    expect(isIdentity(headers as unknown as [string, string][])).toBe(expected);
  });
});
