import type { Operation, Plan } from "../../plan/plan.ts";
import { mountsByPath } from "../../plan/request.ts";
import { doorsOf } from "../guarded.ts";
import { type Pins, readPinned } from "../pin.ts";
import type { TrustFile } from "../wall.ts";
import { type References, renderCommand, renderOptions } from "./render.ts";
import { isBubblewraps, mountSteps, treePlace } from "./steps.ts";

/** Descriptors of the launcher, by the layout that native/launch.c documents. */
export const descriptors = { stderr: 4, firstPin: 5 } as const;

/** What the launcher is told, and which sources must be open at which descriptor, in order. */
export interface Letter {
  readonly bytes: Buffer;
  readonly pins: readonly number[];
  /** What comes through pipes behind the pins: bubblewrap builds until it needs them, while they are still being made. */
  readonly late: readonly TrustFile[];
  /** The ports of the doors that the launcher opens, and hands over on a channel behind all these; null for none. */
  readonly doors: readonly number[] | null;
}

/** What runs first inside, once `podbot-enter` is done, and how bubblewrap should treat it. */
export interface FirstProgram {
  readonly options: readonly string[];
  readonly command: readonly string[];
}

export interface LetterOptions {
  readonly first?: FirstProgram;
  readonly trust?: readonly TrustFile[];
}

/** What bubblewrap is left with where the launcher builds the mounts, and what it does alone where that is impossible. */
function divide(plan: Plan): { readonly inTree: boolean; readonly operations: readonly Operation[] } {
  if (plan.acceptedGaps.includes(mountsByPath)) return { inTree: false, operations: plan.operations };
  return { inTree: true, operations: plan.operations.filter(isBubblewraps) };
}

/** The plan as the launcher reads it: mounts by descriptor, data in memory, nothing of it in any argument list. */
export function writeLetter(
  plan: Plan,
  filter: Uint8Array,
  env: Readonly<Record<string, string>>,
  pins: Pins,
  { first = { options: [], command: plan.command }, trust = [] }: LetterOptions = {},
): Letter {
  const doors = doorsOf(plan);
  const { inTree, operations } = divide(plan);
  const descriptorsOf = (binds: readonly Operation[]) =>
    binds.flatMap((operation) => (operation.kind === "bind" ? [pins.of(operation).descriptor] : []));
  const passed = descriptorsOf(operations);
  const firstLate = descriptors.firstPin + passed.length;
  const firstOfDoors = firstLate + trust.length;
  const mounts = firstOfDoors + (doors === null ? 0 : 2);
  const firstBlob = mounts + (inTree ? 1 : 0);
  const blobs: Uint8Array[] = [];
  const blob = (bytes: Uint8Array) => `${firstBlob + blobs.push(bytes) - 1}`;
  let pinned = 0;
  const references: References = {
    // bubblewrap closes a descriptor once it has mounted it, so each mount has its own.
    bind: ({ access, target }) => [
      access === "ro" ? "--ro-bind-fd" : "--bind-fd",
      `${descriptors.firstPin + pinned++}`,
      target,
    ],
    data: blob,
    copy: (operation) => blob(readPinned(operation)),
  };
  const steps = inTree ? mountSteps(plan, (bind) => pins.of(bind).identity, trust) : [];
  const late = trust.map(({ target }, index) => ({ target, descriptor: firstLate + index }));
  const tree = inTree ? ["--bind", treePlace, "/"] : [];
  const options = renderOptions({ ...plan, operations }, filter, references, { tree, late });
  const info = doors === null ? [] : ["--info-fd", `${firstOfDoors}`];
  const variables = Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]);
  const waits = { ...(inTree ? { mounts } : {}), ...(doors === null ? {} : { doors: firstOfDoors + 1 }) };
  const words = (type: Kind, list: readonly string[]) => list.map((word) => [type, Buffer.from(word)] as const);
  return {
    pins: passed,
    late: trust,
    doors,
    bytes: write(passed.length + trust.length, [
      ...(doors === null ? [] : [["G", portBytes(doors)] as const]),
      ...steps.map((step) => ["M", step] as const),
      ...words("A", [...info, ...options, ...variables, ...first.options]),
      ...blobs.map((bytes) => ["D", bytes] as const),
      ...words("C", renderCommand(plan, descriptors.stderr, first.command, waits)),
      ["E", Buffer.alloc(0)],
    ]),
  };
}

/** Of a record: doors, a step of the mounts, a word of an option, a blob of data, a word of the command, the end. */
type Kind = "G" | "M" | "A" | "D" | "C" | "E";

function portBytes(ports: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * ports.length);
  for (const [at, port] of ports.entries()) bytes.writeUInt16LE(port, 2 * at);
  return bytes;
}

function write(pins: number, records: readonly (readonly [Kind, Uint8Array])[]): Buffer {
  const letter = Buffer.allocUnsafe(records.reduce((size, [, bytes]) => size + 5 + bytes.length, 12));
  letter.write("podbot1\n");
  letter.writeUInt32LE(pins, 8);
  let at = 12;
  for (const [kind, bytes] of records) {
    letter.write(kind, at);
    letter.writeUInt32LE(bytes.length, at + 1);
    letter.set(bytes, at + 5);
    at += 5 + bytes.length;
  }
  return letter;
}
