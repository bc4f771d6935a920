/** What a model is asked, in whichever protocol. */
export interface Conversation {
  readonly model: string;
  /** All that the user's side has said, oldest first; each prompt's own words and what the agent put around them. */
  readonly said: readonly string[];
  /** Names of the tools that may be called; none for a title and the like. */
  readonly tools: readonly string[];
  /** What tools have answered so far. */
  readonly results: readonly string[];
  readonly isStreamed: boolean;
}

/** What the model does next. */
export type Step =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly id: string; readonly tool: string; readonly input: unknown };

/**
 * The prompt is the script: each line `TOOL <name> <json>` is a call, made once the one before has its result; then
 * the last result is told. Nothing is remembered between requests, so any number of agents can be served at once.
 */
export function nextStep({ said, tools, results }: Conversation): Step {
  if (tools.length === 0) return { kind: "text", text: "A title" };
  const calls = said.flatMap(callsIn);
  const call = calls[results.length];
  if (call === undefined) return { kind: "text", text: closing(said, calls, results) };
  if (tools.includes(call.tool)) return { kind: "call", id: `call_${results.length + 1}`, ...call };
  return { kind: "text", text: `There is no tool ${call.tool} but ${tools.join(", ")}.` };
}

function callsIn(text: string): readonly { readonly tool: string; readonly input: unknown }[] {
  return [...text.matchAll(/^TOOL (\S+) (\{.*\})$/gm)].map(([, tool = "", json = ""]) => ({
    tool,
    input: JSON.parse(json) as unknown,
  }));
}

function closing(said: readonly string[], calls: readonly unknown[], results: readonly string[]): string {
  const last = said.at(-1)?.trim().split("\n").at(-1) ?? "";
  // A prompt after the last call has an answer of its own.
  const isAboutTools = calls.length > 0 && callsIn(said.at(-1) ?? "").length > 0;
  return isAboutTools ? `The tool said: ${results.at(-1)}` : `The model heard: ${last}`;
}
