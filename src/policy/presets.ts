import { PolicyError } from "../errors.ts";
import { credentialStores, machineSecrets } from "./credentials.ts";
import type { Access, Fresh } from "./rule.ts";

/** One line of a preset, before `~` and relative paths are resolved. */
export interface PresetEntry {
  readonly access: Access;
  readonly path: string;
  /** Protects, and never grants: see `Rule`. */
  readonly guard?: true;
  /** A directory that Podbot keeps for the sandbox instead of the host's own. */
  readonly own?: string;
  /** A directory that begins empty and is gone afterwards: see `Rule`. */
  readonly fresh?: Fresh;
  /** A copy of the host's file, in a directory that is fresh: see `Rule`. */
  readonly copied?: true;
}

export interface Preset {
  readonly name: string;
  readonly about: string;
  readonly entries: readonly PresetEntry[];
}

const lintAlways = [".editorconfig"];

const lintTypescript = [
  "biome.json",
  "biome.jsonc",
  ".eslintrc",
  ".eslintrc.js",
  ".eslintrc.cjs",
  ".eslintrc.json",
  ".eslintrc.yml",
  ".eslintrc.yaml",
  "eslint.config.js",
  "eslint.config.mjs",
  "eslint.config.cjs",
  "eslint.config.ts",
  ".oxlintrc.json",
  ".prettierrc",
  ".prettierrc.json",
  ".prettierrc.yaml",
  ".prettierrc.js",
  "prettier.config.js",
  "prettier.config.mjs",
  "tsconfig.json",
  "tsconfig.build.json",
];

const lintGo = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];

const lintPython = [
  "pyproject.toml",
  "setup.cfg",
  ".flake8",
  "mypy.ini",
  ".mypy.ini",
  ".pylintrc",
  "ruff.toml",
  ".ruff.toml",
];

/**
 * What agents write at every turn. Their settings, hooks, commands, skills, plugins and instructions stay read-only:
 * the agent that runs outside the wall tomorrow obeys them. So do the shell snapshots, which it sources, the language
 * servers, which it starts, and OpenCode's snapshots, which are repositories with hooks of their own.
 */
const agentState = [
  "~/.claude/projects",
  "~/.claude/todos",
  "~/.claude/tasks",
  "~/.claude/sessions",
  "~/.claude/file-history",
  "~/.claude/statsig",
  "~/.claude/debug",
  "~/.claude/cache",
  "~/.claude/history.jsonl",
  "~/.claude/.credentials.json",
  "~/.codex/sessions",
  "~/.codex/archived_sessions",
  "~/.codex/log",
  "~/.codex/history.jsonl",
  "~/.codex/auth.json",
  "~/.pi/agent/sessions",
  "~/.local/share/goose/sessions",
  "~/.local/state/goose/logs",
];

/**
 * Agents that do not start where they cannot write: databases and locks lie beside settings, so the directory as a
 * whole can be neither writable nor read-only. They get an empty one that is gone afterwards.
 */
const freshOverAgents: Readonly<Record<string, readonly string[]>> = {
  codex: ["~/.codex"],
  opencode: ["~/.local/share/opencode", "~/.local/state/opencode"],
  goose: ["~/.local/share/goose", "~/.local/state/goose"],
  // Programs that it starts lie in the first, repositories with hooks of their own in the second.
  gemini: ["~/.gemini/tmp", "~/.gemini/history"],
  qwen: ["~/.qwen/tmp"],
};

/** Directories of which the host's will do, read-only, but that some agent wants to make where there is none. */
const freshIfMissing: Readonly<Record<string, readonly string[]>> = {
  claude: ["~/.claude"],
  opencode: ["~/.config/opencode"],
  goose: ["~/.config/goose"],
};

/**
 * Without writing down whether it may trust a directory, Codex does not begin on a terminal. OpenCode takes variables
 * and settings from some of its logins.
 */
const copiedOrders = ["~/.codex/config.toml", "~/.local/share/opencode/auth.json"];

/** What agents obey, of directories that are covered by a fresh one. Codex puts skills of its own beside the owner's. */
const coveredOrders = [
  "~/.codex/*.config.toml",
  "~/.codex/managed_config.toml",
  "~/.codex/requirements.toml",
  "~/.codex/environments.toml",
  "~/.codex/.env",
  "~/.codex/.credentials.json",
  "~/.codex/AGENTS.md",
  "~/.codex/AGENTS.override.md",
  "~/.codex/hooks.json",
  "~/.codex/hooks",
  "~/.codex/rules",
  "~/.codex/prompts",
  "~/.codex/skills/*",
  "~/.codex/agents",
  "~/.codex/plugins",
  "~/.codex/themes",
  "~/.local/share/opencode/mcp-auth.json",
];

/** Among what is writable: what an agent outside reads into every conversation. */
const keptMemories = ["~/.claude/projects/*/memory"];

