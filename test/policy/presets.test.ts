import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { credentialStores, machineSecrets } from "../../src/policy/credentials.ts";
import { isGlob } from "../../src/policy/glob.ts";
import { choosePresets, presets } from "../../src/policy/presets.ts";
import { failure } from "../failure.ts";

const names = ["@base", "@caches", "@agents", "@git", "@git-strict", "@lint/ts", "@lint/go", "@lint/python"];
const all = names.filter((name) => name !== "@git-strict");
const chosen = (...toggles: readonly string[]) => choosePresets(toggles).map(({ name }) => name);

/** `access path`, or `own path name` where the sandbox has a directory of its own. */
function lines(name: string): readonly string[] {
  const preset = presets.find((candidate) => candidate.name === name);
  return (preset?.entries ?? []).map(({ access, path, own }) =>
    own === undefined ? `${access} ${path}` : `own ${path} ${own}`,
  );
}

describe("the presets", () => {
  test("are these, in this order", () => {
    expect(presets.map(({ name }) => name)).toEqual(names);
  });

  test("each say in a sentence what they do", () => {
    for (const { name, about } of presets) expect(about, name).toMatch(/^[A-Z].+\.$/);
  });

  test("@base: the working directory is writable, the home readable, secrets are hidden", () => {
    expect(lines("@base")).toEqual([
      "rw .",
      "ro ~",
      ...credentialStores.map((store) => `exclude ~/${store}`),
      ...machineSecrets.map((secret) => `exclude ${secret}`),
    ]);
  });

  test("@caches: caches of the sandbox's own", () => {
    expect(lines("@caches")).toEqual([
      "own ~/.cache cache",
      "own ~/.npm npm",
      "own ~/.bun/install/cache bun",
      "own ~/.cargo/registry cargo-registry",
      "own ~/.cargo/git cargo-git",
      "own ~/go/pkg go-pkg",
    ]);
  });

  test("@agents: what agents write at every turn is writable, what they obey is not", () => {
    expect(lines("@agents")).toEqual([
      "rw ~/.claude/projects",
      "rw ~/.claude/todos",
      "rw ~/.claude/tasks",
      "rw ~/.claude/sessions",
      "rw ~/.claude/file-history",
      "rw ~/.claude/statsig",
      "rw ~/.claude/debug",
      "rw ~/.claude/cache",
      "rw ~/.claude/history.jsonl",
      "rw ~/.claude/.credentials.json",
      "rw ~/.codex/sessions",
      "rw ~/.codex/archived_sessions",
      "rw ~/.codex/log",
      "rw ~/.codex/tmp",
      "rw ~/.codex/history.jsonl",
      "rw ~/.codex/auth.json",
      "rw ~/.codex/version.json",
      "rw ~/.pi/agent/sessions",
      "rw ~/.gemini/tmp",
      "rw ~/.gemini/history",
      "rw ~/.local/share/opencode/auth.json",
      "rw ~/.local/share/opencode/log",
      "rw ~/.local/share/opencode/snapshot",
      "rw ~/.local/share/opencode/storage",
      "rw ~/.local/share/goose/sessions",
      "rw ~/.local/state/goose/logs",
      "rw ~/.qwen/tmp",
      "ro .claude/settings.json",
      "ro .claude/settings.local.json",
      "ro .claude/hooks",
      "ro .claude/commands",
      "ro .claude/agents",
      "ro .claude/skills",
      "ro .mcp.json",
      "ro .codex/config.toml",
      "ro .codex/hooks.json",
      "ro .gemini/settings.json",
      "ro .vscode/settings.json",
      "ro .vscode/tasks.json",
      "ro .vscode/launch.json",
      "ro .envrc",
    ]);
  });

  test.each(["@git", "@git-strict"])("%s: what the repository itself tells", (name) => {
    expect(lines(name)).toEqual([]);
  });

  test("@lint/ts: linters and formatters of TypeScript and JavaScript", () => {
    expect(lines("@lint/ts")).toEqual([
      "ro biome.json",
      "ro biome.jsonc",
      "ro .eslintrc",
      "ro .eslintrc.js",
      "ro .eslintrc.cjs",
      "ro .eslintrc.json",
      "ro .eslintrc.yml",
      "ro .eslintrc.yaml",
      "ro eslint.config.js",
      "ro eslint.config.mjs",
      "ro eslint.config.cjs",
      "ro eslint.config.ts",
      "ro .oxlintrc.json",
      "ro .prettierrc",
      "ro .prettierrc.json",
      "ro .prettierrc.yaml",
      "ro .prettierrc.js",
      "ro prettier.config.js",
      "ro prettier.config.mjs",
      "ro tsconfig.json",
      "ro tsconfig.build.json",
      "ro .editorconfig",
    ]);
  });

  test("@lint/go: linters of Go", () => {
    expect(lines("@lint/go")).toEqual([
      "ro .golangci.yml",
      "ro .golangci.yaml",
      "ro .golangci.toml",
      "ro .golangci.json",
      "ro .editorconfig",
    ]);
  });

  test("@lint/python: linters of Python", () => {
    expect(lines("@lint/python")).toEqual([
      "ro pyproject.toml",
      "ro setup.cfg",
      "ro .flake8",
      "ro mypy.ini",
      "ro .mypy.ini",
      "ro .pylintrc",
      "ro ruff.toml",
      "ro .ruff.toml",
      "ro .editorconfig",
    ]);
  });

  test("make nothing writable by a pattern, which would open more than it names", () => {
    const open = presets.flatMap(({ entries }) =>
      entries.filter(({ access, path }) => access === "rw" && isGlob(path)),
    );
    expect(open).toEqual([]);
  });
});

