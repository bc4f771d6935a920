import { PassThrough, type Readable, type Writable } from "node:stream";
import { bridge } from "../bridge/bridge.ts";
import type { BridgeEvent } from "../bridge/event.ts";
import { type BridgePolicy, defaultMaxFrameBytes, type HostedProtocol } from "../bridge/policy.ts";
import type { Decide } from "../decision.ts";
import { SessionError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";
import type { Process } from "../sandbox/sandbox.ts";
import type { Exit, SessionId } from "../wall/wall.ts";
import type { AgentRequest } from "./agent.ts";
import { type Dismissal, type HostedEvent, HostedEvents } from "./host-events.ts";
import { type PlannedHost, planHost } from "./host-plan.ts";
import { makeLines } from "./host-words.ts";
import { startSession } from "./kept-session.ts";
import type { Session, SessionOptions } from "./session.ts";

export interface HostOptions extends Omit<SessionOptions, "detached"> {
  /** Answers what the agent asks for permission, before its client does. */
  readonly decide?: Decide;
  /** Where the agent's standard error goes. It is kept for `podbot logs` in any case. */
  readonly errors?: Writable;
  /**
   * Asked each second while the agent reads nothing of what it is told: then the end of its client stands behind that,
   * and is not seen. True where nobody waits for the agent any more. Default: never.
   */
  readonly isAbandoned?: () => boolean;
  /** How long an agent whose client has finished may take to end by itself. Default: 5,000, or the grace if shorter. */
  readonly patienceMs?: number;
}

export interface HostRequest extends AgentRequest, HostOptions {}

/** What a client speaks through; what passes has been looked at. */
export interface ProtocolIo {
  /** What the agent says. */
  readonly readable: Readable;
  /** What the agent is told. Its end is the end of the agent's input. */
  readonly writable: Writable;
}

/** An agent behind a wall that speaks a protocol with a client outside. */
export interface HostedSession extends AsyncDisposable {
  readonly id: SessionId;
  readonly plan: Plan;
  readonly protocol: HostedProtocol;
  readonly warnings: readonly string[];
  readonly protocolIo: ProtocolIo;
  /** What happens, for one reader. Of what nobody takes, the latest 256 are kept. */
  readonly events: AsyncIterable<HostedEvent>;
  /** Asks what runs inside to end, ends it, and removes what is left. */
  stop(graceMs?: number): Promise<void>;
  /** How the agent has ended, when nothing of the session is left. Ended by its client's wish, it has ended well. */
  readonly ended: Promise<Exit>;
}

/** Starts an agent as a server of its protocol, behind a wall. */
export async function hostAgent(request: HostRequest): Promise<HostedSession> {
  const planned = await planHost(request);
  const input = new PassThrough();
  const output = new PassThrough();
  const session = await hostPlanned(planned, { input, output }, request);
  const end = () => output.end();
  session.ended.then(end, end);
  return Object.assign(session, { protocolIo: { readable: output, writable: input } });
}

export interface HostClient {
  readonly input: Readable;
  readonly output: Writable;
}

/** The same for a client that is there already, such as the caller's own standard input and output. */
export async function hostPlanned(
  planned: PlannedHost,
  client: HostClient,
  { decide, errors, isAbandoned = () => false, patienceMs, ...options }: HostOptions = {},
): Promise<Omit<HostedSession, "protocolIo">> {
  const session = await startSession(planned, options);
  try {
    const agent = await session.run({ log: "errors", ...(options.signal && { signal: options.signal }) });
    const patience = patienceMs ?? Math.min(planned.plan.graceMs, usualPatienceMs);
    const hosted = new Hosted(planned, session, agent, patience, isAbandoned);
    hosted.join(client, policyOf(planned, decide));
    carryErrors(agent.stderr, errors);
    return hosted;
  } catch (error) {
    await session[Symbol.asyncDispose]();
    throw error;
  }
}

/** The workspace may lie elsewhere inside; then the two sides call the same file by different names. */
function policyOf({ protocol, delegation, plan }: PlannedHost, decide: Decide | undefined): BridgePolicy {
  const { cwd: outside, directory: inside } = plan;
  return {
    protocol,
    delegation,
    maxFrameBytes: defaultMaxFrameBytes,
    paths: inside === outside ? null : { outside, inside },
    ...(decide === undefined ? {} : { decide }),
  };
}

const usualPatienceMs = 5_000;
/** Who has gone, or has asked for the end, does not want to wait long for it. */
const quickGraceMs = 2_000;
const watchMs = 1_000;

class Hosted implements Omit<HostedSession, "protocolIo"> {
  readonly id: SessionId;
  readonly plan: Plan;
  readonly protocol: HostedProtocol;
  readonly warnings: readonly string[];
  readonly events = new HostedEvents();
  readonly #session: Session;
  readonly #agent: Process;
  readonly #patienceMs: number;
  readonly #lines = makeLines();
  readonly #over = new AbortController();
  #dismissed: Dismissal | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #watch: NodeJS.Timeout;
  #dueAt = Number.POSITIVE_INFINITY;
  #ended: Promise<Exit> | null = null;

  constructor(planned: PlannedHost, session: Session, agent: Process, patienceMs: number, isAbandoned: () => boolean) {
    this.id = session.id;
    this.plan = session.plan;
    this.protocol = planned.protocol;
    this.warnings = [...planned.warnings, ...session.warnings];
    this.#session = session;
    this.#agent = agent;
    this.#patienceMs = patienceMs;
    this.#watch = setInterval(() => {
      if (agent.stdin.writableNeedDrain && isAbandoned()) this.#hear({ kind: "client-gone" });
    }, watchMs).unref();
    for (const text of planned.trustChanges) {
      session.note(`trust boundary: ${text}`);
      this.events.push({ kind: "trust-changed", text });
    }
  }

  get ended(): Promise<Exit> {
    return this.#ended as Promise<Exit>;
  }

  join(client: HostClient, policy: BridgePolicy): void {
    const { stdin, stdout } = this.#agent;
    const bridged = bridge(
      { client, agent: { stdin, stdout } },
      policy,
      (event) => this.#hear(event),
      this.#over.signal,
    );
    this.#ended = this.#finish(bridged, client);
    this.#ended.catch(() => {});
  }

  async stop(graceMs: number = Math.min(this.plan.graceMs, quickGraceMs)): Promise<void> {
    // A client that reads nothing must not keep what is to end, nor the agent from saying its last words.
    this.#over.abort();
    this.#agent.stdout.resume();
    await this.#session.stop(graceMs);
    await this.ended.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#session[Symbol.asyncDispose]();
    await this.ended.catch(() => {});
  }

  async #finish(bridged: Promise<void>, client: HostClient): Promise<Exit> {
    // A bridge that fails has nobody to carry anything to.
    const carried = bridged.catch((error: unknown) => {
      if (!this.#over.signal.aborted) {
        this.#agent.end(0);
        throw error;
      }
    });
    try {
      const [exited, passed] = await Promise.allSettled([this.#agent.exited.catch(this.#lose), carried]);
      if (exited.status === "rejected") throw exited.reason;
      if (passed.status === "rejected") throw passed.reason;
      const exit = this.#verdict(exited.value);
      this.events.push({ kind: "agent-ended", exit });
      return exit;
    } finally {
      clearTimeout(this.#timer);
      clearInterval(this.#watch);
      client.input.destroy();
      await this.#session.stop(Math.min(this.plan.graceMs, quickGraceMs));
      this.events.end();
    }
  }

  /** Whoever stops a session ends the box, too, maybe before it has told how the agent ended. */
  readonly #lose = (error: unknown): Exit => {
    if (!(error instanceof SessionError) || error.code !== "BOX_LOST") throw error;
    this.#tell({ kind: "box-lost" });
    return { code: 137, killed: true };
  };

  /** Whoever was asked to end since his client had finished has done nothing wrong by being ended; others have. */
  #verdict(exit: Exit): Exit {
    const isFinished = this.#dismissed === "client-closed" || this.#dismissed === "client-gone";
    return isFinished && exit.killed ? { code: 0, killed: true } : exit;
  }

  #hear(event: BridgeEvent): void {
    this.#tell(event);
    if (event.kind === "client-closed") this.#dismiss("client-closed", this.#patienceMs, this.plan.graceMs);
    else if (event.kind === "agent-closed") this.#dismiss("agent-closed", this.#patienceMs, this.plan.graceMs);
    else if (event.kind === "client-gone") this.#dismiss("client-gone", 0, Math.min(this.plan.graceMs, quickGraceMs));
  }

  /** Many agents do not take the end of their input for an end. Of several reasons, the most urgent counts. */
  #dismiss(reason: Dismissal, patienceMs: number, graceMs: number): void {
    const dueAt = performance.now() + patienceMs;
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#dismissed = reason;
      this.#tell({ kind: "agent-dismissed", reason });
      this.#agent.end(graceMs);
    }, patienceMs);
    void this.#agent.exited.finally(() => clearTimeout(this.#timer)).catch(() => {});
  }

  #tell(event: HostedEvent): void {
    this.events.push(event);
    const line = this.#lines(event);
    if (line !== null) this.#session.note(line);
  }
}

/** How much of an agent's complaints waits for a reader. */
const mostErrors = 1024 * 1024;

/** Carries what the agent says aside. Where nobody reads it, it is lost here; the protocol does not wait for that. */
function carryErrors(from: Readable, to: Writable | undefined): void {
  if (to === undefined) {
    from.resume();
    return;
  }
  to.on("error", () => {});
  from.on("data", (bytes: Buffer) => {
    if (!to.destroyed && to.writableLength < mostErrors) to.write(bytes);
  });
}
