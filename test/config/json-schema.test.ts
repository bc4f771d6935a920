import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configJsonSchema } from "../../src/config/json-schema.ts";
import { keys } from "../../src/config/keys.ts";
import { defaultLayer } from "../../src/config/merge.ts";
import { validateLayer } from "../../src/config/validate.ts";
import { satisfies } from "./json-schema-verdict.ts";

const schema = configJsonSchema() as Readonly<Record<string, unknown>>;

/** Values near the edges of every type. */
const word = fc.oneof(
  fc.constantFrom(
    "auto",
    "open",
    "learn",
    "@git",
    "@npm",
    "!secret X",
    "!secret? X",
    "!secret",
    "LC_*",
    "*_X",
    "A=1",
    "",
    " ",
    "~/x",
    "a/b",
    "x.org",
    "/v1/**",
  ),
  fc.string(),
);
const leaf = fc.oneof(
  word,
  fc.boolean(),
  fc.constantFrom(0, 1, -1, 0.5, 3600, 3601, 1e300, null),
  fc.array(word, { maxLength: 3 }),
);
const name = fc.constantFrom("git", "npm", "a b", "a/b", "..", "", "LC_*", "!secret X", "TOKEN", "x.y", "constructor");
const secret = fc.dictionary(
  fc.constantFrom("env", "file", "command", "keyring", "hosts", "headers", "paths", "value"),
  fc.oneof(word, fc.array(word, { maxLength: 2 })),
  { maxKeys: 3 },
);
const rule = fc.dictionary(
  fc.constantFrom("host", "host", "host", "port", "ports", "path", "paths", "methods", "deny", "local", "method"),
  fc.oneof(leaf, fc.array(fc.constantFrom(0, 1, 443, 65_535, 65_536, 1.5), { maxLength: 2 })),
  { maxKeys: 3 },
);
const rules = fc.array(fc.oneof(rule, leaf), { maxLength: 2 });
const record = fc.dictionary(name, fc.oneof(leaf, secret));
const sections = [...new Set(keys.map(({ section, leaf: own }) => section ?? own))];
const leaves = [...keys.map((key) => key.leaf), "constructor", "unknown"];
const file = fc.dictionary(
  fc.constantFrom(...sections, "constructor", "unknown", "$schema"),
  fc.oneof(leaf, record, fc.dictionary(fc.constantFrom(...leaves), fc.oneof(leaf, record), { maxKeys: 2 })),
  { maxKeys: 2 },
);

describe("the JSON Schema", () => {
  test("agrees with the loader on every file", () => {
    fc.assert(
      fc.property(file, (content) => {
        if ("$schema" in content) content["$schema"] = "x";
        const accepted = validateLayer(content, { source: "f" }).problems.length === 0;
        expect(satisfies(schema, content)).toBe(accepted);
      }),
      { numRuns: 3000 },
    );
  });

  test.each(keys.map((key) => [key.name, key] as const))("agrees with the loader on every value of %s", (_, key) => {
    fc.assert(
      fc.property(fc.oneof(...(key.type.kind === "record" ? [record] : []), rules, leaf), (value) => {
        const content = key.section === undefined ? { [key.leaf]: value } : { [key.section]: { [key.leaf]: value } };
        const accepted = validateLayer(content, { source: "f" }).problems.length === 0;
        expect(satisfies(schema, content)).toBe(accepted);
      }),
    );
  });

  test("accepts the defaults, and explains every key", () => {
    expect(satisfies(schema, defaultLayer().value)).toBe(true);
    const text = JSON.stringify(schema);
    for (const { about } of keys) expect(text).toContain(JSON.stringify(about));
  });
});
