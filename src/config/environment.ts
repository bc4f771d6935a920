import { showName, showText } from "./display.ts";
import type { KeyEntry } from "./key-types.ts";
import { keys } from "./keys.ts";
import { writeLeaf } from "./leaf.ts";
import { nearestName } from "./nearest.ts";
import type { Problem } from "./problem.ts";
import { type Validated, validateLayer } from "./validate.ts";
import type { ValueType } from "./value-type.ts";

export const environmentSource = "PODBOT_* environment";

/** Variables of Podbot's own that are not keys: the config file's path, and what wrapper scripts are given. */
const reserved = ["PODBOT_CONFIG_PATH", "PODBOT_CMD", "PODBOT_REAL"];

/** Short for `PODBOT_NETWORK_MODE`, as `network = true` is in files. */
const networkShorthand = "PODBOT_NETWORK";

/** The variable that sets a key. Records have none: their names would have to be guessed from upper case. Nor have tables. */
export function variableFor(key: KeyEntry): string | undefined {
  return key.type.kind === "record" || key.type.kind === "rules" ? undefined : variableName(key);
}

export interface EnvironmentLayer extends Validated {
  readonly warnings: readonly string[];
}

/** The layer that `PODBOT_*` variables make. An empty variable counts as unset. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): EnvironmentLayer {
  const given = Object.keys(env).filter((name) => name.startsWith("PODBOT_") && env[name] && !reserved.includes(name));
  const input: Record<string, unknown> = {};
  const warnings: string[] = [];
  const problems: Problem[] = [];
  for (const name of given.sort()) {
    const raw = env[name] as string;
    const key = keys.find((candidate) => variableFor(candidate) === name);
    if (key !== undefined) writeLeaf(input, key, readVariable(key.type, raw));
    else if (name !== networkShorthand) warnings.push(unknownVariable(name));
  }
  const shorthand = env[networkShorthand];
  if (shorthand) {
    if (shorthand !== "true" && shorthand !== "false") {
      problems.push(shorthandProblem(shorthand, "is not true or false", "for other modes set PODBOT_NETWORK_MODE"));
    } else if (env["PODBOT_NETWORK_MODE"]) {
      problems.push(shorthandProblem(shorthand, "is set beside PODBOT_NETWORK_MODE", "unset one of the two"));
    } else input["network"] = { ...(input["network"] as object), mode: shorthand === "true" ? "open" : "none" };
  }

  const layer = validateLayer(input, { source: environmentSource, nameOf: variableName });
  return { value: layer.value, problems: [...problems, ...layer.problems], warnings };
}

/** Gives the text the type that the key wants. Text that does not read as that type stays text, for validation to refuse. */
function readVariable(type: ValueType, raw: string): unknown {
  switch (type.kind) {
    case "flag":
      return raw === "true" || raw === "false" ? raw === "true" : raw;
    case "integer":
    case "number":
      return /^-?\d+(?:\.\d+)?$/.test(raw) ? Number(raw) : raw;
    case "list":
      return raw
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== "");
    default:
      return raw;
  }
}

function variableName(key: KeyEntry): string {
  return `PODBOT_${key.name.replace(".", "_").toUpperCase()}`;
}

function unknownVariable(name: string): string {
  const record = keys.find((key) => name === variableName(key) || name.startsWith(`${variableName(key)}_`));
  if (record !== undefined) return `${showName(name)} is ignored: ${record.name} can only be set in a file`;
  const near = nearestName(name, [...keys.flatMap((key) => variableFor(key) ?? []), networkShorthand, ...reserved]);
  return `${showName(name)} is ignored: there is no such setting${near === undefined ? "" : `; did you mean ${near}?`}`;
}

function shorthandProblem(shown: string, wrong: string, wayOut: string): Problem {
  return {
    kind: "value",
    source: environmentSource,
    key: networkShorthand,
    field: "network.mode",
    shown: showText(shown),
    wrong,
    wayOut,
  };
}
