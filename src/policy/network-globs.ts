import type { Step } from "./glob.ts";

/** Tests texts that hold these pieces in this order, with any letters between them. Each piece is looked for once. */
function piecesMatcher([first = "", ...rest]: readonly string[]): (text: string) => boolean {
  const last = rest.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = text.indexOf(piece, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  };
}

/** What one label or segment must be. A star stands for any letters; where it stands alone, for one at least. */
export function partStep(part: string, read: (piece: string) => string = (piece) => piece): Step {
  return part === "*" ? (text) => text !== "" : piecesMatcher(part.split("*").map(read));
}

export const anyPart: Step = () => true;
