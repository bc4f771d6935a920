import type { PlannedSandbox } from "../keeper/sandbox.ts";

/** Why each decision fell as it did, for `--debug`. */
export function explain({ plan, loaded }: PlannedSandbox): string {
  const line = (phase: string, text: string) => `podbot(${phase}): ${text}`;
  return [
    ...(loaded.files.length > 0
      ? loaded.files.map((file) => line("config", `read ${file}`))
      : [line("config", "no configuration files; defaults hold")]),
    line("wall", `${plan.wall}, root ${plan.root}, working directory ${plan.cwd}`),
    line("network", `${plan.network.mode} (${plan.network.origin})`),
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
