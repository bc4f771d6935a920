import { closeSync, fstatSync, mkdirSync, mkdtempSync, openSync, readSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Adapter, adapterOf } from "../agents/adapter.ts";
import type { Agent } from "../agents/agent.ts";
import { type AgentForm, installCommand, serverOf } from "../agents/command.ts";
import { agents } from "../agents/table.ts";
import type { PartialConfig } from "../config/types.ts";
import { PodbotError } from "../errors.ts";
import { findOnPath } from "../machine/programs.ts";
import { isWithin } from "../policy/paths.ts";
import type { SandboxOptions } from "./request.ts";
import { planSandbox } from "./sandbox.ts";
import { homeOf, resolved } from "./standpoint.ts";

/** An agent of the table, and how it is on this machine. */
export interface InstalledAgent {
  readonly name: string;
  readonly title: string;
  readonly program: string;
  /** Where it lies, links resolved; null where it is not installed. */
  readonly path: string | null;
  /** What it says of itself; null where it was not asked or said nothing. */
  readonly version: string | null;
  /** Whether it is installed, runs behind a wall and has what it needs. */
  readonly usable: boolean;
  /** Why not, and what mends it. */
  readonly problem: string | null;
  readonly remedy: string | null;
  /** The package and version that were tried, which an image of Podbot's has. */
  readonly package: { readonly name: string; readonly version: string };
  /** How it can be hosted for an editor. */
  readonly hosted: readonly HostedForm[];
}

/** An agent as a server of a protocol, and how that is on this machine. */
export interface HostedForm {
  readonly mode: "acp" | "codex_app_server";
  /** Its executable's name on PATH: the agent's own, or that of an adapter. */
  readonly program: string;
  readonly usable: boolean;
  /** Why not, and what mends it. */
  readonly problem: string | null;
  readonly remedy: string | null;
}

/** Where to look, and how long to wait. */
export interface AgentsOptions extends Pick<SandboxOptions, "env" | "cwd"> {
  /** How long an agent may take to answer. Default: 10 s, longer than the slowest takes on a busy machine. */
  readonly timeoutMs?: number;
}

/** A version is said in less. */
const tooMuch = 1024 * 1024;

/**
 * Finds every agent that Podbot knows on the caller's PATH, and asks each for its version, all at once. They are asked
 * behind a wall without network, in an empty home: whoever has put a program there, it can do nothing.
 */
