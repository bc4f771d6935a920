import { collectRules } from "../../src/keeper/rules.ts";
import type { ContainerWishes, EngineFacts } from "../../src/plan/container.ts";
import type { Limits } from "../../src/plan/limits.ts";
import { makePlan } from "../../src/plan/make.ts";
import type { Plan } from "../../src/plan/plan.ts";
import type { NetworkPlan, Request } from "../../src/plan/request.ts";
import { toPattern } from "../../src/policy/glob.ts";
import { choosePresets } from "../../src/policy/presets.ts";
import type { Access, Rule, RuleLayer } from "../../src/policy/rule.ts";
import type { Survey } from "../../src/survey/survey.ts";
import { surveyOf, type Tree } from "./tree.ts";

export const home = "/home/u";
export const cwd = "/home/u/project";

/** What everybody's machine has. */
export const ordinaryTree: Tree = {
  "/usr/bin": "directory",
  "/etc/passwd": "file",
  "/opt/podbot/enter": "file",
  "/opt/podbot/shim": "file",
  "/opt/podbot/warden": "file",
  "/opt/podbot/reclaim": "file",
  [cwd]: "directory",
};

/** What Podbot limits where nobody asks for it. */
export const unlimited: Limits = { mode: "best-effort", memoryMb: null, cpus: null, pids: null, ulimits: [] };

/** A request without rules, to be completed by what a test is about. */
export function ordinaryRequest(more: Partial<Request> = {}): Request {
  return {
    session: false,
    command: ["make", "test"],
    workspace: "mounted",
    cwd,
    home,
    root: "host",
    container: null,
    limits: unlimited,
    network: { mode: "none", origin: "default", policy: null, ports: [] },
    rules: [],
    git: { mode: "on", layer: "default" },
    commands: [],
    variables: [],
    path: "/usr/bin",
    nesting: false,
    nested: false,
    dockerSocket: null,
    keptDirectory: "/home/u/.local/state/podbot/kept",
    native: {
      enter: "/opt/podbot/enter",
      shim: "/opt/podbot/shim",
      warden: "/opt/podbot/warden",
      reclaim: "/opt/podbot/reclaim",
    },
    graceMs: 10_000,
    uid: 1000,
    acceptedGaps: [],
    ...more,
  };
}

/** The network of a machine that has no gateway between. */
export const openNetwork: NetworkPlan = { mode: "open", origin: "--network, flag", policy: null, ports: [] };

/** One host in reach, and nothing else. */
export const allowlist: NetworkPlan = {
  mode: "allowlist",
  origin: "--allow",
  policy: {
    learn: false,
    rules: [
      {
        host: "api.example.org",
        ports: [80, 443],
        paths: null,
        methods: null,
        deny: false,
        local: false,
        origin: "--allow",
      },
    ],
    secrets: [],
    reach: {},
  },
  ports: [80, 443, 3128],
};

/** An engine that can do everything: a rootless Podman. */
export const engineFacts: EngineFacts = {
  endpoint: "unix:///run/user/1000/podman/podman.sock",
  local: true,
  flavour: "podman",
  version: "5.4.2",
  rootless: true,
  remapped: false,
  selinux: false,
  runtime: "/usr/bin/crun",
  enforces: { memory: true, cpus: true, pids: true },
  image: { name: "localhost/dev", id: `sha256:${"ab".repeat(32)}`, volumes: [], variables: [] },
};

export const plainWishes: ContainerWishes = {
  privileged: false,
  inner: false,
  keepSelinuxLabels: false,
  readOnlyRoot: false,
  runtime: null,
  workspace: null,
  credentials: [],
};

/** What a test may say of a container. */
export interface ContainerChange {
  readonly engine?: Partial<EngineFacts>;
  readonly wishes?: Partial<ContainerWishes>;
  readonly caller?: { readonly uid: number; readonly gid: number };
  readonly engineSocket?: string;
  readonly request?: Partial<Request>;
  readonly survey?: Partial<Survey>;
}

/** The plan of a container for rules on a machine that has, besides what everybody has, what the tree says. */
export function planInImage(rules: readonly Rule[], tree: Tree = {}, more: ContainerChange = {}): Plan {
  const { engine, wishes, caller = { uid: 1000, gid: 1000 }, engineSocket = null, request, survey } = more;
  return planFor(rules, tree, {
    request: {
      session: true,
      root: "image",
      container: {
        engine: { ...engineFacts, ...engine },
        engineSocket,
        wishes: { ...plainWishes, ...wishes },
        caller,
        machineUlimits: [{ name: "nofile", soft: 4096, hard: 4096 }],
      },
      ...request,
    },
    ...(survey === undefined ? {} : { survey }),
  });
}

/** A rule as its owner writes it: `ro ~/notes`. */
export function said(layer: RuleLayer, line: string, more: Partial<Rule> = {}): Rule {
  const [access, written] = line.split(/ (.*)/s) as [Access, string];
  const origin = layer === "flag" ? `--${access}` : layer;
  return { access, ...toPattern(written, { home, cwd }), written, layer, origin, trusted: true, ...more };
}

/** The rules of presets; without a word those of `@all`. */
export function presetRules(...toggles: readonly string[]): readonly Rule[] {
  return collectRules([], choosePresets(toggles), "host", { home, cwd });
}

/** The same for an image, which has no home of the host's. */
export function imageRules(...toggles: readonly string[]): readonly Rule[] {
  return collectRules([], choosePresets(toggles), "image", { home, cwd });
}

/** The plan for rules on a machine that has, besides what everybody has, what the tree says. */
export function planFor(
  rules: readonly Rule[],
  tree: Tree = {},
  more: { readonly request?: Partial<Request>; readonly survey?: Partial<Survey> } = {},
): Plan {
  const request = ordinaryRequest({ rules, ...more.request });
  return makePlan(request, surveyOf({ ...ordinaryTree, ...tree }, request, more.survey));
}
