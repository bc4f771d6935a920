import type { Agent } from "../agents/agent.ts";
import { nearestName } from "../config/nearest.ts";
import type { Config, Layer, LoadedConfig } from "../config/types.ts";
import type { IsWritable } from "../machine/owners-file.ts";
import type { NetworkMode, NetworkPlan, ProxyPlan, Variable } from "../plan/request.ts";
import { passedByDefault, passes } from "../policy/environment.ts";
import { canonicalHost } from "../policy/hosts.ts";
import { doorPorts, type NetworkPolicy, type NetworkRule } from "../policy/network.ts";
import { chooseNetworkPresets, type RegistryKind } from "../policy/network-presets.ts";
import { readBinding, readDomain, readReach, readRule } from "../policy/network-rules.ts";
import { javaOptions, trustVariables } from "../policy/trust-variables.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { originOf } from "./origin.ts";

export interface NetworkContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Whether an agent may write at a path: what lies there says nothing about what may be reached. */
  readonly isWritable: IsWritable;
  /** The agent that is run, where it is a known one. */
  readonly agent: Agent | undefined;
  /** What a clone needs. */
  readonly cloning?: readonly NetworkRule[];
  /** The owner's proxy. */
  readonly upstream?: Upstream | null;
}

export interface ComposedNetwork {
  readonly network: NetworkPlan;
  readonly warnings: readonly string[];
  /** What package managers inside must be told, since their settings stay outside. */
  readonly variables: Readonly<Record<string, string>>;
}

/** What may be reached, out of all that was said about it. Reads settings of package managers only where a preset asks. */
export async function composeNetwork(loaded: LoadedConfig, context: NetworkContext): Promise<ComposedNetwork> {
  const { mode, origin } = chooseMode(loaded);
  const { config, layers } = loaded;
  if (mode === "none" || mode === "open") {
    const warnings = mode === "open" ? unkept(layers.flatMap(writtenRules)) : [];
    return { network: { mode, origin, policy: null, ports: [] }, warnings, variables: {} };
  }
  const presets = chooseNetworkPresets(config.network.presets, nearestName);
  const registries = await registryRules(presets.registries, context);
  const policy: NetworkPolicy = {
    learn: mode === "learn",
    rules: [
      ...agentRules(context.agent),
      ...(context.cloning ?? []),
      ...modelRules(config, context),
      ...presets.rules,
      ...registries.rules,
      ...layers.flatMap(domainRules),
      ...layers.flatMap(writtenRules),
    ],
    secrets: Object.entries(config.secrets).flatMap(([name, secret]) => readBinding(name, secret) ?? []),
    reach: readReach(config.network.reach),
  };
  const { warnings, variables } = registries;
  const proxy = context.upstream ? { proxy: proxyPlan(context.upstream) } : {};
  return { network: { mode, origin, policy, ports: doorPorts(policy), ...proxy }, warnings, variables };
}

/** Where a name leads that goes to a proxy, the proxy decides. That stops nothing, and is said. */
function proxyPlan({ shown, origin, exceptions }: Upstream): ProxyPlan {
  return {
    url: shown,
    origin,
    direct: exceptions.words,
    gap: "Names are resolved once more by the proxy: private addresses are refused as far as this machine knows what a name leads to, and beyond that only if the proxy refuses them.",
  };
}

/** With the variables by which programs find whom to trust. What the owner himself has set or passed on stays his. */
export function withTrust(mode: NetworkMode, hasJava: boolean, variables: readonly Variable[]): readonly Variable[] {
  if (mode === "none" || mode === "open") return variables;
  const isOwners = ({ name, from }: Variable) => from !== "caller" || !passes(name, passedByDefault);
  const kept = variables.filter((variable) => !Object.hasOwn(trustVariables, variable.name) || isOwners(variable));
  const names = new Set(kept.map(({ name }) => name));
  const wanted = Object.entries(trustVariables).filter(([name]) => hasJava || name !== javaOptions);
  const added = wanted.filter(([name]) => !names.has(name));
  return [...kept, ...added.map(([name, value]): Variable => ({ name, from: "plan", value }))];
}

