import type { Operation, Plan } from "../../plan/plan.ts";
import { renderCommand, renderOptions } from "./render.ts";

/** Descriptors of the launcher, by the layout that native/launch.c documents. */
export const descriptors = { stderr: 4, firstPin: 5 } as const;

/** What the launcher is told, and which sources must be open at which descriptor, in order. */
export interface Letter {
  readonly bytes: Buffer;
  readonly pins: readonly Extract<Operation, { kind: "bind" }>[];
}

/** The plan as the launcher reads it: mounts by descriptor, data in memory, nothing of it in any argument list. */
export function writeLetter(plan: Plan, filter: Uint8Array, env: Readonly<Record<string, string>>): Letter {
  const pins = plan.operations.filter((operation) => operation.kind === "bind");
  const blobs: Uint8Array[] = [];
  let pinned = 0;
  const options = renderOptions(plan, filter, {
    // bubblewrap closes a descriptor once it has mounted it, so each mount has its own.
    bind: ({ access, target }) => [
      access === "ro" ? "--ro-bind-fd" : "--bind-fd",
      `${descriptors.firstPin + pinned++}`,
      target,
    ],
    data: (bytes) => `${descriptors.firstPin + pins.length + blobs.push(bytes) - 1}`,
  });
  const variables = Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]);
  const words = (type: Kind, list: readonly string[]) => list.map((word) => [type, Buffer.from(word)] as const);
  return {
    pins,
    bytes: write(pins.length, [
      ...words("A", [...options, ...variables]),
      ...blobs.map((bytes) => ["D", bytes] as const),
      ...words("C", renderCommand(plan, descriptors.stderr)),
      ["E", Buffer.alloc(0)],
    ]),
  };
}

/** Of a record: a word of an option, a blob of data, a word of the command, the end. */
type Kind = "A" | "D" | "C" | "E";

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
