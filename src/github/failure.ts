import { type ErrorCode, GitHubError } from "../errors.ts";
import { ProxyFailure } from "../upstream/failure.ts";

/** What GitHub answered, where it was not what was asked for. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** GitHub's own words. */
  readonly message: string;
}

/** What was asked for, in words that go on "GitHub …": `cannot describe the App`. Each hint is for the owner. */
export interface Question {
  readonly doing: string;
  /** Where nothing is found. */
  readonly missing: string;
}

/** Clocks that differ by less than this are taken to be the same. */
export const sameClockMs = 30_000;

/** How far this machine's clock is ahead of whoever answered; null where they do not say. */
export function clockAheadMs(headers: Refusal["headers"], now: number): number | null {
  const theirs = Date.parse(headers["date"] ?? "");
  if (Number.isNaN(theirs)) return null;
  // A date is cut to the second: on the average, half of one is missing.
  return now - (theirs + 500);
}

export function refusalOf(refusal: Refusal, question: Question, now: number): GitHubError {
  const { status, headers, message } = refusal;
  const said = quote(message);
  const tell = (code: ErrorCode, what: string, hint: string, more: Readonly<Record<string, unknown>> = {}) =>
    new GitHubError(code, `${what} (HTTP ${status}${said === "" ? "" : `, ${said}`}).`, {
      hint,
      details: { status, ...more },
    });
  if (isRateLimit(refusal)) {
    const retryAfterMs = retryAfter(headers, now);
    return tell(
      "GITHUB_RATE_LIMITED",
      "GitHub wants fewer requests",
      `Try again in ${inWords(retryAfterMs)}. Whoever else uses this App has a part in it.`,
      { retryAfterMs },
    );
  }
  if (status >= 500) {
    return tell("GITHUB_UNAVAILABLE", "GitHub is out of order", "Try again later. GitHub's status page may know more.");
  }
  if (status === 401) {
    const ahead = clockAheadMs(headers, now);
    if (ahead !== null && Math.abs(ahead) >= sameClockMs) {
      const words = `${inWords(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} GitHub's`;
      return tell(
        "GITHUB_AUTHENTICATION",
        `GitHub does not accept the App's signature, and this machine's clock is ${words}`,
        "Set the clock right; `timedatectl set-ntp true` keeps it so.",
        { clockAheadSeconds: Math.round(ahead / 1_000) },
      );
    }
    return tell(
      "GITHUB_AUTHENTICATION",
      "GitHub does not accept the App's signature",
      "Is github.app_id the App's own id, and github.private_key_path a key of this App that still stands in its settings?",
    );
  }
  if (status === 404) return tell("GITHUB_NOT_FOUND", `GitHub ${question.doing}`, question.missing);
  if (status === 422 && /repositor/i.test(message)) {
    return tell(
      "GITHUB_NOT_FOUND",
      "The App's installation does not have the repository",
      "Is its name right? If it is, add it to the installation on GitHub.",
    );
  }
  if (status === 403 && /suspend/i.test(message)) {
    return tell(
      "GITHUB_FORBIDDEN",
      "The App's installation is suspended",
      "Lift the suspension in the installation's settings on GitHub.",
    );
  }
  if (status === 403 || (status === 422 && /permission/i.test(message))) {
    return tell(
      "GITHUB_FORBIDDEN",
      "GitHub does not grant what was asked for",
      "Give the App the permissions of github.permissions, and have the new ones accepted for its installation; `podbot github check` compares them.",
    );
  }
  return tell(
    "GITHUB_UNEXPECTED",
    `GitHub ${question.doing}`,
    "Is github.api_url the address of GitHub's API, with nothing between it and this machine?",
  );
}

/** GitHub has two kinds of limits, and says either with 403 or 429. */
function isRateLimit({ status, headers, message }: Refusal): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return (
    headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0" || /rate limit/i.test(message)
  );
}

