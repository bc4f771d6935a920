import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { knownAgent } from "../../../src/agents/table.ts";

const directory = resolve(".make/e2e/agents");

/** The agents that take real turns. */
const agentNames = ["claude", "codex", "opencode", "goose"] as const;
export type AgentName = (typeof agentNames)[number];

/**
 * The directory with the programs of these agents, each in the version that Podbot names. They are installed once, and
 * again when a version changes.
 */
function installAgents(): string {
  const packages = [...agentNames.flatMap(packagesOf), elder];
  const key = createHash("sha256").update(packages.join(" ")).digest("hex").slice(0, 16);
  const place = join(directory, key);
  mkdirSync(directory, { recursive: true });
  // Several files of the suite may begin at the same time: one installs, the others wait and find it done.
  const script = `test -e "$1" || { rm -rf "$1.part" && npm install $2 --prefix "$1.part" && mv "$1.part" "$1"; }`;
  // Some ask for a later Node than they need: their programs are no scripts.
  const options = "--no-engine-strict --no-save --no-audit --no-fund --loglevel=error";
  const words = [join(directory, "lock"), "sh", "-c", script, "sh", place, [options, ...packages].join(" ")];
  const { status, stdout, stderr } = spawnSync("flock", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the agents cannot be installed: ${stdout}${stderr}`);
  return join(place, "node_modules/.bin");
}

/** The agent, and what makes it a server for editors. */
function packagesOf(name: AgentName): readonly string[] {
  const agent = knownAgent(name);
  if (agent === undefined) throw new Error(`Podbot does not know ${name}`);
  return [agent.package, ...(agent.acp.package === null ? [] : [agent.acp.package])].map(
    (one) => `${one.name}@${one.version}`,
  );
}

/** An adapter that Podbot has another for. It uses all that a client offers. */
const elder = "@zed-industries/claude-code-acp@0.16.2";

/** The words that start it. */
export function elderWords(): readonly string[] {
  return ["node", join(installAgents(), "../@zed-industries/claude-code-acp/dist/index.js")];
}

/** Shows the agents inside also where they lie in what is private there, as in a checkout below /tmp. */
export const agentsShown: readonly string[] = ["--ro", directory];

/** PATH with the agents and what they need in front. */
export function pathWithAgents(): string {
  return [installAgents(), dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
}
