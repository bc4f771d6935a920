import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expandPattern } from "../src/survey/expand.ts";
import { Reader } from "../src/survey/reader.ts";
import { atMost, type Line, measure, program } from "./measure.ts";

const names = Number(process.env["BENCH_NAMES"] ?? 1_900_000);
const perDirectory = 100;
const rounds = 3;

/** How long a pattern takes in a tree of two million names, which is the most that it reads. */
export async function patternLines(): Promise<readonly Line[]> {
  const tree = makeTree();
  try {
    const times = await measure(
      {
        find: program("find", [tree, "-name", ".env*"]),
        pattern: async () => {
          if (expandPattern(`${tree}/**/.env*`, true, new Reader()).length !== 1) throw new Error("not found");
        },
      },
      rounds,
    );
    const what = `**/.env* in ${names} names, beside find (${times.find.toFixed(0)} ms)`;
    return [atMost(what, times.pattern / times.find, { guard: 2, goal: 1.2 })];
  } finally {
    rmSync(tree, { recursive: true });
  }
}

/** In memory, so that no disk takes part; all names are of one file, which takes a tenth of the time to make. */
function makeTree(): string {
  const tree = mkdtempSync("/dev/shm/podbot-bench-");
  const script = `import os, sys
os.chdir(sys.argv[1]); open("one", "w").close(); one = os.open(".", os.O_RDONLY)
for outer in range(${Math.ceil(names / perDirectory)}):
    at = f"d{outer % 100}/e{outer}"; os.makedirs(at); there = os.open(at, os.O_RDONLY)
    for inner in range(${perDirectory - 1}): os.link("one", f"f{inner}.ts", src_dir_fd=one, dst_dir_fd=there)
    os.close(there)`;
  const { status, stderr } = spawnSync("python3", ["-c", script, tree], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  mkdirSync(join(tree, "d7/.env.local"));
  return tree;
}
