import { statSync } from "node:fs";
import { join } from "node:path";
import { globalConfigDir } from "../config/paths.ts";
import type { Config, LoadedConfig, PartialConfig } from "../config/types.ts";
import { MachineError, WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import type { Inside } from "../machine/inside.ts";
import { installationParts, type NativePrograms } from "../machine/programs.ts";
import type { Request } from "../plan/request.ts";
import { parseCommandRules } from "../policy/commands.ts";
import { collectRules, elsewhereRules, ownRules, presetsOf } from "./rules.ts";
import { chooseVariables } from "./variables.ts";

/** What to run, and from where. Everything else comes from the configuration. */
export interface SandboxOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** Device and inode of the directory that is meant by `cwd`, where the caller knows them: `dev:ino`. */
  readonly cwdIdentity?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A configuration file instead of the project's own; trusted. */
  readonly configFile?: string;
  /** The last layer of the configuration. */
  readonly config?: PartialConfig;
  /** Hand the container engine's socket in: a change of trust. */
  readonly docker?: boolean;
}

/** Where a sandbox is planned, with every link resolved. */
export interface Surroundings {
  readonly home: string;
  readonly cwd: string;
  /** Podbot's state directory. */
  readonly state: string;
  /** Where claims on held names are recorded. */
  readonly held: string;
  readonly native: NativePrograms;
  /** Whether this is already the inside of a sandbox. */
  readonly nested: boolean;
}

/** What the configuration and the caller together ask for. */
export function composeRequest(options: SandboxOptions, loaded: LoadedConfig, around: Surroundings): Request {
  const { config, layers } = loaded;
  const { root, nesting } = config.sandbox;
  const { env } = options;
  const { uid, systemHome } = thisHost();
  refuseEngine(config);
  const presets = presetsOf(layers);
  const names = presets.map(({ name }) => name);
  const commands = parseCommandRules(config.commands, around);
  return {
    command: options.command,
    cwd: around.cwd,
    home: around.home,
    root,
    network: { mode: config.network.mode, origin: originOf(loaded, "network.mode") },
    rules: [
      ...collectRules(layers, presets, root, around),
      ...(names.includes("@base") && root === "host" ? elsewhereRules(around, systemHome, env) : []),
      ...ownRules(around, {
        configDirectory: globalConfigDir(env, around.home),
        stateDirectories: [around.state, around.held],
        configFiles: loaded.files,
        installation: installationParts(around.native),
        scripts: commands.flatMap((command) => (command.kind === "script" ? [command.script] : [])),
      }),
    ],
    git: {
      mode: names.includes("@git-strict") ? "strict" : names.includes("@git") ? "on" : "off",
      layer: "default",
    },
    commands,
    variables: chooseVariables(config, { env, uid, nesting, docker: options.docker === true }),
    path: env["PATH"] ?? "",
    nesting,
    nested: around.nested,
    dockerSocket: options.docker ? engineSocket(env) : null,
    keptDirectory: join(around.state, "kept"),
    native: around.native,
    graceMs: config.sandbox.grace_seconds * 1_000,
    acceptedGaps: config.sandbox.accept_gaps,
    uid,
  };
}

function originOf(loaded: LoadedConfig, key: string): string {
  const origin = loaded.origins.find((candidate) => candidate.key === key);
  return origin === undefined || origin.layer === "default" ? "default" : `${origin.source}, ${origin.layer}`;
}

function refuseEngine(config: Config): void {
  if (config.sandbox.wall !== "engine") return;
  throw new WallError("GAP", "The engine wall is not part of this version.", {
    hint: 'Use sandbox.wall = "bubblewrap" or "auto".',
  });
}

/** A sandbox inside a sandbox needs user namespaces, which are switched off unless the outer one was told to leave them. */
export function refuseNested(config: Config, inside: Inside | null): void {
  if (inside === null) return;
  const { uid } = thisHost();
  if (config.sandbox.nesting && uid !== 0) return;
  // The kernel maps root into a further namespace, and mounts /proc there, only for who still has capabilities.
  const hint =
    uid === 0
      ? "Sandboxes of root cannot be nested: run the outer one as an ordinary user, with sandbox.nesting = true."
      : "To build one in another, set sandbox.nesting = true for both: user namespaces are off without it.";
  throw new MachineError("NESTED", "This is already the inside of a Podbot sandbox.", { hint, details: { ...inside } });
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