/** With what package managers are told. What the owner has set or passed on stays his. */
export function withSettings(
  settings: ComposedNetwork["variables"],
  variables: readonly Variable[],
): readonly Variable[] {
  const names = new Set(variables.map(({ name }) => name.toLowerCase()));
  const added = Object.entries(settings).filter(([name]) => !names.has(name.toLowerCase()));
  return [...variables, ...added.map(([name, value]): Variable => ({ name, from: "plan", value }))];
}

/** Whoever allows a host on the command line, and says nothing else, wants it to be reached. */
export function chooseMode(loaded: LoadedConfig): { readonly mode: NetworkMode; readonly origin: string } {
  const { mode } = loaded.config.network;
  const flags = networkOf(loaded.layers.find(({ name }) => name === "flag"));
  const isAsked = (flags.domains?.length ?? 0) > 0 && flags.mode === undefined;
  if (mode === "none" && isAsked) return { mode: "allowlist", origin: "--allow" };
  return { mode, origin: originOf(loaded, "network.mode") };
}

/** The hosts that an agent cannot work without. */
function agentRules(agent: Agent | undefined): readonly NetworkRule[] {
  return (agent?.hosts ?? []).map((host) => readRule({ host, port: 443 }, `agent ${agent?.name}`));
}

/** Where the owner has the agent find its model, that is meant to be reached: one of his own, say, on this machine. */
function modelRules({ environment, agent: settings }: Config, { agent, env }: NetworkContext): readonly NetworkRule[] {
  const patterns = [...environment.pass, ...settings.env_allowlist];
  return (agent?.keys ?? []).flatMap((name) => {
    const set = environment.set[name];
    const passed = set === undefined && passes(name, patterns) ? env[name] : undefined;
    const place = name.endsWith("_BASE_URL") ? readPlace(set?.kind === "literal" ? set.value : passed) : null;
    return place === null ? [] : [readRule({ ...place, local: true }, `${name}, which the agent is given`)];
  });
}

function readPlace(address: string | undefined): { readonly host: string; readonly port: number } | null {
  if (address === undefined || !URL.canParse(address)) return null;
  const { protocol, hostname, port } = new URL(address);
  const host = canonicalHost(hostname.replace(/^\[|\]$/g, ""));
  const usual = { "http:": 80, "https:": 443 }[protocol];
  return host === null || usual === undefined ? null : { host, port: port === "" ? usual : Number(port) };
}

/** What a rule denies, nothing denies where there is no gateway: that must not look as if it did. */
function unkept(rules: readonly NetworkRule[]): readonly string[] {
  return rules
    .filter(({ deny }) => deny)
    .map(({ host, origin }) => `${origin}: "${host}" is not denied: with network.mode = "open" nothing is.`);
}

function domainRules(layer: Layer): readonly NetworkRule[] {
  const origin = layer.name === "flag" ? "--allow" : `network.domains of ${layer.source}`;
  return (networkOf(layer).domains ?? []).map((written) => readDomain(written, origin));
}

function writtenRules(layer: Layer): readonly NetworkRule[] {
  return (networkOf(layer).rules ?? []).map((rule) => readRule(rule, `network.rules of ${layer.source}`));
}

/** Layers are kept with their shorthands written out. */
function networkOf(layer: Layer | undefined): Partial<LoadedConfig["config"]["network"]> {
  const network = layer?.value.network;
  return typeof network === "object" ? network : {};
}

async function registryRules(
  kinds: readonly RegistryKind[],
  { env, home, isWritable }: NetworkContext,
): Promise<{ readonly rules: readonly NetworkRule[] } & Pick<ComposedNetwork, "warnings" | "variables">> {
  if (kinds.length === 0) return { rules: [], warnings: [], variables: {} };
  const { readRegistries } = await import("../machine/registries.ts");
  const found = await readRegistries(kinds, { env, home, isWritable });
  return {
    rules: found.flatMap(({ kind, places }) =>
      places.map(({ host, port, path, hearsay }) =>
        // What the owner's own settings name may well be a mirror in the house.
        readRule({ host, port, local: hearsay !== true, ...(path === null ? {} : { path }) }, `preset @${kind}`),
      ),
    ),
    warnings: found.flatMap(({ kind, lacks }) => (lacks === null ? [] : [`preset @${kind}: ${lacks}`])),
    variables: Object.assign({}, ...found.map(({ variables }) => variables)),
  };
}
