import type { Operation, Plan } from "../../plan/plan.ts";
import { corner } from "../../plan/wrappers.ts";

type Bind = Extract<Operation, { kind: "bind" }>;
type Copy = Extract<Operation, { kind: "copy" }>;

/** How a rendering names what it mounts and what it copies in. */
export interface References {
  /** Words that mount the source of an operation at its target. */
  bind(operation: Bind): readonly string[];
  /** The number of a descriptor from which these bytes can be read. */
  data(bytes: Uint8Array): string;
  /** The same for what a file holds by now. */
  copy(operation: Copy): string;
}

/** A file that comes through a pipe, and need not be made yet. */
interface LateFile {
  readonly target: string;
  readonly descriptor: number;
}

/** A gap in which the owner may acquiesce: see `gaps.ts`. */
export const abstractSockets = "abstract-sockets";

/** What is mounted beside the plan's operations. */
interface Besides {
  /** Words that mount what has been built already, before all operations. */
  readonly tree?: readonly string[];
  readonly late?: readonly LateFile[];
}

/** bubblewrap's options for a plan, in order. */
export function renderOptions(
  plan: Plan,
  filter: Uint8Array,
  references: References,
  { tree = [], late = [] }: Besides = {},
): readonly string[] {
  // What is made in the corner must be there before nothing there changes any more.
  const at = plan.operations.findIndex(({ kind }) => kind === "seal");
  const [before, after] = [plan.operations.slice(0, at < 0 ? undefined : at), at < 0 ? [] : plan.operations.slice(at)];
  const render = (operation: Operation) => renderOperation(operation, references);
  return [
    "--die-with-parent",
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    ...(plan.network.mode === "open" ? [] : ["--unshare-net"]),
    ...(plan.nesting ? [] : ["--disable-userns"]),
    // Started by root, bubblewrap would leave the command all of root's capabilities.
    "--cap-drop",
    "ALL",
    ...tree,
    ...before.flatMap(render),
    ...late.flatMap(({ target, descriptor }) => ["--perms", "0444", "--ro-bind-data", `${descriptor}`, target]),
    ...after.flatMap(render),
    "--chdir",
    plan.directory,
    "--seccomp",
    references.data(filter),
  ];
}

function renderOperation(operation: Operation, references: References): readonly string[] {
  const { target } = operation;
  switch (operation.kind) {
    case "bind":
      return references.bind(operation);
    case "inlet":
    case "own":
    case "trust":
      // Where a box is born, what is then known has taken its place.
      return [];
    case "hold":
      // bubblewrap follows links.
      return [];
    case "tmpfs":
      return ["--perms", octal(operation.mode), "--tmpfs", target];
    case "directory":
      return ["--perms", octal(operation.mode), "--dir", target];
    case "file":
      return [
        ...["--perms", octal(operation.mode), operation.over === true ? "--ro-bind-data" : "--file"],
        ...[references.data(Buffer.from(operation.content)), target],
      ];
    case "copy":
      return ["--perms", "0600", "--file", references.copy(operation), target];
    case "mask":
      return ["--perms", "0000", "--ro-bind-data", references.data(new Uint8Array()), target];
    case "link":
      return ["--symlink", operation.to, target];
    case "mode":
      return ["--chmod", octal(operation.mode), target];
    case "seal":
      return ["--remount-ro", target];
    case "proc":
    case "dev":
      return [`--${operation.kind}`, target];
  }
}

/**
 * The command line inside: Podbot's first program, which becomes the command. `waits` has the descriptors of the list of
 * mounts that it compares first, and of what says that the doors are open.
 */
export function renderCommand(
  plan: Plan,
  stderr: number,
  command: readonly string[] = plan.command,
  waits: { readonly mounts?: number; readonly doors?: number } = {},
): readonly string[] {
  // Abstract sockets belong to a network.
  const isolate = plan.network.mode === "open" && !plan.acceptedGaps.includes(abstractSockets);
  return [
    `${corner}/enter`,
    isolate ? "--isolate-abstract" : "--isolate",
    ...(waits.mounts === undefined ? [] : ["--mounts", `${waits.mounts}`, "--directory", plan.directory]),
    ...(waits.doors === undefined ? [] : ["--doors", `${waits.doors}`]),
    `${stderr}`,
    "--",
    ...command,
  ];
}

export function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
