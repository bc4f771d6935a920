import type { Operation, Plan } from "../../plan/plan.ts";
import { hasGateway, type Variable } from "../../plan/request.ts";
import { renderCommand, renderOptions } from "./render.ts";

/** Below this, descriptors may be the shell's own. */
const firstDescriptor = 20;

/**
 * The plan as a script for bash that anyone can read, paste and run: the same operations, by path instead of by
 * descriptor. Values of the environment are taken from whoever runs it.
 */
export function renderScript(plan: Plan, filter: Uint8Array, bwrap: string): string {
  const inputs: string[] = [];
  const words = renderOptions(withoutSession(plan), filter, {
    bind: (operation) => bindByPath(operation),
    data: (bytes) => {
      const descriptor = firstDescriptor + inputs.length;
      inputs.push(bytes.length === 0 ? `${descriptor}</dev/null` : `${descriptor}< <(${decoded(bytes)})`);
      return `${descriptor}`;
    },
    copy: ({ source }) => {
      const descriptor = firstDescriptor + inputs.length;
      inputs.push(`${descriptor}<${quote(source)}`);
      return `${descriptor}`;
    },
  });
  const held = plan.held.length > 0;
  return [
    "#!/usr/bin/env bash",
    "# Reproduces a run of podbot by path. Unlike podbot itself it does not check that the paths are still the same.",
    ...(hasGateway(plan.network)
      ? ["# And it opens no doors: what runs in it reaches nobody, as with --network none."]
      : []),
    ...(plan.operations.some(({ kind }) => kind === "own")
      ? ["# Nor does it bring a token, and where a clone would be there is an empty directory."]
      : []),
    "set -eu",
    ...plan.kept.map((directory) => `mkdir -p ${quote(directory)}`),
    ...(held ? holding(plan) : []),
    `${held ? "" : "exec "}env -i ${plan.variables.map(assign).join(" ")} \\`,
    `  ${quote(bwrap)} \\`,
    ...inLines(words).map((line) => `  ${line} \\`),
    `  -- ${renderCommand(plan, 2).map(quote).join(" ")} \\`,
    `  ${inputs.join(" \\\n  ")}`,
    "",
  ].join("\n");
}

/** What only a session has. */
function withoutSession(plan: Plan): Plan {
  const operations = plan.operations.map((operation): Operation => {
    const { kind, target, why } = operation;
    return kind === "own" && operation.part === "clone" ? { kind: "tmpfs", target, mode: 0o755, why } : operation;
  });
  return { ...plan, operations };
}

function bindByPath({ access, source, target }: Extract<Operation, { kind: "bind" }>): readonly string[] {
  return [access === "ro" ? "--ro-bind" : "--bind", source, target];
}

function decoded(bytes: Uint8Array): string {
  return `base64 -d <<<${Buffer.from(bytes).toString("base64")}`;
}

/** Names that must not be made inside are made here, and removed again if they are still as they were. */
function holding(plan: Plan): readonly string[] {
  const make = plan.held.map(({ path, placeholder }) =>
    placeholder.kind === "directory"
      ? `mkdir ${quote(path)}`
      : `(set -C; printf %s ${quote(placeholder.content)} >${quote(path)})`,
  );
  const drop = plan.held
    .map(({ path, placeholder }) => `${placeholder.kind === "directory" ? "rmdir" : "rm -f"} ${quote(path)}`)
    .reverse();
  return [...make, `cleanup() { ${drop.join("; ")}; }`, "trap cleanup EXIT"];
}

function assign(variable: Variable): string {
  if (variable.from === "plan") return `${variable.name}=${quote(variable.value)}`;
  return `\${${variable.name}+${variable.name}="$${variable.name}"}`;
}

/** One option a line, with its values. */
function inLines(words: readonly string[]): readonly string[] {
  const lines: string[][] = [];
  for (const word of words) {
    // `--perms MODE` is said of the option that follows.
    const said = lines.at(-1);
    if (word.startsWith("--") && !(said?.[0] === "--perms" && said.length === 2)) lines.push([]);
    lines.at(-1)?.push(quote(word));
  }
  return lines.map((line) => line.join(" "));
}

/** For bash. Control characters are spelled out, so that a name cannot play with the reader's terminal. */
export function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
  if (!/[\x00-\x1f\x7f-\x9f]/.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const spelled = word
    .replace(/[\\']/g, "\\$&")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
    .replace(/[\x00-\x1f\x7f-\x9f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `$'${spelled}'`;
}
