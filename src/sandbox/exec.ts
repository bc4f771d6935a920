import { setMaxListeners } from "node:events";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { UsageError } from "../errors.ts";
import { Conversation } from "./conversation.ts";
import { superviseEnd } from "./ending.ts";
import { writeOrder } from "./order.ts";
import { explainRefusal } from "./refusal.ts";
import type { Command, Connector, Process, Size, TerminalProcess } from "./sandbox.ts";

export async function execOnPipes(connector: Connector, command: Command): Promise<Process> {
  const { conversation, exited, end } = await start(connector, command);
  const { stdin, stdout } = conversation;
  const stderr = conversation.stderr as NonNullable<typeof conversation.stderr>;
  return { stdin, stdout, stderr, exited, end, kill: (signal) => kill(conversation, signal) };
}

export async function execOnTerminal(connector: Connector, command: Command, size: Size): Promise<TerminalProcess> {
  const { conversation, exited, end } = await start(connector, command, size);
  const { stdin, stdout } = conversation;
  return {
    stdin,
    stdout,
    exited,
    end,
    kill: (signal) => kill(conversation, signal),
    resize: (to) => conversation.resize(to),
    onStop: (listener) => conversation.onStop(listener),
  };
}

async function start(
  connector: Connector,
  command: Command,
  size?: Size,
): Promise<{ readonly conversation: Conversation } & ReturnType<typeof superviseEnd>> {
  const order = writeOrder(command, size);
  const stream = await connect(connector, command.signal);
  const conversation = new Conversation(stream, {
    order,
    onTerminal: size !== undefined,
    explain: (stage, errno) => explainRefusal(command, stage, errno),
    watch: command.watch,
  });
  const ending = superviseEnd(conversation, command);
  await conversation.started;
  return { conversation, ...ending };
}

async function connect(connector: Connector, signal: AbortSignal | undefined): Promise<Duplex> {
  signal?.throwIfAborted();
  // One signal may stand for any number of commands at once. That is no leak, and must not be reported as one.
  if (signal !== undefined) setMaxListeners(0, signal);
  const stream = await connector.connect(signal).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw error;
  });
  if (!signal?.aborted) return stream;
  stream.on("error", () => {}).destroy();
  throw signal.reason;
}

function kill(conversation: Conversation, signal: NodeJS.Signals): void {
  const number = (constants.signals as Readonly<Partial<Record<string, number>>>)[signal];
  if (number === undefined) throw new UsageError("USAGE", `This machine has no signal ${JSON.stringify(signal)}.`);
  conversation.signal(number);
}
