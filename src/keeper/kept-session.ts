import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { FilesystemError, MachineError, SessionError } from "../errors.ts";
import type { TokenEvent } from "../github/refresh.ts";
import { type Journal, openJournal } from "../journal/journal.ts";
import { thisHost } from "../machine/host.ts";
import { markOf, type ProcessMark } from "../machine/process-mark.ts";
import { findRuntimeDirectory } from "../machine/runtime-directory.ts";
import { isGranted } from "../plan/access.ts";
import type { Plan } from "../plan/plan.ts";
import type { SessionRecord } from "../registry/record.ts";
import {
  newSessionId,
  readRecord,
  removeClone,
  removeSession,
  sessionDirectory,
  writeRecord,
} from "../registry/store.ts";
import { openSandbox } from "../sandbox/open.ts";
import type { Command, Process, Sandbox, Size, TerminalProcess } from "../sandbox/sandbox.ts";
import type { Box, Exit } from "../wall/wall.ts";
import { appeared } from "./aftermath.ts";
import type { Furnishing } from "./furnish.ts";
import { keepOutput } from "./output.ts";
import type { OnAsked, Outside } from "./outside.ts";
import type { PlannedSandbox } from "./planned.ts";
import { type Duties, openService, type Service } from "./service.ts";
import type { AgentOptions, PreparedSession, Session, SessionOptions, SessionStep } from "./session.ts";
import { resolved } from "./standpoint.ts";

/** Starts a session. Its record comes first: whatever happens next, somebody can find the rest and remove it. */
export async function startSession(planned: PlannedSandbox, options: SessionOptions = {}): Promise<Session> {
  const session = new KeptSession(planned, options);
  await session.start(options.signal);
  return session;
}

/** Starts all of a session but its agent, for somebody who comes later. */
export async function prepareSession(
  planned: PlannedSandbox,
  { signal }: Pick<SessionOptions, "signal"> = {},
): Promise<PreparedSession> {
  const session = new KeptSession(planned, {}, "prepared");
  await session.start(signal);
  return session;
}

class KeptSession implements Session, PreparedSession {
  readonly id = newSessionId();
  readonly plan: Plan;
  readonly warnings: readonly string[];
  readonly ended: Promise<void>;
  readonly #state: string;
  readonly #planned: PlannedSandbox;
  readonly #onStep: (step: SessionStep) => void;
  #onFurnished: (done: Furnishing) => void;
  #onAsked: OnAsked;
  #outside: Pick<Outside, "secrets" | "replaceNetwork" | "closed"> | null = null;
  /** What it is once it has started. */
  readonly #begins: "prepared" | "running";
  #record: SessionRecord;
  #journal: Journal | null = null;
  #service: Service | null = null;
  #box: Box | null = null;
  #sandbox: Sandbox | null = null;
  #agent: Promise<Exit> | null = null;
  #processes = 0;
  #ending: Promise<void> | null = null;
  #resolveEnded: () => void = () => {};
  /** Aborted by whoever stops the session while it starts. */
  readonly #calledOff = new AbortController();
  #starting: Promise<void> | null = null;
  #isStopped = false;

