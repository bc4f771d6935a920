import { describe, expect, test } from "vitest";
import { makePlan } from "../../src/plan/make.ts";
import type { Operation, Plan } from "../../src/plan/plan.ts";
import { ordinaryRequest, ordinaryTree, planFor, presetRules } from "./ordinary.ts";
import { identityOf, surveyOf } from "./tree.ts";

describe("a plan", () => {
  test("is plain data that says what will be built, in order, and why", () => {
    const why = "Podbot's own corner";
    const closed = "nothing there changes or can be listed";
    expect(planFor([])).toEqual({
      version: 1,
      wall: "bubblewrap",
      root: "host",
      cwd: "/home/u/project",
      home: "/home/u",
      command: ["make", "test"],
      network: { mode: "none", origin: "default" },
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
      warnings: [],
    } satisfies Plan);
  });

  test("takes over what was asked for", () => {
    const asked = {
      command: ["sh", "-c", "true"],
      network: { mode: "open", origin: "--network, flag" },
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
  test("is known by a sign that says what surrounds it", () => {
    const request = { root: "minimal", network: { mode: "open", origin: "x" } } as const;
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
    const plan = planFor([], { [resolver]: "file" }, { survey: { resolver } });
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
    const { operations } = planFor([], { [resolver]: "file" }, { survey: { resolver } });
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
    const [resolver, dockerSocket] = ["/run/resolv.conf", "/run/docker.sock"];
    const survey = { resolver, matches: { [dockerSocket]: [dockerSocket] } };
    const { operations } = planFor([], {}, { request: { dockerSocket }, survey });
    const handed = operations.filter(({ target }) => target === resolver || target === dockerSocket);
    expect(handed).toMatchObject([
      { target: resolver, identity: null },
      { target: dockerSocket, identity: null },
    ]);
  });
});
