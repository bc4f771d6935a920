import type { Proxies } from "../upstream/proxies.ts";

/** The first that names any proxy; whoever is asked first knows best. */
export function firstProxies(candidates: readonly Proxies[]): Proxies {
  const nothing = { http: null, https: null, none: null };
  return candidates.find(({ http, https }) => http !== null || https !== null) ?? nothing;
}

/** Arguments of a build that engines know by themselves, and do not write into an image. */
export function proxyArguments({ http, https, none }: Proxies): Readonly<Record<string, string>> {
  const both = (name: string, value: string | null) =>
    value === null ? [] : [[name, value] as const, [name.toUpperCase(), value] as const];
  return Object.fromEntries([...both("http_proxy", http), ...both("https_proxy", https), ...both("no_proxy", none)]);
}

/** Whether a proxy listens on this machine's own loopback, which a build with a network of its own does not reach. */
export function hasLoopbackProxy({ http, https }: Proxies): boolean {
  return [http, https].some((url) => url !== null && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostOf(url)));
}

function hostOf(url: string): string {
  try {
    return new URL(url.includes("://") ? url : `http://${url}`).hostname;
  } catch {
    return "";
  }
}

/** The history of an image shows what it was built with to everybody. */
export function withoutCredentials(url: string): string {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  bare.search = "";
  bare.hash = "";
  return bare.href;
}
