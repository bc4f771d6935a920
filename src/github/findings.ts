import { GitHubError } from "../errors.ts";
import type { Finding } from "../machine/diagnosis.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { GitHubApp, GitHubClient, InstallationFacts, Permissions } from "./app.ts";
import { inWords, sameClockMs } from "./failure.ts";
import { openGitHubApp } from "./open.ts";

export interface Wanted {
  readonly app: GitHubApp;
  readonly permissions: Permissions;
  readonly repository: { readonly owner: string; readonly name: string } | null;
  /** The owner's proxy; null: none. */
  readonly upstream: Upstream | null;
}

export interface AppFindings {
  readonly findings: readonly Finding[];
  /** What stood in the way of finding out more. */
  readonly failure: GitHubError | null;
}

/** Looks at all that a token takes, in the order in which one needs the other, as far as that goes. */
export async function examine(wanted: Wanted, signal?: AbortSignal): Promise<AppFindings> {
  const findings: Finding[] = [];
  let client: GitHubClient | null = null;
  let at = "key";
  try {
    client = await openGitHubApp(wanted.app, wanted);
    findings.push(aboutKey(client), ...aboutProxy(wanted.upstream));
    at = "app";
    const { name, slug, id, owner } = await client.readApp(signal);
    findings.push(finding("app", "ok", `${name} (${slug}, ${id}) of ${owner}`));
    at = "installation";
    const installation = await client.readInstallation(signal);
    findings.push(aboutInstallation(installation), aboutPermissions(installation, wanted.permissions));
    at = "repository";
    if (wanted.repository !== null) findings.push(await aboutRepository(client, wanted, wanted.repository, signal));
    return { findings: [...findings, ...aboutClock(client)], failure: null };
  } catch (error) {
    if (!(error instanceof GitHubError)) throw error;
    findings.push(finding(at, "missing", error.message.replace(/\.$/, ""), error.hint ?? null));
    return { findings: [...findings, ...(client === null ? [] : aboutClock(client))], failure: error };
  }
}

function aboutKey({ key: { file, bits, fingerprint }, warnings }: GitHubClient): Finding {
  const found = `${file}, RSA, ${bits} bits, ${fingerprint}`;
  return finding("key", warnings.length === 0 ? "ok" : "weak", found, warnings[0] ?? null);
}

/** Whether it leads anywhere, what is asked next will show. */
function aboutProxy(upstream: Upstream | null): readonly Finding[] {
  return upstream === null ? [] : [finding("proxy", "ok", `${upstream.shown} (${upstream.origin})`)];
}

function aboutInstallation({ id, account, repositories, suspended }: InstallationFacts): Finding {
  const found = `${id} on ${account}, ${repositories === "all" ? "all" : "selected"} repositories`;
  if (!suspended) return finding("installation", "ok", found);
  return finding(
    "installation",
    "missing",
    `${found}, suspended`,
    "Lift the suspension in the installation's settings.",
  );
}

function aboutPermissions({ permissions: granted }: InstallationFacts, asked: Permissions): Finding {
  const levels = ["read", "write", "admin"];
  const lacking = Object.entries(asked).filter(
    ([name, level]) => levels.indexOf(granted[name] ?? "") < levels.indexOf(level),
  );
  const words = (entries: readonly (readonly [string, string])[]) =>
    entries.map(([name, level]) => `${name}: ${level}`).join(", ");
  if (lacking.length === 0) return finding("permissions", "ok", words(Object.entries(asked)));
  return finding(
    "permissions",
    "missing",
    `the installation lacks ${words(lacking)}`,
    "Give them to the App and accept them for the installation, or ask for less in github.permissions.",
  );
}

async function aboutRepository(
  client: GitHubClient,
  { app }: Wanted,
  { owner, name }: NonNullable<Wanted["repository"]>,
  signal: AbortSignal | undefined,
): Promise<Finding> {
  const id = await client.findInstallation(owner, name, signal);
  if (id === app.installationId) return finding("repository", "ok", `${owner}/${name} belongs to the installation`);
  return finding(
    "repository",
    "missing",
    `${owner}/${name} belongs to installation ${id}, not to ${app.installationId}`,
    `Set github.installation_id to ${id}.`,
  );
}

/** Nothing, as long as GitHub has not said the time. */
function aboutClock({ clockAheadSeconds: ahead }: GitHubClient): readonly Finding[] {
  if (ahead === null) return [];
  if (Math.abs(ahead) * 1_000 < sameClockMs) return [finding("clock", "ok", "agrees with GitHub's")];
  const words = `${inWords(Math.abs(ahead) * 1_000)} ${ahead > 0 ? "ahead of" : "behind"} GitHub's`;
  const remedy = "Podbot makes up for it. `timedatectl set-ntp true` sets it right for the others, too.";
  return [finding("clock", "weak", words, remedy)];
}

function finding(name: string, state: Finding["state"], found: string, remedy: string | null = null): Finding {
  return { name, state, found, remedy };
}
