import { GitHubError } from "../errors.ts";
import type { Token } from "../token-source.ts";
import type { AppFacts, InstallationFacts, Permissions, TokenScope } from "./app.ts";

/** What GitHub sent is somebody else's: every field that is used is looked at first. */
type Fields = Readonly<Record<string, unknown>>;

export function parseApp(data: unknown): AppFacts {
  const app = fieldsOf(data, "the App");
  return {
    id: numberIn(app, "id", "the App"),
    slug: textIn(app, "slug", "the App"),
    name: textIn(app, "name", "the App"),
    owner: ownerOf(app["owner"]),
  };
}

export function parseInstallation(data: unknown): InstallationFacts {
  const installation = fieldsOf(data, "the installation");
  const permissions = fieldsOf(installation["permissions"], "the installation's permissions");
  const suspended = installation["suspended_at"];
  return {
    id: numberIn(installation, "id", "the installation"),
    account: ownerOf(installation["account"]),
    repositories: installation["repository_selection"] === "all" ? "all" : "selected",
    suspended: suspended !== null && suspended !== undefined,
    permissions: Object.fromEntries(Object.entries(permissions).map(([name, level]) => [name, String(level)])),
  };
}

export function parseInstallationId(data: unknown): number {
  return numberIn(fieldsOf(data, "the installation"), "id", "the installation");
}

/** GitHub's tokens live for an hour. One that never ended would never be replaced, either. */
const longestLifeMs = 24 * 3_600_000;

/**
 * `clockAheadMs` is what this machine's clock is ahead of GitHub's, as far as that matters: the end of a token is told
 * by GitHub's clock, and kept by ours.
 */
export function parseToken(data: unknown, scope: TokenScope, clockAheadMs: number, now: number): Token {
  const answer = fieldsOf(data, "a token");
  const value = textIn(answer, "token", "a token");
  // It becomes a line of a file and part of a header.
  if (!/^[\x21-\x7e]{1,4096}$/.test(value)) throw nonsense("a token");
  const ends = Date.parse(textIn(answer, "expires_at", "a token"));
  const expiresAt = new Date(ends + clockAheadMs);
  // What is no time at all is not within it, either.
  if (!(expiresAt.getTime() <= now + longestLifeMs)) throw nonsense("a token");
  if (!isFor(scope.repository, answer["repositories"])) {
    throw new GitHubError("GITHUB_UNEXPECTED", `GitHub gave a token for something else than ${scope.repository}.`, {
      hint: "Podbot does not use it. GitHub looks for the name alone, among what the App is installed on: does the installation of github.installation_id have this very repository, and was it not renamed?",
    });
  }
  if (!isWithinAsked(scope.permissions, answer["permissions"])) {
    throw new GitHubError("GITHUB_UNEXPECTED", "GitHub gave a token that may do more than was asked for.", {
      hint: "Podbot does not use it. Is github.api_url the address of GitHub's API?",
    });
  }
  if (expiresAt.getTime() <= now) {
    throw new GitHubError("GITHUB_TOKEN_EXPIRED", `GitHub gave a token that ended at ${expiresAt.toISOString()}.`, {
      hint: "Is this machine's clock right? `podbot github check` compares it with GitHub's.",
      details: { expiresAt: expiresAt.toISOString() },
    });
  }
  return { value, expiresAt };
}

/**
 * GitHub is asked by the name alone, and so would give what another owner has of that name. Names differ in case alone
 * only on paper.
 */
function isFor(repository: string, listed: unknown): boolean {
  if (!Array.isArray(listed) || listed.length !== 1) return false;
  const [only] = listed as readonly unknown[];
  return isFields(only) && String(only["full_name"]).toLowerCase() === repository.toLowerCase();
}

/** To read what everybody may know of a repository is part of every token. */
function isWithinAsked(asked: Permissions, given: unknown): boolean {
  if (!isFields(given)) return false;
  return Object.entries({ ...given }).every(
    ([name, level]) => level === asked[name] || (level === "read" && (name === "metadata" || asked[name] === "write")),
  );
}

function ownerOf(value: unknown): string {
  if (!isFields(value)) return "?";
  const { login, slug } = value;
  return typeof login === "string" ? login : typeof slug === "string" ? slug : "?";
}

function fieldsOf(value: unknown, what: string): Fields {
  if (!isFields(value)) throw nonsense(what);
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function textIn(fields: Fields, name: string, what: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw nonsense(what);
  return value;
}

function numberIn(fields: Fields, name: string, what: string): number {
  const value = fields[name];
  if (typeof value !== "number") throw nonsense(what);
  return value;
}

function nonsense(what: string): GitHubError {
  return new GitHubError("GITHUB_UNEXPECTED", `What GitHub sent for ${what} makes no sense.`, {
    hint: "Is github.api_url the address of GitHub's API, with nothing between it and this machine?",
  });
}
