import { dirname } from "node:path";
import type { LoadedConfig } from "../config/types.ts";
import { ConfigError, UsageError } from "../errors.ts";
import { type GitHubHosts, hostsOf } from "../github/hosts.ts";
import { openGitHubApp } from "../github/open.ts";
import { appOf, permissionsOf } from "../github/settings.ts";
import { thisHost } from "../machine/host.ts";
import { decisionFor } from "../plan/access.ts";
import { privatePlaces } from "../plan/decide.ts";
import type { Plan } from "../plan/plan.ts";
import type { ClonePlan, NetworkMode, NetworkPlan } from "../plan/request.ts";
import { askpassInside } from "../plan/wrappers.ts";
import { judgeConnection, type NetworkRule } from "../policy/network.ts";
import { readRule } from "../policy/network-rules.ts";
import { isWithin } from "../policy/paths.ts";
import {
  parseBranch,
  parseRepository,
  type RepositoryName,
  repositoryAt,
  repositoryText,
} from "../policy/repository.ts";
import { readOrigin } from "../survey/git.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { GitHubErrand, GitHubWish, NamedBranch } from "./github.ts";
import { chooseMode } from "./network.ts";
import { keysDirectory } from "./rules.ts";
import { resolved } from "./standpoint.ts";
import type { Workspace } from "./workspace.ts";

/** Reads what was named, before anything else is: whoever has misspelt it need not wait. */
export function readBranch({ repository, branch }: GitHubWish): NamedBranch | null {
  if (repository === undefined && branch === undefined) return null;
  if (branch === undefined) {
    throw new UsageError("USAGE", "--repo needs --branch: Podbot does not guess which one is meant.", {
      hint: `Name it: --repo ${repository} --branch main`,
    });
  }
  if (repository === undefined) {
    throw new UsageError("USAGE", "--branch needs --repo: it is the branch of a repository that is cloned.", {
      hint: `Name the repository: --repo OWNER/NAME --branch ${branch}`,
    });
  }
  return { repository: parseRepository(repository), branch: parseBranch(branch) };
}

export interface ErrandWish {
  /** What was named; null: what the workspace is a clone of. */
  readonly named: NamedBranch | null;
  readonly workspace: Workspace;
  /** Whether this process replaces the token in time. */
  readonly keeps: boolean;
  readonly home: string;
  /** The owner's proxy; null: none. */
  readonly upstream: Upstream | null;
}

/** What the configuration makes of a wish. Reads the App's key, and asks nobody. */
export async function planErrand(loaded: LoadedConfig, wish: ErrandWish): Promise<GitHubErrand> {
  const { named, workspace, keeps, home, upstream } = wish;
  const { github } = loaded.config;
  const { token } = github;
  const { mode, origin } = chooseMode(loaded);
  const app = appOf(github, home);
  const hosts = hostsOf(github.api_url);
  if (named !== null && mode === "none") throw unreachable(origin, hosts);
  if (token === "masked" && mode !== "allowlist" && mode !== "learn") throw unmasked(mode);
  const repository = named?.repository ?? originOfWorkspace(workspace, home, hosts);
  const scope = { repository: repositoryText(repository), permissions: permissionsOf(github.permissions) };
  const clone = named === null ? null : cloneOf(named, hosts);
  const { appId, installationId, privateKeyPath, apiUrl } = app;
  return {
    client: await openGitHubApp(app, { upstream }),
    scope,
    token,
    // What is masked is nowhere but here.
    keeps: keeps || token === "masked",
    origin: hosts.cloneUrl,
    binding: {
      name: "the token for GitHub",
      hosts: [...new Set([placeOf(hosts.cloneUrl).host, placeOf(apiUrl).host])],
      // What opens GitHub in a browser is sent as a cookie, and would be somebody else's.
      headers: ["authorization", "cookie"],
      paths: null,
    },
    clone,
    variables: gitVariables(hosts, clone, mode),
    rules: named === null ? [] : cloneRules(hosts, named.repository),
    mark: { appId, installationId, privateKeyPath, apiUrl, ...scope, token },
  };
}

/** What the owner should know of a token, and of the key that it is minted with. */
export function tokenWarnings(errand: GitHubErrand, plan: Plan, configDirectory: string): readonly string[] {
  return [...reachWarnings(errand, plan.network), ...keyWarnings(errand, plan, configDirectory)];
}

/** Where git has a token for a host that it cannot reach. For a clone there is a rule. */
function reachWarnings({ origin, clone }: GitHubErrand, { mode, policy }: NetworkPlan): readonly string[] {
  const { host } = new URL(origin);
  const isReached = mode === "open" || (policy !== null && judgeConnection(policy, placeOf(origin)).kind !== "deny");
  return clone !== null || isReached ? [] : [`Git inside has a token for ${host}, and no way there: --allow ${host}.`];
}

