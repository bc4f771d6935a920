import { dirname, join } from "node:path";
import { findOnPath } from "./programs.ts";
import { placeIn, type RegistryContext, type RegistryUrls, readPairs, readSettings } from "./registry-files.ts";

/** Go's module proxies, and where it asks whether what they say is right. */
export function goUrls(context: RegistryContext): RegistryUrls {
  const settings = Object.fromEntries([
    ...goFiles(context).flatMap((file) => readPairs(readSettings(context, file))),
    ...Object.entries(context.env).filter(([, value]) => value),
  ]) as Readonly<Record<string, string | undefined>>;
  const proxies = (settings["GOPROXY"] ?? "").split(/[,|]/).filter((word) => !["", "direct", "off"].includes(word));
  const urls = [...proxies, ...sumUrls(settings["GOSUMDB"])];
  const lacks = proxies.length > 0 ? null : "Go names no module proxy here, so the preset has no hosts";
  return { urls, lacks };
}

/** The weakest first: what comes with Go, what `go env -w` has written. */
function goFiles(context: RegistryContext): readonly string[] {
  const { env, home } = context;
  const go = findOnPath("go", env["PATH"] ?? "");
  const roots = [
    ...["usr/lib/go", "usr/local/go"].map((path) => placeIn(context, path)),
    ...(go === null ? [] : [dirname(dirname(go))]),
    ...(env["GOROOT"] ? [env["GOROOT"]] : []),
  ];
  const written = env["GOENV"] || join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "go/env");
  return [...roots.map((root) => join(root, "go.env")), written];
}

/** `name`, `name+key` or `name+key URL`. */
function sumUrls(database: string | undefined): readonly string[] {
  const [name = "", url] = (database ?? "").split(/\s+/);
  if (name === "" || name === "off") return [];
  return [url ?? `https://${name.replace(/\+.*/, "")}/`];
}
