import { canonicalHost, type Destination, type HttpRequest } from "../policy/network.ts";
import { type HeaderList, tokensOf, valuesOf } from "./headers.ts";

/** Where a connection leads, as far as it is known before it speaks HTTP. */
export interface Place extends Destination {
  /** Null where only an address was dialled: then the request names the host. */
  readonly host: string;
  readonly named: boolean;
  readonly secure: boolean;
  /** A door at which requests for others are made, as of a proxy. */
  readonly proxy: boolean;
}

export interface Target extends HttpRequest {
  /** From the question mark on, or nothing. */
  readonly query: string;
}

export type Reading =
  | { readonly kind: "target"; readonly target: Target }
  | { readonly kind: "bad"; readonly why: string };

/**
 * The one reading of a request that everything after it sees. Whatever says twice where it leads must say the same
 * both times; what is spelled oddly is refused, since somebody else would read it otherwise.
 */
export function readTarget(
  place: Place,
  method: string,
  written: string,
  authority: string | null,
  headers: HeaderList,
): Reading {
  const hosts = valuesOf(headers, "host");
  const names = authority === null ? hosts : [authority, ...hosts.filter((host) => host !== authority)];
  if (names.length !== 1) return bad(names.length === 0 ? "it names no host" : "it names more than one host");
  const named = readAuthority(names[0] as string);
  if (named === null) return bad("its host is spelled oddly");
  const form = place.proxy ? readAbsolute(written) : { rest: written, authority: null };
  if (form === null) return bad("at this door, a request names http:// and the host, as for a proxy");
  if (form.authority !== null && form.authority.toLowerCase() !== (names[0] as string).toLowerCase()) {
    return bad("its address and its Host are not the same");
  }
  const port = named.port ?? (place.proxy ? 80 : place.port);
  if (!place.proxy && port !== place.port) return bad("its Host names another port than the one that it was sent to");
  if (place.named && named.host !== place.host) return bad(`its Host is not ${place.host}, to which it was sent`);
  if (!/^\/[\x21\x22\x24-\x7e]*$/.test(form.rest)) return bad("its path is spelled oddly");
  const mark = form.rest.indexOf("?");
  const path = mark < 0 ? form.rest : form.rest.slice(0, mark);
  const query = mark < 0 ? "" : form.rest.slice(mark);
  return { kind: "target", target: { host: named.host, port, method, path, query } };
}

/** Where a proxy is asked to lead to. A `Host` may be left out, and may leave the port out. */
export function readConnect(
  written: string,
  headers: HeaderList,
): (Destination & { readonly kind: "to" }) | { readonly kind: "bad"; readonly why: string } {
  const to = readAuthority(written);
  if (to === null || to.port === null) return { kind: "bad", why: "a tunnel leads to name:port" };
  const { host, port } = to;
  const named = valuesOf(headers, "host").map(readAuthority);
  const isAgreed = named.every((each) => each?.host === host && (each.port === null || each.port === port));
  if (named.length > 1 || !isAgreed) return { kind: "bad", why: "its Host is not where the tunnel leads" };
  // What belongs to it would be taken for what is said in the tunnel.
  if (
    valuesOf(headers, "transfer-encoding").length > 0 ||
    tokensOf(headers, "content-length").some((each) => each !== "0")
  ) {
    return { kind: "bad", why: "a tunnel is not asked for with a body" };
  }
  return { kind: "to", host, port };
}

/** `name`, `name:port`, `[address]:port`. */
export function readAuthority(written: string): { readonly host: string; readonly port: number | null } | null {
  const [all, bracketed, plain, digits] =
    /^(?:\[([0-9a-f:.]+)\]|([^:[\]@/?#\s]+))(?::([1-9]\d{0,4}))?$/i.exec(written) ?? [];
  if (all === undefined) return null;
  const host = canonicalHost((bracketed ?? plain) as string);
  const port = digits === undefined ? null : Number(digits);
  if (host === null || (bracketed !== undefined) !== host.includes(":") || (port ?? 0) > 65_535) return null;
  return { host, port };
}

function readAbsolute(written: string): { readonly authority: string; readonly rest: string } | null {
  const [all, authority, rest] = /^http:\/\/([^/?#]+)(.*)$/i.exec(written) ?? [];
  if (all === undefined) return null;
  const path = rest as string;
  return { authority: authority as string, rest: path.startsWith("/") ? path : `/${path}` };
}

function bad(why: string): Reading {
  return { kind: "bad", why };
}