/** How long GitHub wants us to wait: a second at least, since it is asked again too soon otherwise. */
function retryAfter(headers: Refusal["headers"], now: number): number {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  const reset = Number(headers["x-ratelimit-reset"] ?? Number.NaN) * 1_000;
  // The time of the reset is by GitHub's clock.
  const theirs = now - (clockAheadMs(headers, now) ?? 0);
  const wait = Number.isFinite(seconds) ? seconds * 1_000 : Number.isFinite(reset) ? reset - theirs : 0;
  return Math.max(1_000, Math.round(wait));
}

/** GitHub's API, or whatever stands in its place, sends the client to another address. */
export class Redirect extends Error {
  readonly status: number;
  readonly location: string | null;

  constructor(status: number, location: string | null) {
    super(`redirected (${status})`);
    this.status = status;
    this.location = location;
  }
}

function redirected(host: string, { status, location }: Redirect): GitHubError {
  const to = location === null ? "elsewhere" : `to ${quote(location)}`;
  return new GitHubError(
    "GITHUB_UNEXPECTED",
    `${host} sends Podbot ${to} (HTTP ${status}), and Podbot does not follow.`,
    {
      hint: "An App's signature is for GitHub's API alone. Is github.api_url its exact address, with nothing between it and this machine?",
      details: { host, status, location },
    },
  );
}

/** What keeps GitHub from being reached, from the outermost failure to the one that says something. */
export function unreachable(host: string, failure: unknown): GitHubError {
  const chain = chainOf(failure);
  const redirect = chain.find((each) => each instanceof Redirect);
  if (redirect !== undefined) return redirected(host, redirect);
  const proxy = chain.find((each) => each instanceof ProxyFailure);
  if (proxy !== undefined) {
    return new GitHubError("GITHUB_UNAVAILABLE", `${host} cannot be reached: ${proxy.what}.`, {
      hint: `Is the proxy right? ${proxy.wayOut}.`,
      details: { host, reason: "proxy" },
    });
  }
  const code = codeOf(failure);
  const [what, hint] = obstacles[code] ?? [
    /CERT|SIGNATURE|ISSUER/.test(code)
      ? `has a certificate that is not trusted here (${code})`
      : `cannot be reached (${code})`,
    /CERT|SIGNATURE|ISSUER/.test(code)
      ? "If that is an authority of your own, name its file in NODE_EXTRA_CA_CERTS."
      : "Is the network up, and may this machine reach it?",
  ];
  return new GitHubError("GITHUB_UNAVAILABLE", `${host} ${what}.`, { hint, details: { host, reason: code } });
}

const obstacles: Readonly<Record<string, readonly [string, string]>> = {
  ENOTFOUND: ["is a name that nobody knows (ENOTFOUND)", "Check github.api_url, and whether the network is up."],
  EAI_AGAIN: ["cannot be looked up (EAI_AGAIN)", "Is the network up?"],
  TimeoutError: ["does not answer", "Try again later."],
};

/** Failures of `fetch` wrap each other, and several addresses of a host fail as one. */
function codeOf(failure: unknown): string {
  let code = "no reason given";
  for (const at of chainOf(failure)) {
    if (at.name === "TimeoutError") return at.name;
    if ("code" in at && typeof at.code === "string") code = at.code;
  }
  return code;
}

function chainOf(failure: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let at = failure; at instanceof Error && chain.length < 8; ) {
    chain.push(at);
    at = at instanceof AggregateError && at.errors.length > 0 ? at.errors[0] : at.cause;
  }
  return chain;
}

const longest = 200;

/** Somebody else's words: on one line, without what acts on terminals, and not too many. */
function quote(message: string): string {
  const line = message.replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  return line === "" ? "" : JSON.stringify(line.length > longest ? `${line.slice(0, longest)}…` : line);
}

/** `90 s`, `5 min`, `2 h`: rounded up, so that whoever waits does so long enough. */
export function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds <= 120) return `${seconds} s`;
  return seconds <= 7_200 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3_600)} h`;
}
