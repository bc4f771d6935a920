import { join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { statePath } from "../config/paths.ts";
import type { LoadedConfig } from "../config/types.ts";
import { WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { detectSandbox, type Inside } from "../machine/inside.ts";
import { findBwrap, findNativePrograms, requireLinux } from "../machine/programs.ts";
import { makePlan } from "../plan/make.ts";
import type { Plan } from "../plan/plan.ts";
import { questions } from "../plan/request.ts";
import type { Survey } from "../survey/survey.ts";
import { takeSurvey } from "../survey/take.ts";
import { BubblewrapWall } from "../wall/bubblewrap/wall.ts";
import type { Birth, Exit, Stdio } from "../wall/wall.ts";
import { composeRequest, refuseNested, type SandboxOptions } from "./request.ts";
import { homeOf, resolved } from "./standpoint.ts";
import { resolveVariables } from "./variables.ts";

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
  const inside = detectSandbox();
  const home = homeOf(env);
  const cwd = resolved(options.cwd);
  const native = findNativePrograms();
  const bwrap = findBwrap(env["PATH"] ?? "");
  const loaded = await loadConfig({
    cwd,
    home,
    env,
    ...(options.configFile === undefined ? {} : { configFile: options.configFile }),
    ...(options.config === undefined ? {} : { overrides: options.config }),
  });
  refuseNested(loaded.config, inside);
  const { state, held } = stateOf(env, home, inside);
  const request = composeRequest(options, loaded, { home, cwd, state, held, native, nested: inside !== null });
  const survey = takeSurvey(questions(request));
  refuseMoved(options, survey);
  const plan = makePlan(request, survey);
  const wall = new BubblewrapWall({ bwrap, native, heldDirectory: held });
  return {
    plan,
    loaded,
    warnings: [...loaded.warnings, ...plan.warnings],
    script: () => wall.script(plan),
    run: (stdio, birth) => wall.run(plan, { ...birth, env: resolveVariables(plan, loaded.config, env) }, stdio),
  };
}

/**
 * Where Podbot keeps things. Claims on held names lie where every Podbot of this user finds them, whatever HOME says.
 * Inside another sandbox all of that is read-only; what is kept there lives as long as the outer one.
 */
function stateOf(
  env: SandboxOptions["env"],
  home: string,
  inside: Inside | null,
): { readonly state: string; readonly held: string } {
  if (inside !== null) return { state: "/tmp/podbot-state", held: "/tmp/podbot-state/held" };
  return { state: statePath(env, home), held: join(thisHost().systemHome, ".local/state/podbot/held") };
}

/** The caller stands in a directory, not in a name: whoever can rename the one must not choose the other. */
function refuseMoved({ cwdIdentity }: SandboxOptions, { cwd, nodes }: Survey): void {
  if (cwdIdentity === undefined || nodes[cwd]?.identity === cwdIdentity) return;
  throw new WallError("PATH_CHANGED", `${cwd} is no longer the directory that you stand in.`, {
    hint: "Nothing was started. Go to the directory again, and find out who moves it.",
    details: { cwd },
  });
}
