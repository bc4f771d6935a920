import type { Upstream } from "./upstream.ts";

/** The proxy has not led on. Names it, never whoever may use it. */
export class ProxyFailure extends Error {
  readonly what: string;
  readonly wayOut: string;

  constructor({ shown, origin }: Pick<Upstream, "shown" | "origin">, failed: string, wayOut = usualWayOut) {
    const what = `the proxy ${shown} (${origin}) ${failed}`;
    super(`${what}; ${wayOut}`);
    this.what = what;
    this.wayOut = wayOut;
  }
}

const usualWayOut = 'network.upstream_proxy can name another or "none", and NO_PROXY the hosts that need none';
