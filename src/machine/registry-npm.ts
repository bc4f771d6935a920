import { dirname, join } from "node:path";
import { followWay } from "./owners-file.ts";
import { findOnPath } from "./programs.ts";
import {
  findAbove,
  placeIn,
  type RegistryContext,
  type RegistryUrls,
  readPairs,
  readSettings,
  withoutUser,
} from "./registry-files.ts";

const registryKey = /^(?:@[^:]+:)?registry$/;

/** npm's registries, those of scopes included. A project's own `.npmrc` is the agent's to write, and not read. */
export function npmUrls(context: RegistryContext): RegistryUrls {
  const { env, home } = context;
  const files = [
    setting(env, "userconfig") ?? join(home, ".npmrc"),
    setting(env, "globalconfig") ?? placeIn(context, "etc/npmrc"),
    ...["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"].map((path) => placeIn(context, path)),
  ];
  const said = [...environmentPairs(env), ...files.flatMap((file) => readPairs(readSettings(context, file)))]
    .filter(([key]) => registryKey.test(key))
    .map(([key, value]) => [key, expand(value, env)] as const);
  const scoped = said.filter(([key]) => key !== "registry").map(([, value]) => value);
  // The first that says it holds: the environment, then the user, then the machine.
  const chosen = said.find(([key]) => key === "registry")?.[1];
  if (chosen !== undefined) {
    return { urls: [chosen, ...scoped], lacks: null, variables: { npm_config_registry: withoutUser(chosen) } };
  }
  const own = ownRegistry(context);
  if (own !== undefined) return { urls: scoped, hearsay: [own], lacks: null };
  return {
    urls: scoped,
    lacks: "npm is not installed here and nothing names its registry, so the preset has no hosts",
  };
}

/** npm takes `npm_config_x` in letters of either size. */
function environmentPairs(env: RegistryContext["env"]): readonly (readonly [string, string])[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const [, key] = /^npm_config_(.+)$/i.exec(name) ?? [];
    return key === undefined || !value ? [] : [[key.toLowerCase(), value] as const];
  });
}

function setting(env: RegistryContext["env"], key: string): string | undefined {
  return environmentPairs(env).find(([name]) => name === key)?.[1];
}

/** `${NAME}` stands for a variable; one that is not set leaves no address. */
function expand(value: string, env: RegistryContext["env"]): string {
  return value.replace(/\$\{(\w+)\??\}/g, (_, name: string) => env[name] ?? "");
}

/** What the npm that is installed takes where nobody says anything. */
function ownRegistry(context: RegistryContext): string | undefined {
  const npm = findOnPath("npm", context.env["PATH"] ?? "");
  if (npm === null || followWay(npm, context.isWritable).kind !== "owners") return undefined;
  const definitions = "@npmcli/config/lib/definitions/definitions.js";
  const file = findAbove(dirname(npm), `node_modules/${definitions}`) ?? findAbove(dirname(npm), definitions);
  const text = file === null ? "" : readSettings(context, file);
  return /Definition\('registry', \{\s*default: '([^']+)'/.exec(text)?.[1];
}
