import { request } from "@octokit/request";
import sign from "universal-github-app-jwt";
import { GitHubError } from "../errors.ts";
import type { Token, TokenSource } from "../token-source.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { parseApp, parseInstallation, parseInstallationId, parseToken } from "./answer.ts";
import type { AppFacts, AppReport, GitHubApp, GitHubClient, InstallationFacts, TokenScope } from "./app.ts";
import type { Clock } from "./clock.ts";
import { clockAheadMs, type Question, Redirect, refusalOf, sameClockMs, unreachable } from "./failure.ts";
import type { KeyFacts, LoadedKey } from "./key.ts";

/** How often GitHub is asked again where it says "later". */
const mostRetries = 3;
/** Longer than this nobody waits for one answer; whoever keeps a token fresh comes back by himself. */
const longestWaitMs = 60_000;
const answerWithinMs = 30_000;
/** No answer that an App needs comes near this. */
const largestAnswer = 1 << 20;
const farthestClockMs = 24 * 3_600_000;

interface Answer {
  readonly data: unknown;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Speaks for an App, by signatures that live for minutes. Keeps nothing but the key and how far the clocks differ. */
export class AppClient implements GitHubClient {
  readonly key: KeyFacts;
  readonly warnings: readonly string[];
  readonly #app: GitHubApp;
  readonly #pem: string;
  readonly #clock: Clock;
  readonly #fetch: typeof fetchBounded;
  readonly #request: typeof request;
  #aheadMs: number | null = null;

