import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { descriptors, writeLetter } from "../../../src/wall/bubblewrap/letter.ts";
import { allowlist, planFor, presetRules } from "../../plan/ordinary.ts";
import type { Tree } from "../../plan/tree.ts";

const filter = new Uint8Array([7, 7, 7]);
const tree: Tree = { "/home/u/.ssh/id": "file", "/home/u/.netrc": "file", "/home/u/.pgpass": "file" };
const plan = planFor(presetRules("!@all", "@base"), tree);
const env = { LANG: "C", TOKEN: "two\nlines" };
const letter = writeLetter(plan, filter, env);

interface Opened {
  readonly pins: number;
  readonly options: readonly string[];
  readonly data: readonly Buffer[];
  readonly command: readonly string[];
  readonly doors: readonly Buffer[];
}

/** Reads a letter as native/launch.c does: a head, then records of a type, a length and that many bytes. */
function open(bytes: Buffer): Opened {
  const records: { type: string; body: Buffer }[] = [];
  for (let at = 12; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at + 1);
    records.push({ type: String.fromCharCode(bytes[at] as number), body: bytes.subarray(at + 5, at + 5 + length) });
    at += 5 + length;
  }
  expect(bytes.toString("latin1", 0, 8)).toBe("podbot1\n");
  expect(records.map(({ type }) => type).join("")).toMatch(/^G?A+D+C+E$/);
  const bodies = (type: string) => records.filter((record) => record.type === type).map(({ body }) => body);
  const texts = (type: string) => bodies(type).map((body) => body.toString("utf8"));
  return {
    pins: bytes.readUInt32LE(8),
    options: texts("A"),
    data: bodies("D"),
    command: texts("C"),
    doors: bodies("G"),
  };
}

describe("a letter to the launcher", () => {
  const { pins, options, data, command } = open(letter.bytes);
  /** The words that follow each occurrence of an option. */
  const following = (option: string, distance = 1) =>
    options.flatMap((word, at) => (word === option ? [options[at + distance] as string] : []));

  test("mounts by descriptor, each mount from one of its own, in the plan's order", () => {
    const binds = plan.operations.filter((operation) => operation.kind === "bind");
    expect(letter.pins).toEqual(binds);
    expect(pins).toBe(binds.length);
    const numbers = options.flatMap((word, at) => (/^--(ro-)?bind-fd$/.test(word) ? [Number(options[at + 1])] : []));
    expect(numbers).toEqual(binds.map((_, at) => descriptors.firstPin + at));
    const targets = options.flatMap((word, at) => (/^--(ro-)?bind-fd$/.test(word) ? [options[at + 2]] : []));
    expect(targets).toEqual(binds.map(({ target }) => target));
    expect(following("--bind-fd", 2)).toEqual(["/home/u/project"]);
  });

  test("names no path of the host but as a place inside", () => {
    expect(options).not.toContain("/opt/podbot/enter");
    expect(options).not.toContain("/opt/podbot/shim");
  });

  test("carries what a file holds by now", () => {
    const copy = { kind: "copy", source: import.meta.filename, target: "/c", identity: null, why: "" } as const;
    const { data: blobs, options: words } = open(writeLetter({ ...plan, operations: [copy] }, filter, {}).bytes);
    expect(words.join(" ")).toContain(`--perms 0600 --file ${descriptors.firstPin} /c`);
    expect(blobs[0]).toEqual(readFileSync(import.meta.filename));
  });

  test("carries what is copied in, at the descriptors after the mounts", () => {
    const first = descriptors.firstPin + pins;
    const numbers = options.flatMap((word, at) =>
      ["--file", "--ro-bind-data", "--seccomp"].includes(word) ? [Number(options[at + 1])] : [],
    );
    expect(numbers).toEqual(data.map((_, at) => first + at));
    const content = (option: string) => following(option).map((number) => data[Number(number) - first]);
    expect(content("--seccomp")).toEqual([Buffer.from(filter)]);
    expect(content("--ro-bind-data")).toEqual([Buffer.alloc(0), Buffer.alloc(0)]);
    expect(content("--file").map(String)).toEqual(
      plan.operations.flatMap((operation) => (operation.kind === "file" ? [operation.content] : [])),
    );
  });

  test("carries the environment, so that it is in no argument list", () => {
    expect(options.slice(-6)).toEqual(["--setenv", "LANG", "C", "--setenv", "TOKEN", "two\nlines"]);
  });

  test("ends with the command, which complains on a descriptor of its own", () => {
    expect(command).toEqual(["/run/podbot/enter", "--isolate", `${descriptors.stderr}`, "--", "make", "test"]);
  });

  test("keeps every byte of words that are not plain", () => {
    const words = ["sh", "-c", "echo 'ü'\n\t😀", ""] as const;
    expect(open(writeLetter({ ...plan, command: words }, filter, env).bytes).command.slice(-4)).toEqual(words);
  });

  test("asks for no doors where the plan has none", () => {
    expect(letter.doors).toBe(null);
    expect(open(letter.bytes).doors).toEqual([]);
    expect(options).not.toContain("--info-fd");
  });

  test("asks for doors first, and leaves two descriptors behind the mounts to them", () => {
    const ports = [53, 80, 443, 50_000];
    const guarded = writeLetter({ ...plan, network: { ...allowlist, ports } }, filter, env);
    const opened = open(guarded.bytes);
    // Those for names are always there.
    expect(guarded.doors).toEqual([80, 443, 50_000]);
    expect(opened.doors).toEqual([Buffer.from([80, 0, 187, 1, 80, 195])]);
    const behind = descriptors.firstPin + pins;
    expect(opened.options.slice(0, 2)).toEqual(["--info-fd", `${behind}`]);
    expect(opened.command.slice(0, 5)).toEqual(["/run/podbot/enter", "--isolate", "--doors", `${behind + 1}`, "4"]);
    const data = (words: readonly string[]) => Number(words[words.indexOf("--seccomp") + 1]);
    expect(data(opened.options)).toBe(data(options) + 2);
  });

  test("names the pipe behind the mounts through which comes what is to be trusted, and does not ask for it yet", () => {
    const unmade = {
      target: "/etc/ca",
      get bytes(): Buffer {
        throw new Error("too early");
      },
    };
    const written = writeLetter(plan, filter, env, { trust: [unmade] });
    const opened = open(written.bytes);
    expect(written.late).toEqual([unmade]);
    const at = opened.options.indexOf("/etc/ca");
    const words = ["--perms", "0444", "--ro-bind-data", `${descriptors.firstPin + pins}`];
    expect(opened.options.slice(at - 4, at)).toEqual(words);
    const data = (words: readonly string[]) => Number(words[words.indexOf("--seccomp") + 1]);
    expect(data(opened.options)).toBe(data(options) + 1);
  });

  test("counts descriptors as the launcher does", () => {
    const launcher = readFileSync(new URL("../../../native/launch.c", import.meta.url), "utf8");
    expect(launcher).toContain(`FIRST_PIN = ${descriptors.firstPin},`);
    expect(launcher).toMatch(new RegExp(`^ \\* +${descriptors.stderr} +the caller's real stderr`, "m"));
  });
});