export async function listAgents(options: AgentsOptions): Promise<readonly InstalledAgent[]> {
  const scratch = mkdtempSync(join(realpathSync.native(tmpdir()), "podbot-agents-"));
  try {
    const inquiry = new Inquiry(options, scratch);
    return await Promise.all(agents.map((agent) => describe(agent, inquiry)));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function describe(agent: Agent, inquiry: Inquiry): Promise<InstalledAgent> {
  const { name, title, program } = agent;
  const { package: wanted } = agent;
  const [self, adapter] = await Promise.all([describeSelf(agent, inquiry), describeAdapter(adapterOf(agent), inquiry)]);
  const common = { name, title, program, package: { name: wanted.name, version: wanted.version } };
  return { ...common, ...self, hosted: modes.flatMap((mode) => formOf(agent, mode, self, adapter) ?? []) };
}

const modes = ["acp", "codex_app_server"] as const satisfies readonly AgentForm[];

type Condition = Pick<InstalledAgent, "path" | "version" | "usable" | "problem" | "remedy">;

async function describeSelf(agent: Agent, inquiry: Inquiry): Promise<Condition> {
  const path = inquiry.find(agent.program);
  if (path === null) return missing(agent);
  const answer = await inquiry.ask(agent.name, [path, ...agent.version], agent.quiet.environment);
  return conditionOf(path, answer, await lackingOf(agent, answer, inquiry));
}

/** Null where the agent needs none. */
async function describeAdapter(adapter: Adapter | null, inquiry: Inquiry): Promise<Condition | null> {
  if (adapter === null) return null;
  const path = inquiry.find(adapter.program);
  if (path === null) return missing(adapter);
  const answer = await inquiry.ask(adapter.name, [path, ...adapter.version], {});
  return conditionOf(path, answer, await lackingOf({ ...adapter, needs: { node: adapterNode } }, answer, inquiry));
}

/** Adapters are scripts. Some ask for a later one than they need. */
const adapterNode = 20;

function formOf(agent: Agent, mode: HostedForm["mode"], self: Condition, adapter: Condition | null): HostedForm | null {
  const server = serverOf(agent, mode);
  if (server === null) return null;
  const { usable, problem, remedy } = (server.package === null ? null : adapter) ?? self;
  return { mode, program: server.program, usable, problem, remedy };
}

function missing(wanted: Pick<Agent, "program" | "package">): Condition {
  const problem = `${wanted.program} is not on PATH`;
  return { path: null, version: null, usable: false, problem, remedy: installCommand(wanted) };
}

function conditionOf(path: string, { version }: Answer, lacking: Lacking | null): Condition {
  const { problem, remedy } = lacking ?? { problem: null, remedy: null };
  return { path, version, usable: lacking === null, problem, remedy };
}

interface Lacking {
  readonly problem: string;
  readonly remedy: string;
}

async function lackingOf(
  agent: Pick<Agent, "program" | "version" | "package" | "needs">,
  answer: Answer,
  inquiry: Inquiry,
): Promise<Lacking | null> {
  if (answer.refusal !== null) return answer.refusal;
  const { node } = agent.needs;
  if (node !== null && (await inquiry.nodeVersion()) < node) {
    return { problem: `it needs Node ${node} or newer on PATH`, remedy: `Install Node ${node} or newer` };
  }
  if (answer.version !== null) return null;
  const { debian } = agent.package;
  // Where it needs a library, that is what is missing most often.
  const remedy = debian.length > 0 ? `apt install ${debian.join(" ")}` : installCommand(agent);
  return { problem: `\`${[agent.program, ...agent.version].join(" ")}\` gives no version`, remedy };
}

interface Answer {
  readonly version: string | null;
  /** Why it could not be asked. */
  readonly refusal: Lacking | null;
}

/** One round of questions, each in a place of its own. */
class Inquiry {
  readonly #options: AgentsOptions;
  readonly #scratch: string;
  #node: Promise<number> | undefined;

  constructor(options: AgentsOptions, scratch: string) {
    this.#options = options;
    this.#scratch = scratch;
  }

  find(program: string): string | null {
    return findOnPath(program, this.#options.env["PATH"] ?? "");
  }

  async ask(name: string, argv: readonly [string, ...string[]], variables: Variables): Promise<Answer> {
    if (this.#isOfWorkspace(argv[0])) {
      const problem = "it lies in the directory that you stand in, so it was not started";
      return { version: null, refusal: { problem, remedy: "Ask from another directory" } };
    }
    try {
      return { version: versionIn(await this.#say(name, argv, variables)), refusal: null };
    } catch (error) {
      if (!(error instanceof PodbotError)) throw error;
      return { version: null, refusal: { problem: error.message, remedy: error.hint ?? "podbot doctor" } };
    }
  }

  /** The first number of the version of the Node that scripts get; 0 where there is none. Asked once. */
  nodeVersion(): Promise<number> {
    this.#node ??= this.#askNode();
    return this.#node;
  }

  async #askNode(): Promise<number> {
    const path = this.find("node");
    const { version } = path === null ? { version: null } : await this.ask("node", [path, "--version"], {});
    return Number.parseInt(version ?? "0", 10);
  }

  /** A workspace is what agents write. Whoever stands in his home stands in none. */
  #isOfWorkspace(path: string): boolean {
    const cwd = resolved(this.#options.cwd);
    return isWithin(path, cwd) && !isWithin(homeOf(this.#options.env), cwd);
  }

  /** What a program prints, run by itself in a home of its own. */
  async #say(name: string, command: readonly [string, ...string[]], variables: Variables): Promise<string> {
    const place = join(this.#scratch, name);
    const cwd = join(place, "work");
    // In the directory that may be written.
    const home = join(cwd, "home");
    mkdirSync(home, { recursive: true });
    const { PATH, LANG } = this.#options.env;
    const planned = await planSandbox({
      command,
      cwd,
      // None of the caller's own files is read or written for this, his configuration included.
      env: { PATH, LANG, HOME: place },
      config: configFor({ HOME: home, ...variables }),
    });
    const [nothing, said] = [openSync("/dev/null", "r+"), openSync(join(place, "said"), "w+", 0o600)];
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(), this.#options.timeoutMs ?? 10_000);
    // Whoever prints without end shall not fill the disk.
    const watch = setInterval(() => fstatSync(said).size > tooMuch && end.abort(), 20);
    try {
      await planned.run([nothing, said, nothing], { signal: end.signal });
      const beginning = Buffer.alloc(4096);
      return beginning.toString("utf8", 0, readSync(said, beginning, 0, beginning.length, 0));
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
      closeSync(nothing);
      closeSync(said);
    }
  }
}

type Variables = Readonly<Record<string, string>>;

function configFor(variables: Variables): PartialConfig {
  return {
    sandbox: { wall: "bubblewrap", grace_seconds: 0 },
    network: false,
    filesystem: { presets: ["!@all", "@base"] },
    environment: { set: variables },
  };
}

/** Only what can be a version: the rest is whatever the program likes to print. */
function versionIn(text: string): string | null {
  return /\d+\.\d+[0-9A-Za-z.+-]{0,60}/.exec(text)?.[0] ?? null;
}
