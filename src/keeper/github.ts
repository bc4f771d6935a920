import type { Config } from "../config/types.ts";
import type { GitHubClient, TokenScope } from "../github/app.ts";
import type { ClonePlan } from "../plan/request.ts";
import type { NetworkRule, SecretBinding } from "../policy/network.ts";
import type { RepositoryName } from "../policy/repository.ts";
import type { GitHubMark } from "../registry/record.ts";

/** What the caller wants of GitHub. */
export interface GitHubWish {
  /** `OWNER/NAME`: a clone of it is what the agent works on. Needs `branch`. */
  readonly repository?: string;
  readonly branch?: string;
  /**
   * Whether git inside gets a token though nothing is cloned. `daemon`: this process fetches the first one, and leaves
   * it to `podbot token-daemon` to replace it, with a clone too. Default: false.
   */
  readonly githubToken?: boolean | "daemon";
}

/** What is done for a session at GitHub. */
export interface GitHubErrand {
  /** With the App's key, which was read when this was planned. */
  readonly client: GitHubClient;
  readonly scope: TokenScope;
  readonly token: Config["github"]["token"];
  /** Whether this process replaces the token in time, or leaves that to others. */
  readonly keeps: boolean;
  /** `https://github.com`: what the token is for. */
  readonly origin: string;
  /** Where a masked token is put in. */
  readonly binding: SecretBinding;
  readonly clone: ClonePlan | null;
  /** What git inside is told. */
  readonly variables: Readonly<Record<string, string>>;
  /** What a clone needs of the network. */
  readonly rules: readonly NetworkRule[];
  /** What a session's record says, so that others can mint its token again. */
  readonly mark: GitHubMark;
}

/** What was named. */
export interface NamedBranch {
  readonly repository: RepositoryName;
  readonly branch: string;
}
