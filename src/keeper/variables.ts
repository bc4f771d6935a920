import { readFileSync } from "node:fs";
import type { Config } from "../config/types.ts";
import { ConfigError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";
import type { Variable } from "../plan/request.ts";
import { corner } from "../plan/wrappers.ts";
import { passedByDefault, passes } from "../policy/environment.ts";
import { expandPath } from "../policy/paths.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface VariableContext {
  readonly env: Environment;
  readonly uid: number;
  readonly nesting: boolean;
  readonly docker: boolean;
}

/** Which variables the command gets, by reference: names that the caller has and the policy lets in, and Podbot's own. */
export function chooseVariables(config: Config, { env, uid, nesting, docker }: VariableContext): readonly Variable[] {
  const patterns = [...passedByDefault, ...config.environment.pass, ...(docker ? ["DOCKER_HOST"] : [])];
  const bin = `${corner}/bin`;
  const path = env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const variables = new Map<string, Variable>();
  const add = (variable: Variable) => variables.set(variable.name, variable);
  for (const name of Object.keys(env).sort()) {
    if (env[name] !== undefined && isPlain(name) && passes(name, patterns)) add({ name, from: "caller" });
  }
  // Inside, `podbot` answers at once and without Node; where sandboxes may nest, the real one comes first.
  add({ name: "PATH", from: "plan", value: nesting ? `${path}:${bin}` : `${bin}:${path}` });
  add({ name: "TMPDIR", from: "plan", value: "/tmp" });
  // Agents that refuse to work as root take this as the word that root is harmless here.
  if (uid === 0) add({ name: "IS_SANDBOX", from: "plan", value: "1" });
  for (const [name, value] of Object.entries(config.environment.set)) {
    if (value.kind === "literal") add({ name, from: "owner", layer: "environment.set" });
    else add({ name, from: "secret", secret: value.name, optional: value.optional });
  }
  return [...variables.values()];
}

/** Other names are no variables to a shell, but text that it may execute. */
function isPlain(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

/** The values, looked up at the last moment; they are in no plan, argument list or message. */
export function resolveVariables(plan: Plan, config: Config, env: Environment): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const variable of plan.variables) {
    const value = resolve(variable, config, env);
    if (value !== undefined) values[variable.name] = value;
  }
  return values;
}

function resolve(variable: Variable, config: Config, env: Environment): string | undefined {
  if (variable.from === "caller") return env[variable.name];
  if (variable.from === "plan") return variable.value;
  if (variable.from === "secret") return readSecret(variable.secret, variable.optional, config, env);
  const value = config.environment.set[variable.name];
  return value?.kind === "literal" ? value.value : undefined;
}

function readSecret(name: string, optional: boolean, config: Config, env: Environment): string | undefined {
  const source = config.secrets[name];
  const found =
    source?.env !== undefined ? env[source.env] : source?.file !== undefined ? readFile(source.file, env) : undefined;
  if (found !== undefined && found !== "") return found;
  if (optional) return undefined;
  const place = source?.env !== undefined ? `the variable ${source.env}` : `the file ${source?.file}`;
  throw new ConfigError(
    "SECRET_MISSING",
    `The secret ${JSON.stringify(name)} has no value: ${place} is empty or missing.`,
    {
      hint: `Give it a value, or write "!secret? ${name}" if it may be absent.`,
      details: { secret: name },
    },
  );
}

/** Files of secrets end in a newline more often than secrets do. */
function readFile(path: string, env: Environment): string | undefined {
  const home = env["HOME"] ?? "/";
  try {
    return readFileSync(expandPath(path, { home, cwd: home }), "utf8").replace(/\r?\n$/, "");
  } catch {
    return undefined;
  }
}
