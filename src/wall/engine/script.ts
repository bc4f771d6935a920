import type { ContainerPlan } from "../../plan/container.ts";
import type { Operation, Plan } from "../../plan/plan.ts";
import { hasGateway, type Variable } from "../../plan/request.ts";
import { corner } from "../../plan/wrappers.ts";

/**
 * The plan as a command for the engine's own command line, for people to read and paste: the same container around
 * the command itself, without Podbot's first program and its corner.
 */
export function renderEngineScript(plan: Plan): string {
  const container = plan.container as ContainerPlan;
  const program = container.engine.flavour;
  const lines = [
    `${program} run --rm --interactive --entrypoint= --name podbot-by-hand`,
    ...profileFlags(container),
    ...limitFlags(plan, container),
    ...(plan.network.mode === "open" ? [] : ["--network none"]),
    `--user ${container.user.uid}:${container.user.gid}`,
    ...plan.variables.map(variableFlag),
    // Names that Podbot itself holds for the time of a run are not there when nobody does.
    ...plan.operations.filter((operation) => !isHeld(operation, plan)).flatMap(mountFlag),
    `--workdir ${quote(plan.directory)}`,
    quote(container.engine.image.name),
    plan.command.map(quote).join(" "),
  ];
  const notes = [
    "#!/usr/bin/env bash",
    `# ${container.engine.endpoint}`,
    ...(hasGateway(plan.network)
      ? ["# It opens no doors: what runs in it reaches nobody, as with --network none."]
      : []),
    ...(plan.operations.some(({ kind }) => kind === "own") ? ["# It brings no token, and clones nothing."] : []),
    "# An empty directory and an empty file, for what is hidden:",
  ];
  return [...notes, "hidden=$(mktemp -d) mask=$(mktemp)", `${lines.join(" \\\n  ")}`, ""].join("\n");
}

function profileFlags(container: ContainerPlan): readonly string[] {
  const { capabilities, runtime, engine } = container;
  return [
    ...(engine.flavour === "podman" ? ["--image-volume ignore"] : []),
    ...(runtime === null || engine.flavour === "podman" ? [] : [`--runtime ${quote(runtime)}`]),
    ...(container.readOnlyRoot ? ["--read-only --tmpfs /tmp --tmpfs /var/tmp --tmpfs /run"] : []),
    ...(capabilities === null
      ? ["--privileged"]
      : [
          `--cap-drop ALL ${capabilities.map((name) => `--cap-add ${name}`).join(" ")}`,
          `--security-opt no-new-privileges${container.keepSelinuxLabels ? "" : " --security-opt label=disable"}`,
        ]),
    ...container.devices.map((path) => `--device ${path}`),
  ];
}

function limitFlags({ limits }: Plan, { ulimits }: ContainerPlan): readonly string[] {
  return [
    ...ulimits.map(({ name, soft, hard }) => `--ulimit ${name}=${soft}:${hard}`),
    ...(limits.memoryMb === null ? [] : [`--memory ${limits.memoryMb}m --memory-swap ${limits.memoryMb}m`]),
    ...(limits.cpus === null ? [] : [`--cpus ${limits.cpus}`]),
    ...(limits.pids === null ? [] : [`--pids-limit ${limits.pids}`]),
  ];
}

/** Values that are not the plan's own are those of whoever runs it. */
function variableFlag(variable: Variable): string {
  return `--env ${variable.name}${variable.from === "plan" ? `=${quote(variable.value)}` : ""}`;
}

function isHeld(operation: Operation, { held }: Plan): boolean {
  return operation.kind === "bind" && held.some(({ path }) => path === operation.source);
}

function mountFlag(operation: Operation): readonly string[] {
  const { kind, target } = operation;
  if (target === corner || target.startsWith(`${corner}/`)) return [];
  if (kind === "bind") return [mount(field("source", operation.source), target, operation.access === "ro")];
  if (kind === "tmpfs") return [mount('source="$hidden"', target, true)];
  return kind === "mask" ? [mount('source="$mask"', target, true)] : [];
}

function mount(source: string, target: string, isReadOnly: boolean): string {
  return `--mount type=bind,${source},${field("target", target)}${isReadOnly ? ",readonly" : ""}`;
}

/** Options of a mount are a line of CSV, in which a comma would begin another. */
function field(name: string, value: string): string {
  const text = `${name}=${value}`;
  return quote(/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
}

function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
