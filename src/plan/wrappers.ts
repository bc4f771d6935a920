import type { CommandRule } from "../policy/commands.ts";
import { isWithin, nameOf } from "../policy/paths.ts";
import type { Survey, Target } from "../survey/survey.ts";
import { bind, type Ground } from "./lay.ts";
import type { CommandDecision, Operation } from "./plan.ts";
import type { Request } from "./request.ts";

/** Podbot's own corner inside. */
export const corner = "/run/podbot";

/** Where a session's token is seen, and the program that answers git with it. */
export const secretsInside = "/run/secrets";
export const askpassInside = `${corner}/git-askpass`;

/** One line of the table that the shim reads: which program it stands for, and what to do instead. */
type Row = readonly [
  target: string,
  command: string,
  kind: "deny" | "script" | "git" | "check",
  real: string,
  interpreter: string,
  interpreterArgument: string,
  script: string,
];

/** What the shim needs for all wrapped commands. */
export interface Wrapping {
  readonly rows: readonly Row[];
  readonly operations: readonly Operation[];
  readonly decisions: readonly CommandDecision[];
}

/** Puts the shim over every program that a wrapped command's name leads to, as far as it can be seen inside. */
export function wrapCommands(request: Request, survey: Survey, ground: Ground): Wrapping {
  const visible = new Map(
    request.commands.map(({ name }) => [
      name,
      (survey.targets[name] ?? []).filter(({ path }) => ground.territory.shows(path)),
    ]),
  );
  const reals = new Map(
    [...visible].flatMap(([name, targets]) =>
      targets.map((target, at) =>
        realOf(name, alone(target, survey, ground) ? { ...target, package: null } : target, at),
      ),
    ),
  );
  const interpreters = new Set(Object.values(survey.scripts).map(({ interpreter }) => interpreter));
  const rows: Row[] = [];
  const operations: Operation[] = [];
  const decisions: CommandDecision[] = [];
  for (const command of request.commands) {
    const targets = visible.get(command.name) as readonly Target[];
    const why = describeCommand(command);
    decisions.push({ command: command.name, rule: why, targets: targets.map(({ path }) => path) });
    const script = command.kind === "script" ? survey.scripts[command.name] : undefined;
    if (command.kind === "script" && script !== undefined && targets.length > 0) {
      operations.push(bind(script.path, scriptPath(command.name), "ro", script.identity, why));
    }
    for (const target of targets) {
      const real = needsReal(command, target, interpreters) ? (reals.get(target.path) as Real) : null;
      if (real !== null && !operations.some(({ target: mounted }) => mounted === real.mount)) {
        operations.push(bind(real.source, real.mount, "ro", real.identity, `the real ${command.name}`));
      }
      const interpreter = script === undefined ? "" : (reals.get(script.interpreter)?.path ?? script.interpreter);
      rows.push([
        target.path,
        command.name,
        command.kind === "preset" ? "git" : command.kind,
        real?.path ?? "",
        interpreter,
        script?.interpreterArgument ?? "",
        command.kind === "script" ? scriptPath(command.name) : "",
      ]);
    }
  }
  const covered = new Set(rows.map(([target]) => target));
  const shim = survey.nodes[request.native.shim]?.identity ?? null;
  for (const target of covered) operations.push(bind(request.native.shim, target, "ro", shim, "wrapped command"));
  return { rows, operations, decisions };
}

/** Whether the package around a program holds more than may be seen: then the program is mounted without it. */
function alone({ package: around }: Target, survey: Survey, { territory }: Ground): boolean {
  return around !== null && (isWithin(survey.home, around.path) || territory.below(around.path).length > 0);
}

interface Real {
  /** Where the real program is executed from. */
  readonly path: string;
  readonly source: string;
  readonly mount: string;
  readonly identity: string;
}

function realOf(name: string, target: Target, at: number): readonly [string, Real] {
  const mount = at === 0 ? `${corner}/real/${name}` : `${corner}/copies/${at}/${name}`;
  if (target.package === null)
    return [target.path, { path: mount, source: target.path, mount, identity: target.identity }];
  const { path: source, identity } = target.package;
  return [target.path, { path: `${mount}${target.path.slice(source.length)}`, source, mount, identity }];
}

/** A blocked program that also answers to other names (busybox), or that runs a wrapper's script, must still do so. */
function needsReal(command: CommandRule, target: Target, interpreters: ReadonlySet<string>): boolean {
  return command.kind !== "deny" || nameOf(target.path) !== command.name || interpreters.has(target.path);
}

function scriptPath(name: string): string {
  return `${corner}/wrappers/${name}`;
}

export function describeCommand(command: CommandRule): string {
  if (command.kind === "deny") return `${command.name} is blocked`;
  if (command.kind === "preset") return `${command.name} is guarded by ${command.preset}`;
  return `${command.name} is replaced by ${command.script}`;
}

/** The table as the shim reads it: seven NUL-terminated words a row. */
export function tableText(rows: readonly Row[]): string {
  return rows.map((row) => row.map((word) => `${word}\0`).join("")).join("");
}
