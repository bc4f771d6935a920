export type Environment = Readonly<Record<string, string | undefined>>;

/** Proxies by what they are for. */
export interface Proxies {
  readonly http: string | null;
  readonly https: string | null;
  readonly none: string | null;
}

/** As variables name them. */
export function proxiesOf(env: Environment): Proxies {
  return {
    http: variableOf(env, "http_proxy"),
    https: variableOf(env, "https_proxy"),
    none: variableOf(env, "no_proxy"),
  };
}

/** The small letters first, as most programs have it. */
export function variableOf(env: Environment, name: string): string | null {
  return env[name] || env[name.toUpperCase()] || null;
}
