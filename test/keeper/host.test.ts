import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import type { ClientContext } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Question } from "../../src/decision.ts";
import { ConfigError, SessionError } from "../../src/errors.ts";
import { type HostedSession, type HostRequest, hostAgent } from "../../src/keeper/host.ts";
import type { HostedEvent } from "../../src/keeper/host-events.ts";
import { planHost } from "../../src/keeper/host-plan.ts";
import { expectNothingLeft, sessionWorld } from "../cli/terminal/remains.ts";
import { eventually } from "../eventually.ts";
import { openEditor } from "../host/editor.ts";
import { stubWords, writeStub } from "../host/stub.ts";
import type { World } from "../world.ts";

function request(world: World, more: Partial<HostRequest> = {}, stub: readonly string[] = []): HostRequest {
  writeStub(world);
  return {
    agent: "custom",
    args: [...stubWords, ...stub],
    cwd: world.project,
    env: world.env,
    ...more,
    config: { network: false, ...more.config },
  };
}

const command = (...words: readonly unknown[]) => JSON.stringify(words);

/** A conversation of one session. */
function converse<T>(
  session: HostedSession,
  world: World,
  work: (turn: (...words: readonly unknown[]) => Promise<string>, context: ClientContext) => Promise<T>,
  editor = openEditor(),
): Promise<T> {
  return editor.speak(session.protocolIo, async (context) => {
    await editor.initialize(context);
    const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
    return work((...words) => editor.turn(context, sessionId, command(...words)), context);
  });
}

const permission = {
  sessionId: "s1",
  toolCall: { toolCallId: "1", title: "remove everything" },
  options: [
    { optionId: "yes", name: "Yes", kind: "allow_once" },
    { optionId: "ever", name: "Ever", kind: "allow_always" },
    { optionId: "no", name: "No", kind: "reject_once" },
  ],
};

describe("a hosted session", () => {
  test("carries the protocol, ends with its client's word, and leaves nothing", async () => {
    const world = sessionWorld();
    const session = await hostAgent(request(world));
    expect(session).toMatchObject({ protocol: "acp", warnings: [], plan: { cwd: world.project } });
    const where = JSON.parse(await converse(session, world, (turn) => turn("where")));
    expect(where).toMatchObject({ cwd: world.project });
    expect(await session.ended).toEqual({ code: 0, killed: false });
    await expectNothingLeft(world);
  });

  test("tells what happens in the order in which it happens, and its reading ends with it", async () => {
    const world = sessionWorld();
    const session = await hostAgent(request(world, { config: { acp: { delegation: "allow_terminal" } } }));
    const events = collect(session);
    await converse(session, world, (turn) => turn("ask", "fs/read_text_file", { path: "/etc/hostname" }));
    const kinds = (await events).map(({ kind }) => kind);
    expect(kinds.slice(0, 3)).toEqual(["trust-changed", "capabilities-masked", "request-denied"]);
    expect(kinds.at(-1)).toBe("agent-ended");
    expect(kinds).toContain("client-closed");
  });

  test("does not wait for whoever does not read its events, and tells how many are lost", async () => {
    const world = sessionWorld();
    const session = await hostAgent(request(world));
    await converse(session, world, async (turn) => {
      for (let count = 0; count < 300; count++) await turn("tell", "fs/write_text_file", {});
    });
    await session.ended;
    const events = await collect(session);
    const [first] = events;
    expect(events).toHaveLength(257);
    expect(first).toMatchObject({ kind: "events-lost" });
    expect(events.at(-1)).toEqual({ kind: "agent-ended", exit: { code: 0, killed: false } });
  });

  test("writes each thing once into its journal, and not without end", async () => {
    const world = sessionWorld();
    const session = await hostAgent(request(world));
    const journal = join(world.home, ".local/state/podbot/sessions", session.id, "journal.jsonl");
    const notes = await converse(session, world, async (turn) => {
      for (let count = 0; count < 5; count++) await turn("tell", "fs/same", {});
      for (let count = 0; count < 150; count++) await turn("tell", `fs/other-${count}`, {});
      return readFileSync(journal, "utf8")
        .split("\n")
        .filter((line) => line.includes('"kind":"note"'));
    });
    expect(notes.filter((line) => line.includes("fs/same"))).toHaveLength(1);
    expect(notes.length).toBeLessThan(110);
    expect(notes.at(-1)).toContain("there is more of this");
  });

  test("hands the agent's standard error to whoever wants it", async () => {
    const world = sessionWorld();
    const errors = new PassThrough();
    const said = text(errors);
    const session = await hostAgent(request(world, { errors }));
    await converse(session, world, (turn) => turn("stderr", "a complaint\n"));
    await session.ended;
    errors.end();
    expect(await said).toBe("a complaint\n");
  });

  test("does not wait for whoever does not read the agent's standard error", async () => {
    const world = sessionWorld();
    const errors = new PassThrough();
    const session = await hostAgent(request(world, { errors }));
    await converse(session, world, async (turn) => {
      for (let count = 0; count < 40; count++) await turn("stderr", "x".repeat(100_000));
    });
    expect(await session.ended).toEqual({ code: 0, killed: false });
    expect(errors.readableLength + errors.writableLength).toBeLessThan(2 * 1024 * 1024);
  });

  test.each([
    ["stop()", (session: HostedSession) => session.stop()],
    ["disposal", (session: HostedSession) => session[Symbol.asyncDispose]()],
  ])("is ended by %s although nobody reads what its agent says, and leaves nothing", async (_way, end) => {
    const world = sessionWorld();
    const config = { sandbox: { grace_seconds: 1 } };
    const session = await hostAgent(request(world, { config }, ["--stays", "--deaf", "--chats"]));
    await eventually(() => expect(session.protocolIo.readable.readableLength).toBeGreaterThan(1000));
    await end(session);
    await session.ended.catch(() => {});
    await expectNothingLeft(world);
  });

  test("is not started where its start is called off", async () => {
    const world = sessionWorld();
    const over = new AbortController();
    const starting = hostAgent(
      request(world, { signal: over.signal, onStep: (step) => step === "listening" && over.abort() }),
    );
    await expect(starting).rejects.toThrow();
    await expectNothingLeft(world);
  });

  test("is not there where its agent cannot be started, and nothing is left", async () => {
    const world = sessionWorld();
    const error = await failureOf(SessionError, hostAgent({ ...request(world), args: ["no-such-program"] }));
    expect(error.code).toBe("COMMAND_NOT_FOUND");
    await expectNothingLeft(world);
  });
});

