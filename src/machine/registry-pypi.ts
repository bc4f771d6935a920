import { dirname, join } from "node:path";
import { findOnPath } from "./programs.ts";
import {
  expandDirectories,
  placeIn,
  type RegistryContext,
  type RegistryUrls,
  readPairs,
  readSettings,
  withoutUser,
  words,
} from "./registry-files.ts";
import { readToml } from "./registry-toml.ts";

/** Python's package indexes, as pip and uv are told of them. */
export function pypiUrls(context: RegistryContext): RegistryUrls {
  const { env } = context;
  const pip = pipFiles(context).flatMap((file) => readPairs(readSettings(context, file)));
  const said = (key: string) => pip.filter(([name]) => name.replaceAll("_", "-") === key).map(([, value]) => value);
  const uv = uvFiles(context).flatMap((file) => uvIndexes(readSettings(context, file)));
  const index = [env["PIP_INDEX_URL"], env["UV_DEFAULT_INDEX"], env["UV_INDEX_URL"], said("index-url")[0], ...uv];
  const extra = [env["PIP_EXTRA_INDEX_URL"], env["UV_EXTRA_INDEX_URL"], env["UV_INDEX"], ...said("extra-index-url")];
  const named = index.filter((text) => text !== undefined && text !== "");
  const own = ownIndex(context);
  // uv may put a name before an address.
  const urls = [...named, ...extra].flatMap(words).map((word) => word.replace(/^[\w-]+=/, ""));
  const usual = named.length > 0 || own === undefined ? [] : [own.index];
  const isOwn = own !== undefined && [...urls, ...usual].some((url) => isOn(url, own.index));
  const storage = isOwn ? [`https://${own.storage}/`] : [];
  const lacks =
    named.length + usual.length > 0
      ? null
      : "pip is not installed here and nothing names its index, so the preset has no hosts";
  const [first] = named.flatMap(words);
  const more = extra.flatMap(words).map(withoutUser).join(" ");
  const variables = {
    ...(first === undefined ? {} : { PIP_INDEX_URL: withoutUser(first) }),
    ...(more === "" ? {} : { PIP_EXTRA_INDEX_URL: more }),
  };
  return { urls, hearsay: [...usual, ...storage], lacks, variables };
}

function pipFiles(context: RegistryContext): readonly string[] {
  const { env, home } = context;
  return [
    ...(env["PIP_CONFIG_FILE"] === undefined ? [] : [env["PIP_CONFIG_FILE"]]),
    join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "pip/pip.conf"),
    join(home, ".pip/pip.conf"),
    placeIn(context, "etc/pip.conf"),
    placeIn(context, "etc/xdg/pip/pip.conf"),
  ];
}

function uvFiles(context: RegistryContext): readonly string[] {
  const { env, home } = context;
  return [join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "uv/uv.toml"), placeIn(context, "etc/uv/uv.toml")];
}

function uvIndexes(text: string): readonly string[] {
  const settings = readToml(text);
  const tables = Array.isArray(settings["index"]) ? settings["index"] : [];
  return [settings["index-url"], settings["extra-index-url"], ...tables.map((table) => table?.url)]
    .flat()
    .filter((value): value is string => typeof value === "string");
}

interface OwnIndex {
  readonly index: string;
  /** The host that holds the files of that index. */
  readonly storage: string;
}

/** What the pip that is installed takes where nobody says anything, and where it knows the files of that to lie. */
function ownIndex(context: RegistryContext): OwnIndex | undefined {
  const { env, home } = context;
  const pip = findOnPath("pip3", env["PATH"] ?? "") ?? findOnPath("pip", env["PATH"] ?? "");
  const directories = [
    ...(pip === null ? [] : [join(dirname(dirname(pip)), "lib/python3*/site-packages")]),
    placeIn(context, "usr/lib/python3/dist-packages"),
    ...["dist", "site"].map((name) => placeIn(context, `usr/local/lib/python3*/${name}-packages`)),
    placeIn(context, "usr/lib/python3*/site-packages"),
    join(home, ".local/lib/python3*/site-packages"),
    join(home, ".pyenv/versions/*/lib/python3*/site-packages"),
  ];
  for (const directory of directories.flatMap((pattern) => expandDirectories(pattern))) {
    const text = readSettings(context, join(directory, "pip/_internal/models/index.py"));
    const [, index, storage] = /^PyPI = PackageIndex\(\s*"([^"]+)",\s*file_storage_domain="([^"]+)"/m.exec(text) ?? [];
    if (index !== undefined && storage !== undefined) return { index, storage };
  }
  return undefined;
}

function isOn(url: string, other: string): boolean {
  return URL.canParse(url) && URL.canParse(other) && new URL(url).host === new URL(other).host;
}
