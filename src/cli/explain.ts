import type { PlannedSandbox } from "../keeper/planned.ts";
import type { Plan } from "../plan/plan.ts";
import type { ProxyPlan } from "../plan/request.ts";
import type { NetworkRule } from "../policy/network.ts";

/** Why each decision fell as it did, for `--debug`. */
export function explain({ plan, loaded }: PlannedSandbox): string {
  const line = (phase: string, text: string) => `podbot(${phase}): ${text}`;
  return [
    ...(loaded.files.length > 0
      ? loaded.files.map((file) => line("config", `read ${file}`))
      : [line("config", "no configuration files; defaults hold")]),
    line(
      "wall",
      `${plan.wall}, root ${plan.root}, working directory ${plan.clone === null ? plan.cwd : plan.directory}`,
    ),
    ...(plan.clone === null ? [] : [line("clone", `${plan.clone.branch} of ${plan.clone.url}`)]),
    ...describeNetwork(plan).map((text) => line("network", text)),
    ...plan.paths.map(({ path, access, rule, origin, layer, beaten, mounted }) =>
      line(
        "path",
        [
          `${access.padEnd(7)} ${path}: ${rule} (${origin}, ${layer})`,
          mounted ? "" : "; already so",
          beaten.length > 0 ? `; it beat ${beaten.join(" and ")}` : "",
        ].join(""),
      ),
    ),
    ...plan.held.map(({ path }) => line("path", `held    ${path}: does not exist and must not come into being`)),
    ...plan.commands.map(({ rule, targets }) =>
      line("command", `${rule}: ${targets.length > 0 ? targets.join(", ") : "not found, nothing to do"}`),
    ),
    ...plan.variables.map(({ name, from }) => line("environment", `${name} from ${from}`)),
    line("start", `${plan.operations.length} operations; --dry-run prints them`),
    "",
  ].join("\n");
}

/** What may be reached, each rule with whoever says so. */
export function describeNetwork({ network: { mode, origin, policy, proxy } }: Plan): readonly string[] {
  return [
    `${mode} (${origin})`,
    ...(policy?.rules ?? []).map((rule) => `${describeRule(rule)} (${rule.origin})`),
    ...(policy?.secrets ?? []).map(
      ({ name, hosts, headers }) => `secret ${name} is put in on ${hosts.join(", ")}, in ${headers.join(", ")}`,
    ),
    ...Object.entries(policy?.reach ?? {}).map(([name, to]) => `reach  ${name} at ${to}`),
    ...(proxy === undefined ? [] : describeProxy(proxy)),
  ];
}

function describeProxy({ url, origin, direct, gap }: ProxyPlan): readonly string[] {
  const but = direct.length === 0 ? "" : `, but not to ${direct.join(", ")}`;
  return [`proxy  ${url} (${origin})${but}`, `proxy  ${gap}`];
}

function describeRule({ host, ports, paths, methods, deny, local }: NetworkRule): string {
  return [
    `${deny ? "deny " : "allow"}  `,
    ...(methods === null ? [] : [`${methods.join(",")} `]),
    host.includes(":") ? `[${host}]` : host,
    ...(ports.length === 0 ? [] : [`:${ports.join(",")}`]),
    ...(paths === null ? [] : [` ${paths.join(" ")}`]),
    ...(local ? [", also at private addresses"] : []),
  ].join("");
}
