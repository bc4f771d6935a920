import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { renderConfigDocs } from "../../scripts/generate-config-docs.ts";
import { keys } from "../../src/config/keys.ts";
import { loadText } from "./scratch.ts";

const file = new URL("../../docs/configuration.md", import.meta.url);
if (process.env["UPDATE"] === "1") writeFileSync(file, renderConfigDocs(readFileSync(file, "utf8")));
const page = readFileSync(file, "utf8");
const examples = [...page.matchAll(/```(toml|jsonc|yaml)\n(.*?)```/gs)].map(
  ([, format = "", text = ""]) => [format, text] as const,
);

describe("docs/configuration.md", () => {
  test("holds the tables that the keys give (UPDATE=1 writes them)", () => {
    expect(renderConfigDocs(page)).toBe(page);
    for (const { name } of keys) expect(page).toContain(`| \`${name}\` |`);
  });

  test("asks for no table that does not exist", () => {
    expect(() => renderConfigDocs("<!-- table: nope -->\n<!-- end -->")).toThrow("nope");
  });

  test.each(examples)("has an example in %s that loads without a word", async (format, text) => {
    expect((await loadText(format, text)).warnings).toEqual([]);
  });

  test("shows the same configuration in three formats", async () => {
    const loaded = await Promise.all(examples.slice(0, 3).map(([format, text]) => loadText(format, text)));
    const [toml, jsonc, yaml] = loaded.map(({ config }) => config);
    expect(toml?.network.mode).toBe("open");
    expect(jsonc).toEqual(toml);
    expect(yaml).toEqual(toml);
  });
});
