import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { PassThrough, Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import {
  type ClientContext,
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionNotification,
} from "@agentclientprotocol/sdk";

/** What a client speaks through. */
export interface Wire {
  readonly readable: Readable;
  readonly writable: Writable;
}

/** An unmodified client of the Agent Client Protocol that offers all that it can do, and does it where it is asked. */
export interface Editor {
  /** Of what the agent may ask, what it has asked for, in its order. */
  readonly asked: readonly string[];
  readonly permissions: readonly RequestPermissionRequest[];
  readonly updates: readonly SessionNotification["update"][];
  /** All that the agent has said. */
  said(): string;
  /** Resolves when the agent has taken a turn. */
  turn(context: ClientContext, session: string, prompt: string): Promise<string>;
  /** Speaks with an agent until the work is done; then its input ends. */
  speak<T>(wire: Wire, work: (context: ClientContext) => Promise<T>): Promise<T>;
  initialize(context: ClientContext): ReturnType<typeof initialize>;
}

const capabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };

function initialize(context: ClientContext) {
  return context.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: capabilities,
    clientInfo: { name: "editor", version: "1.0.0" },
  });
}

/** Chooses by the kind of the option; `allow` is whatever allows. Commands run in the directory. */
export function openEditor(answer: "allow" | "reject" = "allow", directory = tmpdir()): Editor {
  const asked: string[] = [];
  const permissions: RequestPermissionRequest[] = [];
  const updates: SessionNotification["update"][] = [];
  const terminals = new Map<string, Terminal>();
  const found = (id: string) => terminals.get(id) as Terminal;
  const said = () =>
    updates
      .map((update) =>
        update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? update.content.text : "",
      )
      .join("");
  const app = client({ name: "editor" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(methods.client.session.requestPermission);
      permissions.push(params);
      const option = params.options.find(({ kind }) => kind.startsWith(answer));
      if (option === undefined) return { outcome: { outcome: "cancelled" } };
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => {
      asked.push(methods.client.fs.readTextFile);
      return { content: readFileSync(params.path, "utf8") };
    })
    .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
      asked.push(methods.client.fs.writeTextFile);
      writeFileSync(params.path, params.content);
      return {};
    })
    .onRequest(methods.client.terminal.create, ({ params }) => {
      asked.push(methods.client.terminal.create);
      const terminalId = `terminal-${terminals.size + 1}`;
      terminals.set(terminalId, startTerminal(params.command, params.args ?? [], params.cwd ?? directory));
      return { terminalId };
    })
    .onRequest(methods.client.terminal.output, async ({ params }) => ({
      output: await found(params.terminalId).output,
      truncated: false,
      exitStatus: { exitCode: await found(params.terminalId).code },
    }))
    .onRequest(methods.client.terminal.waitForExit, async ({ params }) => ({
      exitCode: await found(params.terminalId).code,
    }))
    .onRequest(methods.client.terminal.kill, () => ({}))
    .onRequest(methods.client.terminal.release, () => ({}))
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
    });
  return {
    asked,
    permissions,
    updates,
    said,
    initialize,
    async turn(context, sessionId, prompt) {
      const before = said().length;
      const { stopReason } = await context.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text: prompt }],
      });
      if (stopReason !== "end_turn") throw new Error(`the turn has ended with ${stopReason}`);
      // What came before the answer may be handed out after it.
      for (let tries = 0; said().length === before && tries < 500; tries++) await setTimeout(10);
      return said().slice(before);
    },
    async speak({ readable, writable }, work) {
      // A connection that is closed would take what it reads from with it; an editor reads on to the end.
      const heard = readable.pipe(new PassThrough());
      const stream = ndJsonStream(
        Writable.toWeb(writable) as WritableStream<Uint8Array>,
        Readable.toWeb(heard) as ReadableStream<Uint8Array>,
      );
      try {
        return await app.connectWith(stream, work);
      } finally {
        readable.unpipe(heard).resume();
        writable.end();
      }
    },
  };
}

interface Terminal {
  readonly output: Promise<string>;
  readonly code: Promise<number>;
}

function startTerminal(command: string, args: readonly string[], cwd: string): Terminal {
  // Agents put a whole line of the shell into the command.
  const child = spawn(command, args, {
    shell: args.length === 0,
    stdio: ["ignore", "pipe", "ignore"],
    cwd,
  });
  const code = new Promise<number>((resolve) => {
    child.once("error", () => resolve(127));
    child.once("close", (status) => resolve(status ?? -1));
  });
  return { output: text(child.stdout as Readable).catch(() => ""), code };
}
