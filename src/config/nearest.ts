/** Longer words are not typing mistakes of anything we know, and comparing them would cost time that a hostile file decides. */
const longestWord = 64;

/** The candidate that the writer most likely meant, or nothing when none is close. */
export function nearestName(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > longestWord) return undefined;
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.max(1, Math.floor(word.length / 3))) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** How many letters to insert, delete, replace, or swap with their neighbour. */
function editDistance(from: string, to: string): number {
  // Cells of the classic table: rows[i][j] is the distance between the first i letters and the first j.
  const rows = Array.from({ length: from.length + 1 }, (_, i) =>
    Array.from({ length: to.length + 1 }, (_, j) => i + j),
  );
  const at = (i: number, j: number) => (rows[i] as number[])[j] as number;
  for (let i = 1; i <= from.length; i++) {
    for (let j = 1; j <= to.length; j++) {
      const swapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const best = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1),
        swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
      (rows[i] as number[])[j] = best;
    }
  }
  return at(from.length, to.length);
}
