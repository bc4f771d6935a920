import { createHash } from "node:crypto";
import { prepareSession, startSession } from "./kept-session.ts";
import type { PlannedSandbox } from "./planned.ts";
import { poolObstacle } from "./pool-obstacle.ts";
import type { PreparedSession, Session, SessionOptions } from "./session.ts";

export interface PoolOptions {
  /** How many boxes are kept ready for each plan. Default: `sandbox.pool` of the plan's configuration. */
  readonly size?: number;
  /** A box that has waited longer than this is not handed out: what was copied into it is old. Default: 15 minutes. */
  readonly longestWaitMs?: number;
  /** Called when a box could not be prepared. The next one that is taken is then started anew, and says why it fails. */
  readonly onFailure?: (error: unknown) => void;
}

/** Boxes that wait for their agent, so that a session begins in milliseconds. */
export interface Pool extends AsyncDisposable {
  /**
   * A session for a plan: one that was prepared, or one that is started now. The first for each plan is started now,
   * and others like it are prepared meanwhile.
   */
  take(planned: PlannedSandbox, options?: Omit<SessionOptions, "onStep">): Promise<Session>;
  /** How many are ready for a plan. */
  ready(planned: PlannedSandbox): number;
  /** Resolves when no box is being prepared any more. */
  settled(): Promise<void>;
}

/** Lives as long as the program that opens it: whoever takes a box owns its session from then on. */
export function openPool(options: PoolOptions = {}): Pool {
  return new PreparedBoxes(options);
}

interface Waiting {
  readonly prepared: PreparedSession;
  readonly since: number;
}

/** The boxes of one plan. */
interface Shelf {
  readonly planned: PlannedSandbox;
  readonly waiting: Waiting[];
  preparing: number;
}

class PreparedBoxes implements Pool {
  readonly #options: PoolOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #work = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  async take(planned: PlannedSandbox, options: Omit<SessionOptions, "onStep"> = {}): Promise<Session> {
    const size = this.#options.size ?? planned.loaded.config.sandbox.pool;
    if (this.#closing.signal.aborted || size === 0 || poolObstacle(planned) !== null) {
      return startSession(planned, options);
    }
    const shelf = this.#shelfOf(planned);
    const prepared = this.#next(shelf);
    try {
      // Taken off the shelf before anything is waited for: nobody else can get it.
      return await (prepared === null ? startSession(planned, options) : prepared.handOut(options));
    } finally {
      this.#fill(shelf, size);
    }
  }

  ready(planned: PlannedSandbox): number {
    return this.#shelves.get(keyOf(planned))?.waiting.length ?? 0;
  }

  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.settled();
    const waiting = [...this.#shelves.values()].flatMap((shelf) => shelf.waiting.splice(0));
    await Promise.all(waiting.map(({ prepared }) => prepared[Symbol.asyncDispose]()));
  }

  #shelfOf(planned: PlannedSandbox): Shelf {
    const key = keyOf(planned);
    const known = this.#shelves.get(key) ?? { planned, waiting: [], preparing: 0 };
    this.#shelves.set(key, known);
    return known;
  }

  #next(shelf: Shelf): PreparedSession | null {
    const { longestWaitMs = 900_000 } = this.#options;
    for (;;) {
      const first = shelf.waiting.shift();
      if (first === undefined) return null;
      if (first.prepared.isReady() && performance.now() - first.since <= longestWaitMs) return first.prepared;
      this.#do(first.prepared[Symbol.asyncDispose]());
    }
  }

  #fill(shelf: Shelf, size: number): void {
    for (let missing = size - shelf.waiting.length - shelf.preparing; missing > 0; missing -= 1) {
      shelf.preparing += 1;
      this.#do(this.#prepare(shelf));
    }
  }

  async #prepare(shelf: Shelf): Promise<void> {
    try {
      const prepared = await prepareSession(shelf.planned, { signal: this.#closing.signal });
      shelf.waiting.push({ prepared, since: performance.now() });
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#options.onFailure?.(error);
    } finally {
      shelf.preparing -= 1;
    }
  }

  #do(work: PromiseLike<void>): void {
    const done = Promise.resolve(work).catch((error: unknown) => this.#options.onFailure?.(error));
    this.#work.add(done);
    void done.finally(() => this.#work.delete(done));
  }
}

/** By whose credentials and name a box is furnished. */
const owner = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/**
 * The same plan with the same values and the same token: a plan holds references to variables and secrets, and whoever
 * takes a box gets what it was born with.
 */
function keyOf(planned: PlannedSandbox): string {
  const { plan, state, github, env } = planned;
  return createHash("sha256")
    .update(JSON.stringify([plan, state, github, planned.values(), owner.map((name) => env[name])]))
    .digest("hex");
}
