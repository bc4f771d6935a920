import { describe, expect, test } from "vitest";
import { makePlan } from "../../src/plan/make.ts";
import type { Operation, Plan } from "../../src/plan/plan.ts";
import type { Variable } from "../../src/plan/request.ts";
import {
  allowlist,
  cwd,
  openNetwork,
  ordinaryRequest,
  ordinaryTree,
  planFor,
  planInImage,
  presetRules,
  said,
} from "./ordinary.ts";
import { identityOf, repositoryAt, surveyOf } from "./tree.ts";

describe("a plan", () => {
  test("is plain data that says what will be built, in order, and why", () => {
    const why = "Podbot's own corner";
    const closed = "nothing there changes or can be listed";
    expect(planFor([])).toEqual({
      version: 1,
      wall: "bubblewrap",
      session: false,
      root: "host",
      container: null,
      limits: { mode: "best-effort", memoryMb: null, cpus: null, pids: null, ulimits: [] },
      workspace: "mounted",
      clone: null,
      cwd: "/home/u/project",
      directory: "/home/u/project",
      home: "/home/u",
      command: ["make", "test"],
      network: { mode: "none", origin: "default", policy: null, ports: [] },
      nesting: false,
      graceMs: 10_000,
      acceptedGaps: [],
      variables: [],
      kept: [],
      held: [],
      operations: [
        {
          kind: "bind",
          source: "/",
          target: "/",
          access: "ro",
          identity: identityOf("/"),
          why: "the host's root is readable (sandbox.root = host)",
        },
        { kind: "dev", target: "/dev", why: "a few harmless devices" },
        { kind: "proc", target: "/proc", why: "only the sandbox's own processes" },
        { kind: "tmpfs", target: "/tmp", mode: 0o1777, why: "private, gone afterwards" },
        { kind: "tmpfs", target: "/run", mode: 0o755, why: "private: sockets of the host live in /run" },
        { kind: "tmpfs", target: "/run/podbot", mode: 0o755, why },
        { kind: "directory", target: "/run/podbot/bin", mode: 0o755, why },
        { kind: "directory", target: "/run/podbot/copies", mode: 0o755, why },
        { kind: "directory", target: "/run/podbot/real", mode: 0o755, why },
        { kind: "directory", target: "/run/podbot/wrappers", mode: 0o755, why },
        {
          kind: "file",
          target: "/run/podbot/sandbox.json",
          content: '{"inside":true,"wall":"bubblewrap","root":"host","network":"none"}\n',
          mode: 0o444,
          why,
        },
        {
          kind: "file",
          target: "/run/podbot/commands",
          content: "/run/podbot/bin/podbot\0podbot\0check\0\0\0\0\0",
          mode: 0o444,
          why,
        },
        {
          kind: "bind",
          source: "/opt/podbot/enter",
          target: "/run/podbot/enter",
          access: "ro",
          identity: identityOf("/opt/podbot/enter"),
          why,
        },
        {
          kind: "bind",
          source: "/opt/podbot/shim",
          target: "/run/podbot/bin/podbot",
          access: "ro",
          identity: identityOf("/opt/podbot/shim"),
          why,
        },
        { kind: "mode", target: "/run/podbot/copies", mode: 0o111, why: closed },
        { kind: "mode", target: "/run/podbot/real", mode: 0o111, why: closed },
        { kind: "mode", target: "/run/podbot/wrappers", mode: 0o111, why: closed },
        { kind: "seal", target: "/run/podbot", why: closed },
      ],
      paths: [],
      commands: [],
      watched: [],
      links: {},
      git: { own: null, gitlinks: {}, embedded: [], repositories: null },
      warnings: [],
    } satisfies Plan);
  });

  test.each([
    ["a repository around it", `${cwd}/.git`, cwd],
    ["a bare one, which it is itself", cwd, cwd],
    ["one that begins above", "/home/u/.git", "/home/u"],
  ])("remembers what git saw of %s", (_, entry, top) => {
    const submodules = { gitlinks: { [`${cwd}/lib`]: true }, embedded: [`${cwd}/lib`] };
    const more = { entry: { path: entry, kind: "directory" }, ...submodules, gitDir: entry } as const;
    const repositories = { paths: [cwd], depth: 2 };
    const { git } = planFor([], {}, { survey: { git: repositoryAt(cwd, more), repositories } });
    const own = { entry, top, gitDir: entry, commonDir: `${cwd}/.git` };
    expect(git).toEqual({ own, ...submodules, repositories });
  });

  test("has no eyes for git where that is not protected, or not worked on", () => {
    const survey = { git: repositoryAt(cwd) };
    expect(planFor([], {}, { survey, request: { git: { mode: "off", layer: "flag" } } }).git).toBeNull();
    expect(planFor([], {}, { survey, request: { workspace: "empty" } }).git).toBeNull();
  });

  test("takes over what was asked for", () => {
    const asked = {
      command: ["sh", "-c", "true"],
      network: openNetwork,
      nesting: true,
      graceMs: 1,
      acceptedGaps: ["abstract-sockets"],
      variables: [{ name: "HOME", from: "caller" }],
    } as const;
    expect(planFor([], {}, { request: asked })).toMatchObject(asked);
  });

  test("stands where the survey found the working directory and the home to be", () => {
    const survey = { cwd: "/data/project", home: "/data/u" };
    const tree = { "/data/project": "directory", "/data/u": "directory" } as const;
    expect(planFor([], tree, { survey })).toMatchObject(survey);
  });

  test("is the same whenever it is made", () => {
    const make = () => planFor(presetRules(), { "/home/u/.ssh": "directory" });
    expect(JSON.stringify(make())).toBe(JSON.stringify(make()));
  });

  test("survives as JSON", () => {
    const plan = planFor(presetRules(), { "/home/u/.ssh": "directory" });
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  test("cannot be changed, in any of its parts", () => {
    const plan = planFor(presetRules(), { "/home/u/.ssh": "directory" });
    expect(thawed(plan)).toEqual([]);
    expect(() => (plan.operations as Operation[]).push()).toThrow(TypeError);
  });
});

/** Parts of a value, by path, that could still be changed. */
function thawed(value: unknown, at = "plan"): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = Object.isFrozen(value) ? [] : [at];
  return [...own, ...Object.entries(value).flatMap(([key, part]) => thawed(part, `${at}.${key}`))];
}

describe("Podbot's own corner", () => {
  test("has the warden and the way out to its keeper, in a session", () => {
    const why = "Podbot's own corner";
    const targets = (session: boolean) => planFor([], {}, { request: { session } }).operations;
    expect(targets(false).filter(({ target }) => /warden|\/in$/.test(target))).toEqual([]);
    expect(targets(true).filter(({ target }) => /warden|\/in$/.test(target))).toEqual([
      {
        kind: "bind",
        source: "/opt/podbot/warden",
        target: "/run/podbot/warden",
        access: "ro",
        identity: identityOf("/opt/podbot/warden"),
        why,
      },
      { kind: "inlet", target: "/run/podbot/in", why: "the warden dials out through here" },
    ]);
  });

  test("is known by a sign that says what surrounds it", () => {
    const request = { root: "minimal", network: openNetwork } as const;
    const sign = planFor([], {}, { request }).operations.find(({ target }) => target === "/run/podbot/sandbox.json");
    expect(sign?.kind === "file" && JSON.parse(sign.content)).toEqual({
      inside: true,
      wall: "bubblewrap",
      root: "minimal",
      network: "open",
    });
  });
});

describe("what is handed in", () => {
  test("is the file of the resolver, where that lies in a private place", () => {
    const resolver = "/run/systemd/resolve/stub-resolv.conf";
    const plan = planFor([], { [resolver]: "file" }, { request: { network: openNetwork }, survey: { resolver } });
    expect(plan.operations).toContainEqual({
      kind: "bind",
      source: resolver,
      target: resolver,
      access: "ro",
      identity: identityOf(resolver),
      why: "names are resolved as on the host",
    });
  });

  test("is the engine's socket, where its links lead, if the owner says so", () => {
    const tree = { "/var/run": "-> /run", "/run/docker.sock": "socket" } as const;
    const plan = planFor([], tree, { request: { dockerSocket: "/var/run/docker.sock" } });
    expect(plan.operations).toContainEqual({
      kind: "bind",
      source: "/run/docker.sock",
      target: "/run/docker.sock",
      access: "rw",
      identity: identityOf("/run/docker.sock"),
      why: "--docker hands the engine in",
    });
    expect(planFor([], tree).operations.filter(({ target }) => target === "/run/docker.sock")).toEqual([]);
  });

  test("comes after the private places, which would cover it", () => {
    const resolver = "/run/resolv.conf";
    const request = { network: openNetwork };
    const { operations } = planFor([], { [resolver]: "file" }, { request, survey: { resolver } });
    const targets = operations.map(({ target }) => target);
    expect(targets.indexOf(resolver)).toBeGreaterThan(targets.indexOf("/run"));
  });

  test("is nothing that the survey did not find", () => {
    const { operations } = planFor([], {}, { request: { dockerSocket: "/run/docker.sock" } });
    expect(operations.filter(({ target }) => target === "/run/docker.sock")).toEqual([]);
    const request = ordinaryRequest();
    const unasked = makePlan({ ...request, dockerSocket: "/run/docker.sock" }, surveyOf(ordinaryTree, request));
    expect(unasked.operations.filter(({ target }) => target === "/run/docker.sock")).toEqual([]);
  });

  test("has nothing to be compared with where the survey did not look at it", () => {
    const dockerSocket = "/run/docker.sock";
    const survey = { matches: { [dockerSocket]: [dockerSocket] } };
    const { operations } = planFor([], {}, { request: { dockerSocket }, survey });
    const handed = operations.filter(({ target }) => target === dockerSocket);
    expect(handed).toMatchObject([{ target: dockerSocket, identity: null }]);
  });

  test.each([
    ["is there already", "/etc/resolv.conf", { "/etc/resolv.conf": "file" } as const, openNetwork],
    ["leads nowhere", "/run/resolv.conf", {}, openNetwork],
    ["serves nobody", "/run/resolv.conf", { "/run/resolv.conf": "file" } as const, ordinaryRequest().network],
  ])("is no file of a resolver that %s", (_, resolver, tree, network) => {
    const { operations } = planFor([], tree, { request: { network }, survey: { resolver } });
    expect(operations.filter(({ target }) => target === resolver)).toEqual([]);
  });
});

describe("behind a gateway", () => {
  const trusted = (plan: Plan) => plan.operations.flatMap(({ kind, target }) => (kind === "trust" ? [target] : []));
  const corner = ["bundle.pem", "authority.pem"].map((name) => `/run/podbot/trust/${name}`);
  const request = { network: allowlist };

  test("the plan holds what may be reached, as data of its own", () => {
    const plan = planFor([], {}, { request });
    expect(plan.network).toEqual(allowlist);
    expect(plan.network.policy).not.toBe(allowlist.policy);
    expect(Object.isFrozen(plan.network.policy?.rules[0])).toBe(true);
  });

  test("the session's authority is made known in Podbot's corner, before that is closed", () => {
    const { operations } = planFor([], {}, { request });
    const targets = operations.map(({ target }) => target);
    for (const place of corner) {
      expect(targets.indexOf(place)).toBeGreaterThan(targets.indexOf("/run/podbot/trust"));
      const closed = operations.findIndex(({ kind, target }) => kind === "seal" && target === "/run/podbot");
      expect(closed).toBeGreaterThan(targets.indexOf(place));
    }
    expect(trusted(planFor([]))).toEqual([]);
  });

  test("and where the host keeps what everybody trusts, once for each file and only where it is seen", () => {
    const [debian, fedora] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
    expect(trusted(planFor([], { [debian]: "file" }, { request }))).toEqual([...corner, debian]);
    const linked = { [debian]: "file", [fedora]: `-> ${debian}`, "/etc/ssl/cert.pem": `-> ${debian}` } as const;
    expect(trusted(planFor([], linked, { request }))).toEqual([...corner, debian]);
    const hidden = [said("flag", "exclude /etc/ssl")];
    expect(trusted(planFor(hidden, { [debian]: "file" }, { request }))).toEqual(corner);
    const { matches: _, ...survey } = surveyOf(ordinaryTree, ordinaryRequest());
    expect(trusted(makePlan(ordinaryRequest(request), { ...survey, matches: {} }))).toEqual(corner);
  });

  test("behind another gateway, nothing is laid over what that one has laid: nothing could be", () => {
    const tree = { "/etc/ssl/certs/ca-certificates.crt": "file", "/etc/resolv.conf": "file" } as const;
    const survey = { resolver: "/etc/resolv.conf" };
    const over = (behindGateway: boolean) =>
      planFor([], tree, { request: { ...request, behindGateway }, survey }).operations.filter(({ target }) =>
        Object.hasOwn(tree, target),
      );
    expect(over(true)).toEqual([]);
    expect(over(false)).toHaveLength(2);
  });

  test("as Java reads it, where Java is told of it", () => {
    const java: Variable = { name: "JAVA_TOOL_OPTIONS", from: "plan", value: "-D…" };
    const variables = (variable: Variable) => ({ request: { ...request, variables: [variable] } });
    expect(trusted(planFor([], {}, variables(java)))).toEqual([...corner, "/run/podbot/trust/truststore.jks"]);
    expect(trusted(planFor([], {}, variables({ name: "JAVA_TOOL_OPTIONS", from: "caller" })))).toEqual(corner);
  });

  test("in a container, in Podbot's corner alone", () => {
    const tree = { "/etc/ssl/certs/ca-certificates.crt": "file" } as const;
    expect(trusted(planInImage([], tree, { request }))).toEqual(corner);
    expect(trusted(planInImage([]))).toEqual([]);
  });

  test.each(["/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"])("names are asked of it, in %s", (place) => {
    const plan = planFor([], { [place]: "file" }, { request, survey: { resolver: place } });
    expect(plan.operations.filter(({ target }) => target === place)).toEqual([
      {
        kind: "file",
        target: place,
        content: "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n",
        mode: 0o444,
        over: true,
        why: "names are answered by the gateway",
      },
    ]);
  });
});
