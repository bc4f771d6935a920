import { matchesHost, matchesPath } from "../policy/hosts.ts";
import { asVariable } from "../policy/network-disguise.ts";
import { carriesKey, foreignParameter, isInfrastructure } from "./foreign-keys.ts";
import type { Swap } from "./scrub.ts";
import { shapeInBase64, shapeOf } from "./surrogate.ts";

/** A secret of which the box knows a surrogate alone. Where it has no value, both are empty, and only the binding holds. */
export interface MaskedSecret {
  readonly name: string;
  readonly real: string;
  /** As long as the real one. */
  readonly surrogate: string;
  /** Others that the box may still have, of any length: they are put in for, and never given back. */
  readonly earlier?: readonly string[];
  readonly hosts: readonly string[];
  /** In lower case. */
  readonly headers: readonly string[];
  /** Null: any. */
  readonly paths: readonly string[] | null;
}

/** As they came: in order, in any case, duplicates and all. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

export interface MaskableRequest {
  readonly host: string;
  readonly port: number;
  /** Without the query. */
  readonly path: string;
  /** Whether the gateway will speak TLS with the host. */
  readonly secure: boolean;
}

export interface MaskedHeaders {
  readonly headers: HeaderList;
  /** How many surrogates were replaced. */
  readonly masked: number;
  /** How many credentials that are not ours, or are there twice, were taken out. */
  readonly stripped: number;
  /** What a server may give back of what it was sent, in another spelling than the secret's own. */
  readonly echoes: readonly Swap[];
}

/**
 * Puts secrets in where they belong: over TLS, on the hosts and paths that they are bound to, in the headers named, and
 * there only where a credential stands: as the whole value, behind the name of a scheme, as user or password of Basic,
 * as the value of a cookie. Everywhere else a surrogate stays what it is.
 *
 * On a bound host the headers named carry nothing else: by a credential of its own, a box could hand what it knows to
 * another user's account there. That goes for what some servers take for the same header, too, and for all other
 * headers in which keys travel: of those, only a surrogate is left, as it is.
 */
export function maskRequest(
  secrets: readonly MaskedSecret[],
  request: MaskableRequest,
  headers: HeaderList,
): MaskedHeaders {
  const bound = secrets.filter(({ hosts }) => hosts.some((pattern) => matchesHost(pattern, request.host)));
  const kept: (readonly [string, string])[] = [];
  const seen = new Set<string>();
  const echoes: Swap[] = [];
  let masked = 0;
  let stripped = 0;
  for (const header of headers) {
    const name = header[0].toLowerCase();
    // Meant for whoever stands between: that is the gateway itself.
    if (name === "proxy-authorization") continue;
    const mine = bound.filter((secret) => secret.headers.includes(name));
    if (mine.length === 0) {
      const left = bound.length === 0 ? { value: header[1], stripped: 0 } : withoutForeign(bound, name, header[1]);
      stripped += left.stripped;
      if (left.value !== null) kept.push([header[0], left.value]);
      continue;
    }
    const filled = seen.has(name) ? null : fill(name, header[1], swapsFor(mine, request));
    if (filled === null) {
      stripped++;
      continue;
    }
    // HTTP/2 sends cookies one by one.
    if (name !== "cookie") seen.add(name);
    kept.push([header[0], filled.value]);
    masked += filled.masked;
    stripped += filled.stripped;
    if (filled.echo !== undefined) echoes.push(filled.echo);
  }
  return { headers: kept, masked, stripped, echoes };
}

/** A header that is not named with any secret of the host, without keys that are not ours. */
function withoutForeign(
  bound: readonly MaskedSecret[],
  name: string,
  value: string,
): { readonly value: string | null; readonly stripped: number } {
  const isTwin = bound.some((secret) => secret.headers.some((each) => asVariable(each) === asVariable(name)));
  if (isTwin) return { value: null, stripped: 1 };
  const surrogates = asTheyAre(bound);
  if (name === "cookie") {
    const cookies = cookiesOf(value);
    const left = cookies.filter((cookie) => isInfrastructure(cookie) || surrogates.has(contentOf(cookie)));
    return { value: left.length === 0 ? null : left.join("; "), stripped: cookies.length - left.length };
  }
  if (!carriesKey(name, value) || fill(name, value, surrogates) !== null) return { value, stripped: 0 };
  return { value: null, stripped: 1 };
}

/** The parameter of a query by which a request to a bound host would be another account's; null where there is none. */
export function foreignKeyIn(secrets: readonly MaskedSecret[], host: string, query: string): string | null {
  const bound = secrets.filter(({ hosts }) => hosts.some((pattern) => matchesHost(pattern, host)));
  if (bound.length === 0) return null;
  const surrogates = asTheyAre(bound);
  return foreignParameter(query, host, (value) => surrogates.has(value));
}

/** Surrogates that stay what they are. */
function asTheyAre(secrets: readonly MaskedSecret[]): Swaps {
  const words = secrets.flatMap(({ surrogate, earlier = [] }) => (surrogate === "" ? [] : [surrogate, ...earlier]));
  return new Map(words.map((word) => [word, { real: word, surrogate: word }]));
}

