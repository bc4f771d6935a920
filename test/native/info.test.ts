import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { record } from "./letter.ts";
import { compile, environment, makeRandom, makeScratch } from "./programs.ts";

const scratch = makeScratch(afterAll);
const program = join(scratch, "infos");
beforeAll(() => compile("infos.c", program, "info.c"));

/** What the gate makes of each of these, said by bubblewrap of a box. */
function read(...texts: readonly (string | Buffer)[]): readonly string[] {
  const file = join(scratch, "texts");
  writeFileSync(file, Buffer.concat(texts.map((text) => record("", text))));
  return execFileSync(program, [file], { encoding: "utf8", env: environment }).trim().split("\n");
}

const told = '{\n    "child-pid": 4242,\n    "ipc-namespace": 4026532001,\n    "net-namespace": 4026532002\n}\n';

describe("what bubblewrap tells of a box", () => {
  it("is its first process and its network", () => {
    expect(read(told)).toEqual(["4242 4026532002"]);
    expect(read('{"net-namespace":7, "child-pid":   5}')).toEqual(["5 7"]);
  });

  it.each([
    [""],
    ["{}"],
    ["{"],
    [told.replace("child-pid", "child")],
    [told.replace("net-namespace", "net")],
    [told.replace("}", "")],
    [told.replace("4242", "")],
    [told.replace("4242", "-1")],
    [told.replace("4242", "0")],
    [told.replace("4242", "4242x")],
    [told.replace("4242", '"4242"')],
    [told.replace("4242", "2147483648")],
    [told.replace("4242", "1e3")],
    [told.replace("4026532002", "99999999999999999999")],
    [told.replace("4026532002", "0")],
    [told.replace("4242", "42\u000042")],
  ])("is nothing that makes sense in %j", (text) => {
    expect(read(text)).toEqual(["no"]);
  });

  it("is never read beyond its end, whatever it is", () => {
    const random = makeRandom(5);
    const texts = Array.from({ length: 5_000 }, () => {
      const bytes = Buffer.from(told);
      for (let changes = random(6); changes > 0; changes--) bytes[random(bytes.length)] = random(256);
      return bytes.subarray(0, random(3) === 0 ? random(bytes.length) : bytes.length);
    });
    const answers = read(...texts);
    expect(answers).toHaveLength(texts.length);
    expect(answers.filter((answer) => answer === "no").length).toBeGreaterThan(1_000);
    expect(answers.filter((answer) => answer !== "no").length).toBeGreaterThan(100);
  });
});
