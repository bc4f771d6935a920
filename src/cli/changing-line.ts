import type { Io } from "./io.ts";
import { visibleLine } from "./visible.ts";

/** What is said while the owner waits: lines that stay, and on a terminal one that gives way to the next. */
export interface ChangingLine {
  /** Stays. */
  say(text: string): void;
  /** Gives way to whatever comes next; without a terminal it is a line like any other. */
  show(text: string): void;
  clear(): void;
}

export function changingLine({ stderr }: Pick<Io, "stderr">): ChangingLine {
  let isShown = false;
  const clear = () => {
    if (isShown) stderr.write("\r\u001b[K");
    isShown = false;
  };
  const say = (text: string) => {
    clear();
    stderr.write(`podbot: ${visibleLine(text)}\n`);
  };
  const show = (text: string) => {
    if (!stderr.isTerminal) return say(text);
    clear();
    stderr.write(`podbot: ${visibleLine(text)} …`);
    isShown = true;
  };
  return { say, show, clear };
}