/**
 * What to write for each surrogate: the real value where it may go, otherwise the surrogate once more. What is written
 * is turned back to one that is as long.
 */
type Swaps = ReadonlyMap<string, Swap>;

function swapsFor(secrets: readonly MaskedSecret[], { path, secure }: MaskableRequest): Swaps {
  const swaps = new Map<string, Swap>();
  for (const { surrogate, earlier = [], real, paths } of secrets) {
    if (surrogate === "") continue;
    const mayGo = secure && isPlain(real) && (paths?.some((pattern) => matchesPath(pattern, path)) ?? true);
    for (const word of [surrogate, ...earlier]) {
      // The same value may be bound twice, each time to other paths.
      if (mayGo) swaps.set(word, { real, surrogate });
      else if (!swaps.has(word)) swaps.set(word, { real: word, surrogate: word });
    }
  }
  return swaps;
}

/** What a header can carry: nothing that would end it. */
function isPlain(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value);
}

interface Filled {
  readonly value: string;
  readonly masked: number;
  readonly stripped: number;
  readonly echo?: Swap;
}

/**
 * Words before a credential, as servers take them. With any other, a box could say a word of its own choice there: a
 * server that takes the whole value for a key, or the word for a user, would be told one that is not ours.
 */
const schemes = new Set(
  (
    "bearer token oauth apikey api-key key apitoken api-token access-token pat jwt dpop bot ssws splunk geniekey " +
    "client-id deepl-auth-key kakaoak klaviyo-api-key zoho-oauthtoken privatetoken private-token secret"
  ).split(" "),
);

/** Null where no surrogate stands where a credential should. */
function fill(name: string, written: string, swaps: Swaps): Filled | null {
  const value = written.replace(/^[ \t]+|[ \t]+$/g, "");
  if (name === "cookie") return fillCookies(value, swaps);
  if (swaps.has(value)) return put([value], swaps, ([word]) => word as string);
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9-]*)[ \t]+(.+)$/.exec(value) ?? [];
  if (scheme === undefined || rest === undefined) return null;
  if (scheme.toLowerCase() === "basic") return fillBasic(scheme, rest, swaps);
  if (!schemes.has(scheme.toLowerCase())) return null;
  return put([rest], swaps, ([word]) => `${scheme} ${word}`);
}

/** What stands beside a token that is the password, or the user: words of custom, of which none opens anything. */
const usersBeside = ["", "x-access-token", "git", "oauth2", "token", "user", "__token__"];
const passwordsBeside = ["", "x-oauth-basic"];

/** Bytes are kept as they are, whatever their encoding. A word beside a surrogate may be a credential of its own. */
function fillBasic(scheme: string, encoded: string, swaps: Swaps): Filled | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return null;
  const [, user, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, "base64").toString("latin1")) ?? [];
  if (user === undefined || password === undefined) return null;
  if (!swaps.has(user) && !usersBeside.includes(user)) return null;
  if (!swaps.has(password) && !passwordsBeside.includes(password)) return null;
  const encode = (words: readonly string[]) => Buffer.from(words.join(":"), "latin1").toString("base64");
  let real = "";
  const filled = put([user, password], swaps, (words) => {
    real = encode(words);
    return `${scheme} ${real}`;
  });
  if (filled === null || filled.masked === 0) return filled;
  const back = [user, password].map((word) => swaps.get(word)?.surrogate ?? word);
  const [first, second] = [user, password].map((word) => placesOf(swaps.get(word), word));
  const shape = shapeInBase64([...(first as string[]), ":", ...(second as string[])], real);
  return { ...filled, echo: { real, surrogate: encode(back), shape } };
}

/** What the box knows of a word: all of it, unless a secret stands in its place. */
function placesOf(swap: Swap | undefined, word: string): readonly string[] {
  if (swap === undefined || swap.real === word) return Array.from(word);
  return (swap.shape ?? shapeOf(swap.real)).places;
}

/** Only the cookies that hold a surrogate. */
function fillCookies(value: string, swaps: Swaps): Filled | null {
  const cookies = cookiesOf(value);
  const ours = cookies.filter((cookie) => swaps.has(contentOf(cookie)));
  const filled = put(ours.map(contentOf), swaps, (words) => {
    return ours.map((cookie, at) => cookie.slice(0, cookie.indexOf("=") + 1) + words[at]).join("; ");
  });
  return filled === null ? null : { ...filled, stripped: cookies.length - ours.length };
}

function cookiesOf(value: string): readonly string[] {
  return value.split(/[ \t]*;[ \t]*/).filter((cookie) => cookie !== "");
}

function contentOf(cookie: string): string {
  return cookie.slice(cookie.indexOf("=") + 1);
}

function put(words: readonly string[], swaps: Swaps, write: (words: readonly string[]) => string): Filled | null {
  if (!words.some((word) => swaps.has(word))) return null;
  const written = words.map((word) => swaps.get(word)?.real ?? word);
  const masked = written.filter((word, at) => word !== words[at]).length;
  return { value: write(written), masked, stripped: 0 };
}
