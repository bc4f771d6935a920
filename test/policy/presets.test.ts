import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { PolicyError } from "../../src/errors.ts";
import { credentialStores, machineSecrets } from "../../src/policy/credentials.ts";
import { isGlob } from "../../src/policy/glob.ts";
import { choosePresets, presets } from "../../src/policy/presets.ts";
import { failure } from "../failure.ts";

const names = ["@base", "@caches", "@agents", "@git", "@git-strict", "@lint/ts", "@lint/go", "@lint/python"];
const all = names.filter((name) => name !== "@git-strict");
const chosen = (...toggles: readonly string[]) => choosePresets(toggles).map(({ name }) => name);

/**
 * `access path`, `guard path` where a rule never grants, `own path name` where the sandbox has its own directory,
 * `fresh path program` where it begins empty if the host has none and `fresh! path program` in any case, `copy path`
 * where the file is a copy there.
 */
function lines(name: string): readonly string[] {
  const preset = presets.find((candidate) => candidate.name === name);
  return (preset?.entries ?? []).map(({ access, path, own, fresh, copied, guard }) => {
    if (guard || copied) expect(access).toBe("ro");
    if (copied) return `copy ${path}`;
    if (fresh) return `fresh${fresh.covers ? "!" : ""} ${path} ${fresh.program}`;
    return own === undefined ? `${guard ? "guard" : access} ${path}` : `own ${path} ${own}`;
  });
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
      "fresh! ~/.codex codex",
      "fresh! ~/.local/share/opencode opencode",
      "fresh! ~/.local/state/opencode opencode",
      "fresh! ~/.local/share/goose goose",
      "fresh! ~/.local/state/goose goose",
      "fresh! ~/.gemini/tmp gemini",
      "fresh! ~/.gemini/history gemini",
      "fresh! ~/.qwen/tmp qwen",
      "fresh ~/.claude claude",
      "fresh ~/.config/opencode opencode",
      "fresh ~/.config/goose goose",
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
      "rw ~/.codex/history.jsonl",
      "rw ~/.codex/auth.json",
      "rw ~/.pi/agent/sessions",
      "rw ~/.local/share/goose/sessions",
      "rw ~/.local/state/goose/logs",
      "copy ~/.codex/config.toml",
      "copy ~/.local/share/opencode/auth.json",
      "ro ~/.codex/*.config.toml",
      "ro ~/.codex/managed_config.toml",
      "ro ~/.codex/requirements.toml",
      "ro ~/.codex/environments.toml",
      "ro ~/.codex/.env",
      "ro ~/.codex/.credentials.json",
      "ro ~/.codex/AGENTS.md",
      "ro ~/.codex/AGENTS.override.md",
      "ro ~/.codex/hooks.json",
      "ro ~/.codex/hooks",
      "ro ~/.codex/rules",
      "ro ~/.codex/prompts",
      "ro ~/.codex/skills/*",
      "ro ~/.codex/agents",
      "ro ~/.codex/plugins",
      "ro ~/.codex/themes",
      "ro ~/.local/share/opencode/mcp-auth.json",
      "guard ~/.claude/projects/*/memory",
      "guard .claude/settings.json",
      "guard .claude/settings.local.json",
      "guard .claude/hooks",
      "guard .claude/commands",
      "guard .claude/agents",
      "guard .claude/skills",
      "guard .mcp.json",
      "guard .codex/config.toml",
      "guard .codex/hooks.json",
      "guard .codex/rules",
      "guard .codex/skills",
      "guard .agents/skills",
      "guard opencode.json",
      "guard opencode.jsonc",
      "guard .opencode",
      "guard .gemini/settings.json",
      "guard .qwen/settings.json",
      "guard .vscode/settings.json",
      "guard .vscode/tasks.json",
      "guard .vscode/launch.json",
      "guard .envrc",
    ]);
  });

  test.each(["@git", "@git-strict"])("%s: what the repository itself tells", (name) => {
    expect(lines(name)).toEqual([]);
  });

  test("@lint/ts: linters and formatters of TypeScript and JavaScript", () => {
    expect(lines("@lint/ts")).toEqual([
      "guard biome.json",
      "guard biome.jsonc",
      "guard .eslintrc",
      "guard .eslintrc.js",
      "guard .eslintrc.cjs",
      "guard .eslintrc.json",
      "guard .eslintrc.yml",
      "guard .eslintrc.yaml",
      "guard eslint.config.js",
      "guard eslint.config.mjs",
      "guard eslint.config.cjs",
      "guard eslint.config.ts",
      "guard .oxlintrc.json",
      "guard .prettierrc",
      "guard .prettierrc.json",
      "guard .prettierrc.yaml",
      "guard .prettierrc.js",
      "guard prettier.config.js",
      "guard prettier.config.mjs",
      "guard tsconfig.json",
      "guard tsconfig.build.json",
      "guard .editorconfig",
    ]);
  });

  test("@lint/go: linters of Go", () => {
    expect(lines("@lint/go")).toEqual([
      "guard .golangci.yml",
      "guard .golangci.yaml",
      "guard .golangci.toml",
      "guard .golangci.json",
      "guard .editorconfig",
    ]);
  });

  test("@lint/python: linters of Python", () => {
    expect(lines("@lint/python")).toEqual([
      "guard pyproject.toml",
      "guard setup.cfg",
      "guard .flake8",
      "guard mypy.ini",
      "guard .mypy.ini",
      "guard .pylintrc",
      "guard ruff.toml",
      "guard .ruff.toml",
      "guard .editorconfig",
    ]);
  });

  test("are fresh for programs that Podbot knows as agents", () => {
    const programs = presets.flatMap(({ entries }) => entries.flatMap(({ fresh }) => (fresh ? [fresh.program] : [])));
    const known = agents.map(({ program }) => program);
    expect(programs.filter((program) => !known.includes(program))).toEqual([]);
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
