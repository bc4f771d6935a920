import { statSync } from "node:fs";
import { join } from "node:path";
import { globalConfigDir } from "../config/paths.ts";
import type { Config, LoadedConfig, PartialConfig } from "../config/types.ts";
import { MachineError, WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import type { Inside } from "../machine/inside.ts";
import { hardLimits } from "../machine/limits.ts";
import { findOnPath, installationParts, type NativePrograms } from "../machine/programs.ts";
import { type EngineFacts, homeInside, planContainer } from "../plan/container.ts";
import { type Limits, parseUlimit } from "../plan/limits.ts";
import type { ContainerRequest, NetworkPlan, Request } from "../plan/request.ts";
import { parseCommandRules } from "../policy/commands.ts";
import { commonConfigs } from "../policy/git.ts";
import type { Rule } from "../policy/rule.ts";
import type { GitHubErrand, GitHubWish } from "./github.ts";
import { withSettings, withTrust } from "./network.ts";
import { isSaid } from "./origin.ts";
import { agentCredentials } from "./provision.ts";
import { collectRules, elsewhereRules, keyRules, ownRules, presetsOf, secretRules, sessionRules } from "./rules.ts";
import { resolved } from "./standpoint.ts";
import { chooseVariables } from "./variables.ts";
import type { Workspace } from "./workspace.ts";

/** What to run, and from where. Everything else comes from the configuration. */
export interface SandboxOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** Whether the caller has named it, and does not just stand there: then the configuration chooses no other. */
  readonly cwdNamed?: boolean;
  /** Device and inode of the directory that is meant by `cwd`, where the caller knows them: `dev:ino`. */
  readonly cwdIdentity?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A configuration file instead of the project's own; trusted. */
  readonly configFile?: string;
  /** The last layer of the configuration. */
  readonly config?: PartialConfig;
  /** Only to look at the plan: then not even directories of Podbot's own are made. */
  readonly dry?: boolean;
  /** Let the box outlive the command, so that more can be started in it. */
  readonly session?: boolean;
  /** Hand the container engine's socket in: a change of trust. */
  readonly docker?: boolean;
  /** Called once while a plan is made, where a pattern needs longer than a second to be expanded. */
  readonly onLongPattern?: (pattern: string) => void;
}

/** The same for a session, which may have a token for GitHub, and a clone. */
export interface SessionWish extends Omit<SandboxOptions, "command">, GitHubWish {}

/** Where a sandbox is planned, with every link resolved. */
export interface Surroundings {
  readonly home: string;
  readonly cwd: string;
  /** Podbot's state directory. */
  readonly state: string;
  /** Where claims on held names are recorded. */
  readonly held: string;
  /** Directories in which sessions are recorded and have their sockets. */
  readonly sessions: readonly string[];
  readonly native: NativePrograms;
  /** Whether this is already the inside of a sandbox. */
  readonly nested: boolean;
  readonly behindGateway?: boolean;
  /** The engine that builds the wall, where one does. */
  readonly engine: EngineFacts | null;
  readonly workspace: Workspace;
  /** What is done at GitHub; null: nothing. */
  readonly errand?: GitHubErrand | null;
  readonly network: NetworkPlan;
  /** Variables of package managers, whose settings stay outside. */
  readonly settings: Readonly<Record<string, string>>;
}

/** What the configuration and the caller together ask for. */
export function composeRequest(options: SandboxOptions, loaded: LoadedConfig, around: Surroundings): Request {
  const { config, layers } = loaded;
  const { nesting } = config.sandbox;
  const root = around.engine === null ? config.sandbox.root : "image";
  const { env } = options;
  const { uid, systemHome } = thisHost();
  const logins = options.session === true ? agentCredentials(config) : [];
  const container =
    around.engine === null ? null : containerRequest(loaded, around.engine, around.workspace.inside, logins);
  const { errand = null, workspace } = around;
  // Where nothing of the host's is seen, there is nothing that presets could be about.
  const presets = container !== null && workspace.kind !== "mounted" ? [] : presetsOf(layers);
  const names = presets.map(({ name }) => name);
  const commands = parseCommandRules(container === null ? config.commands : saidCommands(loaded), around);
  const limits = limitsOf(config);
  return {
    session: options.session === true || container !== null,
    command: options.command,
    workspace: workspace.kind,
    clone: errand?.clone ? { ...errand.clone, directory: workspace.inside as string } : null,
    token: errand !== null,
    cwd: around.cwd,
    home: around.home,
    root,
    container,
    limits,
    network: around.network,
    rules: [
      ...collectRules(layers, presets, root, around).filter(
        (rule) => !hidesLogin(rule, logins) && !(workspace.kind === "clone" && opensStandpoint(rule, around)),
      ),
      ...(names.includes("@base") && root === "host" ? elsewhereRules(around, systemHome, env) : []),
      ...ownRules(around, {
        configDirectory: globalConfigDir(env, around.home),
        stateDirectories: [around.state, around.held],
        configFiles: loaded.files,
        installation: installationParts(around.native),
        scripts: commands.flatMap((command) => (command.kind === "script" ? [command.script] : [])),
      }),
      ...sessionRules(around.sessions),
      ...secretRules(config.secrets, around.home),
      ...keyRules(config.github, around.home, globalConfigDir(env, around.home)),
    ],
    git: { mode: gitMode(names), layer: "default", configs: commonConfigs(around.home, env) },
    commands,
    variables: withSettings(
      { ...around.settings, ...errand?.variables },
      withTrust(
        around.network.mode,
        container !== null || (around.network.policy !== null && findOnPath("java", env["PATH"] ?? "") !== null),
        chooseVariables(config, {
          env,
          uid,
          nesting,
          docker: options.docker === true,
          session: options.session === true,
          image: container === null ? null : insideOf(container),
        }),
      ),
    ),
    path: env["PATH"] ?? "",
    nesting,
    nested: around.nested,
    ...(around.behindGateway === true ? { behindGateway: true } : {}),
    dockerSocket: options.docker ? dockerSocket(env, container) : null,
    keptDirectory: join(around.state, "kept"),
    native: around.native,
    graceMs: config.sandbox.grace_seconds * 1_000,
    acceptedGaps: config.sandbox.accept_gaps,
    uid,
  };
}

