import type { Config } from "../config/types.ts";
import { isWritableInside } from "../plan/access.ts";
import type { Plan } from "../plan/plan.ts";
import type { Variable } from "../plan/request.ts";
import { corner } from "../plan/wrappers.ts";
import { passedByDefault, passedIntoImages, passes } from "../policy/environment.ts";
import { maskKey } from "./masked-credentials.ts";
import { agentEnvironment } from "./provision.ts";
import type { Environment } from "./secret-source.ts";
import { openSecrets, type SecretPool } from "./secrets.ts";

export interface VariableContext {
  readonly env: Environment;
  readonly uid: number;
  readonly nesting: boolean;
  readonly docker: boolean;
  readonly session: boolean;
  /** Who runs inside an image, and where his home is there; null where the host's own files are seen. */
  readonly image: { readonly uid: number; readonly home: string } | null;
}

/** Which variables the command gets, by reference: names that the caller has and the policy lets in, and Podbot's own. */
export function chooseVariables(config: Config, context: VariableContext): readonly Variable[] {
  const { env, uid, nesting, docker, session, image } = context;
  const patterns = [
    ...(image === null ? passedByDefault : passedIntoImages),
    ...config.environment.pass,
    ...(session ? config.agent.env_allowlist : []),
    ...(docker ? ["DOCKER_HOST"] : []),
  ];
  const bin = `${corner}/bin`;
  const path = env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const variables = new Map<string, Variable>();
  const add = (variable: Variable) => variables.set(variable.name, variable);
  for (const name of Object.keys(env).sort()) {
    if (env[name] !== undefined && isPlain(name) && passes(name, patterns)) add({ name, from: "caller" });
  }
  if (image === null) {
    // Inside, `podbot` answers at once and without Node; where sandboxes may nest, the real one comes first.
    add({ name: "PATH", from: "plan", value: nesting ? `${path}:${bin}` : `${bin}:${path}` });
    add({ name: "TMPDIR", from: "plan", value: "/tmp" });
  } else {
    // PATH and the like are the image's own.
    add({ name: "HOME", from: "plan", value: image.home });
    add({ name: "USER", from: "plan", value: image.uid === 0 ? "root" : "podbot" });
  }
  // Agents that refuse to work as root take this as the word that root is harmless here.
  if ((image?.uid ?? uid) === 0) add({ name: "IS_SANDBOX", from: "plan", value: "1" });
  if (session) {
    // What the owner hands in wins, and what he sets, below.
    for (const [name, value] of Object.entries(agentEnvironment(config))) {
      if (!variables.has(name)) add({ name, from: "plan", value });
    }
  }
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

/** Where programs keep such values, their names say so. */
const tellsSecret = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL/i;

/**
 * The values, looked up at the last moment; they are in no plan, argument list or message. What is masked is not among
 * them, not even where the caller passes it on or the owner wrote it down as it is.
 */
export function resolveVariables(
  plan: Plan,
  config: Config,
  env: Environment,
  secrets: SecretPool = openSecrets(config, { env, isWritableInside: (path) => isWritableInside(plan, path) }),
): Readonly<Record<string, string>> {
  const values = plan.variables.flatMap((variable) => {
    const value = resolve(variable, config, env, secrets);
    if (value === undefined) return [];
    if (variable.from === "caller" && tellsSecret.test(variable.name)) secrets.register(value);
    return [[variable.name, value] as const];
  });
  // When all that is masked is known.
  return Object.fromEntries(values.map(([name, value]) => [name, secrets.hide(value)]));
}

function resolve(variable: Variable, config: Config, env: Environment, secrets: SecretPool): string | undefined {
  if (variable.from === "caller") {
    const value = env[variable.name];
    return value === undefined ? undefined : (maskKey(config, secrets, variable.name, value) ?? value);
  }
  if (variable.from === "plan") return variable.value;
  if (variable.from === "secret") return secrets.valueFor(variable.secret, variable.optional);
  const value = config.environment.set[variable.name];
  return value?.kind === "literal" ? value.value : undefined;
}
