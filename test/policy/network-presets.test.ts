import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { chooseNetworkPresets, networkPresets, registryKinds } from "../../src/policy/network-presets.ts";
import { failure } from "../failure.ts";

const nobody = () => undefined;

describe("presets of the network", () => {
  test("give the hosts of a service, each with where it comes from", () => {
    const { rules, registries } = chooseNetworkPresets(["@anthropic", "@github"], nobody);
    expect(rules.map(({ host }) => host)).toContain("api.anthropic.com");
    expect(rules.filter(({ host }) => host === "github.com").map(({ ports }) => ports)).toEqual([[80, 443], [22]]);
    expect(new Set(rules.map(({ origin }) => origin))).toEqual(new Set(["preset @anthropic", "preset @github"]));
    expect(rules.every(({ deny, local, paths }) => !deny && !local && paths === null)).toBe(true);
    expect(registries).toEqual([]);
  });

  test("of package managers name no host, but what must be looked up", () => {
    const all = registryKinds.map((kind) => `@${kind}`);
    expect(chooseNetworkPresets(all, nobody)).toEqual({
      rules: [],
      registries: ["npm", "pypi", "crates", "debian", "go"],
    });
  });

  test("are taken away again, the last word holding", () => {
    expect(chooseNetworkPresets(["@npm", "!@npm"], nobody).registries).toEqual([]);
    expect(chooseNetworkPresets(["!@npm", "@npm", "@npm"], nobody).registries).toEqual(["npm"]);
  });

  test("are all explained in a sentence", () => {
    for (const { name, about } of networkPresets) {
      expect(name).toMatch(/^@[a-z]+$/);
      expect(about).toMatch(/^\S.*\.$/);
    }
  });

  test("that nobody knows are refused, with the nearest", () => {
    const error = failure(PolicyError, () =>
      chooseNetworkPresets(["!@nmp"], (name, known) => known.find((one) => name !== one && one === "@npm")),
    );
    expect(error).toMatchObject({ code: "PRESET_UNKNOWN", message: 'There is no network preset "!@nmp".' });
    expect(error).toMatchObject({ hint: expect.stringContaining("Did you mean @npm? Known presets: @anthropic, ") });
    expect(failure(PolicyError, () => chooseNetworkPresets(["npm"], nobody))).toMatchObject({
      hint: expect.stringMatching(/^Known presets: /),
    });
  });
});
