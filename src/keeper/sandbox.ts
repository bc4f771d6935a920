import { join } from "node:path";
import type { Agent, AgentServer } from "../agents/agent.ts";
import { installCommand } from "../agents/command.ts";
import { loadConfig } from "../config/load.ts";
import { globalConfigDir } from "../config/paths.ts";
import type { Config, LoadOptions } from "../config/types.ts";
import { MachineError, WallError } from "../errors.ts";
import { detectSandbox } from "../machine/inside.ts";
import { findBwrap, findNativePrograms, findOnPath, requireLinux } from "../machine/programs.ts";
import { makePlan } from "../plan/make.ts";
import type { Plan } from "../plan/plan.ts";
import { questions } from "../plan/request.ts";
import type { Survey } from "../survey/survey.ts";
import { takeSurvey } from "../survey/take.ts";
import { BubblewrapWall } from "../wall/bubblewrap/wall.ts";
import { lookBesideOthers } from "../wall/held.ts";
import { chooseMode, composeNetwork } from "./network.ts";
import { type OutsideOf, openOutside } from "./outside.ts";
import { agentsInOwnImage } from "./own-image.ts";
import { placesOf, sessionPlaces } from "./places.ts";
import type { PlannedSandbox } from "./planned.ts";
import { poolObstacle } from "./pool-obstacle.ts";
import { composeRequest, refuseNested, type SandboxOptions, type SessionWish } from "./request.ts";
import { writableBy } from "./rules.ts";
import { maskingWarnings, unmaskedWarnings } from "./secrets.ts";
import { homeOf, resolved } from "./standpoint.ts";
import { chooseUpstream } from "./upstream.ts";
import { resolveVariables } from "./variables.ts";
import { chooseWorkspace } from "./workspace.ts";

/** Reads configuration and filesystem and decides; starts nothing, and makes nothing but empty directories of its own. */
export function planSandbox(options: SandboxOptions): Promise<PlannedSandbox> {
  return planWith(options, () => ({ name: "custom", argv: options.command }));
}

/** What runs inside. */
export interface Chosen {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  /** Of a known agent, all that is known. */
  readonly agent?: Agent;
  /** What it is as a server, where it is started as one. */
  readonly server?: AgentServer | null;
}

