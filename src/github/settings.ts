import { isAbsolute, join } from "node:path";
import { GitHubError } from "../errors.ts";
import type { GitHubApp, Permissions } from "./app.ts";
import { hostsOf } from "./hosts.ts";

/** What the configuration says under `github`. */
export interface GitHubSettings {
  readonly app_id?: number;
  readonly installation_id?: number;
  readonly private_key_path?: string;
  readonly api_url: string;
}

/** The App that the configuration names. What is missing is told at once, all of it. */
export function appOf(settings: GitHubSettings, home: string): GitHubApp {
  const { app_id: appId, installation_id: installationId, private_key_path: path } = settings;
  if (appId === undefined || installationId === undefined || path === undefined) throw missing(settings);
  const privateKeyPath = path.startsWith("~/") ? join(home, path.slice(2)) : path;
  if (!isAbsolute(privateKeyPath)) {
    throw new GitHubError("GITHUB_CONFIG", "github.private_key_path is not an absolute path.", {
      hint: "Begin it with / or ~/.",
      details: { keys: ["github.private_key_path"] },
    });
  }
  return { appId, installationId, privateKeyPath, apiUrl: hostsOf(settings.api_url).apiUrl };
}

/** What a token is asked for: without what was taken away again. GitHub takes nothing at all to mean everything. */
export function permissionsOf(levels: Readonly<Record<string, "none" | "read" | "write">>): Permissions {
  const asked = Object.entries(levels).flatMap(([name, level]) => (level === "none" ? [] : [[name, level] as const]));
  if (asked.length > 0) return Object.fromEntries(asked);
  throw new GitHubError("GITHUB_CONFIG", "github.permissions takes every permission away, so no token can be had.", {
    hint: 'Leave one: metadata = "read" is the least.',
    details: { keys: ["github.permissions"] },
  });
}

function missing(settings: GitHubSettings): GitHubError {
  const names = ["app_id", "installation_id", "private_key_path"] as const;
  const keys = names.filter((name) => settings[name] === undefined).map((name) => `github.${name}`);
  return new GitHubError("GITHUB_CONFIG", `The configuration lacks ${keys.join(", ")}.`, {
    hint: "docs/github.md says how to make a GitHub App, and where to find these.",
    details: { keys },
  });
}
