import type { Config } from "../config/types.ts";
import type { GitIdentity } from "../credentials/git-identity.ts";
import { WallError } from "../errors.ts";
import { findNativePrograms, type NativePrograms } from "../machine/programs.ts";
import type { ContainerPlan } from "../plan/container.ts";
import type { Plan } from "../plan/plan.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { renderEngineScript } from "../wall/engine/script.ts";
import { EngineWall } from "../wall/engine/wall.ts";
import { makeClone, unsavedWork } from "./clone.ts";
import { type EngineName, type OpenedEngine, ownerName, reopenEngine } from "./engine.ts";
import { noteEngine } from "./engine-ledger.ts";
import { addAuthority, findCopies, furnish, introduce, ownIdentity } from "./furnish.ts";
import { maskTokens } from "./masked-credentials.ts";
import type { Outside, OutsideOf } from "./outside.ts";
import type { PlannedSandbox } from "./planned.ts";
import { reclaim } from "./reclaim.ts";

export { openEngine } from "./engine.ts";

/** The wall of an engine that was used before. */
export async function reopenWall(
  name: EngineName,
  env: Owner["env"],
  { state, held }: Pick<Owner, "state" | "held">,
): Promise<AsyncDisposable & { readonly wall: EngineWall }> {
  const client = await reopenEngine(name, { env, state });
  const wall = new EngineWall({ client, native: findNativePrograms(), heldDirectory: held, owner: ownerName(state) });
  return { wall, [Symbol.asyncDispose]: async () => client[Symbol.dispose]() };
}

interface Owner {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly state: string;
  readonly held: string;
  readonly native: NativePrograms;
  readonly upstream: Upstream | null;
}

type OnEngine = Pick<PlannedSandbox, "engine" | "script" | "run" | "start" | "settle" | "leave">;

/** The part of a planned sandbox that a container engine carries out. */
export function planOnEngine(
  plan: Plan,
  { client, name, seccompProfile }: OpenedEngine & { readonly name: EngineName },
  { env, home, state, held, native, upstream }: Owner,
  config: Config,
  open: (of: OutsideOf) => Promise<Outside>,
): OnEngine {
  const wall = new EngineWall({ client, native, heldDirectory: held, owner: ownerName(state), seccompProfile });
  let identity: Promise<GitIdentity | null> | undefined;
  let copied: readonly string[] = [];
  return {
    engine: name,
    script: () => renderEngineScript(plan),
    run: () =>
      Promise.reject(
        new WallError("WALL_FAILED", "A container has streams of its own.", {
          hint: "Start a session, and attach to it.",
        }),
      ),
    start: async ({ onAsked, onOutside, onToken, ...birth }, report = () => {}) => {
      noteEngine(state, name);
      const outside = await open({ ...birth, onAsked, onToken });
      onOutside?.(outside);
      const owner = { home, maskTokens: maskTokens(config, outside.secrets) };
      return outside.attach(() =>
        wall.start(plan, {
          ...birth,
          ...outside.birth,
          furnish: async (files) => {
            const signal = birth.signal === undefined ? {} : { signal: birth.signal };
            copied = await furnish(files, plan, plan.container as ContainerPlan, { ...owner, ...signal }, report);
            // While the engine starts the container, which takes longer than all else.
            identity = new Promise((resolve) => setImmediate(() => resolve(ownIdentity(plan, env))));
          },
        }),
      );
    },
    settle: async (sandbox, settling) => {
      await Promise.all([
        addAuthority(sandbox, plan),
        introduce(sandbox, (await identity) ?? null, settling.report),
        findCopies(sandbox, copied, settling.report),
      ]);
      await makeClone(sandbox, plan, settling, upstream);
    },
    leave: async (sandbox) => [...(await reclaim(sandbox, plan)), ...(await unsavedWork(sandbox, plan))],
  };
}
