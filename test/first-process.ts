import { pids, readIfThere, wordsOf } from "./suite/read.ts";

/** The process with this word that is the first of a pid namespace below ours. In a test, no other has it. */
export function findFirstProcess(word: string): number | null {
  const isFirst = (pid: number) => /^NSpid:\t.*\t1$/m.test(readIfThere(`/proc/${pid}/status`));
  return pids().find((pid) => wordsOf(pid).split(" ").includes(word) && isFirst(pid)) ?? null;
}
