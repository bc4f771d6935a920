import { join } from "node:path";
import { readOwnersFile } from "./owners-file.ts";
import { findOnPath } from "./programs.ts";
import { expandDirectories, type RegistryContext, type RegistryUrls, readSettings } from "./registry-files.ts";
import { readToml } from "./registry-toml.ts";

type Table = Readonly<Record<string, unknown>>;

/** Cargo's registries: those that are configured or replace its own, and where each of them keeps its packages. */
export function cratesUrls(context: RegistryContext): RegistryUrls {
  const { env, home } = context;
  const cargoHome = env["CARGO_HOME"] || join(home, ".cargo");
  const text =
    readSettings(context, join(cargoHome, "config.toml")) || readSettings(context, join(cargoHome, "config"));
  const settings = readToml(text);
  const main = replacement(settings);
  const own = main === undefined ? ownIndex(context) : undefined;
  const named = [
    ...Object.values(tableOf(settings["registries"])).map((registry) => tableOf(registry)["index"]),
    ...Object.entries(env).flatMap(([name, value]) => (/^CARGO_REGISTRIES_\w+_INDEX$/.test(name) ? [value] : [])),
  ];
  const written = addressesOf([main, ...named]);
  const usual = addressesOf([own]);
  const indexes = [...written, ...usual];
  const seen = indexes.map((index) => downloads(index, cargoHome, context));
  return { urls: written, hearsay: [...usual, ...seen.flat()], lacks: lackOf(indexes, seen) };
}

function addressesOf(indexes: readonly unknown[]): readonly string[] {
  return indexes
    .filter((index): index is string => typeof index === "string")
    .map((index) => index.replace(/^(?:sparse|registry)\+/, ""));
}

function lackOf(indexes: readonly string[], seen: readonly (readonly string[])[]): string | null {
  if (indexes.length === 0)
    return "cargo is not installed here and nothing names its registry, so the preset has no hosts";
  if (seen.every((urls) => urls.length > 0)) return null;
  return "where a registry keeps its packages is known once cargo has used it outside; until then, name that host in network.domains";
}

/** What stands in for cargo's own registry, where something does. */
function replacement(settings: Table): unknown {
  const sources = tableOf(settings["source"]);
  let source = tableOf(sources["crates-io"]);
  // Each may be replaced in turn, but none for ever.
  for (let hops = 0; hops < 10 && typeof source["replace-with"] === "string"; hops++) {
    source = tableOf(sources[source["replace-with"]]);
  }
  return source["registry"];
}

/** Cargo notes of each registry that it has used what that says of itself. */
function downloads(index: string, cargoHome: string, context: RegistryContext): readonly string[] {
  if (!URL.canParse(index)) return [];
  const { hostname } = new URL(index);
  return expandDirectories(join(cargoHome, `registry/index/${hostname}-*`)).flatMap((directory) => {
    const { dl, api } = readJson(readSettings(context, join(directory, "config.json")));
    // What stands in braces is the name of a package, and its version.
    return [dl, api].flatMap((url) => (typeof url === "string" ? [url.replace(/\{.*/, "")] : []));
  });
}

const largestProgram = 256 * 1024 * 1024;

/** What the cargo that is installed was built with. */
function ownIndex(context: RegistryContext): string | undefined {
  const { env, home } = context;
  const cargo = findOnPath("cargo", env["PATH"] ?? "");
  // What rustup puts on PATH is not cargo itself.
  const toolchains = expandDirectories(join(env["RUSTUP_HOME"] || join(home, ".rustup"), "toolchains/*/bin/cargo"));
  for (const program of [...toolchains, ...(cargo === null ? [] : [cargo])]) {
    const file = readOwnersFile(program, context.isWritable, largestProgram);
    if (file.kind !== "owners") continue;
    const found = /sparse\+https:\/\/[a-z0-9.-]+\//.exec(file.bytes.toString("latin1"))?.[0];
    if (found !== undefined) return found;
  }
  return undefined;
}

function tableOf(value: unknown): Table {
  return typeof value === "object" && value !== null ? (value as Table) : {};
}

function readJson(text: string): Table {
  try {
    return tableOf(JSON.parse(text));
  } catch {
    return {};
  }
}
