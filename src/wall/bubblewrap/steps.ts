import { realpathSync } from "node:fs";
import type { Operation, Plan } from "../../plan/plan.ts";
import { readPinned } from "../pin.ts";
import type { TrustFile } from "../wall.ts";
import { octal } from "./render.ts";

/** Where the launcher attaches the tree: see native/tree.h. */
export const treePlace = "/tmp/tree";

/** One step of building the tree, as native/tree.h describes them. */
type Step = Buffer;
type Bind = Extract<Operation, { kind: "bind" }>;

/** What bubblewrap makes itself, in namespaces that only it has: no program of the box runs there yet. */
const places = ["/dev", "/proc"];

export function isBubblewraps({ target }: Pick<Operation, "target">): boolean {
  return places.some((place) => target === place || target.startsWith(`${place}/`));
}

/** The steps by which the launcher builds the tree of mounts. */
export function mountSteps(plan: Plan, identify: (bind: Bind) => string, late: readonly TrustFile[]): readonly Step[] {
  const { operations } = plan;
  const render = (operation: Operation) =>
    isBubblewraps(operation) ? pointOf(operation) : stepsOf(operation, plan, identify);
  // What is made in the corner must be there before nothing there changes any more.
  const sealed = operations.findIndex((operation) => operation.kind === "seal" && !isBubblewraps(operation));
  const end = sealed < 0 ? operations.length : sealed;
  return [
    ...operations.slice(0, end).flatMap(render),
    ...late.map(({ target }) => step("point", "file", target)),
    ...operations.slice(end).flatMap(render),
  ];
}

function pointOf({ target }: Operation): readonly Step[] {
  return places.includes(target) ? [step("point", "directory", target)] : [];
}

function stepsOf(operation: Operation, plan: Plan, identify: (bind: Bind) => string): readonly Step[] {
  const { target } = operation;
  switch (operation.kind) {
    case "bind":
      return [step("bind", accessOf(operation, plan), identify(operation), sourceOf(operation), target)];
    case "tmpfs":
    case "directory":
    case "mode":
      return [step(operation.kind, octal(operation.mode), target)];
    case "file":
      return [
        withContent(operation.over === true ? "cover" : "file", operation.mode, target, Buffer.from(operation.content)),
      ];
    case "copy":
      return [withContent("file", 0o600, target, readPinned(operation))];
    case "mask":
      return [withContent("cover", 0, target, Buffer.alloc(0))];
    case "link":
      return [step("link", operation.to, target)];
    case "hold":
      return [step("hold", operation.identity, target)];
    case "seal":
      return [step("seal", target)];
    case "inlet":
    case "own":
    case "trust":
      // Where a box is born, what is then known has taken its place.
      return [];
    case "proc":
    case "dev":
      throw new Error(`bubblewrap mounts ${target} itself.`);
  }
}

/** The launcher follows no links. The survey has resolved them but where Podbot makes a directory itself. */
function sourceOf({ source, identity }: Bind): string {
  return identity === null ? realpathSync.native(source) : source;
}

/** In a directory that Podbot keeps, mount points may be made; in the owner's never. */
function accessOf({ access, source }: Bind, plan: Plan): string {
  if (access === "ro") return "ro";
  return plan.kept.includes(source) ? "own" : "rw";
}

function step(...words: readonly string[]): Step {
  return Buffer.from(words.map((word) => `${word}\0`).join(""));
}

function withContent(kind: "file" | "cover", mode: number, target: string, content: Buffer): Step {
  return Buffer.concat([step(kind, octal(mode), target), content]);
}