/** A file is hidden as it is: one that takes its place while a sandbox runs is seen, if its directory is. */
function keyWarnings({ mark }: GitHubErrand, plan: Plan, configDirectory: string): readonly string[] {
  const directory = resolved(dirname(mark.privateKeyPath));
  const { access } = decisionFor(plan, directory) ?? { access: plan.root === "host" ? "ro" : "exclude" };
  if (access === "exclude" || privatePlaces.some((place) => isWithin(directory, place))) return [];
  return [
    `The GitHub App's private key is hidden, but its directory is not: a key that is put in its place is seen by sandboxes that run. Keep it in ${keysDirectory(configDirectory)}.`,
  ];
}

/** No token is for more than one repository, so somebody must say which. */
function originOfWorkspace({ kind, path }: Workspace, home: string, { cloneHost }: GitHubHosts): RepositoryName {
  const { uid } = thisHost();
  const origin = kind === "mounted" ? readOrigin({ cwd: path, home, uid }) : null;
  const repository = origin === null ? null : repositoryAt(origin, cloneHost);
  if (repository !== null) return repository;
  const what = kind === "mounted" ? `${path} has no remote "origin" there that is yours` : "no directory is mounted";
  throw new UsageError("USAGE", `--github-token is for one repository on ${cloneHost}, and ${what}.`, {
    hint: `Work on a clone instead, with --repo OWNER/NAME --branch BRANCH; or name it: git remote add origin https://${cloneHost}/OWNER/NAME.git`,
  });
}

function cloneOf({ repository, branch }: NamedBranch, { cloneUrl }: GitHubHosts): ClonePlan {
  const text = repositoryText(repository);
  return { repository: text, branch, url: `${cloneUrl}/${text}.git` };
}

/**
 * A helper of the owner's would keep the first token for longer than it lives, and an address that he has rewritten, to
 * ssh as a rule, would lead to where there is no key: of several rewritings, git takes the longest. Behind the gateway,
 * a proxy that he has named for git is not in reach, and need not be.
 */
function gitVariables(
  { cloneUrl }: GitHubHosts,
  clone: ClonePlan | null,
  mode: NetworkMode,
): Readonly<Record<string, string>> {
  const place = clone?.url.replace(/\.git$/, "");
  const settings = [
    [`credential.${cloneUrl}.helper`, ""],
    ...(mode === "open" ? [] : [["http.proxy", ""]]),
    ...(place === undefined ? [] : ["insteadOf", "pushInsteadOf"].map((key) => [`url.${place}.${key}`, place])),
  ];
  return {
    GIT_ASKPASS: askpassInside,
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_COUNT: `${settings.length}`,
    ...Object.fromEntries(
      settings.flatMap(([key = "", value = ""], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}

/** The one repository, by git's protocol over HTTP and what belongs to it (LFS). A server of one's own may be anywhere. */
function cloneRules({ cloneUrl }: GitHubHosts, repository: RepositoryName): readonly NetworkRule[] {
  const text = repositoryText(repository);
  const { host, port } = placeOf(cloneUrl);
  const paths = [`/${text}.git/**`, `/${text}/**`];
  // That name is not asked for: of a connection there, only the address is known until something is said on it.
  const names = host === "localhost" ? [host, "127.0.0.1"] : [host];
  return names.map((name) =>
    readRule({ host: name, port, paths, local: name !== "github.com" }, `the clone of ${text}`),
  );
}

function placeOf(address: string): { readonly host: string; readonly port: number } {
  const { protocol, hostname, port } = new URL(address);
  const usual = protocol === "http:" ? 80 : 443;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? usual : Number(port) };
}

function unreachable(origin: string, { cloneHost }: GitHubHosts): UsageError {
  return new UsageError("USAGE", `There is no way to ${cloneHost}, where --repo is cloned from: the network is off.`, {
    hint: `Use --network allowlist, which lets the one repository be reached. It is off by ${origin}.`,
  });
}

/** Never in silence: whoever has it masked does not want it to be seen inside. */
function unmasked(mode: NetworkMode): ConfigError {
  return new ConfigError(
    "CONFIG_INVALID",
    `github.token = "masked" needs the gateway, and with network.mode = "${mode}" there is none.`,
    {
      hint: 'Use --network allowlist, or github.token = "file", which hands the token itself in.',
      details: { fields: ["github.token", "network.mode"] },
    },
  );
}
