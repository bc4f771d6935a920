import { StringDecoder } from "node:string_decoder";
import type { OutputEntry } from "../journal/output.ts";
import { followOutput, readEvents, readOutput } from "../journal/read.ts";
import { reduceJournal } from "../journal/reduce.ts";
import { isOver, lookUpSession, sessionFiles } from "../keeper/sessions.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { warn } from "./plan.ts";
import { visible, visibleJson } from "./visible.ts";

/** `podbot logs`: what the agent printed, shown and not done: no byte of it acts on the reader's terminal. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const { id } = await lookUpSession(io.env, parsed.words[0] as string);
  const directory = sessionFiles(io.env, id);
  const printer = parsed.switches.has("json") ? { show: printJson, finish: () => {} } : printerOf();
  if (parsed.switches.has("follow")) {
    const interrupt = new AbortController();
    const forget = io.onSignal(() => interrupt.abort());
    const options = { signal: interrupt.signal, isOver: () => isOver(io.env, id) };
    for await (const entry of followOutput(directory, options)) {
      printer.show(entry, io);
      if (io.stdout.isLeft) break;
    }
    forget();
  } else {
    for (const entry of readOutput(directory).entries) printer.show(entry, io);
  }
  printer.finish(io);
  const { warnings, lost } = reduceJournal(readEvents(directory).events);
  warn(
    warnings.map(({ text }) => text),
    io,
  );
  if (lost > 0) warn([`${lost} bytes of this log could not be written; the disk may have been full.`], io);
  return 0;
}

function printJson({ at, process, stream, bytes }: OutputEntry, io: Io): void {
  const entry = { at, process, stream, text: bytes.toString("utf8"), base64: bytes.toString("base64") };
  io.stdout.write(`${visibleJson(entry)}\n`);
}

interface Printer {
  show(entry: OutputEntry, io: Io): void;
  /** Shows what was kept back for what might have come next. */
  finish(io: Io): void;
}

/** Each stream to its own; characters may be cut in two by the pieces in which they came. */
function printerOf(): Printer {
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  // A terminal ends its lines with both; the other half may come with the next piece.
  const held = { stdout: "", stderr: "" };
  return {
    show({ stream, bytes }, io) {
      const text = (held[stream] + decoders[stream].write(bytes)).replaceAll("\r\n", "\n");
      held[stream] = text.endsWith("\r") ? "\r" : "";
      io[stream].write(visible(text.slice(0, text.length - held[stream].length)));
    },
    finish(io) {
      for (const stream of ["stdout", "stderr"] as const)
        io[stream].write(visible(held[stream] + decoders[stream].end()));
    },
  };
}
