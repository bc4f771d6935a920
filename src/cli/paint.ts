import type { Io, Output } from "./io.ts";

export type Colour = "red" | "green" | "yellow" | "dim" | "bold";

const codes = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const satisfies Record<Colour, number>;

/** Colours a text where a person reads it and has not asked otherwise (NO_COLOR). */
export function painter(output: Output, env: Io["env"]): (colour: Colour, text: string) => string {
  const plain = !output.isTerminal || Boolean(env["NO_COLOR"]);
  return (colour, text) => (plain ? text : `\u001b[${codes[colour]}m${text}\u001b[0m`);
}
