import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { rootCertificates } from "node:tls";
import { promisify } from "node:util";
import { thisHost } from "../machine/host.ts";
import { readNamedFile } from "../machine/plain-file.ts";
import { findOnPath } from "../machine/programs.ts";
import { type Proxies, proxiesOf } from "../upstream/proxies.ts";
import { cafileIn, extraCertificates } from "./certificates.ts";
import { type AptSettings, mirrorLines, readAptSettings, readRelease } from "./debian.ts";
import { firstProxies, withoutCredentials } from "./proxies.ts";
import type { ContextFile } from "./recipe.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Whose settings the build has. PATH must hold nothing that an agent could have written to. */
export interface BuildHost {
  readonly env: Environment;
  readonly home: string;
}

/** Where the build gets its packages from, as this machine does. */
export interface PackageSettings {
  readonly apt: AptSettings;
  readonly npmRegistry: string | null;
  readonly proxies: Proxies;
  readonly warnings: readonly string[];
}

const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
/** Where Debian and its kin keep what they trust by default. */
const ordinaryCertificates = "/usr/share/ca-certificates";

/** Files of the context that say whom to trust, since this machine does. */
export function certificateFiles(host: BuildHost, mirror: readonly string[]): readonly ContextFile[] {
  const bundles = bundlesOf(host);
  const extra = extraCertificates(bundles, [...rootCertificates, ...readTree(ordinaryCertificates)]);
  const file = (name: string, content: string) => ({ name, mode: 0o644, content: Buffer.from(content) });
  // Before the image has certificates of its own, apt needs all of them; but only where it is to speak TLS.
  const authorities = mirror.some((line) => line.includes(" https:")) ? bundles.join("\n") : "";
  return [
    ...extra.map((pem, index) => file(`certificates/host-${index + 1}.crt`, pem)),
    file("build/authorities.pem", authorities),
  ];
}

function bundlesOf({ env, home }: BuildHost): readonly string[] {
  const cafile = env["npm_config_cafile"] ?? env["NPM_CONFIG_CAFILE"] ?? cafileIn(readIfThere(join(home, ".npmrc")));
  const named = [env["SSL_CERT_FILE"], env["NODE_EXTRA_CA_CERTS"], cafile];
  const system = systemBundles.find((path) => existsSync(path));
  const paths = new Set([...named, system].filter((path) => path?.startsWith("/")));
  return [...paths].map((path) => readIfThere(path as string));
}

function readTree(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".crt")).map((name) => readIfThere(join(directory, name)));
}

/** Lines of a sources.list for the image, where this is a Debian and has a mirror. */
export function hostMirror(): readonly string[] {
  const directory = "/etc/apt/sources.list.d";
  const names = existsSync(directory) ? readdirSync(directory).sort() : [];
  const paths = names.filter((name) => /\.(list|sources)$/.test(name)).map((name) => join(directory, name));
  const files = ["/etc/apt/sources.list", ...paths].map(readIfThere);
  return mirrorLines(files, readRelease(readIfThere("/etc/os-release")));
}

/** Asks apt and npm how they are set up. It takes some hundred milliseconds. */
export async function packageSettings({ env, home }: BuildHost): Promise<PackageSettings> {
  const [aptDump, npm] = await Promise.all([
    say("apt-config", ["dump"], env),
    // From the root: what a project says in its .npmrc, an agent may have written.
    npmSettings(env, home),
  ]);
  const apt = readAptSettings(aptDump);
  const proxies = firstProxies([
    proxiesOf(env),
    { http: npm.proxy, https: npm.httpsProxy, none: npm.noProxy },
    { http: apt.httpProxy, https: apt.httpsProxy, none: null },
  ]);
  const registry = npm.registry === null ? null : withoutCredentials(npm.registry);
  const warnings =
    registry === npm.registry
      ? []
      : [
          "npm's registry is named with a password, which the build does not get: images show what they were built with.",
        ];
  return { apt, npmRegistry: registry, proxies, warnings };
}

interface NpmSettings {
  readonly registry: string | null;
  readonly proxy: string | null;
  readonly httpsProxy: string | null;
  readonly noProxy: string | null;
}

/** The npm that belongs to the Node that runs us, since whoever wrote that is trusted already; else the system's. */
async function npmSettings(env: Environment, home: string): Promise<NpmSettings> {
  const beside = dirname(thisHost().node);
  const path = `${beside}:${env["PATH"] ?? ""}`;
  const text = await say("npm", ["config", "list", "--json"], { ...env, HOME: home, PATH: path });
  let said: Readonly<Record<string, unknown>> = {};
  try {
    said = JSON.parse(text);
  } catch {
    // No npm, or one that says something else: then the image's own settings hold.
  }
  const value = (name: string) => {
    const found = said[name];
    return typeof found === "string" && found !== "" ? found : null;
  };
  return {
    registry: value("registry"),
    proxy: value("proxy"),
    httpsProxy: value("https-proxy"),
    noProxy: value("noproxy"),
  };
}

/** What a program prints; nothing where there is none, or it fails. */
async function say(program: string, args: readonly string[], env: Environment): Promise<string> {
  const file = findOnPath(program, env["PATH"] ?? "");
  if (file === null) return "";
  try {
    const options = { cwd: "/", env: { ...env }, timeout: 20_000, maxBuffer: 4 * 1_024 * 1_024 };
    return (await promisify(execFile)(file, [...args], options)).stdout;
  } catch {
    return "";
  }
}

/** No list of certificates is larger. */
const largestFile = 16 * 1_024 * 1_024;

function readIfThere(path: string): string {
  return readNamedFile(path, largestFile) ?? "";
}
