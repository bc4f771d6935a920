import type { TokenSource } from "../token-source.ts";
import type { KeyFacts } from "./key.ts";

export interface GitHubApp {
  readonly appId: number;
  readonly installationId: number;
  readonly privateKeyPath: string;
  /** `https://api.github.com`, or an Enterprise server's `https://HOST/api/v3`. */
  readonly apiUrl: string;
}

export type Permissions = Readonly<Record<string, "read" | "write">>;

export interface TokenScope {
  /** `OWNER/NAME`: the one repository that the token opens. */
  readonly repository: string;
  readonly permissions: Permissions;
}

export interface AppFacts {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly owner: string;
}

export interface InstallationFacts {
  readonly id: number;
  readonly account: string;
  readonly repositories: "all" | "selected";
  readonly suspended: boolean;
  readonly permissions: Readonly<Record<string, string>>;
}

export interface AppReport {
  readonly app: AppFacts;
  readonly installation: InstallationFacts;
  /** How far this machine's clock is ahead of GitHub's, in whole seconds; null: GitHub did not say the time. */
  readonly clockAheadSeconds: number | null;
}

export interface GitHubClient {
  readonly key: KeyFacts;
  /** What the owner should know about the key, such as that others may read it. */
  readonly warnings: readonly string[];
  /** As of the last answer. */
  readonly clockAheadSeconds: number | null;
  readApp(signal?: AbortSignal): Promise<AppFacts>;
  readInstallation(signal?: AbortSignal): Promise<InstallationFacts>;
  /** The id of the App's installation that has a repository. */
  findInstallation(owner: string, name: string, signal?: AbortSignal): Promise<number>;
  /** Asks whether the App and its installation are what the configuration says. */
  check(signal?: AbortSignal): Promise<AppReport>;
  tokenSource(scope: TokenScope): TokenSource;
}
