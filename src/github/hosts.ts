import { GitHubError } from "../errors.ts";

/** What follows from an API's address. */
export interface GitHubHosts {
  /** The API's own address, without a slash at its end. */
  readonly apiUrl: string;
  /** `https://github.com`, `https://ghe.example`, `http://127.0.0.1:8080`: put `/OWNER/NAME.git` after it. */
  readonly cloneUrl: string;
  /** As git names it in a prompt: `github.com`, or with a port that is not the scheme's own. */
  readonly cloneHost: string;
  readonly apiHost: string;
}

/**
 * Where an API's repositories are cloned from. GitHub itself has its API on a host of its own, `api.` before the name;
 * an Enterprise server has it below `/api/v3`.
 */
export function hostsOf(apiUrl: string): GitHubHosts {
  const url = parse(apiUrl);
  if (url === null) throw wrong("is not an address");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url.hostname))) {
    throw wrong("is not https", "Write https://. Plain http is for servers on this machine's loopback alone.");
  }
  // Whoever is named in an address is named in messages, too.
  if (url.username !== "" || url.password !== "") throw wrong("holds a name or a password");
  if (url.search !== "" || url.hash !== "") throw wrong("has something behind its path");
  const path = url.pathname.replace(/\/+$/, "");
  const cloneHost = path === "/api/v3" ? url.host : path === "" ? hostBehind(url.host) : null;
  if (cloneHost === null) throw wrong("is not the address of an API");
  return {
    apiUrl: `${url.protocol}//${url.host}${path}`,
    cloneUrl: `${url.protocol}//${cloneHost}`,
    cloneHost,
    apiHost: url.host,
  };
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

function hostBehind(host: string): string | null {
  return host.startsWith("api.") ? host.slice("api.".length) : null;
}

/** Only by number, or by the one name that leads nowhere else. */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function wrong(
  what: string,
  hint = "Write https://api.github.com, or https://HOST/api/v3 for an Enterprise server.",
): GitHubError {
  return new GitHubError("GITHUB_CONFIG", `github.api_url ${what}.`, { hint, details: { keys: ["github.api_url"] } });
}
