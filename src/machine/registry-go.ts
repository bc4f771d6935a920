import { dirname, join } from "node:path";
import { findOnPath } from "./programs.ts";
import { placeIn, type RegistryContext, type RegistryUrls, readPairs, readSettings } from "./registry-files.ts";

/** Go's module proxies, and where it asks whether what they say is right. */
export function goUrls(context: RegistryContext): RegistryUrls {
  const { env, home } = context;
  const written = env["GOENV"] || join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "go/env");
  const usual = settingsIn(context, ownFiles(context));
  // The environment wins over what `go env -w` has written.
  const named: Settings = {
    ...settingsIn(context, [written]),
    ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)),
  };
  const [proxies, sums] = [named["GOPROXY"] ?? usual["GOPROXY"], named["GOSUMDB"] ?? usual["GOSUMDB"]];
  const urls = [...proxyUrls(named["GOPROXY"]), ...sumUrls(named["GOSUMDB"])];
  const all = [...proxyUrls(proxies), ...sumUrls(sums)];
  const lacks = proxyUrls(proxies).length > 0 ? null : "Go names no module proxy here, so the preset has no hosts";
  return { urls, hearsay: all.filter((url) => !urls.includes(url)), lacks };
}

type Settings = Readonly<Record<string, string | undefined>>;

/** The weakest first. */
function settingsIn(context: RegistryContext, files: readonly string[]): Settings {
  return Object.fromEntries(files.flatMap((file) => readPairs(readSettings(context, file))));
}

/** What comes with Go. */
function ownFiles(context: RegistryContext): readonly string[] {
  const { env } = context;
  const go = findOnPath("go", env["PATH"] ?? "");
  const roots = [
    ...["usr/lib/go", "usr/local/go"].map((path) => placeIn(context, path)),
    ...(go === null ? [] : [dirname(dirname(go))]),
    ...(env["GOROOT"] ? [env["GOROOT"]] : []),
  ];
  return roots.map((root) => join(root, "go.env"));
}

function proxyUrls(proxies: string | undefined): readonly string[] {
  return (proxies ?? "").split(/[,|]/).filter((word) => !["", "direct", "off"].includes(word));
}

/** `name`, `name+key` or `name+key URL`. */
function sumUrls(database: string | undefined): readonly string[] {
  const [name = "", url] = (database ?? "").split(/\s+/);
  if (name === "" || name === "off") return [];
  return [url ?? `https://${name.replace(/\+.*/, "")}/`];
}
