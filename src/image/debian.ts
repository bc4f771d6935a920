import { createHash } from "node:crypto";
import { withoutCredentials } from "./proxies.ts";

/** The release of Debian that the image is made of. */
const suite = "trixie";

/** The public base. */
export const publicBase = `docker.io/library/debian:${suite}-slim`;

/** One place that apt gets packages from. */
interface Source {
  readonly uri: string;
  readonly suite: string;
}

/** What `os-release` says of the host. */
export interface Release {
  readonly id: string;
  readonly codename: string;
}

export function readRelease(text: string): Release {
  const field = (name: string) => new RegExp(`^${name}=["']?([^"'\n]*)`, "m").exec(text)?.[1] ?? "";
  return { id: field("ID"), codename: field("VERSION_CODENAME") };
}

/**
 * Where a Debian host has its packages from, with the release replaced by the image's: the same mirror has that, too.
 * Lines of a sources.list; none where the host is no Debian, or names no place.
 */
export function mirrorLines(files: readonly string[], release: Release): readonly string[] {
  if (release.id !== "debian" || release.codename === "") return [];
  const lines = files.flatMap(sourcesIn).flatMap(({ uri, suite: own }) => {
    const [, rest] = new RegExp(`^(?:${release.codename}|stable)(|-updates|-security)/?$`).exec(own) ?? [];
    return rest === undefined ? [] : [`deb ${withoutCredentials(uri)} ${suite}${rest} main`];
  });
  const unique = [...new Set(lines)];
  return unique.some((line) => line.endsWith(` ${suite} main`)) ? unique : [];
}

/** Both forms: a line for each, or paragraphs. Only where packages of the main component come from. */
function sourcesIn(file: string): readonly Source[] {
  const text = file.replace(/^\s*#.*\n?/gm, "");
  const lines = [...text.matchAll(/^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$/gm)];
  const oneLine = lines.flatMap(([, uri = "", suite = "", components = ""]) => placesOf([uri], [suite], components));
  return [...oneLine, ...text.split(/\n\s*\n/).flatMap(paragraphSources)];
}

function paragraphSources(paragraph: string): readonly Source[] {
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "im").exec(paragraph)?.[1] ?? "";
  if (!field("Types").split(/\s+/).includes("deb") || /^no$/i.test(field("Enabled"))) return [];
  return placesOf(words(field("URIs")), words(field("Suites")), field("Components"));
}

function placesOf(uris: readonly string[], suites: readonly string[], components: string): readonly Source[] {
  if (!words(components).includes("main")) return [];
  return uris
    .filter((uri) => /^https?:/.test(uri))
    .flatMap((uri) => suites.map((each) => ({ uri: uri.replace(/\/$/, ""), suite: each })));
}

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

export interface AptSettings {
  /** Lines of an apt.conf, for what makes the host's own mirror usable. */
  readonly options: readonly string[];
  readonly httpProxy: string | null;
  readonly httpsProxy: string | null;
}

/** Out of what `apt-config dump` says. */
export function readAptSettings(dump: string): AptSettings {
  const value = (name: string) => new RegExp(`^Acquire::${name} "(.*)";$`, "m").exec(dump)?.[1] || null;
  const plain = ["Check-Valid-Until", "Check-Date", "ForceIPv4", "ForceIPv6", "Retries"];
  const options = plain.flatMap((name) => {
    const found = value(name);
    return found === null ? [] : [`Acquire::${name} "${found}";`];
  });
  const proxy = (name: string) => [value(name)].find((each) => each !== null && each !== "DIRECT") ?? null;
  return { options, httpProxy: proxy("http::Proxy"), httpsProxy: proxy("https::Proxy") };
}

/** How a small root of Debian is made, where no registry has one. */
export interface RootRecipe {
  /** Of the image that it becomes: the same for the same root. */
  readonly tag: string;
  /** Arguments of mmdebstrap, which writes the root to its standard output. */
  readonly args: readonly string[];
}

/** Documentation nobody reads in there; that of licences stays. */
const unread = ["doc", "info", "locale", "man"].map((name) => `path-exclude=/usr/share/${name}/*`);
const read = "path-include=/usr/share/doc/*/copyright";

export function rootRecipe(
  mirror: readonly string[],
  options: readonly string[],
  host: { readonly isRoot: boolean; readonly arch: string },
): RootRecipe {
  const shape = [
    "--variant=minbase",
    "--format=tar",
    "--skip=output/dev",
    ...[...unread, read].map((each) => `--dpkgopt=${each}`),
    '--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap',
  ];
  const key = JSON.stringify([suite, host.arch, shape, mirror]);
  const name = createHash("sha256").update(key).digest("hex").slice(0, 12);
  return {
    tag: `localhost/podbot-base:${suite}-${name}`,
    args: [
      `--mode=${host.isRoot ? "root" : "unshare"}`,
      ...shape,
      ...options.map((option) => `--aptopt=${option}`),
      suite,
      "-",
      ...mirror,
    ],
  };
}
