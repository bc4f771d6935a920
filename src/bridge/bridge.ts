import type { Readable, Writable } from "node:stream";
import { Arbiter } from "./arbiter.ts";
import type { BridgeEvent } from "./event.ts";
import { Inspector, protocols } from "./inspector.ts";
import { Outlet } from "./outlet.ts";
import type { BridgePolicy } from "./policy.ts";
import { pump } from "./pump.ts";

export interface BridgeEnds {
  readonly client: { readonly input: Readable; readonly output: Writable };
  readonly agent: { readonly stdin: Writable; readonly stdout: Readable };
}

/** Bytes of answers that may wait for an agent that does not read. Then it is not read from either. */
const mostAnswers = 1 << 20;

/**
 * Joins the two until the agent's output has ended and all of it was written, or the signal is aborted. Never touches
 * standard error, and never ends the agent: whoever calls does.
 */
export async function bridge(
  { client, agent }: BridgeEnds,
  policy: BridgePolicy,
  report: (event: BridgeEvent) => void,
  signal?: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const stop = signal === undefined ? ended.signal : AbortSignal.any([ended.signal, signal]);
  const toClient = new Outlet(client.output, () => report({ kind: "client-gone" }));
  const toAgent = new Outlet(agent.stdin, () => report({ kind: "agent-deaf" }));
  const release = () => {
    toClient.release();
    toAgent.release();
  };
  // Whoever does not read must not keep anybody who is told to stop.
  stop.addEventListener("abort", release, { once: true });
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  /** What was decided and has not been taken: until it has, no more questions are read. */
  let untaken: Promise<void> | undefined;
  const hold = (taken: Promise<void> | undefined) => {
    if (taken === undefined) return;
    const all = both(untaken, taken);
    untaken = all;
    void all?.then(() => {
      if (untaken === all) untaken = undefined;
    });
  };
  const { protocol, decide } = policy;
  const arbiter =
    decide &&
    new Arbiter({
      protocol,
      questions: protocols[protocol].questions,
      decide,
      report,
      reply: (line) => hold(toAgent.answer([line], mostAnswers)),
      forward: (line) => hold(toClient.write([line])),
      fail,
    });

  const inbound = new Inspector("to-agent", policy, report);
  const readClient = async () => {
    await pump(
      client.input,
      (chunk) => {
        const { pieces, cancelled } = inbound.push(chunk);
        arbiter?.cancel(cancelled);
        return toAgent.write(pieces);
      },
      stop,
    );
    if (stop.aborted) return;
    inbound.end();
    report({ kind: "client-closed" });
    toAgent.end();
  };

  const outbound = new Inspector("to-client", policy, report);
  const readAgent = async () => {
    await pump(
      agent.stdout,
      (chunk) => {
        const { pieces, answers, asked } = outbound.push(chunk);
        arbiter?.ask(asked);
        return both(both(toClient.write(pieces), toAgent.answer(answers, mostAnswers)), untaken);
      },
      stop,
    );
    if (stop.aborted) return;
    outbound.end();
    report({ kind: "agent-closed" });
    await toClient.flush();
    ended.abort();
  };

  try {
    await Promise.race([Promise.all([readAgent(), readClient()]), failed]);
  } finally {
    ended.abort();
    arbiter?.close();
    release();
  }
}

/** Waits for both, and for nothing where neither has to be waited for: most chunks go through without a promise. */
function both(one: Promise<void> | undefined, other: Promise<void> | undefined): Promise<void> | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Promise.all([one, other]).then(() => undefined);
}
