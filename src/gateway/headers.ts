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

/** The same of HTTP/2: without what is no header there, and with its cookies in one, as everybody else expects them. */
export function fieldsOf(raw: readonly string[]): HeaderList {
  const all = pairs(raw).filter(([name]) => !name.startsWith(":"));
  const cookies = valuesOf(all, "cookie");
  if (cookies.length < 2) return all;
  return [...all.filter(([name]) => name !== "cookie"), ["cookie", cookies.join("; ")]];
}

/** As Node's HTTP/2 wants them: one entry a name, several values in a list. */
export function merge(headers: HeaderList): Record<string, string | string[]> {
  const merged = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    const values = merged.get(lower);
    if (values === undefined) merged.set(lower, [value]);
    else values.push(value);
  }
  return Object.fromEntries(
    [...merged].map(([name, values]) => [name, values.length === 1 ? (values[0] as string) : values]),
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
