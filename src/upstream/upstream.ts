import { ConfigError } from "../errors.ts";
import { type Exceptions, isException, readExceptions } from "./exceptions.ts";
import { type Environment, proxiesOf, variableOf } from "./proxies.ts";

/** The proxy that leads out of the owner's network. */
export interface Upstream {
  /** `http://proxy.example:3128`: without whoever may use it. For plans and messages. */
  readonly shown: string;
  /** Who names it. */
  readonly origin: string;
  /** Whether it is spoken to in TLS. */
  readonly secure: boolean;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** As it was written, password and all: for programs that are to use it themselves. Never to be shown. */
  readonly address: string;
  /** What proves to it who asks; null where nobody need. */
  readonly authorization: string | null;
  readonly exceptions: Exceptions;
  /** What must not be shown, in every form that it may be met in. */
  readonly secrets: readonly string[];
}

/** `environment`, or the address of a proxy. What cannot be used is not passed over. */
export function readUpstream(setting: string, env: Environment): Upstream | null {
  const named = setting === "environment" ? namedIn(env) : { origin: "network.upstream_proxy", address: setting };
  if (named === null) return null;
  const url = parseProxy(named.address);
  if (url === null) throw unusable(named.origin);
  const isNamed = url.username !== "" || url.password !== "";
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  const encoded = Buffer.from(login).toString("base64");
  const secure = url.protocol === "https:";
  return {
    shown: url.origin,
    origin: named.origin,
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    address: url.href,
    authorization: isNamed ? `Basic ${encoded}` : null,
    exceptions: readExceptions(proxiesOf(env).none ?? ""),
    secrets: isNamed ? [login, encoded, url.password, decoded(url.password), `${url.username}:${url.password}`] : [],
  };
}

/** Whether a host, a name in lower case or an address, is reached without it. */
export function goesDirect({ exceptions }: Upstream, host: string, port: number): boolean {
  return isException(exceptions, host, port);
}

/** What programs are told that are to use it themselves. */
export function variablesFor({ address, exceptions }: Upstream): Readonly<Record<string, string>> {
  const none = exceptions.words.join(",");
  return { http_proxy: address, https_proxy: address, ...(none === "" ? {} : { no_proxy: none }) };
}

function namedIn(env: Environment): { readonly origin: string; readonly address: string } | null {
  const { http, https } = proxiesOf(env);
  if (https !== null) return { origin: "HTTPS_PROXY", address: https };
  if (http !== null) return { origin: "HTTP_PROXY", address: http };
  // Often one for other protocols (SOCKS), beside which nothing else is meant.
  const all = variableOf(env, "all_proxy");
  return all === null || parseProxy(all) === null ? null : { origin: "ALL_PROXY", address: all };
}

function parseProxy(address: string): URL | null {
  const text = address.includes("://") ? address : `http://${address}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}

/** What is no escape means itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Never with the address itself: what cannot be read may be a password in any part of it. */
function unusable(origin: string): ConfigError {
  return new ConfigError("CONFIG_INVALID", `${origin} names no proxy that Podbot can use.`, {
    hint: 'Podbot speaks to http:// and https:// proxies: set network.upstream_proxy to one, or to "none" to do without.',
    details: { fields: ["network.upstream_proxy"] },
  });
}
