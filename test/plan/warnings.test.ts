import { describe, expect, test } from "vitest";
import type { GitLayout } from "../../src/policy/git.ts";
import type { Rule } from "../../src/policy/rule.ts";
import { accessInside } from "./mount-table.ts";
import { cwd, planFor, presetRules, said } from "./ordinary.ts";
import { identityOf, repositoryAt, type Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");

test("nothing is said where there is nothing to say", () => {
  expect(planFor(base, { "/home/u/.ssh/id": "file", "/home/u/.netrc": "file" }).warnings).toEqual([]);
});

describe("a hidden file with other names", () => {
  const netrc: Tree = { "/home/u/.netrc": { kind: "file", links: 2 } };

  test("is reported, since those are not hidden", () => {
    expect(planFor(base, netrc).warnings).toEqual([
      "/home/u/.netrc is hidden, but the file has other names (hard links) that are not.",
    ]);
  });

  test.each<[string, Tree]>([
    ["a directory, which always has several", { "/home/u/.ssh": { kind: "directory", links: 3 } }],
    ["a file that is not hidden", { "/home/u/notes": { kind: "file", links: 2 } }],
    ["a file that has no other name", { "/home/u/.netrc": { kind: "file", links: 1 } }],
  ])("is not %s", (_, tree) => {
    expect(planFor(base, tree).warnings).toEqual([]);
  });

  test("is not reported where its directory is hidden, too", () => {
    const rules = [said("flag", "exclude ~"), said("flag", "exclude ~/.netrc")];
    const request = { cwd: "/srv/project" };
    expect(planFor(rules, { ...netrc, "/srv/project": "directory" }, { request }).warnings).toEqual([]);
  });
});

describe("a flag that grants and loses", () => {
  const tree: Tree = { "/home/u/data/a": "file" };

  test.each([
    ["rw", "ro"],
    ["rw", "exclude"],
    ["ro", "exclude"],
  ])("is told so: --%s against %s", (flag, other) => {
    const rules = [said("flag", `${flag} ~/data`), said("global", `${other} ~/data`)];
    expect(planFor(rules, tree).warnings).toEqual([
      `${flag} ~/data (--${flag}, flag) has no effect on /home/u/data: ${other} ~/data (global, global) holds.`,
    ]);
  });

  test.each([
    ["it says the same", [said("flag", "rw ~/data"), said("flag", "rw ~/data")]],
    ["it takes away and an exact rule holds", [said("flag", "exclude ~/dat*"), said("global", "ro ~/data")]],
    ["it is no flag", [said("global", "rw ~/data"), said("flag", "ro ~/data")]],
    ["it wins", [said("flag", "ro ~/data"), said("global", "rw ~/data")]],
  ])("is not told so where %s", (_, rules) => {
    expect(planFor(rules, tree).warnings).toEqual([]);
  });
});

describe("a rule that hides nothing", () => {
  test.each([
    ["no such path", "exclude ~/.secerts"],
    ["a pattern that finds nothing", "exclude **/.envv"],
  ])("is told so, since it may be misspelt: %s", (_, line) => {
    expect(planFor([...base, said("flag", line)]).warnings).toEqual([
      `${line} (--exclude, flag) hides nothing: there is no such path.`,
    ]);
  });

  test.each([
    ["a preset's, which is for every machine", said("default", "exclude ~/.secrets")],
    ["one that grants", said("flag", "rw ~/.secrets")],
    ["one that hides something", said("flag", "exclude ~/data")],
  ])("is not %s", (_, rule) => {
    expect(planFor([...base, rule], { "/home/u/data": "directory" }).warnings).toEqual([]);
  });
});

/** Where bubblewrap mounts by path, it follows links. */
const byPath = { request: { acceptedGaps: ["mounts-by-path"] } };

describe("a link to something protected, in a writable directory,", () => {
  const link = `${cwd}/settings`;
  const tree: Tree = { [link]: `-> ${cwd}/real`, [`${cwd}/real`]: "file", "/home/u/real": "file" };
  const warning = `${link} is a link: what it leads to is protected, but the link itself can be replaced inside.`;

  test.each(["ro", "exclude"])("is held, or where it cannot be, reported; and watched: %s", (access) => {
    const rules = [...base, said("flag", `${access} settings`)];
    const held = planFor(rules, tree);
    const hold = { kind: "hold", target: link, identity: identityOf(link), why: "it leads to something protected" };
    expect(held.operations).toContainEqual(hold);
    const told = planFor(rules, tree, byPath);
    expect(told.operations).not.toContainEqual(hold);
    expect([held.warnings, told.warnings]).toEqual([[], [warning]]);
    for (const { links } of [held, told]) expect(links).toEqual({ [link]: `${cwd}/real` });
  });

  test("is reported once, also where its rule is beaten", () => {
    const rules = [said("global", "ro settings"), said("project", "ro settings"), said("flag", "exclude real")];
    expect(planFor([...base, ...rules], tree, byPath).warnings).toEqual([warning]);
  });

  test.each<[string, Rule, Tree]>([
    ["its rule protects nothing", said("flag", "rw settings"), tree],
    ["its directory is read-only", said("flag", "ro ~/link"), { ...tree, "/home/u/link": "-> /home/u/real" }],
    ["it is no link", said("flag", "ro settings"), { [link]: "file" }],
    ["it leads nowhere", said("flag", "ro settings"), { [link]: "-> /nowhere" }],
  ])("is not reported where %s", (_, rule, given) => {
    const plan = planFor([...base, rule], given);
    expect(plan.warnings).toEqual([]);
    expect(plan.links).toEqual({});
  });
});

test("a link that leads nowhere is watched as such", () => {
  const link = `${cwd}/settings`;
  const nodes = { [link]: { kind: "link", identity: "1:2", links: 1 } } as const;
  const rules = [said("default", "rw ."), said("default", "ro settings", { own: "settings" })];
  const plan = planFor(rules, {}, { ...byPath, survey: { matches: { [cwd]: [cwd] }, missing: {}, nodes } });
  expect(plan.warnings).toHaveLength(1);
  expect(plan.links).toEqual({ [link]: "" });
});

describe("what git passes on the way to what it obeys", () => {
  const on = (name: string) => `${cwd}/${name}`;
  const tree: Tree = { [on("link")]: `-> ${on("real")}`, [on("real")]: "directory", [on("passed")]: "directory" };
  const steps = { [on("link")]: on("real"), [on("passed")]: on("passed"), [on("held")]: on("held"), "/home/u/x": "" };
  const git = repositoryAt(cwd, { steps, obeyed: [on("held/file")] });

  test("is held: a link by a mount of itself, a directory by one that can be written to", () => {
    const plan = planFor(base, { ...tree, [on("held/file")]: "file" }, { survey: { git } });
    const held = plan.operations.filter(({ why }) => why === "it leads to something protected");
    expect(held).toEqual([
      { kind: "hold", target: on("link"), identity: identityOf(on("link")), why: held[0]?.why },
      {
        kind: "bind",
        source: on("passed"),
        target: on("passed"),
        access: "rw",
        identity: identityOf(on("passed")),
        why: held[1]?.why,
      },
    ]);
    expect(plan.warnings).toEqual([]);
  });

  test("is held once, and what is not there is not held", () => {
    const inner = on("passed/link");
    const both = repositoryAt(cwd, { steps: { [inner]: on("real"), [on("passed")]: on("passed"), [on("gone")]: "" } });
    const plan = planFor(base, { ...tree, [inner]: `-> ${on("real")}` }, { survey: { git: both } });
    const held = plan.operations.filter(({ target }) => [inner, on("passed"), on("gone")].includes(target));
    expect(held.map(({ kind, target }) => [kind, target])).toEqual([
      ["bind", on("passed")],
      ["hold", inner],
    ]);
  });

  test("is reported where it cannot be held, and watched: a link, or a directory that no mount holds", () => {
    const plan = planFor(base, { ...tree, [on("held/file")]: "file" }, { ...byPath, survey: { git } });
    expect(plan.warnings).toEqual([
      `${on("link")} is a link: what it leads to is protected, but the link itself can be replaced inside.`,
      `${on("passed")} is on the way to what git obeys (a path goes on from it by ..), and can be replaced inside.`,
    ]);
    expect(plan.links).toEqual({ [on("link")]: on("real"), [on("passed")]: on("passed") });
  });
});

describe("an empty file in place of one that git would obey", () => {
  const absent = (path: string, kind: "file" | "directory") =>
    ({ path, placeholder: kind === "file" ? { kind, content: "" } : { kind } }) as const;

  test("is told of where git status shows it", () => {
    const found = [
      absent(`${cwd}/seen`, "file"),
      absent(`${cwd}/unseen`, "directory"),
      absent(`${cwd}/.git/unseen`, "file"),
      absent("/home/u/elsewhere", "file"),
    ];
    const plan = planFor(
      base,
      { [`${cwd}/.git`]: "directory" },
      { survey: { git: repositoryAt(cwd, { absent: found }) } },
    );
    expect(plan.warnings).toEqual([
      `${cwd}/seen does not exist, and git would obey it: an empty file stands there meanwhile, which git status shows unless it is ignored.`,
    ]);
  });
});

describe("a repository that lies elsewhere", () => {
  const elsewhere = (kind: GitLayout["entry"]["kind"], pointsBack: boolean) =>
    repositoryAt(cwd, {
      entry: { path: `${cwd}/.git`, kind },
      gitDir: kind === "directory" ? `${cwd}/.git` : "/home/u/main/.git",
      commonDir: "/home/u/main/.git",
      pointsBack,
    });

  test.each(["file", "link", "directory"] as const)(
    "and does not point back stays read-only, with a way out: by a %s",
    (kind) => {
      const survey = { git: elsewhere(kind, false) };
      const plan = planFor(base, { "/home/u/main/.git/refs": "directory" }, { survey });
      expect(accessInside(plan, "/home/u/main/.git/refs")).toBe("ro");
      expect(plan.warnings).toEqual([
        `${cwd}/.git leads to /home/u/main/.git, which does not point back, so it stays read-only. If it is right: --rw /home/u/main/.git`,
      ]);
    },
  );

  test("is nothing new where it points back", () => {
    const plan = planFor(base, { "/home/u/main/.git/refs": "directory" }, { survey: { git: elsewhere("file", true) } });
    expect(accessInside(plan, "/home/u/main/.git/refs")).toBe("rw");
    expect(plan.warnings).toEqual([]);
  });

  test.each([
    ["the working directory is a part of it", repositoryAt("/home/u")],
    ["it does not lie elsewhere", repositoryAt(cwd)],
    ["it lies in the working directory, whatever leads there", repositoryAt(cwd, { pointsBack: false })],
  ])("is nothing new where %s", (_, git) => {
    expect(planFor(base, {}, { survey: { git } }).warnings).toEqual([]);
  });
});

describe("a change of trust is announced:", () => {
  test("the engine's socket is handed in", () => {
    const [warning] = planFor(base, {}, { request: { dockerSocket: "/run/docker.sock" } }).warnings;
    expect(warning).toMatch(/^--docker hands \/run\/docker\.sock in: .* change of trust\.$/);
  });

  test("user namespaces stay available", () => {
    const [warning] = planFor(base, {}, { request: { nesting: true } }).warnings;
    expect(warning).toContain("sandbox.nesting leaves user namespaces available");
  });
});
