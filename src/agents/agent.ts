/** All that Podbot knows of one agent. Plain data: adding an agent is adding one of these. */
export interface Agent {
  /** What configuration and command line call it. */
  readonly name: string;
  readonly title: string;
  /** Its executable's name on PATH. */
  readonly program: string;
  readonly package: AgentPackage;
  /** What the machine must have besides. */
  readonly needs: {
    /** The oldest Node that runs it, by its first number; null where it brings all that it needs. */
    readonly node: number | null;
  };
  /** Arguments that make it print its version and do nothing else. */
  readonly version: readonly string[];
  /** Arguments that begin work on a terminal, where the caller has given none. */
  readonly interactive: readonly string[];
  /** Arguments for one prompt without a terminal; `{prompt}` stands for it. */
  readonly headless: readonly string[];
  /** Arguments that go on with the latest conversation. */
  readonly resume: readonly string[];
  readonly permissive: Permissive;
  /** What keeps it from looking for updates, sending statistics and asking for what no wall lets in. */
  readonly quiet: {
    /** Before all other arguments. */
    readonly flags: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
  };
  /** As a server of the Agent Client Protocol on standard input and output. */
  readonly acp: AgentServer;
  /** As a server of Codex's own protocol, where it has one. */
  readonly appServer: AgentServer | null;
  /** Files and directories of the home that hold its login and the settings that it needs, each relative to the home. */
  readonly credentials: readonly string[];
  /** Variables that it takes keys, tokens and the place of its model from. Handed in only where the owner says so. */
  readonly keys: readonly string[];
  /** Hosts that it cannot work without. */
  readonly hosts: readonly string[];
}

/** What npm installs. */
export interface AgentPackage {
  readonly name: string;
  /** The very version that was tried. */
  readonly version: string;
  /** Whether it works only after its own install script, which asks nothing of the network. */
  readonly scripts: boolean;
  /** Packages of Debian's that it needs. */
  readonly debian: readonly string[];
}

/** How its own questions are switched off, for where a wall is the boundary. */
export interface Permissive {
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Words by which the caller decides this himself: then no flag is added. Some agents refuse both. */
  readonly decided: readonly string[];
  /** Subcommands that take the flags, after their name. */
  readonly behind: readonly string[];
  /** Subcommands that know no such flags; before some, they would make it a prompt. */
  readonly without: readonly string[];
}

export interface AgentServer {
  readonly program: string;
  readonly args: readonly string[];
  /** What brings the program; null where it is the agent's own. */
  readonly package: AgentPackage | null;
  /** Variables that it gets besides the agent's own. */
  readonly environment: Readonly<Record<string, string>>;
  /** What keeps it from building a sandbox of its own, which cannot be done inside another. */
  readonly unconfined: {
    /** Before all other arguments. */
    readonly flags: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
  };
  /** The variable that tells it where the agent itself lies, so that it need not bring another; null: it knows none. */
  readonly agentVariable: string | null;
}
