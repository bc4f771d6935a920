/** Headers by which servers and frameworks read another method than the request line has. */
const methodHeaders = new Set([
  "x_http_method_override",
  "x_http_method",
  "x_method_override",
  "x_method",
  "x_forwarded_method",
  "x_original_method",
]);

/** Headers by which they read another path. */
const pathHeaders = new Set([
  "x_original_url",
  "x_original_uri",
  "x_original_path",
  "x_rewrite_url",
  "x_rewrite_uri",
  "x_override_url",
  "x_forwarded_uri",
  "x_forwarded_url",
  "x_forwarded_path",
  "x_envoy_original_path",
  "x_request_uri",
  "x_waws_unencoded_url",
]);

/** What only a proxy in front of them should say: under which name and below which path the request came in. */
const proxyHeaders = new Set([
  "forwarded",
  "x_forwarded",
  "x_forwarded_host",
  "x_forwarded_server",
  "x_forwarded_port",
  "x_forwarded_proto",
  "x_forwarded_protocol",
  "x_forwarded_scheme",
  "x_forwarded_prefix",
  "x_forwarded_base",
  "x_original_host",
  "x_host",
  "x_http_host_override",
  "x_real_host",
  "x_script_name",
]);

/** Headers that name a second path, which a server reads from or writes to: WebDAV's, and those of stores of files. */
const secondPath = /^(?:destination|x_[a-z]+_(?:copy|rename)_source)$/;

/** Parameters of a query that stand for the method with Rails, Laravel, Symfony, Express and others. */
const methodParameters = new Set(["_method", "_httpmethod", "x_http_method_override"]);

/** How programs behind a server are told of a header: `x_api_key` and `x-api-key` are one and the same to them. */
export function asVariable(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "_");
}

/** Whether only a proxy should say it: a request has no use for it. */
export function speaksForProxy(header: string): boolean {
  return proxyHeaders.has(asVariable(header));
}

/** Another path that a request is about, besides its own. */
interface SecondPath {
  readonly header: string;
  /** As it was written; null where it names none. */
  readonly host: string | null;
  /** Without the query. */
  readonly path: string;
}

export function secondPathsOf(headers: readonly (readonly [name: string, value: string])[]): readonly SecondPath[] {
  return headers
    .filter(([name]) => secondPath.test(asVariable(name)))
    .map(([header, value]) => {
      const parts = /^(?:[a-z][a-z0-9+.-]*:)?(?:\/\/([^/?#]*))?(.*)$/is.exec(value.trim());
      const [, host = null, rest] = parts as unknown as readonly [string, string | undefined, string];
      const path = rest.replace(/[?#].*$/s, "");
      return { header, host, path: path.startsWith("/") ? path : `/${path}` };
    });
}

interface Disguisable {
  readonly method: string;
  readonly path: string;
  /** From the question mark on, or nothing. */
  readonly query: string;
}

/** The header or parameter by which a server may read another method or path; null where there is none. */
export function disguiseOf(
  { method, path, query }: Disguisable,
  headers: readonly (readonly [name: string, value: string])[],
): string | null {
  for (const [name, value] of headers) {
    const variable = asVariable(name);
    if (methodHeaders.has(variable) && value.trim() !== method) return name;
    if (pathHeaders.has(variable) && value.trim() !== path && value.trim() !== path + query) return name;
  }
  const [parameter] =
    parametersOf(query).find(([name, value]) => methodParameters.has(asVariable(name)) && value !== method) ?? [];
  return parameter ?? null;
}

/** Of a query, names and values as a lenient server reads them: some take `;` for `&`, and cut off brackets. */
export function parametersOf(query: string): readonly (readonly [name: string, value: string])[] {
  return query
    .slice(1)
    .split(/[&;]/)
    .map((pair) => {
      const end = pair.includes("=") ? pair.indexOf("=") : pair.length;
      const name = readPart(pair.slice(0, end)).replace(/\[.*$/s, "");
      return [name.trim(), readPart(pair.slice(end + 1))] as const;
    });
}

function readPart(written: string): string {
  return written.replaceAll("+", " ").replace(/(?:%[0-9a-f]{2})+/gi, readEscapes);
}

/** What is not UTF-8 stands for its bytes: a lenient server reads on behind an escape that is broken. */
function readEscapes(escapes: string): string {
  try {
    return decodeURIComponent(escapes);
  } catch {
    return Buffer.from(escapes.replaceAll("%", ""), "hex").toString("latin1");
  }
}
