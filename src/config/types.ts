/** The configuration as every other room sees it: all layers merged, every default filled in. Keys keep the spelling of the files. */
export interface Config {
  readonly engine_socket?: string;
  readonly image?: string;
  readonly github: {
    readonly app_id?: number;
    readonly installation_id?: number;
    readonly private_key_path?: string;
  };
  readonly workspace: {
    readonly source: "github_clone" | "host_mount";
    readonly base_dir: string;
    readonly host_path?: string;
    readonly container_path: string;
  };
  readonly creds: {
    readonly copy_claude: boolean;
    readonly copy_codex: boolean;
  };
  readonly agent: {
    readonly kind: AgentKind;
    readonly mode: AgentMode;
    readonly command?: string;
    readonly args: readonly string[];
    readonly env_allowlist: readonly string[];
  };
  readonly sandbox: {
    readonly wall: "auto" | "bubblewrap" | "engine";
    readonly root: "host" | "minimal";
    readonly nesting: boolean;
    readonly accept_gaps: readonly string[];
    readonly grace_seconds: number;
    readonly privileged: boolean;
    readonly mount_dev_fuse: boolean;
    readonly selinux_label_mode: "disable_for_container" | "keep_default";
  };
  readonly network: {
    readonly mode: "none" | "open";
  };
  readonly filesystem: {
    readonly presets: readonly string[];
    readonly ro: readonly string[];
    readonly rw: readonly string[];
    readonly exclude: readonly string[];
  };
  /** Has no prototype, so that looking up a command called `constructor` finds nothing. The same holds for the records below. */
  readonly commands: Readonly<Record<string, CommandRule>>;
  readonly environment: {
    readonly pass: readonly string[];
    readonly set: Readonly<Record<string, VariableValue>>;
  };
  readonly secrets: Readonly<Record<string, SecretSource>>;
}

export type AgentKind = "claude" | "codex" | "opencode" | "gemini" | "goose" | "qwen" | "custom";
export type AgentMode = "podbot" | "codex_app_server" | "acp";

/** `true` runs the command as it is, `false` blocks it, `"@git"` wraps it with a preset, any other text is the path of a script. */
export type CommandRule = boolean | string;

export type VariableValue =
  | { readonly kind: "literal"; readonly value: string }
  | { readonly kind: "secret"; readonly name: string; readonly optional: boolean };

export type SecretSource =
  | { readonly env: string; readonly file?: never }
  | { readonly file: string; readonly env?: never };

/** What one layer may say: every key is optional, and the shorthands of the files are allowed. */
export interface PartialConfig {
  readonly engine_socket?: string;
  readonly image?: string;
  readonly github?: Partial<Config["github"]>;
  readonly workspace?: Partial<Config["workspace"]>;
  readonly creds?: Partial<Config["creds"]>;
  readonly agent?: Partial<Config["agent"]>;
  readonly sandbox?: Partial<Config["sandbox"]>;
  /** `true` is `{ mode: "open" }`, `false` is `{ mode: "none" }`. */
  readonly network?: boolean | Partial<Config["network"]>;
  readonly filesystem?: Partial<Config["filesystem"]>;
  readonly commands?: Config["commands"];
  readonly environment?: {
    readonly pass?: readonly string[];
    /**
     * Text that begins with `!secret` is a reference. Programs that pass on text they did not write should give
     * `{ kind: "literal", value }`, which is never read as one.
     */
    readonly set?: Readonly<Record<string, string | VariableValue>>;
  };
  readonly secrets?: Config["secrets"];
}

export type LayerName = "default" | "global" | "project" | "environment" | "flag";

export interface Layer {
  readonly name: LayerName;
  /** The file's path, or `built in`, `PODBOT_* environment`, `command line`. */
  readonly source: string;
  /** False only for a discovered project file that the owner has not trusted: it may narrow, never widen. */
  readonly trusted: boolean;
  readonly value: PartialConfig;
}

/** Where one effective value came from: one for each scalar, each element of a list and each entry of a record. */
export interface Origin {
  readonly key: string;
  readonly value: unknown;
  readonly layer: LayerName;
  readonly source: string;
}

export interface LoadOptions {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Named by the owner, so trusted; takes the place of the project file. Relative to `cwd`. */
  readonly configFile?: string;
  /** The last layer, usually made of command line flags. */
  readonly overrides?: PartialConfig;
  /** Load an untrusted project file although it widens, to show what it asks for. Its layer still says `trusted: false`. */
  readonly acceptProject?: boolean;
}

/** One thing that a project file asks for beyond what the layers below it grant. */
export interface Widening {
  readonly key: string;
  readonly value: unknown;
  readonly why: string;
}

export interface ProjectFile {
  readonly file: string;
  /** SHA-256 of the content, in hex. */
  readonly hash: string;
  readonly trusted: boolean;
  readonly widenings: readonly Widening[];
}

export interface LoadedConfig {
  readonly config: Config;
  /** Defaults first. */
  readonly layers: readonly Layer[];
  readonly origins: readonly Origin[];
  readonly warnings: readonly string[];
  readonly files: readonly string[];
  readonly project?: ProjectFile;
}
