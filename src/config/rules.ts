import { isAbsolute } from "node:path";
import { showProxy, showValue } from "./display.ts";
import type { KeyName } from "./key-types.ts";
import { nearestName } from "./nearest.ts";
import type { Problem } from "./problem.ts";
import type { AgentKind, AgentMode, Config, Origin, VariableValue } from "./types.ts";

export interface RuleFindings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

/**
 * The rules that no single key can state, over the merged configuration. `doubtful` are keys already reported: a rule
 * that reads one of them says nothing, since what it would see is not what the owner wrote.
 */
export function checkRules(config: Config, origins: readonly Origin[], doubtful: ReadonlySet<string>): RuleFindings {
  const problems: Problem[] = [];
  for (const rule of rules) {
    if (rule.reads.some((key) => doubtful.has(key))) continue;
    const broken = rule.check(config, origins);
    if (broken !== undefined) problems.push(toProblem(rule.reads, broken, origins));
  }
  const variables = doubtful.has("secrets") ? [] : missingSecrets(config, origins);
  return {
    problems: [...problems, ...variables],
    warnings: [...ignoredAgentKeys(config), ...misspeltSecrets(config, origins)],
  };
}

interface Rule {
  /** The key that is reported first, then the others that decide. */
  readonly reads: readonly [KeyName, ...KeyName[]];
  readonly check: (config: Config, origins: readonly Origin[]) => Broken | undefined;
}

interface Broken {
  readonly value?: unknown;
  readonly wrong: string;
  readonly wayOut: string;
}

const rules: readonly Rule[] = [
  {
    reads: ["agent.command", "agent.kind"],
    check: ({ agent }) =>
      agent.kind === "custom" && agent.command === undefined
        ? {
            wrong: 'is missing, and agent.kind = "custom" needs it',
            wayOut: "name the program to run (on the command line: podbot run --agent custom -- COMMAND)",
          }
        : undefined,
  },
  {
    reads: ["agent.mode", "agent.kind"],
    check: ({ agent: { kind, mode } }) => {
      const modes = modesOf(kind);
      if (modes.includes(mode)) return undefined;
      return {
        value: mode,
        wrong: `is not a mode of agent.kind = "${kind}"`,
        wayOut: `use ${modes.join(" or ")}, or another agent.kind`,
      };
    },
  },
  {
    reads: ["acp.delegation", "agent.mode"],
    check: ({ acp: { delegation }, agent: { mode } }, origins) => {
      if (delegation === "disabled" || mode === "acp" || !isDecided("agent.mode", mode, origins)) return undefined;
      return {
        value: delegation,
        wrong: `is for agent.mode = "acp", and agent.mode is "${mode}"`,
        wayOut: 'leave it out, or say agent.mode = "acp"',
      };
    },
  },
  {
    reads: ["workspace.base_dir"],
    check: ({ workspace }) => requireAbsolute(workspace.base_dir, "is not an absolute path"),
  },
  {
    reads: ["workspace.host_path", "workspace.source"],
    check: ({ workspace: { source, host_path } }) => {
      if (source !== "host_mount") return undefined;
      if (host_path !== undefined)
        return requireAbsolute(host_path, 'is not absolute, as workspace.source = "host_mount" needs');
      return {
        wrong: 'is missing, and workspace.source = "host_mount" needs it',
        wayOut: "name the directory to mount",
      };
    },
  },
  {
    reads: ["workspace.container_path", "workspace.source"],
    check: ({ workspace: { source, container_path } }) =>
      source === "host_mount"
        ? requireAbsolute(container_path, 'is not absolute, as workspace.source = "host_mount" needs')
        : undefined,
  },
  {
    reads: ["mounts.allowed_roots"],
    check: ({ mounts }) => {
      // Counted from wherever somebody stands, a root would be another one each time.
      const wrong = mounts.allowed_roots.find((root) => !isAbsolute(root) && !/^~(\/|$)/.test(root));
      if (wrong === undefined) return undefined;
      return {
        value: wrong,
        wrong: "is neither an absolute path nor one of your home",
        wayOut: "write the whole path, beginning with / or ~/",
      };
    },
  },
  {
    reads: ["sandbox.ulimits"],
    check: ({ sandbox }) => {
      const wrong = sandbox.ulimits.find((text) => !isUlimit(text));
      if (wrong === undefined) return undefined;
      return {
        value: wrong,
        wrong: "is not a limit of processes",
        wayOut: 'write "nofile=1024" or "nofile=1024:2048"',
      };
    },
  },
  {
    reads: ["network.upstream_proxy"],
    check: ({ network: { upstream_proxy: proxy } }) =>
      showProxy(proxy) !== null
        ? undefined
        : {
            // Not shown: it may well be a password that has spoilt it.
            wrong: "is not the address of a proxy",
            wayOut:
              'write "http://host:port", with what is special in a password escaped (%40), or "environment" or "none"',
          },
  },
];

