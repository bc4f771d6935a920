import type { LoadedConfig } from "../config/types.ts";
import type { Upstream } from "../upstream/upstream.ts";

const variables = ["https_proxy", "http_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);

/** The proxy that the owner has Podbot use; null: none. Where nobody names one, nothing is loaded. */
export async function chooseUpstream(
  { config }: Pick<LoadedConfig, "config">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Upstream | null> {
  const { upstream_proxy: setting } = config.network;
  if (setting === "none" || (setting === "environment" && !variables.some((name) => env[name]))) return null;
  const { readUpstream } = await import("../upstream/upstream.ts");
  return readUpstream(setting, env);
}
