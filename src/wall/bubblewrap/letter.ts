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
  const head = Buffer.alloc(12);
  head.write("podbot1\n");
  head.writeUInt32LE(pins.length, 8);
  return {
    pins,
    bytes: Buffer.concat([
      head,
      ...[...options, ...variables].map((word) => record("A", Buffer.from(word))),
      ...blobs.map((bytes) => record("D", bytes)),
      ...renderCommand(plan, descriptors.stderr).map((word) => record("C", Buffer.from(word))),
      record("E", new Uint8Array()),
    ]),
  };
}

function record(type: string, bytes: Uint8Array): Buffer {
  const written = Buffer.alloc(5 + bytes.length);
  written.write(type);
  written.writeUInt32LE(bytes.length, 1);
  written.set(bytes, 5);
  return written;
}
