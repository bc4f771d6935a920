import type { LoadedConfig } from "../config/types.ts";
import type { TokenEvent } from "../github/refresh.ts";
import type { Plan } from "../plan/plan.ts";
import type { NetworkPlan } from "../plan/request.ts";
import type { GitHubMark } from "../registry/record.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Birth, Box, BoxBirth, Exit, Stdio } from "../wall/wall.ts";
import type { EngineName } from "./engine.ts";
import type { Furnishing } from "./furnish.ts";
import type { OnAsked, Outside } from "./outside.ts";
import type { SandboxOptions } from "./request.ts";

/** What a box is born with that nobody need bring. */
type Born = "env" | "trust" | "onDoors" | "own";

interface Asking {
  /** Called with each thing that the box has asked for at its doors. */
  readonly onAsked?: OnAsked | undefined;
  /** Called with what this box has out here, before it starts. */
  readonly onOutside?: ((outside: Pick<Outside, "secrets" | "replaceNetwork" | "closed">) => void) | undefined;
  /** Called with what becomes of the session's token. */
  readonly onToken?: ((event: TokenEvent) => void) | undefined;
}

export interface Settling {
  readonly report: (done: Furnishing) => void;
  /** For what others say, before it is told: a server may well repeat what it was sent. */
  readonly redact: (text: string) => string;
  readonly signal?: AbortSignal;
}

/** A plan that is ready to run, with the wall that can run it. */
export interface PlannedSandbox {
  /** The name of the agent, where the configuration chose the command. */
  readonly agent: string;
  readonly plan: Plan;
  /** Podbot's state directory, and the caller's environment: where a session is recorded and where it lives. */
  readonly state: string;
  readonly env: SandboxOptions["env"];
  readonly loaded: LoadedConfig;
  /** The engine that builds the wall; null behind bubblewrap. */
  readonly engine: EngineName | null;
  /** What it takes to mint the session's token; null: it has none. */
  readonly github: GitHubMark | null;
  /** Things that the owner should know. */
  readonly warnings: readonly string[];
  /** The environment inside, values and all, as it is now. Never to be shown. */
  values(): Readonly<Record<string, string>>;
  /** What may be reached by what the configuration says now. */
  readNetwork(): Promise<NetworkPlan>;
  /** A script for bash that does the same by path. */
  script(): string;
  /** On the caller's own descriptors. Behind bubblewrap only: what runs in a container is attached to a session. */
  run(stdio: Stdio, birth?: Omit<Birth, Born> & Asking): Promise<Exit>;
  /** A box for a session. */
  start(birth: Omit<BoxBirth, Born | "furnish"> & Asking, report?: (done: Furnishing) => void): Promise<Box>;
  /** What must be done inside before the agent starts. */
  settle(sandbox: Sandbox, settling: Settling): Promise<void>;
  /** What must be done inside when all else there has ended. Gives what the owner should know. */
  leave(sandbox: Sandbox): Promise<readonly string[]>;
}