/** The same for an agent, whose command the configuration may choose. */
export async function planWith(
  options: SessionWish,
  choose: (config: Config) => Chosen,
  complete?: LoadOptions["complete"],
): Promise<PlannedSandbox> {
  requireLinux();
  const { env } = options;
  const { repository, branch: wanted, githubToken = false } = options;
  // Without these no token is fetched, whatever the configuration says of GitHub, and nothing of it is loaded.
  const isAsked = repository !== undefined || wanted !== undefined || githubToken !== false;
  const errands = isAsked ? await import("./errand.ts") : null;
  const branch = errands?.readBranch(options) ?? null;
  const inside = detectSandbox();
  const home = homeOf(env);
  const cwd = resolved(options.cwd);
  const native = findNativePrograms();
  const readConfig = () =>
    loadConfig({
      cwd,
      home,
      env,
      ...(options.configFile === undefined ? {} : { configFile: options.configFile }),
      ...(options.config === undefined ? {} : { overrides: options.config }),
      ...(complete === undefined ? {} : { complete }),
    });
  const loaded = await readConfig();
  const { config } = loaded;
  const { name, argv, agent, server = null } = choose(config);
  const missing = agent === undefined ? null : notInstalled(agent, server, env["PATH"] ?? "");
  const { state, held } = placesOf(env, inside);
  const adapter = server?.package == null ? null : server.program;
  const wallKind = chooseWall(config, missing !== null && agentsInOwnImage(state).includes(adapter ?? name));
  // Behind bubblewrap, the host's own programs are used.
  if (wallKind === "bubblewrap" && missing !== null) throw missing;
  const bwrap = wallKind === "bubblewrap" ? findBwrap(env["PATH"] ?? "") : "";
  refuseNested(config, inside);
  const named = options.cwdNamed === true || options.session !== true;
  const workspace = chooseWorkspace(loaded, { cwd, named, home, wall: wallKind, clone: branch !== null });
  const keeps = githubToken !== "daemon";
  // Where nothing is dialled from here, it is nobody's question which proxy that would go through.
  const isOut = isAsked || ["allowlist", "learn"].includes(chooseMode(loaded).mode);
  const upstream = isOut ? await chooseUpstream(loaded, env) : null;
  const errand = (await errands?.planErrand(loaded, { named: branch, workspace, keeps, home, upstream })) ?? null;
  // Not for bubblewrap, which must not wait for what it does not use.
  const engines = wallKind === "engine" ? await import("./engine-wall.ts") : null;
  const opening = engines?.openEngine(loaded, { env, state }, agent) ?? null;
  // Whatever else is wrong is said first; what is wrong with the engine then is nobody's question any more.
  opening?.catch(() => {});
  const root = engines === null ? config.sandbox.root : "image";
  const isWritable = writableBy(loaded.layers, root, { home, cwd: workspace.path }, [join(state, "kept")]);
  const around = { env, home, isWritable, agent, cloning: errand?.rules ?? [], upstream };
  const { network, variables: settings, warnings: networkWarnings } = await composeNetwork(loaded, around);
  // Loaded while the engine thinks about its answer.
  if (opening !== null && network.policy !== null) await import("./egress.ts");
  const engine = await opening;
  const request = composeRequest({ ...options, command: argv }, loaded, {
    home,
    network,
    settings,
    cwd: workspace.path,
    workspace,
    errand,
    engine: engine?.facts ?? null,
    state,
    held,
    sessions: sessionPlaces(
      env,
      { state, held },
      {
        records: options.dry !== true,
        // What runs in a container is always a session's.
        runtime: options.dry !== true && (options.session === true || engine !== null),
      },
    ),
    native,
    nested: inside !== null,
    behindGateway: inside?.network === "allowlist" || inside?.network === "learn",
  });
  const onLong = once(options.onLongPattern);
  const survey = lookBesideOthers(held, (absent) => takeSurvey(questions(request), absent, onLong));
  if (workspace.path === cwd) refuseMoved(options, survey);
  const plan = makePlan(request, survey);
  const variables = () => resolveVariables(plan, config, env);
  const open = (of: OutsideOf) => openOutside({ plan, config, env, home, state, agent: name, errand, upstream }, of);
  const warnings = [
    ...loaded.warnings,
    ...networkWarnings,
    ...(errand?.client.warnings ?? []),
    ...(errand === null ? [] : (errands?.tokenWarnings(errand, plan, globalConfigDir(env, home)) ?? [])),
    ...unmaskedWarnings(loaded.layers),
    ...maskingWarnings(config, plan.network.mode),
    ...plan.warnings,
    ...poolWarning(config, plan),
  ];
  const readNetwork = async () => (await composeNetwork(await readConfig(), around)).network;
  const github = errand?.mark ?? null;
  const common = { agent: name, plan, state, env, loaded, github, warnings, values: variables, readNetwork };
  if (engines !== null && engine !== null) {
    return {
      ...common,
      ...engines.planOnEngine(plan, engine, { env, home, state, held, native, upstream }, config, open),
    };
  }
  const wall = new BubblewrapWall({ bwrap, native, heldDirectory: held });
  return {
    ...common,
    engine: null,
    script: () => wall.script(plan),
    run: async (stdio, { onAsked, onOutside, onToken: _, ...birth } = {}) => {
      using outside = await open({ id: null, onAsked });
      onOutside?.(outside);
      return await wall.run(plan, { ...birth, ...outside.birth }, stdio);
    },
    start: async ({ onAsked, onOutside, onToken, ...birth }) => {
      const outside = await open({ ...birth, onAsked, onToken });
      onOutside?.(outside);
      return outside.attach(() => wall.start(plan, { ...birth, ...outside.birth }));
    },
    settle: async (sandbox, settling) => {
      if (plan.clone !== null) await (await import("./clone.ts")).makeClone(sandbox, plan, settling, upstream);
    },
    leave: async (sandbox) => (plan.clone === null ? [] : (await import("./clone.ts")).unsavedWork(sandbox, plan)),
  };
}

function once(told: SandboxOptions["onLongPattern"]): (pattern: string) => void {
  let isTold = false;
  return (pattern) => {
    if (!isTold) told?.(pattern);
    isTold = true;
  };
}

function poolWarning({ sandbox }: Config, plan: Plan): readonly string[] {
  const obstacle = sandbox.pool === 0 ? null : poolObstacle({ plan });
  return obstacle === null ? [] : [`sandbox.pool does not apply: ${obstacle}.`];
}

/**
 * Decided once. Whoever names an image or an engine never gets less than that; an agent that is not installed here but
 * in Podbot's own image is run there.
 */
function chooseWall({ sandbox, image, engine_socket }: Config, isInOwnImage: boolean): "bubblewrap" | "engine" {
  if (sandbox.wall !== "auto") return sandbox.wall;
  const isNamed = image !== undefined || engine_socket !== undefined;
  return isNamed || isInOwnImage ? "engine" : "bubblewrap";
}

function notInstalled(agent: Agent, server: AgentServer | null, path: string): MachineError | null {
  const { name, title } = agent;
  const program = server?.program ?? agent.program;
  if (findOnPath(program, path) !== null) return null;
  const adapter = server?.package ?? null;
  const lacks = adapter === null ? "is not installed" : "cannot be hosted yet";
  const install = installCommand({ package: adapter ?? agent.package });
  return new MachineError("AGENT_MISSING", `${title} ${lacks}: there is no ${program} on PATH.`, {
    hint: `Install it with \`${install}\`, or make an image that has it: \`podbot image build --agents ${name}\`.`,
    details: { agent: name, program },
  });
}

/** The caller stands in a directory, not in a name: whoever can rename the one must not choose the other. */
function refuseMoved({ cwdIdentity }: Pick<SandboxOptions, "cwdIdentity">, { cwd, nodes }: Survey): void {
  if (cwdIdentity === undefined || nodes[cwd]?.identity === cwdIdentity) return;
  throw new WallError("PATH_CHANGED", `${cwd} is no longer the directory that you stand in.`, {
    hint: "Nothing was started. Go to the directory again, and find out who moves it.",
    details: { cwd },
  });
}