function gitMode(presets: readonly string[]): Request["git"]["mode"] {
  return presets.includes("@git-strict") ? "strict" : presets.includes("@git") ? "on" : "off";
}

/** What is hidden from everybody else, an agent's own login among it, the agent itself works with. */
function hidesLogin({ access, layer, written }: Rule, logins: readonly string[]): boolean {
  return access === "exclude" && layer === "default" && logins.some((path) => written === `~/${path}`);
}

/** Whoever works on a clone does not work where the caller stands. */
function opensStandpoint({ access, layer, pattern }: Rule, { cwd }: Pick<Surroundings, "cwd">): boolean {
  return access === "rw" && layer === "default" && pattern === cwd;
}

function containerRequest(
  loaded: LoadedConfig,
  engine: EngineFacts,
  workspace: string | null,
  credentials: readonly string[],
): ContainerRequest {
  const { sandbox } = loaded.config;
  const { uid, gid } = thisHost();
  const [, socket = null] = /^unix:\/\/(.*)$/s.exec(engine.endpoint) ?? [];
  return {
    engine,
    engineSocket: socket === null ? null : resolved(socket),
    wishes: {
      privileged: sandbox.privileged,
      // True is the default, but only saying it makes a container that holds containers.
      inner: sandbox.containers === "inner" || (sandbox.mount_dev_fuse && isSaid(loaded, "sandbox.mount_dev_fuse")),
      keepSelinuxLabels: sandbox.selinux_label_mode === "keep_default",
      readOnlyRoot: sandbox.read_only_root,
      runtime: sandbox.runtime ?? null,
      workspace,
      credentials,
    },
    caller: { uid, gid },
    machineUlimits: hardLimits(),
  };
}

function insideOf({ engine, wishes, caller }: ContainerRequest): { readonly uid: number; readonly home: string } {
  const container = planContainer(engine, wishes, caller, []);
  return { uid: container.user.uid, home: homeInside(container) };
}

/** What somebody has asked for. What holds by default is about programs of the host's, which an image does not have. */
function saidCommands(loaded: LoadedConfig): Config["commands"] {
  return Object.fromEntries(
    Object.entries(loaded.config.commands).filter(([name]) => isSaid(loaded, `commands.${name}`)),
  );
}

function limitsOf({ sandbox }: Config): Limits {
  return {
    mode: sandbox.limits,
    memoryMb: sandbox.memory_mb ?? null,
    cpus: sandbox.cpus ?? null,
    pids: sandbox.pids ?? null,
    // The configuration was checked: there is none that cannot be read.
    ulimits: sandbox.ulimits.flatMap((text) => parseUlimit(text) ?? []),
  };
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

function dockerSocket(env: SandboxOptions["env"], container: ContainerRequest | null): string {
  if (container !== null) {
    throw new WallError("GAP", "--docker is for bubblewrap only: a container never gets the engine's socket.", {
      hint: 'Leave it out, or use --wall bubblewrap. Containers inside a container: sandbox.containers = "inner".',
    });
  }
  const host = env["DOCKER_HOST"];
  const path = host?.startsWith("unix://") ? host.slice("unix://".length) : "/var/run/docker.sock";
  if (statSync(path, { throwIfNoEntry: false })?.isSocket()) return path;
  throw new WallError("DOCKER_SOCKET_MISSING", `There is no engine socket at ${path}.`, {
    hint: "Start the engine, set DOCKER_HOST=unix://PATH, or leave --docker out.",
    details: { path },
  });
}
