import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { hardLimits } from "../../src/machine/limits.ts";

/** What a process with other limits says of them. */
function limitsUnder(...words: readonly string[]): ReturnType<typeof hardLimits> {
  const program = `
    import { importSource } from "./scripts/import-source.mjs";
    const { hardLimits } = await importSource("src/machine/limits.ts");
    console.log(JSON.stringify(hardLimits()));`;
  const command = [process.execPath, "--input-type=module", "--eval", program];
  return JSON.parse(
    execFileSync("prlimit", [...words, ...command], {
      cwd: resolve(import.meta.dirname, "../.."),
      encoding: "utf8",
      // Its threads are processes, too, and some machines count them.
      env: { ...process.env, UV_THREADPOOL_SIZE: "1", GOMAXPROCS: "1" },
    }),
  );
}

describe("the limits of a process", () => {
  test("are those two that engines raise, and no more than they keep for themselves", () => {
    const limits = hardLimits();
    expect(limits.map(({ name }) => name)).toEqual(["nofile", "nproc"]);
    for (const { soft, hard } of limits) {
      expect(soft).toBe(hard);
      expect(Number.isSafeInteger(hard) && hard > 0).toBe(true);
    }
    expect(limits[0]?.hard).toBeLessThanOrEqual(65_536);
    expect(limits[1]?.hard).toBeLessThanOrEqual(32_768);
  });

  test("are the hard ones where these are lower", () => {
    expect(limitsUnder("--nofile=512:1000", "--nproc=2000:3000")).toEqual([
      { name: "nofile", soft: 1000, hard: 1000 },
      { name: "nproc", soft: 3000, hard: 3000 },
    ]);
  });
});
