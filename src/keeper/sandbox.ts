import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { globalConfigDir, statePath } from "../config/paths.ts";
import type { LoadedConfig, PartialConfig } from "../config/types.ts";
import { FilesystemError, MachineError, WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { detectSandbox } from "../machine/inside.ts";
import {
  findBwrap,
  findNativePrograms,
  installationParts,
  type NativePrograms,
  requireLinux,
} from "../machine/programs.ts";
import { makePlan } from "../plan/make.ts";
import type { Plan } from "../plan/plan.ts";
import { questions, type Request } from "../plan/request.ts";
import { parseCommandRules } from "../policy/commands.ts";
import { takeSurvey } from "../survey/take.ts";
import { BubblewrapWall } from "../wall/bubblewrap/wall.ts";
import type { Birth, Exit, Stdio } from "../wall/wall.ts";
import { collectRules, ownRules, presetsOf } from "./rules.ts";
import { chooseVariables, resolveVariables } from "./variables.ts";

/** What to run, and from where. Everything else comes from the configuration. */
export interface SandboxOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A configuration file instead of the project's own; trusted. */
  readonly configFile?: string;
  /** The last layer of the configuration. */
  readonly config?: PartialConfig;
  /** Hand the container engine's socket in: a change of trust. */
  readonly docker?: boolean;
}

/** A plan that is ready to run, with the wall that can run it. */
export interface PlannedSandbox {
  readonly plan: Plan;
  readonly loaded: LoadedConfig;
  /** Things that the owner should know. */
  readonly warnings: readonly string[];
  /** A script for bash that does the same by path. */
  script(): string;
  run(stdio: Stdio, birth?: Omit<Birth, "env">): Promise<Exit>;
}

/** Reads configuration and filesystem and decides; starts nothing and changes nothing. */
export async function planSandbox(options: SandboxOptions): Promise<PlannedSandbox> {
  requireLinux();
  const { env } = options;
  const home = homeOf(env);
  const cwd = resolved(options.cwd);
  const loaded = await loadConfig({
    cwd,
    home,
    env,
    ...(options.configFile === undefined ? {} : { configFile: options.configFile }),
    ...(options.config === undefined ? {} : { overrides: options.config }),
  });
  const native = findNativePrograms();
  const request = composeRequest({ ...options, cwd }, loaded, home, native);
  refuseNested(request);
  const plan = makePlan(request, takeSurvey(questions(request)));
  const wall = new BubblewrapWall({
    bwrap: findBwrap(env["PATH"] ?? ""),
    native,
    heldDirectory: join(statePath(env, home), "held"),
  });
  return {
    plan,
    loaded,
    warnings: [...loaded.warnings, ...plan.warnings],
    script: () => wall.script(plan),
    run: (stdio, birth) => wall.run(plan, { ...birth, env: resolveVariables(plan, loaded.config, env) }, stdio),
  };
}

function homeOf(env: SandboxOptions["env"]): string {
  const home = env["HOME"];
  if (home?.startsWith("/")) return resolved(home);
  throw new FilesystemError("HOME_INVALID", home ? `HOME is not an absolute path: ${home}` : "HOME is not set.", {
    hint: "Set HOME to your home directory.",
  });
}

/** Links on the way are followed once, here; what does not exist is reported by the survey. */
function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function composeRequest(options: SandboxOptions, loaded: LoadedConfig, home: string, native: NativePrograms): Request {
  const { config, layers } = loaded;
  const { env, cwd } = options;
  const { root, nesting } = config.sandbox;
  if (config.sandbox.wall === "engine") {
    throw new WallError("GAP", "The engine wall is not part of this version.", {
      hint: 'Use sandbox.wall = "bubblewrap" or "auto".',
    });
  }
  const from = { home, cwd };
  const presets = presetsOf(layers);
  const names = presets.map(({ name }) => name);
  const state = statePath(env, home);
  const mode = names.includes("@git-strict") ? "strict" : names.includes("@git") ? "on" : "off";
  return {
    command: options.command,
    cwd,
    home,
    root,
    network: { mode: config.network.mode, origin: originOf(loaded, "network.mode") },
    rules: [
      ...collectRules(layers, presets, root, from),
      ...ownRules(from, {
        configDirectory: globalConfigDir(env, home),
        stateDirectory: state,
        configFiles: loaded.files,
        installation: installationParts(native),
      }),
    ],
    git: { mode, layer: "default" },
    commands: parseCommandRules(config.commands, from),
    variables: chooseVariables(config, { env, uid: thisHost().uid, nesting, docker: options.docker === true }),
    path: env["PATH"] ?? "",
    nesting,
    dockerSocket: options.docker ? engineSocket(env) : null,
    keptDirectory: join(state, "kept"),
    native,
    graceMs: config.sandbox.grace_seconds * 1_000,
    acceptedGaps: config.sandbox.accept_gaps,
  };
}

function originOf(loaded: LoadedConfig, key: string): string {
  const origin = loaded.origins.find((candidate) => candidate.key === key);
  return origin === undefined || origin.layer === "default" ? "default" : `${origin.source}, ${origin.layer}`;
}

/** A sandbox inside a sandbox needs user namespaces, which are switched off unless the outer one was told to leave them. */
function refuseNested(request: Request): void {
  const inside = detectSandbox();
  if (inside === null || request.nesting) return;
  throw new MachineError("NESTED", "This is already the inside of a Podbot sandbox.", {
    hint: "To build one in another, set sandbox.nesting = true for both: user namespaces are off without it.",
    details: { ...inside },
  });
}

function engineSocket(env: SandboxOptions["env"]): string {
  const host = env["DOCKER_HOST"];
  const path = host?.startsWith("unix://") ? host.slice("unix://".length) : "/var/run/docker.sock";
  if (statSync(path, { throwIfNoEntry: false })?.isSocket()) return path;
  throw new WallError("DOCKER_SOCKET_MISSING", `There is no engine socket at ${path}.`, {
    hint: "Start the engine, set DOCKER_HOST=unix://PATH, or leave --docker out.",
    details: { path },
  });
}
