import type { Upstream } from "../upstream/upstream.ts";
import type { GitHubApp, GitHubClient } from "./app.ts";
import { type Clock, systemClock } from "./clock.ts";
import { hostsOf } from "./hosts.ts";
import { readKey } from "./key.ts";

/** Reads the key; asks nobody. */
export async function openGitHubApp(
  app: GitHubApp,
  { clock = systemClock, upstream = null }: { readonly clock?: Clock; readonly upstream?: Upstream | null } = {},
): Promise<GitHubClient> {
  const { apiUrl } = hostsOf(app.apiUrl);
  const key = readKey(app.privateKeyPath);
  // What signs and asks is loaded by those who need it.
  const { AppClient } = await import("./client.ts");
  return new AppClient({ ...app, apiUrl }, key, clock, upstream);
}
