import type { Config } from "../config/types.ts";
import { PolicyError } from "../errors.ts";
import type { AuditEntry } from "../gateway/audit.ts";
import type { TokenEvent } from "../github/refresh.ts";
import { isWritableInside } from "../plan/access.ts";
import type { Plan } from "../plan/plan.ts";
import type { NetworkPlan } from "../plan/request.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Doors } from "../wall/doors.ts";
import type { Birth, Box, BoxBirth, SessionId, TrustFile } from "../wall/wall.ts";
import type { GitHubErrand } from "./github.ts";
import { openSecrets, type SecretPool } from "./secrets.ts";
import { resolveVariables } from "./variables.ts";

export type OnAsked = (entry: AuditEntry) => void;

export interface OutsideOptions {
  readonly plan: Plan;
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly state: string;
  readonly agent: string;
  /** What is done at GitHub for each session; null: nothing. */
  readonly errand: GitHubErrand | null;
  /** The owner's proxy; null: none. */
  readonly upstream: Upstream | null;
}

/** Which session's box it is, and who hears of what. */
export interface OutsideOf {
  /** Null where there is no session. */
  readonly id: SessionId | null;
  /** The session's runtime directory. */
  readonly directory?: string;
  readonly onAsked?: OnAsked | undefined;
  readonly onToken?: ((event: TokenEvent) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What one box needs from out here: the values of its variables, and whoever answers at its doors. */
export interface Outside extends Disposable {
  readonly birth: Required<Pick<Birth, "env" | "trust" | "onDoors"> & Pick<BoxBirth, "own">>;
  readonly secrets: SecretPool;
  /** From now on, other rules; the old ones hold where these cannot. */
  replaceNetwork(network: NetworkPlan): void;
  /** Resolves when nothing is written into the session's directory any more, once this was disposed of. */
  closed(): Promise<void>;
  /** Starts a box that has this outside until it ends. */
  attach(start: () => Promise<Box>): Promise<Box>;
}

/** For one box: surrogates and certificates are its own. Without an id, it gets one by which its audit is found. */
export async function openOutside(
  { plan, config, env, home, state, agent, errand, upstream }: OutsideOptions,
  { id, directory, onAsked, onToken = () => {}, signal }: OutsideOf,
): Promise<Outside> {
  const secrets = openSecrets(config, { env, isWritableInside: (path) => isWritableInside(plan, path) });
  for (const value of upstream?.secrets ?? []) secrets.register(value);
  const { policy } = plan.network;
  // Not for a box without doors, which must not wait for what it does not use.
  const egress =
    policy === null
      ? null
      : (await import("./egress.ts")).prepareEgress({
          ...{ plan, policy, secrets, env, state, id, agent, onAsked, upstream },
        });
  const birth = {
    env: resolveVariables(plan, config, env, secrets),
    trust: [...(egress?.trust ?? []), ...(await loginsOf(plan, config, home, id !== null, secrets))],
    onDoors: (doors: Doors) => egress?.serve(doors),
  };
  // When all else is known to be right, and before anything is started: where there is none to be had, nothing is.
  const tokens =
    errand === null || id === null || directory === undefined
      ? null
      : await (await import("./tokens.ts")).keepTokens(
          { errand, plan, secrets, report: onToken, signal },
          { id, state, directory },
        );
  const outside: Outside = {
    birth: { ...birth, own: tokens?.own ?? {} },
    secrets,
    replaceNetwork: (network) => {
      if (egress === null || network.policy === null) throw notReplaced("a network mode cannot be changed");
      const port = network.ports.find((each) => !plan.network.ports.includes(each));
      if (port !== undefined) throw notReplaced(`port ${port} has no door`);
      egress.replacePolicy(network.policy);
    },
    closed: async () => tokens?.done,
    async attach(start) {
      try {
        const box = await start();
        if (box.doors !== null) egress?.serve(box.doors);
        box.exited.finally(() => outside[Symbol.dispose]()).catch(() => {});
        return box;
      } catch (error) {
        outside[Symbol.dispose]();
        await outside.closed();
        throw error;
      }
    },
    [Symbol.dispose]: () => {
      egress?.[Symbol.dispose]();
      tokens?.[Symbol.dispose]();
    },
  };
  return outside;
}

/** In a container, logins are copied; behind bubblewrap, what lies in the home is covered. */
async function loginsOf(
  plan: Plan,
  config: Config,
  home: string,
  isSession: boolean,
  secrets: SecretPool,
): Promise<readonly TrustFile[]> {
  if (plan.container !== null || config.creds.mode !== "masked") return [];
  const [{ maskTokens }, { loginNames, maskLogins }] = await Promise.all([
    import("./masked-credentials.ts"),
    import("./masked-logins.ts"),
  ]);
  const mask = maskTokens(config, secrets);
  return mask === null ? [] : maskLogins(plan, home, loginNames(config, plan, isSession), mask);
}

function notReplaced(why: string): PolicyError {
  return new PolicyError(
    "NETWORK_RULE_INVALID",
    `The rules of a running sandbox cannot be replaced by these: ${why}.`,
    {
      hint: "The old rules hold. Stop it and start it anew.",
    },
  );
}
