import { isAddress, matchesHost } from "../policy/hosts.ts";
import { type Destination, type NetworkPolicy, needsInspection, type Verdict } from "../policy/network.ts";
import type { Authority } from "./authority.ts";
import type { Outside } from "./dial.ts";
import type { Ledger } from "./ledger.ts";
import type { Limits } from "./limits.ts";
import type { MaskedSecret } from "./masking.ts";
import type { Names } from "./names.ts";

/** What every part of a gateway goes by. */
export interface Context {
  /** May be another after a reload: who judges asks anew. */
  readonly policy: () => NetworkPolicy;
  /** May be others after one was replaced: who looks for them asks anew. */
  readonly secrets: () => readonly MaskedSecret[];
  readonly names: Names;
  readonly authority: Authority;
  readonly outside: Outside;
  readonly ledger: Ledger;
  readonly limits: Limits;
  /** Whether nobody would ever know of what is let through now. Then nothing is. */
  readonly isBlind: () => boolean;
}

/** The secrets that belong to a host. What it answers is searched for them. */
export function secretsFor({ secrets }: Context, host: string): readonly MaskedSecret[] {
  return secrets().filter(({ hosts }) => hosts.some((pattern) => matchesHost(pattern, host)));
}

/** Whether requests there must be seen. */
export function looksInto(context: Context, to: Destination): boolean {
  return needsInspection(context.policy(), to) || secretsFor(context, to.host).length > 0;
}

/** An address that a rule names by itself is meant, wherever it lies. */
export function mayBeLocal({ rule, local }: Extract<Verdict, { kind: "allow" }>, host: string): boolean {
  return local || (rule?.host === host && isAddress(host));
}