describe("the choice of presets", () => {
  test.each<[readonly string[], readonly string[]]>([
    [[], all],
    [["@all"], all],
    [["!@all"], []],
    [["@git-strict"], names],
    [["!@caches"], all.filter((name) => name !== "@caches")],
    [["!@lint/all"], ["@base", "@caches", "@agents", "@git"]],
    [
      ["!@lint/all", "@lint/go"],
      ["@base", "@caches", "@agents", "@git", "@lint/go"],
    ],
    [["!@all", "@base"], ["@base"]],
    [["@base", "!@all"], []],
    [
      ["!@all", "@lint/all"],
      ["@lint/ts", "@lint/go", "@lint/python"],
    ],
    [["!@git", "@git"], all],
    [["@git", "!@git"], all.filter((name) => name !== "@git")],
    [["!@git-strict"], all],
    [["@git-strict", "!@git"], names.filter((name) => name !== "@git")],
    [
      ["!@all", "@lint/ts", "@base"],
      ["@base", "@lint/ts"],
    ],
  ])("%j is %j", (toggles, expected) => {
    expect(chosen(...toggles)).toEqual(expected);
  });

  test.each(["git", "@nope", "!@nope", "!!@git", "", "!", "@", "@GIT", "constructor"])("does not know %j", (toggle) => {
    const error = failure(PolicyError, () => choosePresets(["@base", toggle]));
    expect(error.code).toBe("PRESET_UNKNOWN");
    expect(error.message).toContain(JSON.stringify(toggle));
    expect(error.hint).toContain("@git-strict");
    expect(error.details).toEqual({ preset: toggle, known: [...names, "@lint/all", "@all"] });
  });

  test("ends with the last word on each preset", () => {
    const toggle = fc.tuple(fc.boolean(), fc.constantFrom(...names));
    fc.assert(
      fc.property(fc.array(toggle), toggle, (earlier, [on, name]) => {
        const words = [...earlier, [on, name] as const].map(([yes, one]) => `${yes ? "" : "!"}${one}`);
        expect(chosen(...words).includes(name)).toBe(on);
        expect(chosen(...words, ...words)).toEqual(chosen(...words));
      }),
    );
  });
});
