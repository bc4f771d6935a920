import type { EngineAnswer } from "./answer.ts";
import type { EngineClient } from "./client.ts";
import { recordOf, stringOf, stringsOf } from "./shape.ts";

/** What an engine is and can do. */
export interface EngineInfo {
  readonly flavour: "podman" | "docker" | "unknown";
  readonly version: string;
  readonly apiVersion: string;
  readonly rootless: boolean;
  /**
   * Names that `HostConfig.Runtime` may have. For Podman only its default: 4.3.1 ignores any other without a word, in
   * Docker's API and in its own. Another one needs a service of its own, started with it.
   */
  readonly runtimes: readonly string[];
  /** Names that the engine has heard of. Podman's list holds what it would look for, installed or not. */
  readonly knownRuntimes: readonly string[];
  readonly defaultRuntime: string;
  readonly cgroupVersion: 1 | 2;
  /** Which limits the engine can enforce on a container. */
  readonly cgroupLimits: { readonly memory: boolean; readonly cpu: boolean; readonly pids: boolean };
  readonly selinux: boolean;
  /** Whether root inside is somebody else outside for every container, unless one asks otherwise (Docker only). */
  readonly usernsRemap: boolean;
  readonly architecture: string;
  /** The file with the system call filter that containers get; null where the engine does not say (Docker). */
  readonly seccompProfile: string | null;
}

/** Costs Podman 180 ms, and rootless twice that: it starts programs to learn their versions. `/version` costs more. */
export async function engineInfo(
  client: EngineClient,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<EngineInfo> {
  const get = async (path: string, api: "docker" | "libpod"): Promise<Fields> =>
    recordOf(await (await client.request({ ...options, method: "GET", path, api })).json());
  const answer = await client.request({ ...options, method: "GET", path: "/_ping", api: "bare" });
  await answer.discard();
  const greeting = readGreeting(answer);
  const [info, libpod] = await Promise.all([
    get("/info", "docker"),
    greeting.flavour === "podman" ? get("/info", "libpod") : none,
  ]);
  return condense(greeting, info, recordOf(libpod["host"]));
}

interface Greeting {
  readonly flavour: EngineInfo["flavour"];
  readonly apiVersion: string;
}

function readGreeting(answer: Pick<EngineAnswer, "header">): Greeting {
  const isPodman = answer.header("libpod-api-version") !== undefined;
  const isDocker = answer.header("server")?.startsWith("Docker/") ?? false;
  return {
    flavour: isPodman ? "podman" : isDocker ? "docker" : "unknown",
    apiVersion: answer.header("api-version") ?? "",
  };
}

type Fields = Readonly<Record<string, unknown>>;

const none: Fields = {};

function condense({ flavour, apiVersion }: Greeting, info: Fields, host: Fields): EngineInfo {
  const security = securityOf(info);
  const rootless = isRootless(info);
  const cgroupVersion = cgroupVersionOf(info);
  // What the kernel has is not what a user was given: rootless, only controllers that were delegated count, and an
  // ordinary user cannot use those of version 1 at all.
  const isBarred = rootless && cgroupVersion === 1;
  const isDelegated = flavour === "podman" && rootless && cgroupVersion === 2;
  const delegated = isDelegated ? stringsOf(host["cgroupControllers"]) : null;
  const profile = stringOf(recordOf(host["security"])["seccompProfilePath"]);
  const has = (key: string, controller: string) =>
    !isBarred && info[key] === true && (delegated === null || delegated.includes(controller));
  const knownRuntimes = Object.keys(recordOf(info["Runtimes"])).sort();
  const defaultRuntime = stringOf(info["DefaultRuntime"]);
  return {
    flavour,
    version: stringOf(info["ServerVersion"]),
    apiVersion,
    rootless,
    runtimes: flavour === "podman" ? [defaultRuntime].filter((name) => name !== "") : knownRuntimes,
    knownRuntimes,
    defaultRuntime,
    cgroupVersion,
    cgroupLimits: {
      memory: has("MemoryLimit", "memory"),
      cpu: has("CpuCfsQuota", "cpu"),
      pids: has("PidsLimit", "pids"),
    },
    selinux: security.includes("name=selinux"),
    usernsRemap: security.includes("name=userns"),
    architecture: stringOf(info["Architecture"]),
    seccompProfile: profile.startsWith("/") ? profile : null,
  };
}

/** `name=seccomp,profile=default`, and the like. */
function securityOf(info: Fields): readonly string[] {
  return stringsOf(info["SecurityOptions"]).flatMap((option) => option.split(","));
}

function isRootless(info: Fields): boolean {
  return info["Rootless"] === true || securityOf(info).includes("name=rootless");
}

function cgroupVersionOf(info: Fields): 1 | 2 {
  return info["CgroupVersion"] === "2" ? 2 : 1;
}
