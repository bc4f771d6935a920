import { createHash } from "node:crypto";

/** What an image must know of an agent: the table of agents has more. */
export interface ImageAgent {
  readonly name: string;
  readonly title: string;
  readonly program: string;
  /** Arguments that make it print its version. */
  readonly version: readonly string[];
  readonly package: {
    readonly name: string;
    readonly version: string;
    /** Whether it works only after its own install script. */
    readonly scripts: boolean;
    readonly debian: readonly string[];
  };
  /** A program of an earlier layer, and the variable that leads there: then its package need not bring another. */
  readonly uses?: { readonly variable: string; readonly program: string } | null;
}

/** A file of the build's context. */
export interface ContextFile {
  readonly name: string;
  readonly mode: number;
  readonly content: Buffer;
}

/** All that decides what an image holds. */
export interface Recipe {
  /** The agents, in the order of their layers. */
  readonly agents: readonly ImageAgent[];
  /** The whole text, with a layer for each agent. */
  readonly containerfile: string;
  /** What the build may copy, the Containerfile among it. */
  readonly context: readonly ContextFile[];
}

/**
 * Every agent has a layer of its own, always in the same order: whoever adds one at the end has only that one built.
 * Packages for one architecture alone are taken for this one.
 */
export function makeRecipe(
  template: string,
  files: readonly ContextFile[],
  agents: readonly ImageAgent[],
  arch: string,
): Recipe {
  const chosen = agents.map((agent) => forArchitecture(agent, arch));
  const containerfile = [template.trimEnd(), ...chosen.map(layerOf)].map((part) => `${part}\n`).join("\n");
  const own = { name: "Containerfile", mode: 0o644, content: Buffer.from(containerfile) };
  return { agents: chosen, containerfile, context: [own, ...files] };
}

function forArchitecture(agent: ImageAgent, arch: string): ImageAgent {
  const name = agent.package.name.replace(/-linux-x64$/, `-linux-${arch}`);
  return { ...agent, package: { ...agent.package, name } };
}

function layerOf({ title, program, version, uses = null, package: wanted }: ImageAgent): string {
  const { name, version: pinned, scripts, debian } = wanted;
  const words = [
    "sh",
    "/usr/local/lib/podbot/install-agent",
    `${name}@${pinned}`,
    ...(scripts ? ["--scripts"] : []),
    ...(uses === null ? [] : ["--uses", `${uses.variable}=${uses.program}`]),
    ...debian.flatMap((each) => ["--debian", each]),
    "--",
    program,
    ...version,
  ];
  return `# ${title}\nRUN ${words.map(quoted).join(" ")}`;
}

/** As a word of a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The same for the same: what two images of equal inputs hold differs only by what the world outside has changed. */
export function inputsHash({ context }: Recipe, baseId: string): string {
  const hash = createHash("sha256");
  hash.update(`podbot image 1\0${baseId}\0`);
  for (const { name, mode, content } of context) hash.update(`${name}\0${mode}\0${content.length}\0`).update(content);
  return hash.digest("hex");
}

export const labelNames = {
  inputs: "org.podbot.inputs",
  agents: "org.podbot.agents",
  software: "org.podbot.software",
  base: "org.podbot.base",
} as const;

export function labelsFor(
  { agents }: Recipe,
  made: { readonly inputs: string; readonly base: string; readonly software: Readonly<Record<string, string>> },
): Readonly<Record<string, string>> {
  return {
    [labelNames.inputs]: made.inputs,
    [labelNames.base]: made.base,
    [labelNames.agents]: JSON.stringify(agentVersions(agents)),
    [labelNames.software]: JSON.stringify(made.software),
  };
}

function agentVersions(agents: readonly ImageAgent[]): Readonly<Record<string, string>> {
  return Object.fromEntries(agents.map((agent) => [agent.name, agent.package.version]));
}

/** What a label says of names and versions. Whoever wrote another into it gets nothing. */
export function versionsIn(label: string | undefined): Readonly<Record<string, string>> {
  let value: unknown;
  try {
    value = JSON.parse(label ?? "{}");
  } catch {
    return {};
  }
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, version]) => (typeof version === "string" ? [[name, version]] : [])),
  );
}
