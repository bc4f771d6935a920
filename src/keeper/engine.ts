import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Agent } from "../agents/agent.ts";
import type { Config, LoadedConfig } from "../config/types.ts";
import { tlsSettings } from "../engine/candidates.ts";
import type { EngineClient } from "../engine/client.ts";
import { connectEngine } from "../engine/client.ts";
import { discoverEngine } from "../engine/discover.ts";
import { endpointText, isLocal, parseEndpoint } from "../engine/endpoint.ts";
import { type ImageInspection, inspectImage } from "../engine/images.ts";
import type { EngineInfo } from "../engine/info.ts";
import { openPrivateService } from "../engine/service.ts";
import { ConfigError, EngineError, MachineError, PodbotError } from "../errors.ts";
import { describeImage } from "../image/show.ts";
import { thisHost } from "../machine/host.ts";
import { findOnPath, systemPath } from "../machine/programs.ts";
import { findRuntimeDirectory } from "../machine/runtime-directory.ts";
import type { EngineFacts } from "../plan/container.ts";
import { knownInfo } from "./engine-info.ts";
import { originOf } from "./origin.ts";
import { ownImage } from "./own-image.ts";
import { homeOf } from "./standpoint.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** An engine that answers, and what a plan must know of it. */
export interface OpenedEngine {
  readonly client: EngineClient;
  readonly facts: EngineFacts;
  readonly seccompProfile: EngineInfo["seccompProfile"];
}

/** Where an engine is looked for, and where what belongs to it is kept. */
export interface EnginePlaces {
  readonly env: Environment;
  readonly state: string;
}

/** How a session's record names an engine, so that the next command finds it again. */
export interface EngineName {
  readonly endpoint: string;
  /** Podbot's own service, which may have ended for want of use. */
  readonly service: { readonly runtime: string | null } | null;
}

interface Found {
  readonly client: EngineClient;
  readonly name: EngineName;
}

/**
 * Finds the engine and looks at it and at the image. Changes nothing, but may start a service of Podbot's own. For a
 * known agent, the image must have it, as far as its labels say.
 */
export async function openEngine(
  loaded: LoadedConfig,
  places: EnginePlaces,
  agent?: Agent,
): Promise<OpenedEngine & { readonly name: EngineName }> {
  const { config } = loaded;
  const image = requireImage(config, agent);
  const { client, name } = await findEngine(loaded, places);
  try {
    const [info, inspection] = await Promise.all([
      knownInfo(client, enginesDirectory(places)),
      inspectImage(client, image),
    ]);
    if (inspection === null) throw imageMissing(image, info, agent);
    if (agent !== undefined) requireAgentIn(image, inspection, agent);
    const runtime = config.sandbox.runtime ?? null;
    if (runtime !== null) requireRuntime(runtime, info);
    return {
      client,
      name,
      // It is handed over as a file, which an engine elsewhere does not see.
      seccompProfile: isLocal(client.endpoint) ? info.seccompProfile : null,
      facts: {
        endpoint: name.endpoint,
        local: isLocal(client.endpoint),
        flavour: info.flavour === "podman" ? "podman" : "docker",
        version: info.version,
        rootless: info.rootless,
        remapped: info.usernsRemap,
        selinux: info.selinux,
        runtime: info.defaultRuntime,
        enforces: enforcedBy(info, runtime),
        image: {
          name: image,
          id: inspection.id,
          volumes: inspection.volumes,
          variables: inspection.env.map((variable) => variable.replace(/=.*/s, "")),
        },
      },
    };
  } catch (error) {
    client[Symbol.dispose]();
    throw error;
  }
}

/** gVisor is often told to leave control groups alone, and does not say so. */
function enforcedBy({ cgroupLimits, defaultRuntime }: EngineInfo, runtime: string | null): EngineFacts["enforces"] {
  const knows = !/(^|\/)runsc/.test(runtime ?? defaultRuntime);
  return { memory: knows && cgroupLimits.memory, cpus: knows && cgroupLimits.cpu, pids: knows && cgroupLimits.pids };
}

/** The engine that a record names. Its own service is started anew where it has ended. */
export async function reopenEngine({ endpoint, service }: EngineName, places: EnginePlaces): Promise<EngineClient> {
  if (service !== null) return (await openService(places, service.runtime)).client;
  const { certificates } = tlsSettings(places.env, homeOf(places.env));
  return connectEngine(parseEndpoint(endpoint), { env: trustedEnvironment(places.env), certificates });
}

/** Names a state directory without giving it away: what a container's label says, everybody reads. */
export function ownerName(state: string): string {
  return createHash("sha256").update(`podbot ${thisHost().uid} ${state}`).digest("hex").slice(0, 20);
}

