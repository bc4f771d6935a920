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
import { settingsExtras } from "./engine-settings.ts";
import { homeOf } from "./standpoint.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const name = "engine";

/** Whether a container engine is there, and what makes its containers. No engine is started: bubblewrap needs none. */
export async function engineFindings(caller: Environment): Promise<readonly Finding[]> {
  const env = trustedEnvironment(caller);
  try {
    const { client } = await discoverEngine({ env, home: homeOf(env), uid: thisHost().uid });
    using _client = client;
    const { flavour, version, rootless } = await engineInfo(client);
    const found = `${flavour} ${version}${rootless ? ", rootless" : ""}, at ${endpointText(client.endpoint)}`;
    const plain: Finding = { name, state: "ok", found, remedy: null };
    const engine = flavour === "podman" ? withSettings(plain, env) : plain;
    const runtime = await runtimeVersion(client).catch(() => null);
    return [
      withHoles(engine, flavour === "unknown" ? [] : holesOf(flavour, version)),
      ...(runtime === null ? [] : [runtimeFinding(runtime.name, runtime.version)]),
    ];
  } catch (error) {
    if (!(error instanceof PodbotError)) throw error;
    if (error.code !== "ENGINE_NOT_FOUND") {
      return [{ name, state: "weak", found: error.message, remedy: error.hint ?? null }];
    }
    const podman = findOnPath("podman", env["PATH"] ?? "");
    if (podman !== null) return installedPodman(podman, env);
    const remedy = "For --wall engine install Podman, for example: apt install podman; or start Docker.";
    return [{ name, state: "weak", found: "no container engine answers; bubblewrap needs none", remedy }];
  }
}

/** An engine that does not run is asked by its program, if that is the system's. */
function installedPodman(podman: string, env: Environment): readonly Finding[] {
  const path = env["PATH"] ?? "";
  const found = "none runs, but podman is installed: Podbot starts a service of its own when it needs one";
  const engine = withSettings({ name, state: "ok", found, remedy: null }, env);
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

/** Podman's own settings may stop the start of every container. */
function withSettings(finding: Finding, env: Environment): Finding {
  const extras = settingsExtras(env, thisHost().uid);
  if (extras.length === 0) return finding;
  return {
    ...finding,
    state: "weak",
    found: `${finding.found}; its settings add to containers what no plan has: ${extras.join(", ")}`,
    remedy: 'Take it out of the settings, or accept it: sandbox.accept_gaps = ["engine-extras"].',
  };
}
