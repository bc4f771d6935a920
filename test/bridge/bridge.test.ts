// @module-tag security
import { once } from "node:events";
import { PassThrough, Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setImmediate as immediately } from "node:timers";
import { setImmediate, setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { mostPending } from "../../src/bridge/arbiter.ts";
import { bridge } from "../../src/bridge/bridge.ts";
import type { BridgeEvent } from "../../src/bridge/event.ts";
import type { BridgePolicy } from "../../src/bridge/policy.ts";
import type { Decision, Question } from "../../src/decision.ts";
import { acpPolicy } from "./inspect.ts";

const line = (message: object) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
const update = line({ method: "session/update", params: { text: "x".repeat(1000) } });
const blocked = (id: number) => line({ id, method: "fs/read_text_file", params: {} });

/** Both ends on streams in memory. */
function join(
  policy: Partial<BridgePolicy> = {},
  streams: { output?: Writable; stdin?: Writable; stdout?: Readable } = {},
) {
  const client = { input: new PassThrough(), output: streams.output ?? new PassThrough() };
  const agent = { stdin: streams.stdin ?? new PassThrough(), stdout: streams.stdout ?? new PassThrough() };
  const events: BridgeEvent[] = [];
  const controller = new AbortController();
  const done = bridge({ client, agent }, { ...acpPolicy, ...policy }, (event) => events.push(event), controller.signal);
  const say = (what: string) => (agent.stdout as PassThrough).write(what);
  /** Ends the agent, and gives all that each side got. */
  const finish = async () => {
    (agent.stdout as PassThrough).end();
    await done;
    client.output.end();
    agent.stdin.end();
    return { toClient: await text(client.output as PassThrough), toAgent: await text(agent.stdin as PassThrough) };
  };
  return { client, agent, events, controller, done, say, finish };
}

const closed = (stream: Readable | Writable) => new Promise((resolve) => stream.once("close", resolve));

/** All is in memory: after so many turns of the event loop nothing moves that is not stopped. */
async function idle(): Promise<void> {
  for (let turn = 0; turn < 500; turn += 1) await setImmediate();
}

const kinds = (events: readonly BridgeEvent[]) => events.map(({ kind }) => kind);

describe("a bridge", () => {
  test("carries both directions, and is done when the agent's output is", async () => {
    const { client, say, finish, events } = join();
    const initialize = line({ id: 0, method: "initialize", params: { clientCapabilities: { terminal: true } } });
    client.input.write(initialize);
    say(update + blocked(1));
    await setImmediate();
    const { toClient, toAgent } = await finish();
    expect(toClient).toBe(update);
    const [masked, denial] = toAgent
      .trim()
      .split("\n")
      .map((one) => JSON.parse(one));
    expect(masked.params).toEqual({ clientCapabilities: {} });
    expect(denial).toMatchObject({ id: 1, error: { code: -32001 } });
    expect(kinds(events)).toEqual(["capabilities-masked", "request-denied", "agent-closed"]);
  });

  test("tells the agent at once that the client's input has ended, and reads on", async () => {
    const { client, agent, say, finish, events } = join();
    client.input.end(`${update}{"begun`);
    const heard = await text(agent.stdin as PassThrough);
    expect(heard).toBe(update);
    expect(kinds(events)).toEqual(["frame-refused", "client-closed"]);
    // What the agent asks for now cannot be answered any more, and is denied all the same.
    say(blocked(1) + update);
    expect((await finish()).toClient).toBe(update);
    expect(kinds(events)).toEqual(["frame-refused", "client-closed", "request-denied", "agent-closed"]);
  });

  test("is done only when the client has taken all", async () => {
    const taken: Buffer[] = [];
    const output = new Writable({
      async write(chunk, _encoding, callback) {
        await setTimeout(20);
        taken.push(chunk);
        callback();
      },
    });
    const { say, agent, done } = join({}, { output });
    for (let count = 0; count < 10; count += 1) say(update);
    (agent.stdout as PassThrough).end();
    await done;
    expect(Buffer.concat(taken).toString()).toBe(update.repeat(10));
  });

  test("lets go of both ends when it is told to stop", async () => {
    const { client, agent, controller, done, events } = join();
    await setImmediate();
    controller.abort();
    await done;
    expect(events).toEqual([]);
    expect(agent.stdin.writable).toBe(true);
    expect(client.input.listenerCount("data")).toBe(0);
    expect((agent.stdout as PassThrough).listenerCount("data")).toBe(0);
    expect(client.output.listenerCount("drain")).toBe(0);
  });

  test("lets go of them although the last words of the agent wait for a client that does not read", async () => {
    const output = new Writable({ write() {} });
    const { agent, say, controller, done, events } = join({}, { output });
    say(update);
    (agent.stdout as PassThrough).end();
    await idle();
    expect(kinds(events)).toEqual(["agent-closed"]);
    controller.abort();
    await done;
    expect(output.listenerCount("drain")).toBe(0);
  });

  test("never begins where it was stopped before, or an end is gone already", async () => {
    const stdout = Readable.from([]);
    stdout.destroy();
    await expect(join({}, { stdout }).done).resolves.toBeUndefined();
    const gone = new PassThrough();
    gone.destroy();
    const { events, say, agent, done } = join({}, { output: gone });
    say(update);
    (agent.stdout as PassThrough).end();
    await done;
    expect(kinds(events)).toEqual(["client-gone", "agent-closed"]);
  });

  test("fails where whoever listens to it fails, and lets go of both ends", async () => {
    const client = { input: new PassThrough(), output: new PassThrough() };
    const agent = { stdin: new PassThrough(), stdout: new PassThrough() };
    const done = bridge({ client, agent }, acpPolicy, () => {
      throw new Error("it does not listen");
    });
    agent.stdout.write(blocked(1));
    await expect(done).rejects.toThrow("it does not listen");
    expect(client.input.listenerCount("data")).toBe(0);
    expect(agent.stdout.listenerCount("data")).toBe(0);
  });
});

describe("an end that breaks", () => {
  test("on the client's side is told once, and the agent is read to its end", async () => {
    const output = new Writable({ write: (_chunk, _encoding, callback) => callback(new Error("EPIPE")) });
    const { agent, say, done, events } = join({}, { output });
    say(update);
    await closed(output);
    for (let count = 0; count < 1000; count += 1) say(update);
    (agent.stdout as PassThrough).end();
    await done;
    expect(kinds(events)).toEqual(["client-gone", "agent-closed"]);
  });

  test("on the agent's side is told once, and the client is read on", async () => {
    const stdin = new Writable({ write: (_chunk, _encoding, callback) => callback(new Error("EPIPE")) });
    const { client, agent, done, events } = join({}, { stdin });
    for (let count = 0; count < 1000; count += 1) client.input.write(update);
    client.input.end();
    await once(client.input, "end");
    (agent.stdout as PassThrough).end();
    await done;
    expect(kinds(events)).toEqual(["agent-deaf", "client-closed", "agent-closed"]);
  });

  test("is the end of what it had to say", async () => {
    const { client, agent, done, events } = join();
    client.input.destroy(new Error("ECONNRESET"));
    await closed(client.input);
    await setImmediate();
    expect(agent.stdin.writableEnded).toBe(true);
    (agent.stdout as PassThrough).destroy(new Error("ECONNRESET"));
    await done;
    expect(kinds(events)).toEqual(["client-closed", "agent-closed"]);
  });
});

/** A source that never ends, and how much was taken of it. */
function endless(what: string) {
  const state = { taken: 0 };
  const chunk = Buffer.from(what.repeat(Math.ceil(65_536 / what.length)));
  const stream = new Readable({
    read() {
      immediately(() => {
        state.taken += chunk.length;
        this.push(chunk);
      });
    },
  });
  return { stream, state };
}

/** Takes what comes only when it is let. */
function stubborn() {
  const held: (() => void)[] = [];
  const state = { isOpen: false, taken: 0 };
  const stream = new Writable({
    write(chunk: Buffer, _encoding, callback) {
      state.taken += chunk.length;
      if (state.isOpen) callback();
      else held.push(callback);
    },
  });
  const open = () => {
    state.isOpen = true;
    for (const callback of held.splice(0)) callback();
  };
  return { stream, state, open };
}

describe("whoever does not read", () => {
  test("as client stops the agent, within bounds", async () => {
    const source = endless(update);
    const { stream: output, open } = stubborn();
    const { controller, done } = join({}, { output, stdout: source.stream });
    await idle();
    const { taken } = source.state;
    expect(taken).toBeLessThan(1 << 20);
    await idle();
    expect(source.state.taken).toBe(taken);
    open();
    await idle();
    expect(source.state.taken).toBeGreaterThan(taken);
    controller.abort();
    await done;
  });

  test("as agent stops the client, within bounds, and is still heard", async () => {
    const { stream: stdin, state, open } = stubborn();
    const { client, say, controller, done } = join({}, { stdin });
    const source = endless(update);
    source.stream.pipe(client.input);
    await idle();
    const { taken } = source.state;
    expect(taken).toBeLessThan(1 << 20);
    // It is busy with writing, and asks for something that is denied: that must not stop what it writes.
    say(blocked(1) + update.repeat(2000) + blocked(2));
    const heard: Buffer[] = [];
    client.output.on("data", (chunk: Buffer) => heard.push(chunk));
    await idle();
    expect(Buffer.concat(heard).length).toBe(update.length * 2000);
    expect(source.state.taken).toBe(taken);
    open();
    await idle();
    expect(state.taken).toBeGreaterThan(taken);
    source.stream.unpipe();
    controller.abort();
    await done;
  });

  test("and floods with what is denied is not read from, until it reads", async () => {
    const { stream: stdin, open } = stubborn();
    const source = endless(blocked(1));
    const { controller, done, events } = join({}, { stdin, stdout: source.stream });
    await idle();
    const { taken } = source.state;
    expect(taken).toBeLessThan(2 << 20);
    await idle();
    expect(source.state.taken).toBe(taken);
    open();
    await idle();
    expect(source.state.taken).toBeGreaterThan(taken);
    expect(new Set(kinds(events))).toEqual(new Set(["request-denied"]));
    controller.abort();
    await done;
  });
});

describe("a question", () => {
  /** So much of a source that never ends is taken where nobody reads what becomes of it, and then of one who reads. */
  async function takenOf(what: string, decision: Decision | undefined, deaf: "output" | "stdin") {
    const { stream, open } = stubborn();
    const source = endless(what);
    const { controller, done } = join({ decide: async () => decision }, { [deaf]: stream, stdout: source.stream });
    await idle();
    const { taken } = source.state;
    await idle();
    const isStill = source.state.taken === taken;
    open();
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    const goesOn = source.state.taken > taken;
    controller.abort();
    await done;
    return { taken, isStill, goesOn };
  }

  test("that is decided is the last for an agent that does not read the answers, within bounds", async () => {
    const what = line({ id: 1, method: "session/request_permission", params: { sessionId: "s", options: [] } });
    const { taken, isStill, goesOn } = await takenOf(what, { kind: "deny" }, "stdin");
    expect(taken).toBeLessThan(8 << 20);
    expect({ isStill, goesOn }).toEqual({ isStill: true, goesOn: true });
  });

  test("that goes on to a client who does not read is the last, within bounds", async () => {
    const params = { sessionId: "s", options: [], text: "x".repeat(60_000) };
    const what = line({ id: 1, method: "session/request_permission", params });
    const { taken, isStill, goesOn } = await takenOf(what, undefined, "output");
    expect(taken).toBeLessThan(8 << 20);
    expect({ isStill, goesOn }).toEqual({ isStill: true, goesOn: true });
  });

  test("that is no text harms nobody", async () => {
    const params = { conversationId: "c", command: [{ toString: 1 }, "ls"] };
    const questions: Question[] = [];
    const { say, finish } = join({
      protocol: "codex_app_server",
      decide: async (question) => {
        questions.push(question);
        return { kind: "deny" };
      },
    });
    say(`${JSON.stringify({ id: 1, method: "execCommandApproval", params })}\n`);
    await idle();
    const { toAgent } = await finish();
    expect(questions).toMatchObject([{ method: "execCommandApproval", title: "ls", detail: params }]);
    expect(JSON.parse(toAgent)).toEqual({ id: 1, result: { decision: { denied: { rejection: "denied" } } } });
  });

  test("fails the bridge where whoever is told of it fails", async () => {
    const client = { input: new PassThrough(), output: new PassThrough() };
    const agent = { stdin: new PassThrough(), stdout: new PassThrough() };
    const policy: BridgePolicy = { ...acpPolicy, decide: async () => ({ kind: "allow" }) };
    const done = bridge({ client, agent }, policy, () => {
      throw new Error("it does not listen");
    });
    agent.stdout.write(ask(1));
    await expect(done).rejects.toThrow("it does not listen");
    expect(agent.stdout.listenerCount("data")).toBe(0);
  });

  const ask = (id: number, session = "s") =>
    line({
      id,
      method: "session/request_permission",
      params: {
        sessionId: session,
        toolCall: { title: `tool ${id}` },
        options: [
          { optionId: "yes", kind: "allow_once" },
          { optionId: "no", kind: "reject_once" },
        ],
      },
    });

  /** Asks one question, and gives what each side heard. */
  async function decide(decision: () => Promise<Decision | undefined>) {
    const questions: Question[] = [];
    const joined = join({
      decide: (question) => {
        questions.push(question);
        return decision();
      },
    });
    joined.say(ask(1));
    await idle();
    const { toClient, toAgent } = await joined.finish();
    return { questions, toClient, toAgent: toAgent === "" ? null : JSON.parse(toAgent), events: joined.events };
  }

  test.each([
    [{ kind: "allow" }, { outcome: "selected", optionId: "yes" }],
    [{ kind: "deny" }, { outcome: "selected", optionId: "no" }],
    [{ kind: "cancel" }, { outcome: "cancelled" }],
  ] as const)("that is decided by %j is answered in the client's place", async (decision, outcome) => {
    const { questions, toClient, toAgent, events } = await decide(async () => decision);
    expect(questions).toMatchObject([
      { kind: "permission", method: "session/request_permission", session: "s", title: "tool 1" },
    ]);
    expect(toClient).toBe("");
    expect(toAgent).toEqual({ jsonrpc: "2.0", id: 1, result: { outcome } });
    expect(events[0]).toEqual({
      kind: "question-decided",
      method: "session/request_permission",
      decision: decision.kind,
    });
  });

  test("that nobody decides goes to the client as it was", async () => {
    expect(await decide(async () => undefined)).toMatchObject({ toClient: ask(1), toAgent: null });
  });

  test("that cannot be decided allows nothing", async () => {
    const cancelled = { result: { outcome: { outcome: "cancelled" } } };
    expect(await decide(async () => Promise.reject(new Error("x")))).toMatchObject({
      toClient: "",
      toAgent: cancelled,
    });
    const thrown = () => {
      throw new Error("x");
    };
    expect(await decide(thrown)).toMatchObject({ toClient: "", toAgent: cancelled });
    for (const odd of [null, true, "allow", {}, { kind: "yes" }, ["allow"]]) {
      expect(await decide(async () => odd as never)).toMatchObject({ toClient: "", toAgent: cancelled });
    }
  });

  test("waits alone: all else goes on, and the order of answers is that of decisions", async () => {
    const waiting: ((decision: Decision) => void)[] = [];
    const { say, finish } = join({ decide: () => new Promise((resolve) => waiting.push(resolve)) });
    say(ask(1) + update + ask(2));
    await setImmediate();
    waiting[1]?.({ kind: "allow" });
    await setImmediate();
    waiting[0]?.({ kind: "deny" });
    await setImmediate();
    const { toClient, toAgent } = await finish();
    expect(toClient).toBe(update);
    expect(
      toAgent
        .trim()
        .split("\n")
        .map((one) => JSON.parse(one).id),
    ).toEqual([2, 1]);
  });

  test("of a session that the client cancels is cancelled, and others wait on", async () => {
    const signals: AbortSignal[] = [];
    const { client, say, finish } = join({
      decide: (_question, signal) => {
        signals.push(signal);
        return new Promise(() => {});
      },
    });
    say(ask(1, "a") + ask(2, "b"));
    await setImmediate();
    const cancel = line({ method: "session/cancel", params: { sessionId: "a" } });
    client.input.write(cancel);
    await setImmediate();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    const { toAgent } = await finish();
    expect(toAgent).toBe(cancel + line({ id: 1, result: { outcome: { outcome: "cancelled" } } }));
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test("is one too many where more wait than anybody could decide", async () => {
    let count = 0;
    const { say, agent, controller, done } = join({
      decide: () => {
        count += 1;
        return new Promise(() => {});
      },
    });
    for (let id = 0; id < mostPending + 10; id += 1) say(ask(id));
    say(line({ id: 999, method: "session/request_permission", params: { text: "x".repeat(9 << 20) } }));
    await idle();
    expect(count).toBe(mostPending);
    const answers = `${(agent.stdin as PassThrough).read()}`
      .trim()
      .split("\n")
      .map((one) => JSON.parse(one));
    expect(answers).toHaveLength(11);
    expect(answers[0]).toEqual({ jsonrpc: "2.0", id: mostPending, result: { outcome: { outcome: "cancelled" } } });
    controller.abort();
    await done;
  });
});