  /** Sockets and records in a directory that the agent can write would be the agent's. */
  static #refuseWritable(plan: Plan, paths: readonly string[]): void {
    const path = paths.find((candidate) => isGranted(plan, candidate));
    if (path === undefined) return;
    throw new MachineError("RUNTIME_DIRECTORY", `${path} lies where the sandbox may write.`, {
      hint: "Set XDG_RUNTIME_DIR and XDG_STATE_HOME to directories outside of what the agent works on.",
      details: { path },
    });
  }

  constructor(planned: PlannedSandbox, options: SessionOptions, begins: "prepared" | "running" = "running") {
    const { detached = false, dedicated = false } = options;
    const { onStep = () => {}, onFurnished = () => {}, onAsked = () => {} } = options;
    const { plan, state, env, agent } = planned;
    const { uid, pid } = thisHost();
    const runtime = findRuntimeDirectory({ env, uid, state });
    KeptSession.#refuseWritable(plan, [dirname(runtime.path), dirname(state)].map(resolved));
    this.plan = plan;
    this.warnings = runtime.warning === null ? [] : [runtime.warning];
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#planned = planned;
    this.#state = state;
    this.#begins = begins;
    this.#onStep = onStep;
    this.#onFurnished = onFurnished;
    this.#onAsked = onAsked;
    this.#record = {
      version: 1,
      id: this.id,
      createdAt: new Date().toISOString(),
      keeper: markOf(pid) as ProcessMark,
      wall: plan.wall,
      engine: planned.engine,
      github: planned.github,
      directory: join(runtime.path, this.id),
      cwd: plan.cwd,
      agent,
      command: plan.command,
      detached,
      dedicated,
      phase: "starting",
      endedAt: null,
      exit: null,
    };
  }

  get sandbox(): Sandbox {
    return this.#sandbox as Sandbox;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(signal: AbortSignal | undefined): Promise<void> {
    const both = AbortSignal.any([this.#calledOff.signal, ...(signal === undefined ? [] : [signal])]);
    this.#starting = this.#start(both).finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(signal: AbortSignal): Promise<void> {
    writeRecord(this.#state, this.#record);
    this.#onStep("recorded");
    try {
      this.#journal = openJournal(sessionDirectory(this.#state, this.id), () => new Date());
      const { directory } = this.#record;
      makeDirectory(directory);
      this.#onStep("directory-made");
      this.#service = await openService(join(directory, "keeper.sock"), thisHost().uid, this.#duties());
      this.#onStep("listening");
      this.#box = await this.#planned.start(
        {
          id: this.id,
          directory,
          signal,
          onAsked: (entry) => this.#onAsked(entry),
          onToken: (event) => this.#noteToken(event),
          onOutside: (outside) => {
            this.#outside = outside;
          },
        },
        (done) => this.#furnished(done),
      );
      this.#onStep("box-started");
      signal.throwIfAborted();
      this.#sandbox = openSandbox(this.#box);
      // A box that ends by itself, or is ended by somebody, ends the session.
      void this.#box.exited.then(
        () => this.#end(),
        () => this.#end(),
      );
      await this.#planned.settle(this.#sandbox, {
        report: (done) => this.#furnished(done),
        redact: (text) => this.#redact(text),
        signal,
      });
      signal.throwIfAborted();
      this.#write({ phase: this.#begins });
      if (this.#begins === "running") this.#journal.event({ kind: "session-started" });
      this.#onStep("running");
    } catch (error) {
      this.#record = { ...this.#record, detached: false };
      await this.#end();
      throw error;
    }
  }

  #furnished(done: Furnishing): void {
    if (done.kind === "cloned") {
      const { repository, branch } = done.clone;
      this.#journal?.event({ kind: "repository-cloned", repository, branch });
    }
    this.#onFurnished(done);
  }

  /** When, and what went wrong; never what it is. */
  #noteToken(event: TokenEvent): void {
    if (event.kind === "written") {
      this.#journal?.event({ kind: "token-written", expiresAt: event.expiresAt.toISOString() });
      return;
    }
    const text = describeToken(event);
    this.#journal?.event({ kind: "warning", text: this.#redact(text) });
  }

  isReady(): boolean {
    return this.#record.phase === "prepared" && this.#ending === null && this.#box?.isThere() === true;
  }

  handOut(options: SessionOptions = {}): Session {
    const { detached = false, dedicated = false, onFurnished = () => {}, onAsked = () => {} } = options;
    if (!this.isReady()) throw new SessionError("SESSION_ENDED", "The prepared box is not there any more.");
    this.#onFurnished = onFurnished;
    this.#onAsked = onAsked;
    this.#write({ phase: "running", detached, dedicated });
    this.#journal?.event({ kind: "session-started" });
    return this;
  }

  run(options?: AgentOptions): Promise<Process>;
  run(options: AgentOptions, terminal: Size): Promise<TerminalProcess>;
  async run({ log: kept = "all", ...options }: AgentOptions = {}, terminal?: Size): Promise<Process | TerminalProcess> {
    const process = this.#processes++;
    const argv = this.plan.command;
    const log = keepOutput(this.#journal, process, this.#outside?.secrets ?? null, kept);
    const command = { argv, graceMs: this.plan.graceMs, watch: log.watch, ...options };
    this.#journal?.event({ kind: "process-started", process, argv: this.#shown(argv), tty: terminal !== undefined });
    const started = await this.#exec(command, terminal);
    this.#onStep("agent-started");
    this.#agent = started.exited;
    started.exited
      .then(({ code, killed }) => {
        log.flush();
        this.#journal?.event({ kind: "process-exited", process, code, killed });
        this.#onStep("agent-ended");
      })
      .catch(() => {});
    return started;
  }

  note(text: string): void {
    this.#journal?.event({ kind: "note", text });
    this.#journal?.output(0, "stderr", Buffer.from(`podbot: ${text}\n`));
  }

  #shown(words: readonly string[]): readonly string[] {
    return words.map((word) => this.#redact(word));
  }

  #redact(text: string): string {
    return this.#outside?.secrets.redact(text) ?? text;
  }

  async #exec(command: Command, terminal: Size | undefined): Promise<Process | TerminalProcess> {
    try {
      return await (terminal === undefined ? this.sandbox.exec(command) : this.sandbox.exec(command, terminal));
    } catch (error) {
      // Nothing ran, so there is nothing that anybody could want to read later.
      this.#record = { ...this.#record, detached: false };
      throw error;
    }
  }

  async stop(graceMs: number = this.plan.graceMs): Promise<void> {
    this.#isStopped = true;
    if (this.#starting !== null) {
      this.#calledOff.abort(calledOff());
      await this.#starting.catch(() => {});
    }
    if (this.#ending === null) await this.#leave(graceMs);
    await this.#end();
  }

  /** A box that ends meanwhile has no more to be done in it. */
  async #leave(graceMs: number): Promise<void> {
    const sandbox = this.#sandbox;
    if (sandbox === null) return;
    await sandbox.quit(graceMs);
    if (this.#ending !== null) return;
    for (const text of await this.#planned.leave(sandbox).catch(() => [])) {
      this.#journal?.event({ kind: "warning", text });
      this.#onFurnished({ kind: "warning", text });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }

  #end(): Promise<void> {
    this.#ending ??= this.#finish();
    return this.#ending;
  }

  /** Whatever fails on the way, the rest is still done: the next command finds what could not be. */
  async #finish(): Promise<void> {
    const agent = this.#agent;
    try {
      await this.#box?.[Symbol.asyncDispose]();
    } catch {
      // The launcher itself failed: there is no box.
    }
    await this.#outside?.closed();
    this.#onStep("box-ended");
    const exit = agent === null ? null : await agent.catch((): Exit => ({ code: 137, killed: true }));
    for (const text of appeared(this.plan)) this.#journal?.event({ kind: "warning", text });
    this.#journal?.event({ kind: "session-ended", code: exit?.code ?? 0 });
    this.#journal?.[Symbol.dispose]();
    // Whoever stopped the session may have removed its record already.
    if (readRecord(this.#state, this.id) !== null) {
      attempt(() => this.#write({ phase: "ended", endedAt: new Date().toISOString(), exit }));
    }
    this.#onStep("end-recorded");
    this.#service?.close();
    attempt(() => rmSync(this.#record.directory, { recursive: true, force: true }));
    if (this.plan.clone !== null) attempt(() => removeClone(this.#state, this.id));
    this.#onStep("directory-removed");
    if (!this.#record.detached) attempt(() => removeSession(this.#state, this.id));
    this.#onStep("removed");
    this.#resolveEnded();
  }

  #write(change: Partial<SessionRecord>): void {
    this.#record = { ...this.#record, ...change };
    writeRecord(this.#state, this.#record);
  }

  /** For a process that another command starts. */
  async #connect({ argv, tty }: Readonly<Record<string, unknown>>): Promise<Duplex> {
    if (this.#box === null) {
      throw new SessionError("SESSION_UNREACHABLE", "The session is still starting.", {
        hint: "Try again in a moment.",
      });
    }
    const stream = await this.#box.connect();
    const process = this.#processes++;
    const words = Array.isArray(argv) ? argv.map(String) : [];
    this.#journal?.event({ kind: "process-started", process, argv: this.#shown(words), tty: tty === true });
    return stream;
  }

  /** The rules of now for those of the start. What is wrong with them is told to whoever asked, and kept. */
  async #reload(): Promise<unknown> {
    try {
      const network = await this.#planned.readNetwork();
      this.#outside?.replaceNetwork(network);
      this.#journal?.event({ kind: "rules-replaced", rules: network.policy?.rules.length ?? 0 });
      return { rules: network.policy?.rules.length ?? 0 };
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      this.#journal?.event({ kind: "warning", text: `The rules were not replaced, the old ones hold: ${words}` });
      throw error;
    }
  }

  #duties(): Duties {
    return {
      describe: () => ({ id: this.id, state: this.#state, phase: this.#record.phase, pid: thisHost().pid }),
      connect: (note: Readonly<Record<string, unknown>>) => this.#connect(note),
      reload: () => this.#reload(),
      // Answered at once: who asked knows the end by the connection's.
      stop: ({ graceMs }: Readonly<Record<string, unknown>>) => {
        void this.stop(typeof graceMs === "number" ? graceMs : undefined);
        return null;
      },
    };
  }
}

function describeToken(event: Exclude<TokenEvent, { readonly kind: "written" }>): string {
  if (event.kind === "clock-jumped") {
    return `The clock has jumped by ${Math.round(event.byMs / 1_000)} s; the token's age was looked at again.`;
  }
  return event.error.message;
}

function calledOff(): SessionError {
  return new SessionError("SESSION_ENDED", "The session was stopped before it had started.", {
    hint: "Somebody, or another command of yours, has stopped it. Start it again.",
  });
}

function attempt(act: () => void): void {
  try {
    act();
  } catch {}
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    throw new FilesystemError("FILESYSTEM", `The session's directory ${path} cannot be made.`, {
      hint: "Its parent must be writable, with space left: set XDG_RUNTIME_DIR to one that is.",
      cause,
    });
  }
}
