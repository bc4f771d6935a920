import type { Operation, Plan } from "../../plan/plan.ts";
import { corner } from "../../plan/wrappers.ts";

type Bind = Extract<Operation, { kind: "bind" }>;

/** How a rendering names what it mounts and what it copies in. */
export interface References {
  /** Words that mount the source of an operation at its target. */
  bind(operation: Bind): readonly string[];
  /** The number of a descriptor from which these bytes can be read. */
  data(bytes: Uint8Array): string;
}

/** A gap in which the owner may acquiesce: see `gaps.ts`. */
export const abstractSockets = "abstract-sockets";

/** bubblewrap's options for a plan, in order. */
export function renderOptions(plan: Plan, filter: Uint8Array, references: References): readonly string[] {
  return [
    "--die-with-parent",
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    ...(plan.network.mode === "none" ? ["--unshare-net"] : []),
    ...(plan.nesting ? [] : ["--disable-userns"]),
    // Started by root, bubblewrap would leave the command all of root's capabilities.
    "--cap-drop",
    "ALL",
    ...plan.operations.flatMap((operation) => renderOperation(operation, references)),
    "--chdir",
    plan.cwd,
    "--seccomp",
    references.data(filter),
  ];
}

function renderOperation(operation: Operation, references: References): readonly string[] {
  const { target } = operation;
  switch (operation.kind) {
    case "bind":
      return references.bind(operation);
    case "tmpfs":
      return ["--perms", octal(operation.mode), "--tmpfs", target];
    case "directory":
      return ["--perms", octal(operation.mode), "--dir", target];
    case "file":
      return ["--perms", octal(operation.mode), "--file", references.data(Buffer.from(operation.content)), target];
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

/** The command line inside: Podbot's first program, which becomes the command. */
export function renderCommand(plan: Plan, stderr: number): readonly string[] {
  const isolate = plan.network.mode !== "none" && !plan.acceptedGaps.includes(abstractSockets);
  return [`${corner}/enter`, isolate ? "--isolate-abstract" : "--isolate", `${stderr}`, "--", ...plan.command];
}

export function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
