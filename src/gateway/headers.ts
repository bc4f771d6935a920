/** Headers as they were sent: in order, spelling and duplicates kept. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Of the connection, not of the message. `te: trailers` alone says something about the message. */
const ofTheConnection = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "expect",
]);

/** From Node's flat list of names and values. */
export function pairs(raw: readonly string[]): HeaderList {
  const list: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) list.push([raw[at] as string, raw[at + 1] as string]);
  return list;
}

/**
 * What a flat list costs before anything of it is kept or joined. HTTP/2 says a header of 4 kB in a byte, by a table that
 * the other side has filled.
 */
export function rawBytesOf(raw: readonly string[]): number {
  return raw.reduce((bytes, text) => bytes + text.length + ": ".length, 0);
}

/** The same of HTTP/2: without what is no header there, and with its cookies in one, as everybody else expects them. */
export function fieldsOf(raw: readonly string[]): HeaderList {
  const all = pairs(raw).filter(([name]) => !name.startsWith(":"));
  const cookies = valuesOf(all, "cookie");
  if (cookies.length < 2) return all;
  return [...all.filter(([name]) => name !== "cookie"), ["cookie", cookies.join("; ")]];
}

/**
 * Headers that Node's HTTP/2 takes but once. In HTTP/1.1 they are often there twice, said by a server and by a proxy in
 * front of it.
 */
const single = new Set([
  "access-control-allow-credentials",
  "access-control-max-age",
  "access-control-request-method",
  "age",
  "authorization",
  "content-location",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "dnt",
  "etag",
  "expires",
  "from",
  "host",
  "if-modified-since",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "range",
  "referer",
  "retry-after",
  "te",
  "tk",
  "upgrade-insecure-requests",
  "user-agent",
  "x-content-type-options",
]);

/** The same of lists, which may as well be said in one. */
const lists = new Set(["content-encoding", "content-language", "if-match", "if-none-match"]);

/**
 * As Node's HTTP/2 wants them: one entry a name, several values in a list. Of a header that may be there but once, the
 * first counts, as with Node's HTTP/1.1. Lengths must be the same: what does not agree is refused.
 */
export function merge(headers: HeaderList): Record<string, string | string[]> {
  const merged = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    const values = merged.get(lower);
    if (values === undefined) merged.set(lower, [value]);
    else values.push(value);
  }
  return Object.fromEntries(
    [...merged].map(([name, values]) => {
      if (single.has(name)) return [name, values[0] as string];
      const different = name === "content-length" || lists.has(name) ? [...new Set(values)] : values;
      if (different.length === 1 || lists.has(name)) return [name, different.join(", ")];
      return [name, different];
    }),
  );
}

/** As it would stand in HTTP/1.1. What HTTP/2 says in a byte, by a table that the other side has filled, counts whole. */
export function headBytesOf(method: string, target: string, headers: HeaderList): number {
  const separators = ": \r\n".length;
  return headers.reduce(
    (bytes, [name, value]) => bytes + name.length + value.length + separators,
    method.length + target.length,
  );
}

export function valuesOf(headers: HeaderList, name: string): readonly string[] {
  return headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

export function without(headers: HeaderList, ...names: readonly string[]): HeaderList {
  return headers.filter(([name]) => !names.includes(name.toLowerCase()));
}

/** Without what concerns the connection alone, including what `Connection` itself names. */
export function ofTheMessage(headers: HeaderList): HeaderList {
  const dropped = new Set(tokensOf(headers, "connection"));
  return headers.filter(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === "te") return value.trim().toLowerCase() === "trailers";
    // Somebody who calls the length a matter of the connection would have it taken out.
    if (lower === "content-length" || lower === "host") return true;
    return !ofTheConnection.has(lower) && !dropped.has(lower);
  });
}

/** The words of a header that is a list of them, in lower case. */
export function tokensOf(headers: HeaderList, name: string): readonly string[] {
  return valuesOf(headers, name)
    .flatMap((value) => value.split(","))
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "");
}
