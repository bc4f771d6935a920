import type { BridgeEvent } from "../bridge/event.ts";
import type { Exit } from "../wall/wall.ts";

/** What happens in a hosted session. More kinds may come. */
export type HostedEvent =
  | BridgeEvent
  /** The owner has moved the boundary of trust. */
  | { readonly kind: "trust-changed"; readonly text: string }
  /** The agent was asked to end, since nothing more can come of it. */
  | { readonly kind: "agent-dismissed"; readonly reason: Dismissal }
  /** The sandbox has ended before the agent did. */
  | { readonly kind: "box-lost" }
  | { readonly kind: "agent-ended"; readonly exit: Exit }
  /** So many earlier events have been thrown away: nobody had taken them. */
  | { readonly kind: "events-lost"; readonly count: number };

/** Why an agent is asked to end. */
export type Dismissal = "client-closed" | "client-gone" | "agent-closed";

const most = 256;

/**
 * Events for whoever wants them, each once and to one reader. Whoever is slow loses the oldest, and is told how many:
 * nothing ever waits for him.
 */
export class HostedEvents implements AsyncIterable<HostedEvent> {
  readonly #waiting: HostedEvent[] = [];
  #lost = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  push(event: HostedEvent): void {
    if (this.#waiting.length === most) {
      this.#waiting.shift();
      this.#lost++;
    }
    this.#waiting.push(event);
    this.#wake?.();
  }

  /** Nothing more will come; what waits can still be taken. */
  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HostedEvent, void> {
    for (;;) {
      const event = this.#take();
      if (event !== undefined) yield event;
      else if (this.#isOver) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #take(): HostedEvent | undefined {
    if (this.#lost === 0) return this.#waiting.shift();
    const count = this.#lost;
    this.#lost = 0;
    return { kind: "events-lost", count };
  }
}
