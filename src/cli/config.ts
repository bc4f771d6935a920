import { isSecretKey, showProxy } from "../config/display.ts";
import { loadConfig } from "../config/load.ts";
import { UsageError } from "../errors.ts";
import { lastValue, type Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { placeOf } from "./place.ts";
import { visible, visibleJson } from "./visible.ts";

/** `podbot config show`: each effective value, with the layer that it comes from. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [verb] = parsed.words;
  if (verb !== "show") {
    throw new UsageError(
      "USAGE",
      verb === undefined ? "podbot config: say what to do." : `podbot config: there is no ${verb}.`,
      {
        hint: "Usage: podbot config show [--json]",
      },
    );
  }
  const configFile = lastValue(parsed, "config");
  const loaded = await loadConfig({
    ...placeOf(parsed, io),
    ...(configFile === undefined ? {} : { configFile }),
  });
  const { environment, network } = loaded.config;
  const proxy = showProxy(network.upstream_proxy);
  const origins = loaded.origins.map((origin) => {
    if (!isSecretKey(origin.key)) return origin;
    return { ...origin, value: origin.key === "network.upstream_proxy" ? proxy : "(hidden)" };
  });
  if (parsed.switches.has("json")) {
    const config = {
      ...loaded.config,
      network: { ...network, upstream_proxy: proxy },
      environment: { pass: environment.pass },
      secrets: undefined,
    };
    io.stdout.write(`${visibleJson({ config, origins, files: loaded.files }, 2)}\n`);
    return 0;
  }
  const width = Math.max(...origins.map(({ key }) => key.length));
  for (const { key, value, layer, source } of origins) {
    const from = layer === "default" ? "default" : `${layer}: ${source}`;
    io.stdout.write(visible(`${key.padEnd(width)}  ${JSON.stringify(value)}  (${from})\n`));
  }
  for (const warning of loaded.warnings) io.stderr.write(visible(`podbot: warning: ${warning}\n`));
  return 0;
}
