import { existsSync } from "node:fs";
import { join } from "node:path";
import { newWorld, type World } from "../world.ts";
import type { TestEngine } from "./engines/engine.ts";

export const tag = "localhost/podbot-e2e-image:latest";

/** A world that reaches packages as this machine does. */
export function imageWorld(): World {
  const world = newWorld();
  const ways = ["http_proxy", "https_proxy", "no_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  for (const name of ways) if (process.env[name]) world.env[name] = process.env[name];
  const npmrc = join(process.env["HOME"] ?? "/root", ".npmrc");
  if (existsSync(npmrc)) world.env["npm_config_userconfig"] = npmrc;
  return world;
}

/** Words for the command line, for one engine. */
export function imageCommand({ socket }: TestEngine) {
  return (verb: "build" | "show", ...words: string[]) => [
    ...["image", verb, "--tag", tag, "--engine-socket", socket],
    ...(verb === "build" ? ["--host-network"] : []),
    ...words,
  ];
}
