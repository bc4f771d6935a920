import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { Layer, PartialConfig } from "../../src/config/types.ts";

const layer = (name: Layer["name"], value: PartialConfig): Layer => ({ name, source: name, trusted: true, value });

describe("merging", () => {
  test("takes scalars from the last layer, concatenates lists and merges records name by name", () => {
    const { config } = mergeLayers([
      defaultLayer(),
      layer("global", {
        image: "a",
        agent: { kind: "codex", args: ["1"] },
        filesystem: { ro: ["x"] },
        commands: { rm: false, npm: "./npm.sh" },
        environment: { pass: ["A"], set: { X: "1", Y: "2" } },
        secrets: { T: { env: "A" } },
      }),
      layer("flag", {
        image: "b",
        agent: { args: ["2"] },
        filesystem: { ro: ["x", "y"] },
        commands: { npm: true },
        environment: { pass: ["B"], set: { Y: "!secret T" } },
        secrets: { T: { file: "b" } },
      }),
    ]);
    expect(config.image).toBe("b");
    expect(config.agent).toMatchObject({ kind: "codex", mode: "podbot", args: ["1", "2"] });
    expect(config.filesystem.ro).toEqual(["x", "x", "y"]);
    expect(config.commands).toEqual({ git: "@git", rm: false, npm: true });
    expect(config.environment.pass).toEqual(["A", "B"]);
    expect(config.environment.set).toEqual({
      X: { kind: "literal", value: "1" },
      Y: { kind: "secret", name: "T", optional: false },
    });
    expect(config.secrets).toEqual({ T: { file: "b" } });
  });

  test.each([
    [true, "open"],
    [false, "none"],
    [{ mode: "open" as const }, "open"],
  ])("reads network = %j as %s", (network, mode) => {
    expect(mergeLayers([defaultLayer(), layer("flag", { network })]).config.network.mode).toBe(mode);
  });

  test("takes rules and domains of the network from all layers, and the last address of a name", () => {
    const [below, above] = [{ host: "a.org" }, { host: "b.org", deny: true }];
    const { config, origins } = mergeLayers([
      defaultLayer(),
      layer("global", { network: { domains: ["x.org"], rules: [below], reach: { db: "127.0.0.1", web: "::1" } } }),
      layer("flag", { network: { domains: ["y.org"], rules: [above], reach: { db: "127.0.0.1:5432" } } }),
    ]);
    expect(config.network).toEqual({
      mode: "allowlist",
      presets: [],
      domains: ["x.org", "y.org"],
      rules: [below, above],
      reach: { db: "127.0.0.1:5432", web: "::1" },
      upstream_proxy: "environment",
    });
    expect(origins.filter(({ key }) => key === "network.rules").map((origin) => origin.layer)).toEqual([
      "global",
      "flag",
    ]);
  });

  test("keeps literals that look like references", () => {
    const variable = { kind: "literal" as const, value: "!secret T" };
    const { config } = mergeLayers([layer("flag", { environment: { set: { A: variable } } })]);
    expect(config.environment.set["A"]).toEqual(variable);
  });

  test("builds records that have no prototype to find or to change", () => {
    const { config } = mergeLayers([defaultLayer(), layer("flag", JSON.parse('{"commands": {"__proto__": false}}'))]);
    expect(config.commands["constructor"]).toBeUndefined();
    expect(Object.entries(config.commands)).toContainEqual(["__proto__", false]);
    expect(Object.getPrototypeOf(config.commands)).toBeNull();
  });

  test("says where each value came from", () => {
    const { origins } = mergeLayers([
      defaultLayer(),
      layer("global", { filesystem: { ro: ["a"] }, sandbox: { wall: "engine" }, commands: { "g++": false } }),
      layer("project", { filesystem: { ro: ["b"] }, commands: { git: false } }),
    ]);
    const of = (key: string) => origins.filter((origin) => origin.key === key);
    expect(of("sandbox.wall")).toEqual([{ key: "sandbox.wall", value: "engine", layer: "global", source: "global" }]);
    expect(of("sandbox.root")).toEqual([{ key: "sandbox.root", value: "host", layer: "default", source: "built in" }]);
    expect(of("filesystem.ro").map(({ value, layer: name }) => [value, name])).toEqual([
      ["a", "global"],
      ["b", "project"],
    ]);
    expect(of("commands.git").map(({ layer: name }) => name)).toEqual(["project"]);
    expect(of('commands."g++"').map(({ layer: name }) => name)).toEqual(["global"]);
    expect(of("image")).toEqual([]);
  });
});

describe("the laws of merging", () => {
  const name = fc.constantFrom("a", "b", "git", "constructor");
  const list = fc.array(fc.string());
  const value: fc.Arbitrary<PartialConfig> = fc.record(
    {
      image: fc.string(),
      network: fc.oneof(fc.boolean(), fc.record({ mode: fc.constantFrom("none" as const, "open" as const) })),
      sandbox: fc.record({ nesting: fc.boolean(), accept_gaps: list, grace_seconds: fc.nat() }, { requiredKeys: [] }),
      filesystem: fc.record({ ro: list, rw: list }, { requiredKeys: [] }),
      commands: fc.dictionary(name, fc.oneof(fc.boolean(), fc.string())),
      environment: fc.record({ pass: list, set: fc.dictionary(name, fc.string()) }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  const layers = fc.array(value.map((content) => layer("global", content)));
  const merged = (...parts: readonly Layer[]) => mergeLayers(parts).config;

  test("an empty layer changes nothing, wherever it stands", () => {
    fc.assert(
      fc.property(layers, fc.nat(), (all, at) => {
        const index = at % (all.length + 1);
        expect(merged(...all.slice(0, index), layer("project", {}), ...all.slice(index))).toEqual(merged(...all));
      }),
    );
  });

  test("layers may be merged in any grouping", () => {
    fc.assert(
      fc.property(layers, layers, (first, second) => {
        expect(merged(layer("global", merged(...first)), ...second)).toEqual(merged(...first, ...second));
      }),
    );
  });

  test("every effective value has one origin, and they are what was said", () => {
    fc.assert(
      fc.property(layers, (all) => {
        const { config, origins } = mergeLayers([defaultLayer(), ...all]);
        expect(origins.filter(({ key }) => key === "filesystem.ro").map((origin) => origin.value)).toEqual(
          config.filesystem.ro,
        );
        expect(origins.filter(({ key }) => key.startsWith("commands."))).toHaveLength(
          Object.keys(config.commands).length,
        );
        expect(origins.filter(({ key }) => key === "network.mode").map((origin) => origin.value)).toEqual([
          config.network.mode,
        ]);
      }),
    );
  });
});
