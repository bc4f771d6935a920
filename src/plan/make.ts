import type { Survey } from "../survey/survey.ts";
import { decide, unguarded } from "./decide.ts";
import { bind, layGround } from "./lay.ts";
import type { Operation, Plan } from "./plan.ts";
import type { Request } from "./request.ts";
import { findWarnings, replaceableLinks } from "./warnings.ts";
import { refuseWidening } from "./widening.ts";
import { corner, tableText, type Wrapping, wrapCommands } from "./wrappers.ts";

/** Chooses; reads nothing. The same request and survey always give the same plan. */
export function makePlan(request: Request, survey: Survey): Plan {
  const verdicts = decide(request, survey);
  refuseWidening(request, survey, verdicts);
  const ground = layGround(request, survey, verdicts);
  const wrapping = wrapCommands(request, survey, ground);
  return freeze({
    version: 1,
    wall: "bubblewrap",
    root: request.root,
    cwd: survey.cwd,
    home: survey.home,
    command: [...request.command],
    network: { ...request.network },
    nesting: request.nesting,
    graceMs: request.graceMs,
    acceptedGaps: [...request.acceptedGaps],
    variables: request.variables.map((variable) => ({ ...variable })),
    kept: ground.kept,
    held: ground.held,
    operations: [
      ...ground.operations,
      ...ownCorner(request, survey, wrapping),
      ...handedIn(request, survey),
      ...ground.seals,
      ...closedCorner(),
    ],
    paths: ground.paths,
    commands: wrapping.decisions,
    watched: unguarded(request, survey),
    links: Object.fromEntries(
      replaceableLinks(survey, ground, verdicts).flatMap((path) =>
        (survey.matches[path] ?? []).map((to) => [path, to]),
      ),
    ),
    warnings: findWarnings(request, survey, ground, verdicts),
  });
}

/** What Podbot needs inside: the first program, the shim's table, the real programs, and a sign to be known by. */
function ownCorner(request: Request, survey: Survey, wrapping: Wrapping): readonly Operation[] {
  const why = "Podbot's own corner";
  const native = (program: string, target: string): Operation =>
    bind(program, target, "ro", survey.nodes[program]?.identity ?? null, why);
  const sign = { inside: true, wall: "bubblewrap", root: request.root, network: request.network.mode };
  const podbot = `${corner}/bin/podbot`;
  return [
    { kind: "tmpfs", target: corner, mode: 0o755, why },
    ...["bin", "copies", "real", "wrappers"].map(
      (name): Operation => ({ kind: "directory", target: `${corner}/${name}`, mode: 0o755, why }),
    ),
    { kind: "file", target: `${corner}/sandbox.json`, content: `${JSON.stringify(sign)}\n`, mode: 0o444, why },
    {
      kind: "file",
      target: `${corner}/commands`,
      content: tableText([[podbot, "podbot", "check", "", "", "", ""], ...wrapping.rows]),
      mode: 0o444,
      why,
    },
    native(request.native.enter, `${corner}/enter`),
    native(request.native.shim, podbot),
    ...wrapping.operations,
  ];
}

/** Searchable but not listable: no boundary, only one hint fewer. */
function closedCorner(): readonly Operation[] {
  const why = "nothing there changes or can be listed";
  return [
    ...["copies", "real", "wrappers"].map(
      (name): Operation => ({ kind: "mode", target: `${corner}/${name}`, mode: 0o111, why }),
    ),
    { kind: "seal", target: corner, why },
  ];
}

function handedIn(request: Request, survey: Survey): readonly Operation[] {
  const operations: Operation[] = [];
  const { resolver } = survey;
  if (resolver !== null) {
    operations.push(
      bind(resolver, resolver, "ro", survey.nodes[resolver]?.identity ?? null, "names are resolved as on the host"),
    );
  }
  for (const socket of request.dockerSocket === null ? [] : (survey.matches[request.dockerSocket] ?? [])) {
    operations.push(bind(socket, socket, "rw", survey.nodes[socket]?.identity ?? null, "--docker hands the engine in"));
  }
  return operations;
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
