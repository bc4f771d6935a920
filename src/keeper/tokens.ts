import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FilesystemError, SessionError } from "../errors.ts";
import { askpassScript } from "../github/askpass.ts";
import { holdLease } from "../github/lease.ts";
import { keepFresh, type TokenEvent } from "../github/refresh.ts";
import { makeSecretsDirectory, writeToken } from "../github/token-file.ts";
import type { Plan } from "../plan/plan.ts";
import { cloneName, sessionDirectory } from "../registry/store.ts";
import type { Token } from "../token-source.ts";
import type { BoxBirth, SessionId } from "../wall/wall.ts";
import type { GitHubErrand } from "./github.ts";
import type { SecretPool } from "./secrets.ts";

export interface TokensOptions {
  readonly errand: GitHubErrand;
  readonly plan: Plan;
  /** Told of each token before anybody inside can know it, so that none is ever shown. */
  readonly secrets: SecretPool;
  readonly report: (event: TokenEvent) => void;
  /** Aborted while the first one is fetched, none is. */
  readonly signal?: AbortSignal | undefined;
}

/** Whose it is. */
export interface TokensPlace {
  readonly id: SessionId;
  /** Podbot's state directory. */
  readonly state: string;
  /** The session's runtime directory. */
  readonly directory: string;
}

/** A session's token, for as long as the session lives. */
export interface Tokens extends Disposable {
  readonly own: NonNullable<BoxBirth["own"]>;
  /** Settles when nothing is written any more, after it was disposed of. */
  readonly done: Promise<void>;
}

/** Fetches a token and has it replaced in time. Fails with GitHub's words where there is none to be had. */
export async function keepTokens(
  { errand, plan, secrets, report, signal }: TokensOptions,
  { id, state, directory }: TokensPlace,
): Promise<Tokens> {
  const place = join(directory, "secrets");
  const kept = sessionDirectory(state, id);
  const clone = placeClone(plan, kept);
  await makeSecretsDirectory(place);
  const askpass = layAskpass(kept, errand);
  const lease = holdLease(directory);
  if (lease === null) throw heldByAnother(directory);
  const ending = new AbortController();
  const callOff = () => ending.abort();
  signal?.addEventListener("abort", callOff, { once: true });
  const write = errand.token === "masked" ? maskedWriter(errand, secrets, place) : plainWriter(secrets, place);
  const fresh = keepFresh(errand.client.tokenSource(errand.scope), write, { signal: ending.signal, report });
  const done = fresh.done.finally(() => lease.release());
  try {
    signal?.throwIfAborted();
    await fresh.first;
    signal?.throwIfAborted();
    // Others take it from here.
    if (!errand.keeps) {
      ending.abort();
      await done;
    }
  } catch (error) {
    ending.abort();
    await done;
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", callOff);
  }
  return { own: { ...clone, secrets: place, askpass }, done, [Symbol.dispose]: callOff };
}

function plainWriter(secrets: SecretPool, place: string): (token: Token) => Promise<void> {
  return async (token) => {
    secrets.register(token.value);
    await writeToken(place, token);
  };
}

/** What is inside opens nothing, and stays as it is: only what the gateway puts in for it changes. */
function maskedWriter({ binding }: GitHubErrand, secrets: SecretPool, place: string): (token: Token) => Promise<void> {
  let seen: string | null = null;
  return async ({ value }) => {
    const surrogate = secrets.renew(value, binding);
    if (surrogate === seen) return;
    await writeToken(place, { value: surrogate });
    seen = surrogate;
  };
}

/** Where a clone lies behind bubblewrap: beside the session's record, which every other session is kept from. */
function placeClone({ workspace, container }: Plan, kept: string): NonNullable<BoxBirth["own"]> {
  if (workspace !== "clone" || container !== null) return {};
  const clone = join(kept, cloneName);
  try {
    mkdirSync(clone, { mode: 0o700 });
  } catch (cause) {
    throw new FilesystemError("FILESYSTEM", `The directory for the clone, ${clone}, cannot be made.`, {
      hint: "Its parent must be writable, with space left: set XDG_STATE_HOME to one that is.",
      cause,
    });
  }
  return { clone };
}

/** Beside the session's record: where runtime directories lie, programs often may not be executed. */
function layAskpass(kept: string, { origin }: GitHubErrand): string {
  const path = join(kept, "git-askpass");
  try {
    writeFileSync(path, askpassScript([origin]), { flag: "wx" });
    chmodSync(path, 0o555);
    return path;
  } catch (cause) {
    throw new FilesystemError("FILESYSTEM", `The program that answers git, ${path}, cannot be written.`, {
      hint: "Its directory must be writable, with space left: set XDG_STATE_HOME to one that is.",
      cause,
    });
  }
}

function heldByAnother(directory: string): SessionError {
  return new SessionError("SESSION_UNREACHABLE", `Somebody else writes the token of the session in ${directory}.`, {
    hint: "Only one may: stop the `podbot token-daemon` that has taken it, and start the session anew.",
  });
}
