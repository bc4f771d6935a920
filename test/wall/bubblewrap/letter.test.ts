import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Operation, Plan } from "../../../src/plan/plan.ts";
import { descriptors, writeLetter } from "../../../src/wall/bubblewrap/letter.ts";
import type { Pins } from "../../../src/wall/pin.ts";
import { allowlist, planFor, presetRules } from "../../plan/ordinary.ts";
import type { Tree } from "../../plan/tree.ts";

const filter = new Uint8Array([7, 7, 7]);
const tree: Tree = { "/home/u/.ssh/id": "file", "/home/u/.netrc": "file", "/home/u/.pgpass": "file" };
const inTree = planFor(presetRules("!@all", "@base"), tree);
/** The owner accepts that bubblewrap mounts alone. */
const plan = { ...inTree, acceptedGaps: ["mounts-by-path"] };
const env = { LANG: "C", TOKEN: "two\nlines" };
const pinned = pinsOf(plan);
const letter = writeLetter(plan, filter, env, pinned);

/** Stands for opened files: their numbers go upwards from 100. */
function pinsOf({ operations }: Plan): Pins {
  const binds = operations.filter((operation) => operation.kind === "bind");
  const identities = binds.map((_, at) => `8:${at}`);
  const of = (bind: Operation) => {
    const at = binds.indexOf(bind as (typeof binds)[number]);
    return { descriptor: 100 + at, identity: `8:${at}` };
  };
  return { of, identities, lookAgain: () => {}, [Symbol.dispose]: () => {} };
}

interface Opened {
  readonly pins: number;
  readonly options: readonly string[];
  readonly data: readonly Buffer[];
  readonly command: readonly string[];
  readonly doors: readonly Buffer[];
  /** The steps of the mounts, each as its words. */
  readonly steps: readonly (readonly string[])[];
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
  expect(records.map(({ type }) => type).join("")).toMatch(/^G?M*A+D+C+E$/);
  const bodies = (type: string) => records.filter((record) => record.type === type).map(({ body }) => body);
  const texts = (type: string) => bodies(type).map((body) => body.toString("utf8"));
  return {
    pins: bytes.readUInt32LE(8),
    options: texts("A"),
    data: bodies("D"),
    command: texts("C"),
    doors: bodies("G"),
    steps: texts("M").map((text) => text.split("\0")),
  };
}

describe("a letter to the launcher where bubblewrap mounts alone", () => {
  const { pins, options, data, command } = open(letter.bytes);
  /** The words that follow each occurrence of an option. */
  const following = (option: string, distance = 1) =>
    options.flatMap((word, at) => (word === option ? [options[at + distance] as string] : []));

  test("mounts by descriptor, each mount from one of its own, in the plan's order", () => {
    const binds = plan.operations.filter((operation) => operation.kind === "bind");
    expect(letter.pins).toEqual(binds.map((bind) => pinned.of(bind).descriptor));
    expect(open(letter.bytes).steps).toEqual([]);
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
    const { data: blobs, options: words } = open(
      writeLetter({ ...plan, operations: [copy] }, filter, {}, pinned).bytes,
    );
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
    expect(open(writeLetter({ ...plan, command: words }, filter, env, pinned).bytes).command.slice(-4)).toEqual(words);
  });

  test("asks for no doors where the plan has none", () => {
    expect(letter.doors).toBe(null);
    expect(open(letter.bytes).doors).toEqual([]);
    expect(options).not.toContain("--info-fd");
  });

  test("asks for doors first, and leaves two descriptors behind the mounts to them", () => {
    const ports = [53, 80, 443, 50_000];
    const guarded = writeLetter({ ...plan, network: { ...allowlist, ports } }, filter, env, pinned);
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
    const written = writeLetter(plan, filter, env, pinned, { trust: [unmade] });
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

describe("a letter to the launcher that builds the mounts", () => {
  const pinned = pinsOf(inTree);
  const letter = writeLetter(inTree, filter, env, pinned);
  const { options, steps, command, data } = open(letter.bytes);

  test("has a step for each operation in the plan's order, with what was opened, and leaves bubblewrap the rest", () => {
    const places = inTree.operations.map(({ kind, target }) => (kind === "dev" || kind === "proc" ? kind : target));
    const targets = steps.map(([kind, ...words]) => {
      if (kind === "point") return String(words[1]).slice(1);
      return words[{ bind: 3, seal: 0 }[String(kind)] ?? 1];
    });
    expect(targets).toEqual(places);
    const bound = steps.filter(([kind]) => kind === "bind").map((words) => words.slice(2, -1));
    const binds = inTree.operations.filter((operation) => operation.kind === "bind");
    expect(bound).toEqual(binds.map((bind, at) => [`8:${at}`, bind.source, bind.target]));
    expect(letter.pins).toEqual([]);
    expect(options.slice(options.indexOf("--bind"), options.indexOf("--chdir"))).toEqual([
      "--bind",
      "/tmp/tree",
      "/",
      "--dev",
      "/dev",
      "--proc",
      "/proc",
    ]);
  });

  test("tells the first program where the list of mounts is, before all other data", () => {
    expect(command.slice(0, 5)).toEqual([
      "/run/podbot/enter",
      "--isolate",
      "--mounts",
      `${descriptors.firstPin}`,
      "--directory",
    ]);
    expect(options.slice(options.indexOf("--seccomp"), options.indexOf("--seccomp") + 2)).toEqual([
      "--seccomp",
      `${descriptors.firstPin + 1}`,
    ]);
    expect(data).toEqual([Buffer.from(filter)]);
  });

  test("leaves to bubblewrap what lies in its own places, by descriptor", () => {
    const bind = {
      kind: "bind",
      source: "/proc/sys",
      target: "/proc/sys",
      access: "ro",
      identity: null,
      why: "",
    } as const;
    const more = { ...inTree, operations: [...inTree.operations, bind] };
    const { options: words, steps: same } = open(writeLetter(more, filter, env, pinsOf(more)).bytes);
    expect(words.join(" ")).toContain(` --ro-bind-fd ${descriptors.firstPin} /proc/sys --chdir`);
    expect(same).toEqual(steps);
  });

  test("lets mount points be made in directories of Podbot's own alone", () => {
    const bind = (source: string) =>
      ({ kind: "bind", source, target: "/t", access: "rw", identity: null, why: "" }) as const;
    const operations = [bind("/usr"), bind("/etc")];
    const made = { ...inTree, kept: ["/usr"], operations };
    const accesses = open(writeLetter(made, filter, env, pinsOf(made)).bytes).steps.map((words) => words[1]);
    expect(accesses).toEqual(["own", "rw"]);
  });

  test("makes room for what is to be trusted before anything is sealed, and lets bubblewrap fill it", () => {
    const seal: Operation = { kind: "seal", target: "/s", why: "" };
    const sealed = { ...inTree, operations: [seal, seal] };
    const written = writeLetter(sealed, filter, env, pinsOf(sealed), {
      trust: [{ target: "/ca", bytes: Buffer.alloc(0) }],
    });
    const opened = open(written.bytes);
    expect(opened.steps).toEqual([
      ["point", "file", "/ca", ""],
      ["seal", "/s", ""],
      ["seal", "/s", ""],
    ]);
    expect(opened.options.join(" ")).toContain(`--perms 0444 --ro-bind-data ${descriptors.firstPin} /ca --chdir`);
  });

  test("agrees with the launcher on where the tree is", () => {
    const header = readFileSync(new URL("../../../native/tree.h", import.meta.url), "utf8");
    expect(header).toContain('#define TREE_PLACE "/tmp/tree"');
  });
});
