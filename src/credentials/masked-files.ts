/** What is known of a file in which an agent keeps its login. All else in it may be a secret, too, and is left out. */
export interface MaskedFile {
  /** Whose it is: the table of agents knows the hosts that its tokens are for. */
  readonly agent: string;
  /** Relative to the home. */
  readonly path: string;
  /** `lines` are names and values, as in `.env` and in flat YAML. */
  readonly format: "json" | "lines";
  /**
   * Fields whose text is replaced, and fields whose text is kept, each by the way to it: `tokens.access_token`. A `*`
   * stands for any one name or number, `~` for one that does not tell of a secret, `**` at the end for all that is
   * below. A token is one even where it is kept. What is no text is kept everywhere.
   */
  readonly tokens: readonly string[];
  readonly kept: readonly string[];
}

/** In which headers an agent sends its tokens. */
export const tokenHeaders: Readonly<Record<string, readonly string[]>> = {
  claude: ["authorization", "x-api-key"],
  codex: ["authorization"],
  opencode: ["authorization", "x-api-key"],
  gemini: ["authorization", "x-goog-api-key"],
  goose: ["authorization", "x-api-key", "x-goog-api-key"],
  qwen: ["authorization"],
};

const oauthTokens = ["access_token", "refresh_token", "id_token"];

export const maskedFiles: readonly MaskedFile[] = [
  {
    agent: "claude",
    path: ".claude/.credentials.json",
    format: "json",
    tokens: ["claudeAiOauth.accessToken", "claudeAiOauth.refreshToken"],
    kept: ["claudeAiOauth.scopes.*", "claudeAiOauth.subscriptionType", "claudeAiOauth.rateLimitTier"],
  },
  {
    agent: "claude",
    path: ".claude.json",
    format: "json",
    tokens: ["primaryApiKey"],
    kept: ["userID", "theme", "lastOnboardingVersion", "installMethod", "oauthAccount.**"],
  },
  ...[".claude/settings.json", ".claude/settings.local.json"].map(
    (path): MaskedFile => ({
      agent: "claude",
      path,
      format: "json",
      tokens: ["env.ANTHROPIC_API_KEY", "env.ANTHROPIC_AUTH_TOKEN", "env.CLAUDE_CODE_OAUTH_TOKEN"],
      // Not `apiKeyHelper`, which prints a key, and may have it written out.
      kept: [
        ...["$schema", "model", "theme", "language", "outputStyle", "effortLevel", "forceLoginMethod"],
        ...["env.~", "permissions.**", "hooks.**", "statusLine.**"],
      ],
    }),
  ),
  {
    agent: "codex",
    path: ".codex/auth.json",
    format: "json",
    tokens: ["OPENAI_API_KEY", "tokens.access_token", "tokens.refresh_token", "tokens.id_token"],
    kept: ["auth_mode", "last_refresh", "tokens.account_id"],
  },
  {
    agent: "opencode",
    path: ".local/share/opencode/auth.json",
    format: "json",
    tokens: ["*.key", "*.access", "*.refresh", "*.token"],
    kept: ["*.type", "*.accountId", "*.enterpriseUrl"],
  },
  {
    agent: "gemini",
    path: ".gemini/oauth_creds.json",
    format: "json",
    tokens: oauthTokens,
    kept: ["scope", "token_type"],
  },
  { agent: "gemini", path: ".gemini/google_accounts.json", format: "json", tokens: [], kept: ["active", "old.*"] },
  {
    agent: "gemini",
    path: ".gemini/settings.json",
    format: "json",
    tokens: [],
    kept: ["security.auth.selectedType", "selectedAuthType", "model.name", "ui.theme", "theme"],
  },
  {
    agent: "gemini",
    path: ".gemini/.env",
    format: "lines",
    tokens: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    kept: [
      ...["GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL"],
      ...["GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
    ],
  },
  {
    agent: "goose",
    path: ".config/goose/secrets.yaml",
    format: "lines",
    tokens: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    kept: [],
  },
  {
    agent: "goose",
    path: ".config/goose/config.yaml",
    format: "lines",
    tokens: [],
    kept: ["GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_MODE", "OPENAI_HOST", "OPENAI_BASE_PATH", "ANTHROPIC_HOST"],
  },
  {
    agent: "qwen",
    path: ".qwen/oauth_creds.json",
    format: "json",
    tokens: oauthTokens,
    kept: ["token_type", "resource_url"],
  },
  {
    agent: "qwen",
    path: ".qwen/settings.json",
    format: "json",
    tokens: [],
    kept: ["security.auth.selectedType", "selectedAuthType", "model.name", "ui.theme", "theme"],
  },
  {
    agent: "qwen",
    path: ".qwen/.env",
    format: "lines",
    tokens: ["DASHSCOPE_API_KEY", "OPENAI_API_KEY"],
    kept: ["OPENAI_BASE_URL", "OPENAI_MODEL"],
  },
];

/** Directories in which agents keep old versions of such files. */
export const backupDirectories: readonly string[] = [".claude/backups"];

/** Whether a name is that of another version of a file: `.claude.json.backup`, `auth.json~`. */
export function isVersionOf(name: string, file: string): boolean {
  return name.length > file.length && name.startsWith(file) && /^[.~_-]/.test(name.slice(file.length));
}
