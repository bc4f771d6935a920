/** The configuration as every other room sees it: all layers merged, every default filled in. Keys keep the spelling of the files. */
export interface Config {
  readonly engine_socket?: string;
  readonly image?: string;
  readonly github: {
    readonly app_id?: number;
    readonly installation_id?: number;
    readonly private_key_path?: string;
    readonly api_url: string;
    readonly permissions: Readonly<Record<string, PermissionLevel>>;
    /** `masked`: the box has a surrogate. */
    readonly token: "file" | "masked";
  };
  readonly workspace: {
    readonly source: "github_clone" | "host_mount" | "empty";
    readonly base_dir: string;
    readonly host_path?: string;
    readonly container_path: string;
  };
  readonly mounts: {
    readonly allowed_roots: readonly string[];
  };
  readonly creds: {
    readonly copy_claude: boolean;
    readonly copy_codex: boolean;
    readonly copy_agent: boolean;
    /** `masked`: known token fields of the copies hold surrogates. */
    readonly mode: "copy" | "masked";
  };
  readonly agent: {
    readonly kind: AgentKind;
    readonly mode: AgentMode;
    readonly permissive: boolean;
    readonly command?: string;
    readonly args: readonly string[];
    readonly env_allowlist: readonly string[];
  };
  readonly acp: {
    /** What of the client's machine an agent may use through its client. */
    readonly delegation: "disabled" | "allow_fs" | "allow_terminal" | "allow_all";
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
    readonly containers: "none" | "inner";
    readonly read_only_root: boolean;
    readonly runtime?: string;
    readonly limits: "best-effort" | "require";
    readonly memory_mb?: number;
    readonly cpus?: number;
    readonly pids?: number;
    readonly ulimits: readonly string[];
    readonly pool: number;
  };
  readonly network: {
    readonly mode: "none" | "open" | "allowlist" | "learn";
    readonly presets: readonly string[];
    readonly domains: readonly string[];
    readonly rules: readonly NetworkRuleSetting[];
    /** Where the gateway dials a name, instead of where it resolves to. */
    readonly reach: Readonly<Record<string, string>>;
    /** `environment`, `none`, or an address that may hold a password. */
    readonly upstream_proxy: string;
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

/** `none` takes away what a layer below permits. */
export type PermissionLevel = "none" | "read" | "write";

export type VariableValue =
  | { readonly kind: "literal"; readonly value: string }
  | { readonly kind: "secret"; readonly name: string; readonly optional: boolean };

/** Where a secret comes from: exactly one of these. And, where it is masked, where it belongs. */
export type SecretSource = SecretOrigin & SecretScope;

export type SecretOrigin =
  | { readonly env: string; readonly file?: never; readonly command?: never; readonly keyring?: never }
  | { readonly file: string; readonly env?: never; readonly command?: never; readonly keyring?: never }
  | { readonly command: readonly string[]; readonly env?: never; readonly file?: never; readonly keyring?: never }
  /** `service/account` of the desktop's keyring. */
  | { readonly keyring: string; readonly env?: never; readonly file?: never; readonly command?: never };

export interface SecretScope {
  /** Host patterns. Where there are any, the box gets a surrogate, and the gateway puts the value in there alone. */
  readonly hosts?: readonly string[];
  /** Names of headers in lower case. Absent: `authorization` and `x-api-key`. */
  readonly headers?: readonly string[];
  /** Path globs. Absent: any path. */
  readonly paths?: readonly string[];
}

/** One of `network.rules`, as it is written: `port` and `path` are short for lists of one. */
export interface NetworkRuleSetting {
  readonly host: string;
  readonly port?: number;
  readonly ports?: readonly number[];
  readonly path?: string;
  readonly paths?: readonly string[];
  readonly methods?: readonly string[];
  readonly deny?: boolean;
  readonly local?: boolean;
}

/** What one layer may say: every key is optional, and the shorthands of the files are allowed. */
export interface PartialConfig {
  readonly engine_socket?: string;
  readonly image?: string;
  readonly github?: Partial<Config["github"]>;
  readonly workspace?: Partial<Config["workspace"]>;
  readonly mounts?: Partial<Config["mounts"]>;
  readonly creds?: Partial<Config["creds"]>;
  readonly agent?: Partial<Config["agent"]>;
  readonly acp?: Partial<Config["acp"]>;
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
  /** What must be said besides, once it is known what all layers say. Checks see it, too. */
  readonly complete?: (config: Config) => PartialConfig;
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