/** Files in the workspace that an agent outside the wall would obey. */
const agentOrders = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/hooks",
  ".claude/commands",
  ".claude/agents",
  ".claude/skills",
  ".mcp.json",
  ".codex/config.toml",
  ".codex/hooks.json",
  ".codex/rules",
  ".codex/skills",
  ".agents/skills",
  "opencode.json",
  "opencode.jsonc",
  ".opencode",
  ".gemini/settings.json",
  ".qwen/settings.json",
  ".vscode/settings.json",
  ".vscode/tasks.json",
  ".vscode/launch.json",
  ".envrc",
];

const ro = (path: string): PresetEntry => ({ access: "ro", path });
const guard = (path: string): PresetEntry => ({ access: "ro", path, guard: true });
const copied = (path: string): PresetEntry => ({ access: "ro", path, copied: true });
const rw = (path: string): PresetEntry => ({ access: "rw", path });
const exclude = (path: string): PresetEntry => ({ access: "exclude", path });
const own = (path: string, name: string): PresetEntry => ({ access: "rw", path, own: name });

const freshFor = (places: Readonly<Record<string, readonly string[]>>, more: Pick<Fresh, "covers">): PresetEntry[] =>
  Object.entries(places).flatMap(([program, paths]) =>
    paths.map((path) => ({ access: "rw" as const, path, fresh: { program, ...more } })),
  );

/** In the order in which they are applied. `@git` and `@git-strict` get their paths from the repository itself. */
const presetList: readonly Preset[] = [
  {
    name: "@base",
    about: "The working directory is writable, the home readable, credential stores are hidden.",
    entries: [
      rw("."),
      ro("~"),
      ...credentialStores.map((path) => exclude(`~/${path}`)),
      ...machineSecrets.map((path) => exclude(path)),
    ],
  },
  {
    name: "@caches",
    about:
      "Writable caches of the sandbox's own, kept between runs. The host's caches hold what the host later executes, so they are not shared.",
    entries: [
      own("~/.cache", "cache"),
      own("~/.npm", "npm"),
      own("~/.bun/install/cache", "bun"),
      own("~/.cargo/registry", "cargo-registry"),
      own("~/.cargo/git", "cargo-git"),
      own("~/go/pkg", "go-pkg"),
    ],
  },
  {
    name: "@agents",
    about: "Agents may write their transcripts and logins; their settings, hooks and instructions are read-only.",
    entries: [
      ...freshFor(freshOverAgents, { covers: true }),
      ...freshFor(freshIfMissing, {}),
      ...agentState.map(rw),
      ...copiedOrders.map(copied),
      ...coveredOrders.map(ro),
      ...[...keptMemories, ...agentOrders].map(guard),
    ],
  },
  {
    name: "@git",
    about: "The repository's hooks and configuration are read-only, wherever git keeps them.",
    entries: [],
  },
  {
    name: "@git-strict",
    about: "As @git; besides, every branch but the current one, all tags and packed-refs are read-only.",
    entries: [],
  },
  {
    name: "@lint/ts",
    about: "Configuration of TypeScript and JavaScript linters and formatters is read-only.",
    entries: [...lintTypescript, ...lintAlways].map(guard),
  },
  {
    name: "@lint/go",
    about: "Configuration of Go linters is read-only.",
    entries: [...lintGo, ...lintAlways].map(guard),
  },
  {
    name: "@lint/python",
    about: "Configuration of Python linters is read-only.",
    entries: [...lintPython, ...lintAlways].map(guard),
  },
];

const groups: Readonly<Record<string, readonly string[]>> = {
  "@lint/all": ["@lint/ts", "@lint/go", "@lint/python"],
  "@all": ["@base", "@caches", "@agents", "@git", "@lint/ts", "@lint/go", "@lint/python"],
};

export const presets: readonly Preset[] = presetList;

export const presetNames: readonly string[] = [...presetList.map(({ name }) => name), ...Object.keys(groups)];

/**
 * `@name` switches a preset on and `!@name` off, the last word holding. The list changes `@all`, unless it speaks of
 * `@all` itself.
 */
export function choosePresets(toggles: readonly string[]): readonly Preset[] {
  for (const toggle of toggles) checkToggle(toggle);
  const mentionsAll = toggles.some((toggle) => toggle.replace(/^!/, "") === "@all");
  const chosen = new Set(mentionsAll ? [] : groups["@all"]);
  for (const toggle of toggles) {
    const name = toggle.replace(/^!/, "");
    for (const member of groups[name] ?? [name]) {
      if (toggle.startsWith("!")) chosen.delete(member);
      else chosen.add(member);
    }
  }
  return presetList.filter(({ name }) => chosen.has(name));
}

function checkToggle(toggle: string): void {
  if (presetNames.includes(toggle.replace(/^!/, ""))) return;
  throw new PolicyError("PRESET_UNKNOWN", `There is no preset ${JSON.stringify(toggle)}.`, {
    hint: `Known presets: ${presetNames.join(", ")}; put ! before one to switch it off.`,
    details: { preset: toggle, known: presetNames },
  });
}
