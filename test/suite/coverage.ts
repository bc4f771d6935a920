import { relative } from "node:path";

/** The part of istanbul's coverage map that is asked here. */
export interface CoverageMap {
  files(): readonly string[];
  merge(other: CoverageMap): void;
  fileCoverageFor(path: string): {
    getUncoveredLines(): readonly (number | string)[];
    getBranchCoverageByLine(): Readonly<Record<string, { readonly coverage: number }>>;
    toSummary(): { readonly data: Readonly<Record<string, { readonly pct: number | "Unknown" }>> };
  };
}

/** Lists the pure files that the tests do not cover fully, one line each. The runs of single files count as well. */
export function uncovered(runs: readonly CoverageMap[], root: string): readonly string[] {
  const [all, ...others] = runs;
  if (all === undefined) return ["coverage was not taken"];
  for (const other of others) all.merge(other);
  return all.files().flatMap((path) => {
    const file = all.fileCoverageFor(path);
    const short = Object.entries(file.toSummary().data).filter(([, { pct }]) => pct !== 100 && pct !== "Unknown");
    if (short.length === 0) return [];
    const parts = short.map(([name, { pct }]) => `${name} ${pct} %`).join(", ");
    const branches = Object.entries(file.getBranchCoverageByLine()).filter(([, { coverage }]) => coverage < 100);
    const lines = [...new Set([...file.getUncoveredLines(), ...branches.map(([line]) => line)].map(Number))];
    return [`not covered: ${relative(root, path)}: ${parts}${lines.length > 0 ? `; lines ${lines.join(", ")}` : ""}`];
  });
}
