import { knownAgent } from "../../../src/agents/table.ts";
import { someAgentsNames } from "../engines/agent-archive.ts";
import type { TestEngine } from "../engines/engine.ts";
import type { AgentName } from "./installation.ts";

/** What a user sets up for an agent whose model is ours, and how a turn is asked for. */
export interface Part {
  readonly name: AgentName;
  /** Arguments for one prompt. */
  words(prompt: string): readonly string[];
  /** What is on its standard input. */
  input(prompt: string): string;
  /** Settings by variables. */
  env(url: string): Readonly<Record<string, string>>;
  /** Settings by files, relative to the home; those of the workspace are below `project`. */
  files(url: string): Readonly<Record<string, string>>;
  /** The line of the prompt by which the model calls the tool for commands of the shell. */
  call(command: string): string;
  /** Where it leaves transcripts and the like, relative to the home, once it has made these directories itself. */
  readonly state: readonly string[];
  /** What it obeys, relative to the home. Each is written at the beginning, and tried to be changed from inside. */
  readonly orders: readonly string[];
}

const headless = (name: AgentName, prompt: string) =>
  (knownAgent(name)?.headless ?? []).map((word) => (word === "{prompt}" ? prompt : word));

const none = () => ({});

export const claude: Part = {
  name: "claude",
  words: (prompt) => headless("claude", prompt),
  input: () => "",
  env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-loopback" }),
  files: none,
  call: (command) => `TOOL Bash ${JSON.stringify({ command })}`,
  state: [".claude/projects", ".claude/sessions"],
  orders: [
    ".claude.json",
    ".claude/settings.json",
    ".claude/CLAUDE.md",
    ".claude/hooks/hook.sh",
    ".claude/commands/order.md",
    ".claude/agents/order.md",
    ".claude/skills/order/SKILL.md",
    ".claude/plugins/order.json",
    ".claude/shell-snapshots/snapshot.sh",
    ".claude/projects/-another/memory/MEMORY.md",
  ],
};

export const codex: Part = {
  name: "codex",
  words: (prompt) => headless("codex", prompt),
  input: () => "",
  env: () => ({ LOOPBACK_KEY: "key-of-codex" }),
  files: (url) => ({
    ".codex/config.toml": `model = "gpt-5.5"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
`,
  }),
  call: (command) => `TOOL exec_command ${JSON.stringify({ cmd: command })}`,
  state: [".codex/sessions"],
  orders: [
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/AGENTS.md",
    ".codex/hooks/hook.sh",
    ".codex/rules/order.rules",
    ".codex/prompts/order.md",
    ".codex/skills/order/SKILL.md",
  ],
};

const opencode: Part = {
  name: "opencode",
  // A prompt among its arguments is quoted in a way of its own.
  words: () => headless("opencode", "").slice(0, -1),
  input: (prompt) => prompt,
  // Where it may write its directory of settings, it gets itself a package for them.
  env: (url) => ({ npm_config_registry: `${url}/npm/` }),
  files: (url) => ({
    "project/opencode.json": JSON.stringify({
      model: "loopback/model",
      provider: {
        loopback: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${url}/v1`, apiKey: "key-of-opencode" },
          models: { model: {} },
        },
      },
    }),
  }),
  call: (command) => `TOOL bash ${JSON.stringify({ command, description: "as told" })}`,
  state: [],
  orders: [
    ".config/opencode/opencode.json",
    ".config/opencode/AGENTS.md",
    ".config/opencode/plugins/order.js",
    ".config/opencode/command/order.md",
    ".local/share/opencode/bin/server",
    ".local/share/opencode/snapshot/another/hooks/post-commit",
  ],
};

const goose: Part = {
  name: "goose",
  words: (prompt) => [...headless("goose", prompt), "--with-builtin", "developer"],
  input: () => "",
  env: (url) => ({
    GOOSE_PROVIDER: "openai",
    GOOSE_MODEL: "gpt-4o",
    OPENAI_HOST: url,
    OPENAI_API_KEY: "key-of-goose",
  }),
  files: none,
  call: (command) => `TOOL shell ${JSON.stringify({ command })}`,
  state: [".local/share/goose/sessions", ".local/state/goose/logs"],
  orders: [
    ".config/goose/config.yaml",
    ".config/goose/.goosehints",
    ".config/goose/recipes/order.yaml",
    ".local/share/goose/apps/order.html",
  ],
};

export const cast: readonly Part[] = [claude, codex, opencode, goose];

/**
 * Those that take turns on an engine. What an agent does in a container is the same on each: all of them show it on
 * rootful Podman, and behind bubblewrap. What rootless Podman does otherwise (who is who inside, the files that are
 * mounted, the network) is the same for every agent, so there two are enough: one that is a script of Node's, and one
 * that is not.
 */
export function castOn({ caller }: Pick<TestEngine, "caller">): readonly Part[] {
  return caller.uid === 0 ? cast : cast.filter(({ name }) => someAgentsNames.includes(name));
}
