import { describe, expect, test } from "vitest";
import type { Operation, Plan } from "../../src/plan/plan.ts";
import { accessInside, canBeRenamed, mountOver } from "./mount-table.ts";
import { cwd, planFor, presetRules, said } from "./ordinary.ts";
import { identityOf, type Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");
const kept = "/home/u/.local/state/podbot/kept";

/** Operations in short, up to Podbot's own corner: `ro /a`, `rw /b from /c`, `tmpfs /d`. */
function ground(plan: Plan): readonly string[] {
  const corner = plan.operations.findIndex(({ target }) => target === "/run/podbot");
  return plan.operations.slice(0, corner).map(inShort);
}

function inShort(operation: Operation): string {
  if (operation.kind === "link") return `link ${operation.target} to ${operation.to}`;
  if (operation.kind !== "bind") return `${operation.kind} ${operation.target}`;
  const from = operation.source === operation.target ? "" : ` from ${operation.source}`;
  return `${operation.access} ${operation.target}${from}`;
}

const seals = (plan: Plan) => plan.operations.filter(({ kind }) => kind === "seal").map(({ target }) => target);

describe("the host's root", () => {
  test("is readable, with private places of the sandbox's own", () => {
    const plan = planFor([]);
    expect(ground(plan)).toEqual(["ro /", "dev /dev", "proc /proc", "tmpfs /tmp", "tmpfs /run"]);
    expect(plan.operations[0]).toMatchObject({ identity: identityOf("/") });
    expect(plan.operations[3]).toMatchObject({ mode: 0o1777 });
    expect(seals(plan)).toEqual(["/run/podbot"]);
    expect(plan.kept).toEqual([]);
  });
});

describe("places where root changes the kernel", () => {
  const tree: Tree = { "/proc/sys/kernel": "directory", "/proc/sysrq-trigger": "file" };
  const covered = (uid: number) =>
    planFor([], tree, { request: { uid } }).operations.filter(({ target }) => target.startsWith("/proc/"));

  test("are read-only for root, as far as they exist", () => {
    expect(covered(0)).toEqual(
      ["/proc/sys", "/proc/sysrq-trigger"].map((path) => ({
        kind: "bind",
        source: path,
        target: path,
        access: "ro",
        identity: identityOf(path),
        why: "root changes the kernel there",
      })),
    );
  });

  test("are closed to others anyway", () => {
    expect(covered(1000)).toEqual([]);
  });
});

describe("what the kernel tells of keys and of itself", () => {
  const tree: Tree = { "/proc/keys": "file", "/proc/key-users": "file", "/proc/slabinfo": "file" };
  const masked = (uid: number, nesting: boolean) =>
    planFor([], tree, { request: { uid, nesting } })
      .operations.filter(({ kind }) => kind === "mask")
      .map(({ target }) => target);

  test("is masked, more of it for root", () => {
    expect(masked(1000, false)).toEqual(["/proc/key-users", "/proc/keys"]);
    expect(masked(0, false)).toEqual(["/proc/key-users", "/proc/keys", "/proc/slabinfo"]);
  });

  test("is not where sandboxes are built inside, which need a whole /proc", () => {
    expect([masked(1000, true), masked(0, true)]).toEqual([[], []]);
  });
});

describe("a minimal root", () => {
  const tree: Tree = {
    "/usr/bin": "directory",
    "/lib": "-> usr/lib",
    "/lib64": "directory",
    "/opt/secret": "file",
    "/var/lib": "directory",
    "/home/u/.ssh/id": "file",
    "/home/u/data/a": "file",
  };
  const plan = planFor([said("default", "rw ."), said("flag", "ro ~/data")], tree, { request: { root: "minimal" } });

  test("has programs and libraries, links as links, and a home of its own", () => {
    expect(ground(plan)).toEqual([
      "tmpfs /",
      "ro /etc",
      "link /lib to usr/lib",
      "ro /lib64",
      "ro /usr",
      "dev /dev",
      "proc /proc",
      "tmpfs /tmp",
      "tmpfs /run",
      `rw /home/u from ${kept}/home`,
      "ro /home/u/data",
      `rw ${cwd}`,
    ]);
    expect(plan.kept).toEqual([`${kept}/home`]);
    expect(plan.root).toBe("minimal");
  });

  test.each([
    ["/opt/secret", "exclude"],
    ["/var/lib", "exclude"],
    ["/home/u/.ssh/id", "exclude"],
    ["/home/u/data/a", "ro"],
    [`${cwd}/a`, "rw"],
    ["/usr/bin", "ro"],
  ])("shows %s as %s", (path, access) => {
    expect(accessInside(plan, path)).toBe(access);
  });

  test("takes no new entries once it is built", () => {
    expect(seals(plan)).toEqual(["/", "/run/podbot"]);
    const [root] = plan.operations.filter(({ kind }) => kind === "seal");
    expect(plan.operations.findLastIndex(({ kind }) => kind === "bind")).toBeLessThan(
      plan.operations.indexOf(root as Operation),
    );
  });

  test("is not mounted anew where it is readable already", () => {
    const again = planFor([said("flag", "ro /usr/bin")], tree, { request: { root: "minimal" } });
    expect(again.paths).toMatchObject([{ path: "/usr/bin", mounted: false }]);
  });

  test("without a listing is empty", () => {
    const empty = planFor([said("default", "rw .")], {}, { request: { root: "minimal" }, survey: { listings: {} } });
    expect(ground(empty)[1]).toBe("dev /dev");
  });
});

describe("a verdict", () => {
  test("is mounted with what it stood for and why", () => {
    const plan = planFor([said("flag", "rw ~/data")], { "/home/u/data": "directory" });
    expect(mountOver(plan, "/home/u/data")).toEqual({
      kind: "bind",
      source: "/home/u/data",
      target: "/home/u/data",
      access: "rw",
      identity: identityOf("/home/u/data"),
      why: "rw ~/data (--rw, flag)",
    });
    expect(plan.paths).toEqual([
      { path: "/home/u/data", access: "rw", rule: "~/data", layer: "flag", origin: "--rw", beaten: [], mounted: true },
    ]);
  });

  test("names the rules that it beat", () => {
    const rules = [said("global", "ro ~/data"), said("flag", "rw ~/data")];
    expect(planFor(rules, { "/home/u/data": "directory" }).paths[0]?.beaten).toEqual(["rw ~/data (--rw, flag)"]);
  });

  test.each([
    ["ro in what is readable", [said("flag", "ro /usr")], "/usr"],
    ["rw in what is writable", [said("default", "rw ."), said("flag", "rw src")], `${cwd}/src`],
    ["exclude in what is hidden", [said("flag", "exclude ~/data"), said("flag", "exclude ~/data/a")], "/home/u/data/a"],
    ["exclude in what is private", [said("flag", "exclude /tmp/a")], "/tmp/a"],
    ["a guard in what is readable", [said("podbot", "ro /usr/bin", { guard: true })], "/usr/bin"],
    [
      "a guard in what is hidden",
      [said("flag", "exclude ~/data"), said("default", "ro ~/data/a", { guard: true })],
      "/home/u/data/a",
    ],
    ["a guard in what is private", [said("default", "ro /tmp/a", { guard: true })], "/tmp/a"],
  ])("that changes nothing is not mounted: %s", (_, rules, path) => {
    const tree: Tree = { [`${cwd}/src`]: "directory", "/home/u/data/a": "file", "/tmp/a": "file" };
    const plan = planFor(rules, tree);
    expect(plan.paths.find((decision) => decision.path === path)?.mounted).toBe(false);
    expect(plan.operations.filter(({ target }) => target === path)).toEqual([]);
  });

  test("is not mounted over the mask of an outer sandbox, which is a file without a name", () => {
    const rules = [said("default", "exclude ~/.netrc"), said("default", "exclude ~/.pgpass")];
    const plan = planFor(
      rules,
      { "/home/u/.netrc": { kind: "file", links: 0 }, "/home/u/.pgpass": "file" },
      { request: { nested: true } },
    );
    expect(plan.paths.map(({ path, mounted }) => [path, mounted])).toEqual([
      ["/home/u/.netrc", false],
      ["/home/u/.pgpass", true],
    ]);
  });

  test("of what the survey did not see has nothing to be compared with", () => {
    const plan = planFor([], {}, { survey: { nodes: { [cwd]: { kind: "directory", identity: "1:2", links: 2 } } } });
    expect(plan.operations.flatMap((operation) => (operation.kind === "bind" ? [operation.identity] : []))).toEqual([
      null,
      null,
      null,
    ]);
  });
});

describe("what is hidden", () => {
  test("is an empty directory that takes nothing, or a file that nobody may read", () => {
    const tree: Tree = { "/home/u/.ssh/id": "file", "/home/u/.netrc": "file", "/home/u/sock": "socket" };
    const plan = planFor(base, tree);
    expect(mountOver(plan, "/home/u/.ssh/id")).toMatchObject({ kind: "tmpfs", target: "/home/u/.ssh", mode: 0o755 });
    expect(mountOver(plan, "/home/u/.netrc")?.kind).toBe("mask");
    expect(mountOver(plan, "/home/u/sock")?.kind).toBe("mask");
    expect(seals(plan)).toEqual(["/home/u/.ssh", "/run/podbot"]);
  });

  test("is sealed only after all that lies in it is mounted", () => {
    const rules = [said("flag", "exclude ~/data"), said("flag", "rw ~/data/a/b")];
    const plan = planFor(rules, { "/home/u/data/a/b": "directory" });
    const at = (kind: string, target: string) =>
      plan.operations.findIndex((operation) => operation.kind === kind && operation.target === target);
    expect(at("tmpfs", "/home/u/data")).toBeLessThan(at("bind", "/home/u/data/a/b"));
    expect(at("bind", "/home/u/data/a/b")).toBeLessThan(at("seal", "/home/u/data"));
  });
});

describe("a protected path in a writable directory", () => {
  const tree: Tree = { [`${cwd}/a/b/c/protected`]: "file", [`${cwd}/a/x`]: "file", [`${cwd}/a/b/also`]: "file" };

  test.each(["ro", "exclude"])("cannot be carried off by renaming a directory above it: %s", (access) => {
    const plan = planFor([...base, said("flag", `${access} a/b/c/protected`)], tree);
    for (const name of ["a", "a/b", "a/b/c", "a/b/c/protected"])
      expect(canBeRenamed(plan, `${cwd}/${name}`)).toBe(false);
    for (const name of ["a/x", "a/b/also"]) {
      expect(canBeRenamed(plan, `${cwd}/${name}`)).toBe(true);
      expect(accessInside(plan, `${cwd}/${name}`)).toBe("rw");
    }
  });

  test("has each directory above it mounted once, with what it stood for", () => {
    const plan = planFor([...base, said("flag", "ro a/b/c/protected"), said("flag", "ro a/b/also")], tree);
    const above = plan.operations.filter(({ why }) => why.startsWith("cannot be renamed: it holds"));
    expect(above).toEqual(
      ["a", "a/b", "a/b/c"].map((name) =>
        expect.objectContaining({ access: "rw", target: `${cwd}/${name}`, identity: identityOf(`${cwd}/${name}`) }),
      ),
    );
  });

  test("needs no more than the directories below the nearest mount", () => {
    const rules = [...base, said("flag", "ro a"), said("flag", "rw a/b"), said("flag", "ro a/b/c/protected")];
    const plan = planFor(rules, tree);
    expect(ground(plan).slice(-4)).toEqual([
      `ro ${cwd}/a`,
      `rw ${cwd}/a/b`,
      `rw ${cwd}/a/b/c`,
      `ro ${cwd}/a/b/c/protected`,
    ]);
  });

  test("whose directory the survey did not see has nothing to be compared with", () => {
    const rules = [...base, said("flag", "ro a/b")];
    const plan = planFor(rules, {}, { survey: { matches: { [cwd]: [cwd], [`${cwd}/a/b`]: [`${cwd}/a/b`] } } });
    expect(mountOver(plan, `${cwd}/a`)).toMatchObject({ access: "rw", identity: null });
  });
});

describe("a directory that begins empty and is gone afterwards", () => {
  const fresh = said("default", "rw ~/.agent/data", { fresh: { program: "agent" } });
  const covering = said("default", "rw ~/.agent/data", { fresh: { program: "agent", covers: true } });
  const readable = said("default", "ro ~");
  const run = { request: { command: ["/opt/bin/agent", "-p"] as const } };

  test("takes the place of the host's where it is told to, whatever is run, and shows of it what rules name", () => {
    const tree: Tree = {
      "/home/u/.agent/data/state.db": "file",
      "/home/u/.agent/data/settings": "file",
      "/home/u/.agent/data/log": "directory",
    };
    const named = [said("default", "ro ~/.agent/data/settings"), said("default", "rw ~/.agent/data/log")];
    const plan = planFor([readable, covering, ...named], tree);
    expect(ground(plan).slice(5)).toEqual([
      "tmpfs /home/u/.agent/data",
      "rw /home/u/.agent/data/log",
      "ro /home/u/.agent/data/settings",
    ]);
    expect(plan.operations.find(({ target }) => target === "/home/u/.agent/data")).toMatchObject({ mode: 0o700 });
    expect(seals(plan)).not.toContain("/home/u/.agent/data");
    expect(accessInside(plan, "/home/u/.agent/data/state.db")).toBe("exclude");
    expect(plan.kept).toEqual([]);
  });

  test("leaves the host's as it is where it is only for a missing one", () => {
    const plan = planFor([readable, fresh], { "/home/u/.agent/data/file": "file" }, run);
    expect(ground(plan).slice(5)).toEqual([]);
    expect(accessInside(plan, "/home/u/.agent/data/file")).toBe("ro");
  });

  test("is made for its program where the host has none, with all that is above it", () => {
    const tree: Tree = { "/home/u/.bashrc": "file" };
    expect(ground(planFor([readable, fresh], tree, run)).slice(5)).toEqual([
      "tmpfs /home/u",
      "ro /home/u/.bashrc",
      "ro /home/u/project",
      "tmpfs /home/u/.agent/data",
    ]);
    for (const rule of [fresh, covering]) expect(ground(planFor([readable, rule], tree)).slice(5)).toEqual([]);
  });

  test("finds room beside another, whose directory is built anew within one that is, too", () => {
    const tree: Tree = { "/home/u/.a/kept": "file" };
    const shallow = said("default", "rw ~/.a/b", { fresh: { program: "agent" } });
    const deep = said("default", "rw ~/.c/d/e", { fresh: { program: "agent" } });
    expect(ground(planFor([readable, deep, shallow], tree, run)).slice(5)).toEqual([
      "tmpfs /home/u",
      "ro /home/u/project",
      "tmpfs /home/u/.a",
      "ro /home/u/.a/kept",
      "tmpfs /home/u/.a/b",
      "tmpfs /home/u/.c/d/e",
    ]);
  });

  test("opens nothing of the host's, and so may lie in what Podbot protects for itself", () => {
    const held = said("podbot", "ro ~/.agent/podbot", { guard: true, placeholder: { kind: "directory" } });
    expect(ground(planFor([readable, held, fresh], {}, run))).toContain("tmpfs /home/u/.agent/data");
  });

  test("is left out where the directory around it is writable", () => {
    const plan = planFor([said("flag", "rw ~/.agent"), covering], { "/home/u/.agent/data/file": "file" });
    expect(accessInside(plan, "/home/u/.agent/data/file")).toBe("rw");
  });

  test("has copies of files in it, which are mounted read-only where it is left out", () => {
    const tree: Tree = { "/home/u/.agent/data/settings": "file" };
    const copied = said("default", "ro ~/.agent/data/settings", { copied: true });
    const plan = planFor([readable, covering, copied], tree);
    expect(plan.operations.find(({ target }) => target === "/home/u/.agent/data/settings")).toEqual({
      kind: "copy",
      source: "/home/u/.agent/data/settings",
      target: "/home/u/.agent/data/settings",
      identity: expect.any(String),
      why: "ro ~/.agent/data/settings (default, default)",
    });
    const opened = planFor([said("flag", "rw ~/.agent"), covering, copied], tree);
    expect(accessInside(opened, "/home/u/.agent/data/settings")).toBe("ro");
    const unseen = planFor(
      [readable, covering, copied],
      {},
      {
        survey: { matches: { "/home/u/.agent/data": ["/home/u/.agent/data"], [copied.pattern]: [copied.pattern] } },
      },
    );
    expect(unseen.operations.find(({ kind }) => kind === "copy")).toMatchObject({ identity: null });
  });
});

describe("a directory of the sandbox's own", () => {
  const caches = presetRules("!@all", "@base", "@caches");

  test("lies over the host's and is writable", () => {
    const plan = planFor(caches, { "/home/u/.cache/pip": "directory" });
    expect(mountOver(plan, "/home/u/.cache/pip")).toEqual({
      kind: "bind",
      source: `${kept}/cache`,
      target: "/home/u/.cache",
      access: "rw",
      identity: null,
      why: "rw ~/.cache (preset @caches, default)",
    });
    expect(accessInside(plan, "/home/u/.cache/pip")).toBe("exclude");
    expect(plan.kept).toContain(`${kept}/cache`);
  });

  test.each(["rw", "exclude"] as const)("is left out where the directory around it is %s", (access) => {
    const rules = [said("flag", `${access} ~/.cargo`), said("default", "rw ~/.cargo/git", { own: "cargo-git" })];
    const plan = planFor(rules, { "/home/u/.cargo/git": "directory" });
    expect(plan.kept).toEqual([]);
    expect(accessInside(plan, "/home/u/.cargo/git")).toBe(access);
  });

  test("that is missing on the host gets its place in a directory that is built anew around it", () => {
    const tree: Tree = {
      "/home/u/.bashrc": "file",
      "/home/u/.profile": "-> .bashrc",
      "/home/u/.ssh/id": "file",
      "/home/u/.npm/x": "file",
      "/home/u/code/a": "file",
    };
    const plan = planFor(caches, tree);
    expect(ground(plan).slice(5)).toEqual([
      "tmpfs /home/u",
      "ro /home/u/.bashrc",
      "ro /home/u/.npm",
      "link /home/u/.profile to .bashrc",
      "ro /home/u/.ssh",
      "ro /home/u/code",
      "ro /home/u/project",
      `rw /home/u/.cache from ${kept}/cache`,
      `rw /home/u/.npm from ${kept}/npm`,
      "tmpfs /home/u/.ssh",
      `rw ${cwd}`,
    ]);
    expect(seals(plan)).toEqual(["/home/u", "/home/u/.ssh", "/run/podbot"]);
    for (const path of ["/home/u/.bashrc", "/home/u/code/a"]) expect(accessInside(plan, path)).toBe("ro");
    expect(accessInside(plan, "/home/u/.ssh/id")).toBe("exclude");
    expect(accessInside(plan, `${cwd}/a`)).toBe("rw");
  });

  test("leaves what was mounted before on top of the directory that is built anew", () => {
    const tree: Tree = { "/home/u/.aws/credentials": "file", "/home/u/.bashrc": "file" };
    const plan = planFor(caches, tree);
    expect(accessInside(plan, "/home/u/.aws/credentials")).toBe("exclude");
    expect(ground(plan).slice(5)).toEqual([
      "tmpfs /home/u",
      "ro /home/u/.bashrc",
      "ro /home/u/project",
      "tmpfs /home/u/.aws",
      `rw /home/u/.cache from ${kept}/cache`,
      `rw /home/u/.npm from ${kept}/npm`,
      `rw ${cwd}`,
    ]);
  });

  test("shares that directory with its neighbours", () => {
    const plan = planFor(caches);
    expect(plan.operations.filter(({ kind, target }) => kind === "tmpfs" && target === "/home/u")).toHaveLength(1);
    expect(plan.kept).toEqual([`${kept}/cache`, `${kept}/npm`]);
  });

  test("is left out where not even its parent exists", () => {
    const plan = planFor(caches, {
      "/home/u/.cache": "directory",
      "/home/u/.npm": "directory",
      "/home/u/go": "directory",
    });
    expect(plan.kept).toEqual([`${kept}/cache`, `${kept}/npm`, `${kept}/go-pkg`]);
  });

  test.each([
    [200, true],
    [201, false],
  ])("is not worth building a directory anew that has %i entries: %s", (count, worthIt) => {
    const entries = Array.from({ length: count - 1 }, (_, at) => [`/home/u/file-${at}`, "file"] as const);
    const plan = planFor(caches, Object.fromEntries(entries));
    expect(plan.kept.includes(`${kept}/cache`)).toBe(worthIt);
    expect(ground(plan).includes("tmpfs /home/u")).toBe(worthIt);
  });

  test("is left out where the whole home is the sandbox's own", () => {
    const plan = planFor([said("default", "rw ~/.cache", { own: "cache" })], {}, { request: { root: "minimal" } });
    expect(plan.kept).toEqual([`${kept}/home`]);
    expect(plan.paths).toMatchObject([{ path: "/home/u/.cache", mounted: false }]);
  });

  test("has its place in the root, too", () => {
    const request = { home: "/", keptDirectory: "/state" };
    const rules = [said("default", "rw /.cache", { own: "cache" }), said("default", "rw .")];
    const plan = planFor(rules, {}, { request });
    expect(ground(plan)).toEqual([
      "ro /",
      "tmpfs /",
      "ro /etc",
      "ro /home",
      "ro /opt",
      "ro /usr",
      "dev /dev",
      "proc /proc",
      "tmpfs /tmp",
      "tmpfs /run",
      "rw /.cache from /state/cache",
      `rw ${cwd}`,
    ]);
    expect(seals(plan)).toEqual(["/", "/run/podbot"]);
  });

  test("has its place in a directory of which the survey has no list", () => {
    const plan = planFor(caches, {}, { survey: { listings: {} } });
    expect(ground(plan)).toContain("tmpfs /home/u");
  });
});