export async function findEngine(loaded: LoadedConfig, places: EnginePlaces): Promise<Found> {
  const { engine_socket, sandbox } = loaded.config;
  const env = trustedEnvironment(places.env);
  const configured =
    engine_socket === undefined ? null : { text: engine_socket, origin: originOf(loaded, "engine_socket") };
  const { uid } = thisHost();
  try {
    const { client } = await discoverEngine({ configured, env, home: homeOf(env), uid });
    return { client, name: { endpoint: endpointText(client.endpoint), service: null } };
  } catch (error) {
    if (!(error instanceof PodbotError) || error.code !== "ENGINE_NOT_FOUND") throw error;
    const found = await openService(places, sandbox.runtime ?? null).catch((failure: unknown) => {
      throw failure instanceof NoPodman ? error : failure;
    });
    return found;
  }
}

/** For what is executed out here (podman, ssh, and what they execute): nothing that an agent could have put on PATH. */
export function trustedEnvironment(env: Environment): Environment {
  return { ...env, PATH: systemPath(env["PATH"] ?? "") };
}

class NoPodman extends Error {}

async function openService(places: EnginePlaces, runtime: string | null): Promise<Found> {
  const env = trustedEnvironment(places.env);
  const podman = findOnPath("podman", env["PATH"] ?? "");
  if (podman === null) throw new NoPodman();
  // A service has one runtime for all of its containers, so each runtime has its service.
  const directory = join(enginesDirectory(places), runtime === null ? "podman" : `podman-${short(runtime)}`);
  const { uid } = thisHost();
  const options = { podman, directory, env, uid, ...(runtime === null ? {} : { runtime }) };
  const endpoint = await openPrivateService(options).catch((error: unknown) => {
    throw runtime === null ? error : runtimeTrouble(error, runtime);
  });
  return { client: connectEngine(endpoint), name: { endpoint: endpointText(endpoint), service: { runtime } } };
}

function short(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

function enginesDirectory({ env, state }: EnginePlaces): string {
  return join(findRuntimeDirectory({ env, uid: thisHost().uid, state }).path, "engines");
}

/** Asked before anything else: no engine is bothered in vain. */
function requireImage({ image }: Config, agent: Agent | undefined): string {
  const name = image?.trim();
  if (name) return name;
  // Podbot's own image has what agents need; what a command needs, only its owner knows.
  if (image === undefined && agent !== undefined) return ownImage;
  throw new ConfigError("IMAGE_REQUIRED", "There is no image for the container: `image` is not set.", {
    hint: "Name one with --image IMAGE, or set image in the configuration. Any image will do that has what the agent needs; `podbot image build` makes one.",
    details: { field: "image" },
  });
}

function imageMissing(image: string, { flavour }: EngineInfo, agent: Agent | undefined): EngineError {
  const program = flavour === "podman" ? "podman" : "docker";
  const hint =
    image === ownImage
      ? `\`podbot image build${agent === undefined ? "" : ` --agents ${agent.name}`}\` builds it; --image names another.`
      : `Fetch it with \`${program} pull ${image}\`, or name another with --image; \`${program} images\` lists what is there.`;
  return new EngineError("IMAGE_NOT_FOUND", `The engine does not have the image ${image}.`, {
    hint,
    details: { image },
  });
}

/** An image that Podbot has built says what is in it. */
function requireAgentIn(image: string, inspection: ImageInspection, { name, title }: Agent): void {
  const { inputs, agents } = describeImage(image, inspection);
  if (inputs === null || name in agents) return;
  const wanted = [...Object.keys(agents), name].join(",");
  throw new MachineError("AGENT_MISSING", `The image ${image} has no ${title}.`, {
    hint: `\`podbot image build --agents ${wanted}${image === ownImage ? "" : ` --tag ${image}`}\` builds one that has it.`,
    details: { agent: name, image, known: Object.keys(agents) },
  });
}

/** A service does not even start with a runtime that is not there. */
function runtimeTrouble(error: unknown, runtime: string): unknown {
  if (!(error instanceof EngineError) || !/runtime .*(not found|no such)/i.test(error.message)) return error;
  return new EngineError(
    "OCI_RUNTIME_MISSING",
    `Podman does not find the runtime ${runtime}, so nothing was created.`,
    {
      hint: "Install it, or name another with sandbox.runtime; unset, Podman takes its own.",
      details: { runtime },
      cause: error,
    },
  );
}

/** Podman takes the runtime of its service; Docker has a list to choose from. */
function requireRuntime(runtime: string, { flavour, runtimes, defaultRuntime }: EngineInfo): void {
  if (runtime === defaultRuntime) return;
  if (flavour !== "podman" && runtimes.includes(runtime)) return;
  const known = flavour === "podman" ? [defaultRuntime] : runtimes;
  throw new EngineError(
    "OCI_RUNTIME_MISSING",
    `The engine cannot use the runtime ${runtime}, so nothing was created.`,
    {
      hint:
        flavour === "podman"
          ? `Podman uses ${defaultRuntime} for all containers of its service. Start the service with \`podman --runtime ${runtime} system service\`, or leave the engine to Podbot: without engine_socket and a running service it starts its own.`
          : `Install it and name it in Docker's daemon.json, or use one of: ${known.join(", ")}.`,
      details: { runtime, known },
    },
  );
}
