import { discoverEngine } from "../engine/discover.ts";
import { endpointText } from "../engine/endpoint.ts";
import { engineInfo } from "../engine/info.ts";
import { runtimeVersion } from "../engine/runtime-version.ts";
import { PodbotError } from "../errors.ts";
import { type Finding, withHoles } from "../machine/diagnosis.ts";
import { thisHost } from "../machine/host.ts";
import { holesOf, versionOf } from "../machine/known-holes.ts";
import { findOnPath, ofTheSystem } from "../machine/programs.ts";
import { trustedEnvironment } from "./engine.ts";
import { homeOf } from "./standpoint.ts";

/** Whether a container engine is there, and what makes its containers. No engine is started: bubblewrap needs none. */
export async function engineFindings(
  caller: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  const name = "engine";
  const env = trustedEnvironment(caller);
  try {
    const { client } = await discoverEngine({ env, home: homeOf(env), uid: thisHost().uid });
    using _client = client;
    const { flavour, version, rootless } = await engineInfo(client);
    const found = `${flavour} ${version}${rootless ? ", rootless" : ""}, at ${endpointText(client.endpoint)}`;
    const holes = flavour === "unknown" ? [] : holesOf(flavour, version);
    const engine = withHoles({ name, state: "ok", found, remedy: null }, holes);
    const runtime = await runtimeVersion(client).catch(() => null);
    return [engine, ...(runtime === null ? [] : [runtimeFinding(runtime.name, runtime.version)])];
  } catch (error) {
    if (!(error instanceof PodbotError)) throw error;
    if (error.code !== "ENGINE_NOT_FOUND") {
      return [{ name, state: "weak", found: error.message, remedy: error.hint ?? null }];
    }
    const podman = findOnPath("podman", env["PATH"] ?? "");
    if (podman !== null) return installedPodman(podman, env["PATH"] ?? "");
    const remedy = "For --wall engine install Podman, for example: apt install podman; or start Docker.";
    return [{ name, state: "weak", found: "no container engine answers; bubblewrap needs none", remedy }];
  }
}

/** An engine that does not run is asked by its program, if that is the system's. */
function installedPodman(podman: string, path: string): readonly Finding[] {
  const found = "none runs, but podman is installed: Podbot starts a service of its own when it needs one";
  const engine: Finding = { name: "engine", state: "ok", found, remedy: null };
  if (findOnPath("podman", ofTheSystem(path)) !== podman) return [engine];
  const runc = findOnPath("runc", ofTheSystem(path));
  return [
    withHoles(engine, holesOf("podman", versionOf(podman))),
    ...(runc === null ? [] : [runtimeFinding("runc", versionOf(runc).replace(/^runc version /, ""))]),
  ];
}

function runtimeFinding(name: string, version: string): Finding {
  const finding: Finding = { name: "runtime", state: "ok", found: `${name} ${version}`, remedy: null };
  return withHoles(finding, name === "runc" ? holesOf("runc", version) : []);
}