/**
 * The default of a mode decides nothing, since `podbot host` has another; and who runs an agent on a terminal for once
 * need not take back what he has written for editors.
 */
function isDecided(key: KeyName, mode: AgentMode, origins: readonly Origin[]): boolean {
  const layer = origins.find((origin) => origin.key === key)?.layer;
  return mode !== "podbot" || (layer !== "default" && layer !== "flag");
}

/** A soft limit above the hard one is none. */
function isUlimit(text: string): boolean {
  const match = /^[a-z]+=(\d{1,15})(?::(\d{1,15}))?$/.exec(text);
  return match !== null && Number(match[1]) <= Number(match[2] ?? match[1]);
}

/** Which modes an agent can be run in. Codex alone has a server of its own; a custom agent is the owner's affair. */
export function modesOf(kind: AgentKind): readonly AgentMode[] {
  if (kind === "custom" || kind === "codex") return ["podbot", "codex_app_server", "acp"];
  return ["podbot", "acp"];
}

function requireAbsolute(path: string, wrong: string): Broken | undefined {
  return isAbsolute(path) ? undefined : { value: path, wrong, wayOut: "write the whole path, beginning with /" };
}

/** Blames the layer that spoke last: the ones before it were in order. */
function toProblem(reads: readonly [KeyName, ...KeyName[]], broken: Broken, origins: readonly Origin[]): Problem {
  const [key] = reads;
  const order = ["default", "global", "project", "environment", "flag"];
  const spoke = origins
    .filter((origin) => reads.includes(origin.key as KeyName))
    .reduce((last, origin) => (order.indexOf(origin.layer) > order.indexOf(last.layer) ? origin : last));
  const shown = broken.value === undefined ? {} : { shown: showValue(broken.value) };
  return { kind: "value", source: spoke.source, key, field: key, ...shown, wrong: broken.wrong, wayOut: broken.wayOut };
}

/** References to secrets that no layer defines. An optional one may lack its secret: that is what it is for. */
function missingSecrets({ secrets }: Config, origins: readonly Origin[]): readonly Problem[] {
  return undefinedReferences(secrets, origins).flatMap(({ key, source, name, optional, near }) => {
    if (optional) return [];
    const wayOut =
      near === undefined
        ? `define secrets.${name}, or write !secret? ${name} if it may be absent`
        : `did you mean ${near}?`;
    const wrong = `refers to the secret ${name}, which is not defined`;
    return { kind: "secret", source, key, field: "environment.set", wrong, wayOut };
  });
}

/** An optional reference is silent when its secret is not defined, unless that looks like a slip of the pen. */
function misspeltSecrets({ secrets }: Config, origins: readonly Origin[]): readonly string[] {
  return undefinedReferences(secrets, origins).flatMap(({ key, name, optional, near }) =>
    optional && near !== undefined ? `${key}: there is no secret ${name}; did you mean ${near}?` : [],
  );
}

interface UndefinedReference {
  readonly key: string;
  readonly source: string;
  readonly name: string;
  readonly optional: boolean;
  /** A secret that does exist and is called almost the same. */
  readonly near: string | undefined;
}

function undefinedReferences(secrets: Config["secrets"], origins: readonly Origin[]): readonly UndefinedReference[] {
  return origins.flatMap(({ key, source, value }) => {
    if (!key.startsWith("environment.set.")) return [];
    const variable = value as VariableValue;
    if (variable.kind !== "secret" || variable.name in secrets) return [];
    const { name, optional } = variable;
    return { key, source, name, optional, near: nearestName(name, Object.keys(secrets)) };
  });
}

/** The sample file of Podbot's first design sets these for a known agent, so they cannot be an error. */
function ignoredAgentKeys({ agent }: Config): readonly string[] {
  if (agent.kind === "custom") return [];
  const ignored = [
    ...(agent.command === undefined ? [] : ["agent.command"]),
    ...(agent.args.length === 0 ? [] : ["agent.args"]),
  ];
  if (ignored.length === 0) return [];
  return [
    `${ignored.join(" and ")} ${ignored.length === 1 ? "is" : "are"} ignored: only agent.kind = "custom" reads ${ignored.length === 1 ? "it" : "them"}`,
  ];
}
