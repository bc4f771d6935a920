import { EngineError } from "../errors.ts";
import type { EngineAnswer } from "./answer.ts";
import { recordOf, stringOf } from "./shape.ts";

/** One thing that an engine says while it pulls, imports or builds. */
export interface EngineReport {
  /** Words for people, as they came: parts of lines, or several. */
  readonly text: string;
  /** Of what was made, where this says it. */
  readonly id: string | null;
  /** Why it failed; after this nothing of worth follows. */
  readonly error: string | null;
}

const longestLine = 1_024 * 1_024;

/** What an engine says meanwhile, as it comes: a line of JSON for each. */
export async function* readReports({ body }: EngineAnswer): AsyncGenerator<EngineReport, void> {
  let rest = "";
  for await (const piece of piecesOf(body)) {
    const lines = (rest + piece).split("\n");
    rest = (lines.pop() ?? "").slice(-longestLine);
    for (const line of lines) if (line.trim() !== "") yield readReport(line);
  }
  if (rest.trim() !== "") yield readReport(rest);
}

async function* piecesOf(body: EngineAnswer["body"]): AsyncGenerator<string, void> {
  try {
    yield* body.setEncoding("utf8") as AsyncIterable<string>;
  } catch (cause) {
    throw new EngineError("ENGINE_CONNECTION_FAILED", "The engine ended the connection in the middle of its work.", {
      hint: "Its log may say why. What was finished is kept: try again.",
      cause,
    });
  }
}

/** Builds say `stream`, pulls say `status`; the id comes as `aux`, or as the whole of the last words. */
function readReport(line: string): EngineReport {
  const said = recordOf(parse(line));
  const text = stringOf(said["stream"]) || stringOf(said["status"]);
  const aux = stringOf(recordOf(said["aux"])["ID"]);
  const id = aux || (/^[0-9a-f]{64}$/.exec(text.trim())?.[0] ?? "");
  const error = stringOf(said["error"]) || stringOf(recordOf(said["errorDetail"])["message"]);
  return { text, id: id === "" ? null : id, error: error === "" ? null : error.trim() };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return { stream: `${line}\n` };
  }
}
