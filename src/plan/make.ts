import { resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import { isBelow, isWithin, parentOf } from "../policy/paths.ts";
import { javaOptions, trustPlaces } from "../policy/trust-variables.ts";
import type { Survey } from "../survey/survey.ts";
import { type ContainerPlan, containerWarnings, homeInside, planContainer } from "./container.ts";
import { decide, unguarded, type Verdict } from "./decide.ts";
import { bind, type Ground, layGround } from "./lay.ts";
import { completeUlimits } from "./limits.ts";
import type { GitSight, Operation, OwnPart, Plan } from "./plan.ts";
import { type ClonePlan, type ContainerRequest, certificateBundles, hasGateway, type Request } from "./request.ts";
import { findWarnings } from "./warnings.ts";
import { refuseWidening } from "./widening.ts";
import {
  askpassInside,
  corner,
  describeCommand,
  secretsInside,
  tableText,
  type Wrapping,
  wrapCommands,
} from "./wrappers.ts";

/** Chooses; reads nothing. The same request and survey always give the same plan. */
export function makePlan(request: Request, survey: Survey): Plan {
  const verdicts = decide(request, survey);
  refuseWidening(request, survey, verdicts);
  const ground = layGround(request, survey, verdicts);
  if (request.container !== null) return containerPlan(request, request.container, survey, ground, verdicts);
  const wrapping = wrapCommands(request, survey, ground);
  return freeze({
    version: 1,
    wall: "bubblewrap",
    ...common(request, survey, ground, verdicts),
    container: null,
    directory: request.clone?.directory ?? survey.cwd,
    home: survey.home,
    operations: [
      ...ground.operations,
      ...ownCorner(request, survey, wrapping),
      ...handedIn(request, survey),
      ...(hasGateway(request.network) && request.behindGateway !== true ? gatewayPlaces(survey, ground) : []),
      ...ground.seals,
      ...closedCorner(),
    ],
    commands: wrapping.decisions,
  });
}

/** Programs of the host's are not those of an image, so rules for commands find no targets. */
function containerPlan(
  request: Request,
  { engine, wishes, caller, machineUlimits }: ContainerRequest,
  survey: Survey,
  ground: Ground,
  verdicts: readonly Verdict[],
): Plan {
  const ulimits = completeUlimits(request.limits.ulimits, machineUlimits);
  const container = planContainer(engine, wishes, caller, ulimits);
  const directory = wishes.workspace ?? survey.cwd;
  const operations = [...ground.operations, ...ground.seals].map((operation) =>
    request.workspace === "mounted" ? moved(operation, survey.cwd, directory) : operation,
  );
  if (request.workspace === "mounted" && directory !== survey.cwd) refuseSecondLook(operations, survey.cwd);
  refuseSharedHome(operations, container);
  refuseImageVolumes(operations, container);
  const plain = common(request, survey, ground, verdicts);
  return freeze({
    version: 1,
    wall: "engine",
    ...plain,
    container,
    directory,
    home: homeInside(container),
    operations: [
      ...operations,
      ...(hasGateway(request.network) ? [resolverFile("/etc/resolv.conf")] : []),
      ...inPlaceOfEngine(request, container, operations),
      ...containerCorner(request, survey, container),
    ],
    commands: request.commands.map((command) => ({
      command: command.name,
      rule: describeCommand(command),
      targets: [],
    })),
    warnings: [...plain.warnings, ...containerWarnings(container, request.limits)],
  });
}

/** What is the same on every wall. */
function common(request: Request, survey: Survey, ground: Ground, verdicts: readonly Verdict[]) {
  return {
    session: request.session,
    root: request.root,
    workspace: request.workspace,
    clone: request.clone ? clonePlan(request.clone) : null,
    cwd: survey.cwd,
    limits: { ...request.limits },
    command: [...request.command],
    network: structuredClone(request.network),
    nesting: request.nesting,
    graceMs: request.graceMs,
    acceptedGaps: [...request.acceptedGaps],
    variables: request.variables.map((variable) => ({ ...variable })),
    kept: ground.kept,
    held: ground.held,
    paths: ground.paths,
    watched: unguarded(request, survey),
    links: Object.fromEntries(
      ground.links.map((path) => [path, survey.matches[path]?.[0] ?? survey.git?.steps[path] ?? ""]),
    ),
    git: gitSight(request, survey),
    warnings: findWarnings(request, survey, ground, verdicts),
  } as const;
}

function gitSight(request: Request, survey: Survey): GitSight | null {
  const { git, repositories } = survey;
  if (request.git.mode === "off" || request.workspace !== "mounted") return null;
  if (git === null) return { own: null, gitlinks: {}, embedded: [], repositories };
  const { entry, gitDir, commonDir, gitlinks, embedded } = git;
  // A bare repository is its own entry.
  const top = entry.path === survey.cwd ? survey.cwd : parentOf(entry.path);
  return { own: { entry: entry.path, top, gitDir, commonDir }, gitlinks, embedded, repositories };
}

function clonePlan({ repository, branch, url }: ClonePlan): ClonePlan {
  return { repository, branch, url };
}

/** A directory around the workspace would show it once more, at its own path and without any protection. */
function refuseSecondLook(operations: readonly Operation[], cwd: string): void {
  const around = operations.find((operation) => operation.kind === "bind" && isBelow(cwd, operation.source));
  if (around === undefined) return;
  throw new PolicyError("MOUNT_REFUSED", `${around.target} holds the workspace, which is mounted elsewhere inside.`, {
    hint: "Leave out workspace.container_path, or the rule for that directory.",
    details: { path: around.target },
  });
}

/** What is copied into the home inside must not come to lie in a directory of the host's. */
function refuseSharedHome(operations: readonly Operation[], container: ContainerPlan): void {
  const targets = operations.flatMap((operation) => (operation.kind === "bind" ? [operation.target] : []));
  const paths = container.credentials.map((name) => `${homeInside(container)}/${name}`);
  const path = paths.find((candidate) =>
    targets.some((target) => isWithin(candidate, target) || isWithin(target, candidate)),
  );
  if (path === undefined) return;
  throw new PolicyError(
    "MOUNT_REFUSED",
    `Credentials cannot be copied to ${path}: a directory of yours is mounted there.`,
    {
      hint: "Mount it elsewhere, or turn the copying off: creds.copy_claude, creds.copy_codex, creds.copy_agent.",
      details: { path },
    },
  );
}

/**
 * An engine gives each container an empty directory of its own where the image has a volume. Below what is mounted it
 * would hide the host's files, and swallow what is written there.
 */
function refuseImageVolumes(operations: readonly Operation[], { engine: { image } }: ContainerPlan): void {
  const targets = [corner, ...operations.flatMap((operation) => (operation.kind === "bind" ? [operation.target] : []))];
  const hides = (volume: string) => targets.some((target) => isBelow(volume, target)) && !targets.includes(volume);
  const volume = image.volumes.map((path) => resolve("/", path)).find(hides);
  if (volume === undefined) return;
  throw new PolicyError(
    "MOUNT_REFUSED",
    `The image ${image.name} has a volume at ${volume} (VOLUME), which would hide what is mounted there.`,
    {
      hint: "Build the image without it, or set workspace.container_path to a directory that has no volume of the image in it.",
      details: { path: volume, image: image.name },
    },
  );
}

/** The same operation where the workspace lies inside. */
function moved(operation: Operation, from: string, to: string): Operation {
  if (from === to || !isWithin(operation.target, from)) return operation;
  const target = to + operation.target.slice(from.length);
  return operation.kind === "mask" ? { ...operation, target, source: operation.target } : { ...operation, target };
}

/**
 * What an engine brings by itself and may have taken from the host. Podman copies the host's /etc/hosts, which names
 * machines that a box has no need to know, and what its mounts.conf names, which on some systems are the keys of a
 * subscription. A network that is open has the engine's own names, as its resolver.
 */
function inPlaceOfEngine(
  request: Request,
  { engine }: ContainerPlan,
  operations: readonly Operation[],
): readonly Operation[] {
  const isFree = (path: string) => !operations.some(({ target }) => target === path);
  const hosts = request.network.mode !== "open" && isFree(hostsFile.target);
  const secrets = engine.flavour === "podman" && request.token !== true && isFree(secretsInside);
  return [
    ...(hosts ? [hostsFile] : []),
    ...(secrets
      ? [{ kind: "tmpfs", target: secretsInside, mode: 0o555, why: "nothing of the engine's own" } as const]
      : []),
  ];
}

const hostsFile: Operation & { readonly kind: "file" } = {
  kind: "file",
  target: "/etc/hosts",
  content: "127.0.0.1 localhost podbot\n::1 localhost ip6-localhost ip6-loopback\n",
  mode: 0o444,
  over: true,
  why: "the host's own names stay outside",
};

/** One directory of the session's, in which the first program, its socket and a sign to be known by are found. */
function containerCorner(request: Request, survey: Survey, { reclaims }: ContainerPlan): readonly Operation[] {
  const why = "Podbot's own corner";
  const native = (program: string, name: string): Operation =>
    bind(program, `${corner}/${name}`, "ro", survey.nodes[program]?.identity ?? null, why);
  const sign = { inside: true, wall: "engine", root: request.root, network: request.network.mode };
  return [
    { ...inlet, target: corner },
    native(request.native.warden, "warden"),
    ...(reclaims ? [native(request.native.reclaim, "reclaim")] : []),
    ...tokenPlaces(request),
    ...trustFiles(request),
    { kind: "file", target: `${corner}/sandbox.json`, content: `${JSON.stringify(sign)}\n`, mode: 0o444, why },
  ];
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
    ...["bin", "copies", "real", "wrappers", ...(hasGateway(request.network) ? ["trust"] : [])].map(
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
    ...(request.session ? [native(request.native.warden, `${corner}/warden`), inlet] : []),
    ...wrapping.operations,
    ...trustFiles(request),
    ...tokenPlaces(request),
  ];
}

/** A directory and not a file: each new token takes the place of the one before by its name, which a mounted file keeps. */
function tokenPlaces({ token }: Request): readonly Operation[] {
  if (token !== true) return [];
  const own = (part: OwnPart, target: string): Operation => {
    return { kind: "own", part, target, access: "ro", why: "the session's token for git" };
  };
  return [own("secrets", secretsInside), own("askpass", askpassInside)];
}

/** The session's authority, in each form that programs read. */
function trustFiles({ network, variables }: Request): readonly Operation[] {
  if (!hasGateway(network)) return [];
  const hasJava = variables.some(({ name, from }) => name === javaOptions && from === "plan");
  return Object.values(trustPlaces)
    .filter((target) => hasJava || target !== trustPlaces.truststore)
    .map((target) => ({ kind: "trust", target, why: "the gateway's certificates are trusted" }));
}

/**
 * What the host has in these places speaks of a network that the box does not have. In a sandbox with a gateway they are
 * right already for names; for roots, variables lead to the box's own.
 */
function gatewayPlaces({ matches, resolver }: Survey, { territory }: Ground): readonly Operation[] {
  const bundles = new Set(certificateBundles.flatMap((path) => matches[path] ?? []));
  return [
    ...[...bundles]
      .filter((path) => territory.shows(path))
      .map((target): Operation => ({ kind: "trust", target, why: "the gateway's certificates are trusted" })),
    // Without any, names are asked for at 127.0.0.1, where the gateway answers as well.
    ...(resolver === null ? [] : [resolverFile(resolver)]),
  ];
}

function resolverFile(target: string): Operation {
  const content = `nameserver ${resolverAddress}\noptions timeout:2 attempts:2\n`;
  return { kind: "file", target, content, mode: 0o444, over: true, why: "names are answered by the gateway" };
}

/** Nobody's address, kept for tests of networks: there is no other way to take it for somebody's. */
const resolverAddress = "198.18.0.1";

const inlet: Operation = { kind: "inlet", target: `${corner}/in`, why: "the warden dials out through here" };

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
  const node = resolver === null ? undefined : survey.nodes[resolver];
  // /run is private inside.
  if (resolver !== null && node !== undefined && request.network.mode === "open" && isWithin(resolver, "/run")) {
    operations.push(bind(resolver, resolver, "ro", node.identity, "names are resolved as on the host"));
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
