import { discoverEngine } from "../engine/discover.ts";
import { endpointText } from "../engine/endpoint.ts";
import { engineInfo } from "../engine/info.ts";
import { PodbotError } from "../errors.ts";
import type { Finding } from "../machine/diagnosis.ts";
import { thisHost } from "../machine/host.ts";
import { findOnPath } from "../machine/programs.ts";
import { trustedEnvironment } from "./engine.ts";
import { homeOf } from "./standpoint.ts";

/** Whether a container engine is there. Nothing is started, and nobody needs one for bubblewrap. */
export async function engineFinding(caller: Readonly<Record<string, string | undefined>>): Promise<Finding> {
  const name = "engine";
  const env = trustedEnvironment(caller);
  try {
    const { client } = await discoverEngine({ env, home: homeOf(env), uid: thisHost().uid });
    using _client = client;
    const { flavour, version, rootless } = await engineInfo(client);
    const found = `${flavour} ${version}${rootless ? ", rootless" : ""}, at ${endpointText(client.endpoint)}`;
    return { name, state: "ok", found, remedy: null };
  } catch (error) {
    if (!(error instanceof PodbotError)) throw error;
    if (error.code !== "ENGINE_NOT_FOUND") {
      return { name, state: "weak", found: error.message, remedy: error.hint ?? null };
    }
    if (findOnPath("podman", env["PATH"] ?? "") !== null) {
      const found = "none runs, but podman is installed: Podbot starts a service of its own when it needs one";
      return { name, state: "ok", found, remedy: null };
    }
    const remedy = "For --wall engine install Podman, for example: apt install podman; or start Docker.";
    return { name, state: "weak", found: "no container engine answers; bubblewrap needs none", remedy };
  }
}
