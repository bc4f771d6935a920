import { discoverEngine } from "../engine/discover.ts";
import { endpointText } from "../engine/endpoint.ts";
import { engineInfo } from "../engine/info.ts";
import { PodbotError } from "../errors.ts";
import type { Finding } from "../machine/diagnosis.ts";
import { thisHost } from "../machine/host.ts";
import { findOnPath } from "../machine/programs.ts";
import { trustedEnvironment } from "./engine.ts";
import { settingsExtras } from "./engine-settings.ts";
import { homeOf } from "./standpoint.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const name = "engine";

/** The same, unless Podman's settings stop the start of every container. */
function withSettings(found: string, env: Environment): Finding {
  const extras = settingsExtras(env, thisHost().uid);
  if (extras.length === 0) return { name, state: "ok", found, remedy: null };
  return {
    name,
    state: "weak",
    found: `${found}; its settings add to containers what no plan has: ${extras.join(", ")}`,
    remedy: 'Take it out of the settings, or accept it: sandbox.accept_gaps = ["engine-extras"].',
  };
}

/** Whether a container engine is there. Nothing is started, and nobody needs one for bubblewrap. */
export async function engineFinding(caller: Environment): Promise<Finding> {
  const env = trustedEnvironment(caller);
  try {
    const { client } = await discoverEngine({ env, home: homeOf(env), uid: thisHost().uid });
    using _client = client;
    const { flavour, version, rootless } = await engineInfo(client);
    const found = `${flavour} ${version}${rootless ? ", rootless" : ""}, at ${endpointText(client.endpoint)}`;
    return flavour === "podman" ? withSettings(found, env) : { name, state: "ok", found, remedy: null };
  } catch (error) {
    if (!(error instanceof PodbotError)) throw error;
    if (error.code !== "ENGINE_NOT_FOUND") {
      return { name, state: "weak", found: error.message, remedy: error.hint ?? null };
    }
    if (findOnPath("podman", env["PATH"] ?? "") !== null) {
      const found = "none runs, but podman is installed: Podbot starts a service of its own when it needs one";
      return withSettings(found, env);
    }
    const remedy = "For --wall engine install Podman, for example: apt install podman; or start Docker.";
    return { name, state: "weak", found: "no container engine answers; bubblewrap needs none", remedy };
  }
}
