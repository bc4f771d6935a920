// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { askForIdentity, isIdentity, Scrubber, scrubHeaders, textScrubber } from "../../src/gateway/scrub.ts";

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
    const scrubber = new Scrubber(swaps);
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
        expect(scrubbed(new Scrubber(some), Buffer.from(text), pieces).toString()).toBe(whole);
        expect(whole.length).toBe(text.length);
        if (some.length === 1) expect(whole).toBe(text.replaceAll(reals[0] as string, some[0]?.surrogate as string));
      }),
      { numRuns: 2000 },
    );
  });

  test("is replaced by text of another length where it must not be seen at all", () => {
    const scrubber = new Scrubber([{ real: "pässwörd", surrogate: "[REDACTED]" }]);
    const out = scrubbed(scrubber, Buffer.from("a pässwörd, pässwör, b"), [1]);
    expect(out.toString()).toBe("a [REDACTED], pässwör, b");
  });

  test("does not keep what cannot be one waiting", () => {
    const scrubber = new Scrubber(swaps);
    const chunk = Buffer.from("data: hello\n\n");
    expect(scrubber.push(chunk)).toEqual(chunk);
    expect(scrubber.push(Buffer.from("data: s"))).toEqual(Buffer.from("data: "));
    expect(scrubber.flush()).toEqual(Buffer.from("s"));
  });

  test("that may go on to be a longer one waits for that", () => {
    const scrubber = new Scrubber(swaps);
    expect(scrubber.push(Buffer.from("secret-token-1")).toString()).toBe("");
    expect(scrubber.push(Buffer.from("0!")).toString()).toBe("SECRET-TOKEN-xx!");
    expect(scrubber.push(Buffer.from("secret-token-1")).toString()).toBe("");
    expect(scrubber.flush().toString()).toBe("SECRET-TOKEN-1");
  });

  test("gives up what it waits with, as it is, to whoever goes on with it", () => {
    const [before, after] = [new Scrubber(swaps), new Scrubber(swaps)];
    expect(before.push(Buffer.from("a secret-tok")).toString()).toBe("a ");
    const held = before.release();
    expect(before.flush().length).toBe(0);
    const rest = [after.push(Buffer.concat([held, Buffer.from("en-1!")])), after.flush()];
    expect(Buffer.concat(rest).toString()).toBe("SECRET-TOKEN-1!");
  });

  test("leaves bytes that are no text as they are", () => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256));
    expect(scrubbed(new Scrubber(swaps), bytes, [7])).toEqual(bytes);
    expect(new Scrubber([]).push(bytes)).toEqual(bytes);
    expect(scrubbed(new Scrubber([{ real: "", surrogate: "" }]), bytes, [512])).toEqual(bytes);
  });

  test("is turned back in headers", () => {
    const headers = [
      ["X-Echo", "Bearer secret-token-10, secret-token-1"],
      ["x-other", "nothing"],
    ] as const;
    expect(scrubHeaders(swaps, headers)).toEqual([
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
      scrubHeaders(swaps, [
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
