import type { Agent, AgentServer } from "./agent.ts";

const confinesNothing: AgentServer["unconfined"] = { flags: [], environment: {} };

/**
 * The agents that Podbot knows; any other command is a custom agent. All was tried with the versions named: flags and
 * their places, what is looked up on the network, and where logins lie.
 */
export const agents: readonly Agent[] = [
  {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    package: { name: "@anthropic-ai/claude-code", version: "2.1.325", scripts: true, debian: [] },
    needs: { node: null },
    version: ["--version"],
    // Otherwise it asks whether one means the flag below, each time: in a read-only home it cannot remember.
    interactive: ['--settings={"skipDangerousModePermissionPrompt":true}'],
    headless: ["-p", "{prompt}"],
    resume: ["--continue"],
    permissive: {
      flags: ["--dangerously-skip-permissions"],
      environment: {},
      // With the flag, it would pass over these in silence.
      decided: ["--permission-mode", "--restricted"],
      behind: [],
      without: [],
    },
    quiet: {
      flags: [],
      environment: {
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: "1",
        DISABLE_AUTOUPDATER: "1",
      },
    },
    acp: {
      program: "claude-agent-acp",
      args: [],
      package: { name: "@agentclientprotocol/claude-agent-acp", version: "0.99.0", scripts: false, debian: [] },
      environment: {},
      unconfined: confinesNothing,
      agentVariable: "CLAUDE_CODE_EXECUTABLE",
    },
    appServer: null,
    credentials: [".claude", ".claude.json"],
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"],
    hosts: ["api.anthropic.com", "platform.claude.com"],
  },
  {
    name: "codex",
    title: "Codex",
    program: "codex",
    package: { name: "@openai/codex", version: "0.166.0", scripts: false, debian: [] },
    // Only what starts it is a script.
    needs: { node: 16 },
    version: ["--version"],
    interactive: [],
    headless: ["exec", "--skip-git-repo-check", "{prompt}"],
    resume: ["resume", "--last"],
    permissive: {
      flags: ["--dangerously-bypass-approvals-and-sandbox"],
      environment: {},
      decided: ["-a", "--ask-for-approval", "--approve-for-me", "-s", "--sandbox"],
      behind: [],
      without: [],
    },
    quiet: {
      // It has no variables for these. What the caller says later wins.
      flags: [
        ...["-c", "analytics.enabled=false"],
        ...["-c", "features.plugins=false"],
        ...["-c", "check_for_update_on_startup=false"],
      ],
      environment: {},
    },
    acp: {
      program: "codex-acp",
      args: [],
      package: { name: "@agentclientprotocol/codex-acp", version: "2.6.0", scripts: false, debian: [] },
      // The same settings as the flags above; it takes them for its threads alone, and looks for plugins when it starts.
      // And no browser can be opened from inside.
      environment: {
        CODEX_CONFIG: JSON.stringify({
          analytics: { enabled: false },
          features: { plugins: false },
          check_for_update_on_startup: false,
        }),
        NO_BROWSER: "1",
      },
      // Its mode without a sandbox is one without questions.
      unconfined: { flags: [], environment: { INITIAL_AGENT_MODE: "agent-full-access" } },
      agentVariable: "CODEX_PATH",
    },
    appServer: {
      ...ownServer("codex", ["app-server", "--listen", "stdio://"]),
      // Where its client says nothing else.
      unconfined: { flags: ["-c", 'sandbox_mode="danger-full-access"'], environment: {} },
    },
    credentials: [".codex"],
    keys: ["OPENAI_API_KEY", "CODEX_API_KEY"],
    hosts: ["api.openai.com", "auth.openai.com", "chatgpt.com"],
  },
  {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    package: { name: "opencode-ai", version: "1.18.33", scripts: true, debian: [] },
    needs: { node: null },
    version: ["--version"],
    interactive: [],
    headless: ["run", "{prompt}"],
    resume: ["--continue"],
    permissive: {
      flags: ["--auto"],
      environment: {},
      decided: [],
      behind: ["run"],
      without: [
        ...["acp", "agent", "attach", "auth", "completion", "db", "debug", "export", "github", "import", "mcp"],
        ...["models", "plug", "plugin", "pr", "providers", "serve", "session", "stats", "uninstall", "upgrade", "web"],
      ],
    },
    quiet: {
      flags: [],
      environment: {
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      },
    },
    acp: ownServer("opencode", ["acp"]),
    appServer: null,
    credentials: [
      ".local/share/opencode/auth.json",
      ".config/opencode/opencode.json",
      ".config/opencode/opencode.jsonc",
    ],
    keys: ["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
    hosts: ["opencode.ai", "api.anthropic.com", "api.openai.com"],
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    package: { name: "@google/gemini-cli", version: "0.61.0", scripts: false, debian: [] },
    needs: { node: 20 },
    version: ["--version"],
    interactive: [],
    headless: ["-p", "{prompt}"],
    resume: ["--resume", "latest"],
    permissive: {
      flags: ["--yolo"],
      // In a directory that it does not trust, it would ask all the same.
      environment: { GEMINI_CLI_TRUST_WORKSPACE: "true" },
      decided: ["-y", "--approval-mode"],
      behind: [],
      without: ["extension", "extensions", "gemma", "hook", "hooks", "mcp", "skill", "skills"],
    },
    // Statistics and updates are switched off in its settings alone.
    quiet: { flags: [], environment: {} },
    acp: ownServer("gemini", ["--acp"]),
    appServer: null,
    credentials: [".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/settings.json", ".gemini/.env"],
    keys: [
      "GEMINI_API_KEY",
      "GOOGLE_API_KEY",
      "GOOGLE_CLOUD_LOCATION",
      "GOOGLE_CLOUD_PROJECT",
      "GOOGLE_GEMINI_BASE_URL",
      "GOOGLE_GENAI_USE_GCA",
      "GOOGLE_GENAI_USE_VERTEXAI",
    ],
    hosts: [
      "generativelanguage.googleapis.com",
      "cloudcode-pa.googleapis.com",
      "oauth2.googleapis.com",
      "accounts.google.com",
    ],
  },
  {
    name: "goose",
    title: "Goose",
    program: "goose",
    // The package that is called after it brings another program. Later versions of this one call it otherwise.
    package: { name: "@aaif/goose-binary-linux-x64", version: "0.20.1", scripts: false, debian: ["libgomp1"] },
    needs: { node: null },
    version: ["--version"],
    // Without a word it configures itself, unless it has a file of settings.
    interactive: ["session"],
    headless: ["run", "-t", "{prompt}"],
    resume: ["session", "--resume"],
    permissive: { flags: [], environment: { GOOSE_MODE: "auto" }, decided: [], behind: [], without: [] },
    quiet: {
      flags: [],
      // No wall lets the desktop's keyring in.
      environment: { GOOSE_DISABLE_KEYRING: "1", GOOSE_TELEMETRY_OFF: "1" },
    },
    acp: ownServer("goose", ["acp", "--with-builtin", "developer"]),
    appServer: null,
    credentials: [".config/goose/config.yaml", ".config/goose/secrets.yaml"],
    keys: [
      "GOOSE_PROVIDER",
      "GOOSE_MODEL",
      "ANTHROPIC_API_KEY",
      "GOOGLE_API_KEY",
      "OPENAI_API_KEY",
      "OPENAI_HOST",
      "OPENROUTER_API_KEY",
    ],
    hosts: ["api.anthropic.com", "api.openai.com"],
  },
  {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    package: { name: "@qwen-code/qwen-code", version: "0.24.4", scripts: false, debian: [] },
    // It asks for 22, and works with this.
    needs: { node: 20 },
    version: ["--version"],
    interactive: [],
    headless: ["-p", "{prompt}"],
    resume: ["--continue"],
    permissive: {
      flags: ["--yolo"],
      environment: { QWEN_CODE_SUPPRESS_YOLO_WARNING: "1" },
      decided: ["-y", "--approval-mode"],
      behind: [],
      without: [
        ...["auth", "board", "channel", "extensions", "hooks", "mcp", "review", "sandbox", "serve", "sessions"],
        "update",
      ],
    },
    quiet: {
      flags: [],
      environment: { QWEN_CODE_SKIP_UPDATE_CHECK_ONCE: "true", QWEN_USAGE_STATISTICS_ENABLED: "false" },
    },
    acp: ownServer("qwen", ["--acp"]),
    appServer: null,
    credentials: [".qwen/oauth_creds.json", ".qwen/settings.json", ".qwen/.env"],
    keys: ["DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"],
    hosts: ["chat.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
  },
];

/** The agent of this name; undefined for `custom` and for what nobody knows. */
export function knownAgent(name: string): Agent | undefined {
  return agents.find((agent) => agent.name === name);
}

/** A server that is the agent's own program. */
function ownServer(program: string, args: readonly string[]): AgentServer {
  return { program, args, package: null, environment: {}, unconfined: confinesNothing, agentVariable: null };
}