  constructor(
    app: GitHubApp,
    { pem, file, bits, fingerprint, warnings }: LoadedKey,
    clock: Clock,
    upstream: Upstream | null,
  ) {
    this.key = { file, bits, fingerprint };
    this.warnings = warnings;
    this.#app = app;
    this.#pem = pem;
    this.#clock = clock;
    this.#fetch = (address, options) => fetchBounded(address, options, upstream);
    this.#request = request.defaults({
      baseUrl: app.apiUrl,
      headers: { "user-agent": "podbot", "x-github-api-version": "2022-11-28" },
    });
  }

  get clockAheadSeconds(): number | null {
    return this.#aheadMs === null ? null : Math.round(this.#aheadMs / 1_000);
  }

  async readApp(signal?: AbortSignal): Promise<AppFacts> {
    const question = { doing: "does not know the App", missing: "Is github.app_id the App's own id?" };
    return parseApp((await this.#ask("GET /app", {}, question, signal)).data);
  }

  async readInstallation(signal?: AbortSignal): Promise<InstallationFacts> {
    const { installationId: installation_id } = this.#app;
    const route = "GET /app/installations/{installation_id}";
    return parseInstallation((await this.#ask(route, { installation_id }, aboutInstallation, signal)).data);
  }

  async findInstallation(owner: string, repo: string, signal?: AbortSignal): Promise<number> {
    const question = {
      doing: `does not show ${owner}/${repo} to the App`,
      missing: "Is its name right? If it is, install the App on it.",
    };
    const route = "GET /repos/{owner}/{repo}/installation";
    return parseInstallationId((await this.#ask(route, { owner, repo }, question, signal)).data);
  }

  async check(signal?: AbortSignal): Promise<AppReport> {
    const app = await this.readApp(signal);
    const installation = await this.readInstallation(signal);
    return { app, installation, clockAheadSeconds: this.clockAheadSeconds };
  }

  tokenSource(scope: TokenScope): TokenSource {
    return { acquire: (signal) => this.#acquire(scope, signal) };
  }

  async #acquire(scope: TokenScope, signal: AbortSignal | undefined): Promise<Token> {
    const { data } = await this.#ask(
      "POST /app/installations/{installation_id}/access_tokens",
      {
        installation_id: this.#app.installationId,
        permissions: scope.permissions,
        repositories: [scope.repository.replace(/^.*\//, "")],
      },
      aboutInstallation,
      signal,
    );
    return parseToken(data, scope, this.#correctionMs(), this.#clock.now());
  }

  /** Asks until there is an answer that does not say "later", a few times at most. */
  async #ask(route: string, parameters: object, question: Question, signal: AbortSignal | undefined): Promise<Answer> {
    const over = signal ?? new AbortController().signal;
    let isCorrected = false;
    for (let retries = 0; ; ) {
      const correctionMs = this.#correctionMs();
      const answer = await this.#askOnce(route, parameters, question, over);
      if (!(answer instanceof GitHubError)) return answer;
      over.throwIfAborted();
      // By GitHub's clock instead of ours, once: it says the time even where it refuses.
      const differs = Math.abs(this.#correctionMs() - correctionMs) >= sameClockMs;
      if (answer.code === "GITHUB_AUTHENTICATION" && differs && !isCorrected) {
        isCorrected = true;
        continue;
      }
      const waitMs = waitBefore(answer, retries);
      if (waitMs === null || retries === mostRetries) throw answer;
      retries += 1;
      await this.#clock.sleep(waitMs, over);
    }
  }

  async #askOnce(
    route: string,
    parameters: object,
    question: Question,
    over: AbortSignal,
  ): Promise<Answer | GitHubError> {
    const now = Math.floor((this.#clock.now() - this.#correctionMs()) / 1_000);
    const { token } = await sign({ id: this.#app.appId, privateKey: this.#pem, now });
    const signal = AbortSignal.any([over, AbortSignal.timeout(answerWithinMs)]);
    try {
      const { data, headers } = await this.#request(route, {
        ...parameters,
        headers: { authorization: `Bearer ${token}` },
        // An App's signature is for this host alone: `fetchBounded` follows no redirect.
        request: { signal, redirect: "manual", log: silent, fetch: this.#fetch },
      });
      return this.#noted({ data, headers: headers as Answer["headers"] });
    } catch (error) {
      over.throwIfAborted();
      const { response, message } = error as Refused;
      if (response === undefined) return unreachable(new URL(this.#app.apiUrl).host, error);
      this.#noted(response);
      const refusal = { status: response.status, headers: response.headers, message: wordsOf(response.data, message) };
      return refusalOf(refusal, question, this.#clock.now());
    }
  }

  #noted<T extends Pick<Answer, "headers">>(answer: T): T {
    this.#aheadMs = clockAheadMs(answer.headers, this.#clock.now()) ?? this.#aheadMs;
    return answer;
  }

  /**
   * Dates are cut to the second and answers take a while, so small differences are none. Nobody has us sign for another
   * day: whose clock is that far off is told so.
   */
  #correctionMs(): number {
    const ahead = this.#aheadMs ?? 0;
    return Math.abs(ahead) < sameClockMs || Math.abs(ahead) > farthestClockMs ? 0 : ahead;
  }
}

const aboutInstallation: Question = {
  doing: "knows no such installation of the App",
  missing:
    "Is github.installation_id right, and is it an installation of this App? It stands in the address of its settings.",
};

interface Refused {
  readonly message: string;
  readonly response?: Answer & { readonly status: number };
}

/** The library would print to the console. */
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Follows no redirect, and stops reading an answer that is too long, which is then empty to the library. */
async function fetchBounded(
  address: string,
  options: RequestInit,
  upstream: Upstream | null = null,
): Promise<Response> {
  const response =
    upstream === null
      ? await fetch(address, options)
      : await (await import("../upstream/fetch.ts")).fetchThrough(upstream, address, options);
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    throw new Redirect(response.status, response.headers.get("location"));
  }
  let left = largestAnswer;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      left -= chunk.byteLength;
      if (left < 0) controller.error(new Error("The answer is too long."));
      else controller.enqueue(chunk);
    },
  });
  return response.body === null ? response : new Response(response.body.pipeThrough(bounded), response);
}

/** GitHub's message, without what the library adds. */
function wordsOf(data: unknown, message: string): string {
  if (typeof data === "object" && data !== null && "message" in data) return String(data.message);
  // A page in HTML, of a proxy on the way, tells nobody anything.
  return typeof data === "string" && /^\s*</.test(data) ? "" : message;
}

/** How long to wait before asking again; null where that would change nothing, or take too long. */
function waitBefore({ code, details }: GitHubError, retries: number): number | null {
  if (code === "GITHUB_RATE_LIMITED") {
    const asked = details["retryAfterMs"] as number;
    const waitMs = Math.max(asked, 1_000 * 2 ** retries);
    return waitMs <= longestWaitMs ? waitMs : null;
  }
  // Where nobody answered at all, whoever asks knows best whether to ask again.
  return code === "GITHUB_UNAVAILABLE" && "status" in details ? 1_000 * 2 ** retries : null;
}