describe("what an agent asks for permission", () => {
  test.each([
    ["allowed", { kind: "allow" }, "yes"],
    ["allowed for ever", { kind: "allow", remember: true }, "ever"],
    ["denied", { kind: "deny" }, "no"],
  ] as const)("is %s by the program, before any client hears of it", async (_what, decision, optionId) => {
    const world = sessionWorld();
    const questions: Question[] = [];
    const session = await hostAgent(
      request(world, {
        decide: async (question) => {
          questions.push(question);
          return decision;
        },
      }),
    );
    const editor = openEditor();
    const answer = await converse(
      session,
      world,
      (turn) => turn("ask", "session/request_permission", permission),
      editor,
    );
    expect(JSON.parse(answer)).toEqual({ result: { outcome: { outcome: "selected", optionId } } });
    expect(questions).toMatchObject([{ kind: "permission", session: "s1", title: "remove everything" }]);
    expect(editor.asked).toEqual([]);
  });

  test("goes on to the client where the program does not decide", async () => {
    const world = sessionWorld();
    const session = await hostAgent(request(world, { decide: async () => undefined }));
    const editor = openEditor("reject");
    const answer = await converse(
      session,
      world,
      (turn) => turn("ask", "session/request_permission", permission),
      editor,
    );
    expect(JSON.parse(answer)).toEqual({ result: { outcome: { outcome: "selected", optionId: "no" } } });
    expect(editor.asked).toEqual(["session/request_permission"]);
  });
});

describe("a plan for a hosted agent", () => {
  test("speaks ACP where nobody says otherwise, with nothing delegated", async () => {
    const world = sessionWorld();
    const planned = await planHost(request(world));
    expect(planned).toMatchObject({
      protocol: "acp",
      delegation: "disabled",
      isProtocolAssumed: true,
      trustChanges: [],
    });
    const said = await planHost(request(world, { mode: "codex_app_server" }));
    expect(said).toMatchObject({ protocol: "codex_app_server", isProtocolAssumed: false });
  });

  test("takes an agent for a server that a file has for the terminal", async () => {
    const world = sessionWorld();
    world.file("home/.config/podbot/config.toml", '[agent]\nmode = "podbot"\n');
    expect(await planHost(request(world))).toMatchObject({ protocol: "acp", isProtocolAssumed: true });
  });

  test("is not made for a terminal", async () => {
    const world = sessionWorld();
    const error = await failureOf(ConfigError, planHost(request(world, { mode: "podbot" })));
    expect(error.hint).toContain("podbot run");
  });

  test("tells an agent in its mode what keeps it quiet, and nothing that makes it ask nothing", async () => {
    const world = sessionWorld();
    world.file("opt/bin/codex-acp", "#!/bin/sh\n", 0o755);
    world.env["PATH"] = `${world.directory}/opt/bin:${world.env["PATH"]}`;
    const { plan, values } = await planHost({ agent: "codex", cwd: world.project, env: world.env });
    expect(plan.command).toEqual(["codex-acp"]);
    expect(values()).toMatchObject({ NO_BROWSER: "1", CODEX_CONFIG: expect.stringContaining('"analytics"') });
  });
});

async function failureOf<T extends Error>(family: new (...parts: never[]) => T, call: Promise<unknown>): Promise<T> {
  const error = await call.then(
    () => new Error("Nothing was thrown."),
    (reason: unknown) => reason,
  );
  if (error instanceof family) return error;
  throw error;
}

async function collect({ events }: HostedSession): Promise<readonly HostedEvent[]> {
  const all: HostedEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}
