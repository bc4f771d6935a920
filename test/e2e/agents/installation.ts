import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { knownAgent } from "../../../src/agents/table.ts";

const directory = resolve(".make/e2e/agents");

/** The agents that take real turns. */
const agentNames = ["claude", "codex", "opencode", "goose"] as const;
export type AgentName = (typeof agentNames)[number];

/** How long npm may take. A registry that does not answer must not hold up everything. */
const timeoutMs = 5 * 60_000;

/**
 * Installs these agents, each in the version that Podbot names, once, and again when a version changes. This happens
 * before the tests, which have no need of a registry then.
 */
export function installAgents(): void {
  mkdirSync(directory, { recursive: true });
  const script = `test -e "$1" || { rm -rf "$1.part" && npm install $2 --prefix "$1.part" && mv "$1.part" "$1"; }`;
  // Some ask for a later Node than this one. Their programs are native, so npm's check does not matter.
  const options = "--no-engine-strict --no-save --no-audit --no-fund --loglevel=error";
  // Two runs of one checkout may begin at the same time: one installs, the other waits and finds it done.
  const lock = [
    "flock",
    join(directory, "lock"),
    "sh",
    "-c",
    script,
    "sh",
    place(),
    [options, ...packages()].join(" "),
  ];
  // npm ends with this process, which an interrupt of the terminal ends at once.
  const bounded = ["--pdeathsig", "TERM", "timeout", "--kill-after=10", `${timeoutMs / 1_000}`, ...lock];
  const said: string[] = [];
  for (let tries = 0; tries < 2; tries++) {
    const { status, stdout, stderr } = spawnSync("setpriv", bounded, {
      // Installing one of them starts it, and it creates directories for its settings.
      env: { ...process.env, ...ownDirectories(join(directory, "settings")) },
      encoding: "utf8",
    });
    if (status === 0) return;
    said.push(status === 124 ? `npm did not end within ${timeoutMs / 1_000} s` : `${stdout}${stderr}`);
  }
  throw new Error(`the agents cannot be installed:\n${said.join("\n")}`);
}

function ownDirectories(place: string): Readonly<Record<string, string>> {
  const names = ["CONFIG", "DATA", "STATE", "CACHE"];
  return Object.fromEntries(names.map((name) => [`XDG_${name}_HOME`, join(place, name.toLowerCase())]));
}

function packages(): readonly string[] {
  return [...agentNames.flatMap(packagesOf), oldAdapter];
}

/** Where they are, by the versions of all. */
function place(): string {
  return join(directory, createHash("sha256").update(packages().join(" ")).digest("hex").slice(0, 16));
}

/** The directory with their programs. */
function programs(): string {
  const path = join(place(), "node_modules/.bin");
  if (!existsSync(path)) throw new Error("the agents are not installed: make e2e-agents");
  return path;
}

/** The agent, and what makes it a server for editors. */
function packagesOf(name: AgentName): readonly string[] {
  const agent = knownAgent(name);
  if (agent === undefined) throw new Error(`Podbot does not know ${name}`);
  return [agent.package, ...(agent.acp.package === null ? [] : [agent.acp.package])].map(
    (one) => `${one.name}@${one.version}`,
  );
}

/** The old ACP adapter of Claude Code. Podbot uses another one; this one uses everything that a client offers. */
const oldAdapter = "@zed-industries/claude-code-acp@0.16.2";

/** The words that start it. */
export function oldAdapterWords(): readonly string[] {
  return ["node", join(programs(), "../@zed-industries/claude-code-acp/dist/index.js")];
}

/** Shows the agents inside also where they lie in what is private there, as in a checkout below /tmp. */
export const agentsShown: readonly string[] = ["--ro", directory];

/** PATH with the agents and what they need in front. */
export function pathWithAgents(): string {
  return [programs(), dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
}
