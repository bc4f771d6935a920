// @module-tag security
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { collectRules } from "../../src/keeper/rules.ts";
import { makePlan } from "../../src/plan/make.ts";
import { choosePresets } from "../../src/policy/presets.ts";
import type { Rule } from "../../src/policy/rule.ts";
import { failure } from "../failure.ts";
import { accessInside } from "./mount-table.ts";
import { cwd, ordinaryRequest, ordinaryTree, planFor, presetRules, said } from "./ordinary.ts";
import { repositoryAt, surveyOf, type Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");
const untrusted = (line: string): Rule => said("project", line, { trusted: false });
const directory = { kind: "directory" } as const;

describe("a rule is refused", () => {
  test.each([
    ["ro /proc", "/proc is private inside"],
    ["rw /proc/sys", "/proc is private inside"],
    ["rw /dev/sda", "/dev is private inside"],
    ["exclude /run", "/run is private inside"],
    ["ro /run/user/1000/bus", "/run is private inside"],
    ["rw /tmp", "/tmp is private inside"],
    ["rw /", "the root cannot be rw"],
    ["exclude /", "the root cannot be exclude"],
  ])("%s: %s", (line, why) => {
    const tree: Tree = {
      "/tmp": "directory",
      "/dev/sda": "other",
      "/proc/sys": "directory",
      "/run/user/1000/bus": "socket",
    };
    const error = failure(PolicyError, () => planFor([...base, said("global", line)], tree));
    expect(error.code).toBe("PATH_REFUSED");
    expect(error.message).toContain(`The rule ${line} (global, global)`);
    expect(error.message).toContain(why);
    expect(error.details).toMatchObject({ rule: line.split(" ")[1], origin: "global" });
  });

  test.each(["ro /", "ro /usr", "rw /tmp/work", "ro /runner", "exclude /device"])("but %s is not", (line) => {
    const tree: Tree = { "/tmp/work": "directory", "/runner": "directory", "/device": "directory" };
    expect(() => planFor([...base, said("flag", line)], tree)).not.toThrow();
  });

  const linked: Tree = {
    [`${cwd}/data`]: "-> /srv/data",
    [`${cwd}/self`]: `-> ${cwd}`,
    "/srv/data/a": "file",
    [`${cwd}/src/link`]: `-> ${cwd}/docs`,
    [`${cwd}/docs`]: "directory",
  };

  test.each(["rw data", "ro data", "rw data/a", "ro *"])(
    "where a link leads out of the working directory: %s",
    (line) => {
      const error = failure(PolicyError, () => planFor([...base, said("flag", line)], linked));
      expect(error.code).toBe("PATH_REFUSED");
      expect(error.message).toContain("a link leads out of the working directory");
      expect(error.hint).toContain("/srv/data");
    },
  );

  test.each(["exclude data", "rw src/link", "rw self", "rw /srv/data"])("but %s is not", (line) => {
    expect(() => planFor([...base, said("flag", line)], linked)).not.toThrow();
  });

  test("only where it stands for something", () => {
    expect(() => planFor([...base, said("flag", "rw /dev/nothing")])).not.toThrow();
  });
});

describe("a working directory is refused where", () => {
  test.each(["/proc", "/proc/self", "/dev/shm", "/run/user/1000", "/tmp"])("it is private inside: %s", (place) => {
    const error = failure(PolicyError, () => planFor([], { [place]: "directory" }, { request: { cwd: place } }));
    expect(error.code).toBe("PATH_REFUSED");
    expect(error.message).toContain("is private inside");
  });

  test("but a directory in /tmp will do", () => {
    const rules = [said("default", "rw /tmp/work")];
    const plan = planFor(rules, { "/tmp/work/a": "file" }, { request: { cwd: "/tmp/work" } });
    expect(accessInside(plan, "/tmp/work/a")).toBe("rw");
    expect(accessInside(plan, "/tmp/other")).toBe("exclude");
  });
});

describe("a rule stands for", () => {
  test("what its links lead to", () => {
    const tree: Tree = { "/home/u/.ssh": "-> /home/u/vault", "/home/u/vault/key": "file" };
    const plan = planFor(base, tree);
    expect(plan.paths).toContainEqual(expect.objectContaining({ path: "/home/u/vault", rule: "~/.ssh" }));
    expect(accessInside(plan, "/home/u/vault/key")).toBe("exclude");
  });

  test("everything that its pattern finds", () => {
    const tree: Tree = { [`${cwd}/.env`]: "file", [`${cwd}/a/b/.env.local`]: "file", [`${cwd}/a/env`]: "file" };
    const plan = planFor([...base, said("flag", "exclude **/.env*")], tree);
    expect(accessInside(plan, `${cwd}/.env`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/a/b/.env.local`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/a/env`)).toBe("rw");
  });

  test("what it names where the working directory looks like a pattern", () => {
    const cwd = "/home/u/app/[id]";
    const from = { home: "/home/u", cwd };
    const value = { filesystem: { exclude: ["secret", "*.key"] } };
    const presets = choosePresets(["!@all", "@base"]);
    const rules = collectRules([{ name: "flag", source: "", trusted: true, value }], presets, "host", from);
    const tree: Tree = { [`${cwd}/secret`]: "file", [`${cwd}/a.key`]: "file", "/home/u/app/i/secret": "file" };
    const plan = planFor(rules, tree, { request: { cwd } });
    expect(accessInside(plan, `${cwd}/secret`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/a.key`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/other`)).toBe("rw");
    expect(accessInside(plan, "/home/u/app/i/secret")).toBe("ro");
  });

  test("nothing where nothing is there", () => {
    const plan = planFor([said("flag", "exclude ~/none"), said("flag", "rw ~/no/*")]);
    expect(plan.paths).toEqual([]);
  });

  test("nothing where the survey was not asked", () => {
    const request = ordinaryRequest();
    const survey = surveyOf(ordinaryTree, request);
    expect(makePlan({ ...request, rules: [said("flag", "ro ~/notes")] }, survey).paths).toEqual([]);
  });
});

describe("Podbot's own protection", () => {
  const own = said("podbot", "ro .podbot", { placeholder: directory, guard: true });
  const tree: Tree = { [`${cwd}/.podbot/config.toml`]: "file" };

  test.each(["rw .podbot", "rw .podbot/config.toml", "rw .podbot/*", "rw **/config.toml", "rw ~/project/.podbot/"])(
    "holds against --%s",
    (line) => {
      const plan = planFor([...base, own, said("flag", line)], tree);
      expect(accessInside(plan, `${cwd}/.podbot`)).toBe("ro");
      expect(accessInside(plan, `${cwd}/.podbot/config.toml`)).toBe("ro");
      expect(accessInside(plan, `${cwd}/other`)).toBe("rw");
    },
  );

  test("lets what lies in it be hidden", () => {
    const plan = planFor([...base, own, said("flag", "exclude .podbot/config.toml")], tree);
    expect(accessInside(plan, `${cwd}/.podbot/config.toml`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/.podbot/other`)).toBe("ro");
  });

  test.each(["exclude ~/.config", "exclude ~/.config/podbot", "exclude ~/.config/pod*", "exclude ~/.config/podbot/*"])(
    "opens nothing that is hidden: %s",
    (line) => {
      const rules = [said("podbot", "ro ~/.config/podbot", { guard: true }), said("flag", line)];
      const plan = planFor(rules, { "/home/u/.config/podbot/config.toml": "file" });
      expect(accessInside(plan, "/home/u/.config/podbot/config.toml")).toBe("exclude");
    },
  );
});

describe("a protected name that does not exist", () => {
  const hold = (line: string) => said("podbot", line, { placeholder: directory, guard: true });

  test("is held, so that it cannot be made", () => {
    const plan = planFor([...base, hold("ro .podbot")]);
    const around = { directory: `inode of ${cwd}` };
    expect(plan.held).toEqual([{ path: `${cwd}/.podbot`, placeholder: directory, ...around }]);
    expect(accessInside(plan, `${cwd}/.podbot`)).toBe("ro");
  });

  test("is held in a directory that was not looked at, too", () => {
    const request = ordinaryRequest({ rules: [...base, hold("ro .podbot")] });
    const { nodes, ...survey } = surveyOf(ordinaryTree, request);
    const { [cwd]: _, ...others } = nodes;
    expect(makePlan(request, { ...survey, nodes: others }).held).toMatchObject([{ directory: null }]);
  });

  test("with a file for a placeholder is held as that file", () => {
    const placeholder = { kind: "file", content: "x" } as const;
    expect(planFor([...base, said("default", "ro a", { placeholder })]).held).toMatchObject([
      { path: `${cwd}/a`, placeholder },
    ]);
  });

  test("is held by the first directory on the way that does not exist either", () => {
    const rules = [...base, said("default", "ro a/b/c", { placeholder: { kind: "file", content: "" } })];
    expect(planFor(rules).held).toMatchObject([{ path: `${cwd}/a`, placeholder: directory }]);
    expect(planFor(rules, { [`${cwd}/a`]: "directory" }).held).toMatchObject([
      { path: `${cwd}/a/b`, placeholder: directory },
    ]);
  });

  test("is held once for all the rules that need it", () => {
    const plan = planFor([...base, hold("ro a/b"), hold("ro a/c"), hold("ro a")]);
    expect(plan.held).toMatchObject([{ path: `${cwd}/a`, placeholder: directory }]);
  });

  test.each([
    ["in a directory that is read-only anyway", "ro ~/.config/podbot"],
    ["in a directory that is private inside", "ro /tmp/podbot"],
  ])("is not held %s", (_, line) => {
    expect(planFor([...base, hold(line)]).held).toEqual([]);
  });

  test("is not held where a link in a circle has taken its name", () => {
    const survey = { firstMissing: {} };
    expect(planFor([...base, hold("ro .podbot")], {}, { survey }).held).toEqual([]);
  });

  test("is not held where it exists", () => {
    const plan = planFor([...base, hold("ro .podbot")], { [`${cwd}/.podbot`]: "directory" });
    expect(plan.held).toEqual([]);
    expect(accessInside(plan, `${cwd}/.podbot`)).toBe("ro");
  });
});

describe("the repository around the working directory", () => {
  const tree: Tree = { [`${cwd}/.git/hooks`]: "directory", [`${cwd}/.git/config`]: "file" };
  const survey = { git: repositoryAt(cwd) };

  test("keeps its hooks and configuration, and what is missing of them cannot be made", () => {
    const plan = planFor(base, tree, { survey });
    expect(accessInside(plan, `${cwd}/.git/hooks/pre-commit`)).toBe("ro");
    expect(accessInside(plan, `${cwd}/.git/config`)).toBe("ro");
    expect(accessInside(plan, `${cwd}/.git/index`)).toBe("rw");
    const held = ["branches", "commondir", "config.worktree", "remotes"].map((name) => `${cwd}/.git/${name}`);
    expect(plan.held.map(({ path }) => path)).toEqual(held);
  });

  test.each([
    ["on", "preset @git"],
    ["strict", "preset @git-strict"],
  ] as const)("is protected by the preset that was asked for: %s", (mode, origin) => {
    const request = { git: { mode, layer: "global" } } as const;
    const decision = planFor(base, tree, { survey, request }).paths.find(({ path }) => path.endsWith("/hooks"));
    expect(decision).toMatchObject({ access: "ro", origin, layer: "global" });
  });

  test("keeps its other branches where that was asked for", () => {
    const git = repositoryAt(cwd, { heads: ["main", "next"] });
    const heads = { [`${cwd}/.git/refs/heads/main`]: "file", [`${cwd}/.git/refs/heads/next`]: "file" } as const;
    const request = { git: { mode: "strict", layer: "default" } } as const;
    const plan = planFor(base, { ...tree, ...heads }, { survey: { git }, request });
    expect(accessInside(plan, `${cwd}/.git/refs/heads/main`)).toBe("rw");
    expect(accessInside(plan, `${cwd}/.git/refs/heads/next`)).toBe("ro");
    expect(accessInside(plan, `${cwd}/.git/packed-refs`)).toBe("ro");
  });
});

describe("the repository, which may be hostile, opens nothing", () => {
  const tree: Tree = {
    "/home/u/.ssh/id": "file",
    "/home/u/.password-store/.git/config": "file",
    "/home/u/other/.git/refs": "directory",
    "/run/user/1000/bus": "socket",
    "/tmp/tmux-1000/default": "socket",
  };
  const places = ["/home/u/.ssh/id", "/home/u/.password-store/.git/config", "/run/user/1000", "/tmp/tmux-1000"];

  test.each(places)("by naming %s as what git obeys", (path) => {
    for (const git of [repositoryAt(cwd, { hookDirectories: [path] }), repositoryAt(cwd, { obeyed: [path] })]) {
      expect(accessInside(planFor(base, tree, { survey: { git } }), path)).toBe("exclude");
    }
  });

  test.each(["/home/u/other/.git", "/home/u/.password-store/.git"])("by lying in %s", (gitDir) => {
    const entry = { path: `${cwd}/.git`, kind: "file" } as const;
    const git = repositoryAt(cwd, { entry, gitDir, commonDir: gitDir, pointsBack: false });
    const before = planFor(base, tree);
    const after = planFor(base, tree, { survey: { git } });
    for (const path of Object.keys(tree)) expect(accessInside(after, path)).toBe(accessInside(before, path));
  });
});

describe("a socket to which a program of the host is bound", () => {
  const socket = "/home/u/.agent/sock";
  const tree: Tree = { [socket]: "socket", "/home/u/.agent/log": "file" };

  test("is hidden, though its directory is readable", () => {
    const plan = planFor(base, tree);
    expect(accessInside(plan, socket)).toBe("exclude");
    expect(accessInside(plan, "/home/u/.agent/log")).toBe("ro");
    expect(plan.paths.at(-1)?.origin).toBe("a program of the host is bound there");
  });

  test.each(["ro", "rw"] as const)("is %s where the owner names it", (access) => {
    expect(accessInside(planFor([...base, said("flag", `${access} ${socket}`)], tree), socket)).toBe(access);
  });

  test("stays hidden where the owner names only its directory", () => {
    expect(accessInside(planFor([...base, said("flag", "rw ~/.agent")], tree), socket)).toBe("exclude");
  });

  test.each([
    ["a preset", said("default", `ro ${socket}`)],
    ["a guard", said("global", `ro ${socket}`, { guard: true })],
  ])("stays hidden where only %s names it", (_, rule) => {
    expect(accessInside(planFor([...base, rule], tree), socket)).toBe("exclude");
  });

  test("stays hidden where an untrusted project names it", () => {
    expect(accessInside(planFor([...base, untrusted(`ro ${socket}`)], tree), socket)).toBe("exclude");
  });

  test("can be written where it is the engine's and the owner hands it in", () => {
    const plan = planFor(base, tree, { request: { dockerSocket: socket } });
    expect(accessInside(plan, socket)).toBe("rw");
  });
});

describe("names to watch", () => {
  test("are those that a guard protects only where they exist", () => {
    const guard = (layer: Rule["layer"], line: string, more: Partial<Rule> = {}) =>
      said(layer, line, { guard: true, ...more });
    const rules = [
      ...base,
      guard("default", "ro missing.json"),
      guard("podbot", "ro missing.json"),
      guard("default", "ro once.json"),
      guard("default", "ro there.json"),
      guard("default", "ro ~/elsewhere.json"),
      guard("default", "ro held", { placeholder: directory }),
      said("flag", "ro named.json"),
    ];
    expect(planFor(rules, { [`${cwd}/there.json`]: "file" }).watched).toEqual([
      `${cwd}/missing.json`,
      `${cwd}/once.json`,
    ]);
  });
});
