import { describe, expect, test } from "vitest";
import type { Plan } from "../../src/plan/plan.ts";
import { describeCommand } from "../../src/plan/wrappers.ts";
import type { CommandRule } from "../../src/policy/commands.ts";
import type { Survey, Target } from "../../src/survey/survey.ts";
import { mountOver } from "./mount-table.ts";
import { planFor, said } from "./ordinary.ts";
import { identityOf, type Tree } from "./tree.ts";

const deny = (name: string): CommandRule => ({ kind: "deny", name });
const replace = (name: string): CommandRule => ({ kind: "script", name, script: `/scripts/${name}` });
const git: CommandRule = { kind: "preset", name: "git", preset: "@git" };
const target = (path: string, around: string | null = null): Target => ({
  path,
  identity: identityOf(path),
  package: around === null ? null : { path: around, identity: identityOf(around) },
});
const script = (name: string, interpreter: string, interpreterArgument = "") => ({
  path: `/scripts/${name}`,
  identity: identityOf(`/scripts/${name}`),
  interpreter,
  interpreterArgument,
});

function wrapped(commands: readonly CommandRule[], survey: Partial<Survey>, tree: Tree = {}): Plan {
  return planFor(
    [said("flag", "exclude ~/hidden")],
    { "/home/u/hidden": "directory", ...tree },
    { request: { commands }, survey },
  );
}

/** The rows of the shim's table after its first, which is for `podbot` itself. */
function rows(plan: Plan): readonly (readonly string[])[] {
  const table = plan.operations.find(({ target: path }) => path === "/run/podbot/commands");
  const words = table?.kind === "file" ? table.content.split("\0").slice(7, -1) : [];
  return Array.from({ length: words.length / 7 }, (_, at) => words.slice(at * 7, at * 7 + 7));
}

/** What is mounted, as `target from source`. */
function mounts(plan: Plan): readonly string[] {
  return plan.operations.flatMap((operation) =>
    operation.kind === "bind" && operation.source !== operation.target && !/(enter|bin\/podbot)$/.test(operation.target)
      ? [`${operation.target} from ${operation.source}`]
      : [],
  );
}

describe("a blocked command", () => {
  const plan = wrapped([deny("curl")], { targets: { curl: [target("/usr/bin/curl"), target("/opt/bin/curl")] } });

  test("has the shim in place of every program of that name, and the real ones nowhere", () => {
    expect(mounts(plan)).toEqual(["/usr/bin/curl from /opt/podbot/shim", "/opt/bin/curl from /opt/podbot/shim"]);
    expect(rows(plan)).toEqual([
      ["/usr/bin/curl", "curl", "deny", "", "", "", ""],
      ["/opt/bin/curl", "curl", "deny", "", "", "", ""],
    ]);
    expect(mountOver(plan, "/usr/bin/curl")).toMatchObject({
      access: "ro",
      identity: identityOf("/opt/podbot/shim"),
      why: "wrapped command",
    });
  });

  test("is told of with all its programs", () => {
    expect(plan.commands).toEqual([
      { command: "curl", rule: "curl is blocked", targets: ["/usr/bin/curl", "/opt/bin/curl"] },
    ]);
  });

  test("leaves its program to the other names that this one answers to", () => {
    const busybox = wrapped([deny("wget")], { targets: { wget: [target("/usr/bin/busybox")] } });
    expect(rows(busybox)).toEqual([["/usr/bin/busybox", "wget", "deny", "/run/podbot/real/wget", "", "", ""]]);
    expect(mounts(busybox)).toEqual([
      "/run/podbot/real/wget from /usr/bin/busybox",
      "/usr/bin/busybox from /opt/podbot/shim",
    ]);
  });

  test("shares its program with another that is blocked, too", () => {
    const plan = wrapped([deny("nc"), deny("wget")], {
      targets: { nc: [target("/usr/bin/busybox")], wget: [target("/usr/bin/busybox")] },
    });
    expect(rows(plan).map(([path, command, , real]) => [path, command, real])).toEqual([
      ["/usr/bin/busybox", "nc", "/run/podbot/real/wget"],
      ["/usr/bin/busybox", "wget", "/run/podbot/real/wget"],
    ]);
    expect(mounts(plan)).toEqual([
      "/run/podbot/real/wget from /usr/bin/busybox",
      "/usr/bin/busybox from /opt/podbot/shim",
    ]);
  });

  test("that is not there is no failure", () => {
    for (const targets of [{}, { curl: [] }]) {
      const absent = wrapped([deny("curl")], { targets });
      expect(absent.commands).toEqual([{ command: "curl", rule: "curl is blocked", targets: [] }]);
      expect(mounts(absent)).toEqual([]);
    }
  });

  test("that cannot be seen inside anyway is left alone", () => {
    const hidden = wrapped([deny("curl")], { targets: { curl: [target("/home/u/hidden/curl"), target("/tmp/curl")] } });
    expect(mounts(hidden)).toEqual([]);
    expect(hidden.commands[0]?.targets).toEqual([]);
  });
});

describe("git under its preset", () => {
  test("has the shim in place of each copy, and each copy in Podbot's corner", () => {
    const plan = wrapped([git], { targets: { git: [target("/usr/bin/git"), target("/usr/lib/git-core/git")] } });
    expect(mounts(plan)).toEqual([
      "/run/podbot/real/git from /usr/bin/git",
      "/run/podbot/copies/1/git from /usr/lib/git-core/git",
      "/usr/bin/git from /opt/podbot/shim",
      "/usr/lib/git-core/git from /opt/podbot/shim",
    ]);
    expect(rows(plan)).toEqual([
      ["/usr/bin/git", "git", "git", "/run/podbot/real/git", "", "", ""],
      ["/usr/lib/git-core/git", "git", "git", "/run/podbot/copies/1/git", "", "", ""],
    ]);
  });
});

describe("a command that is replaced by a script", () => {
  const npm = target("/usr/lib/node_modules/npm/bin/npm-cli.js", "/usr/lib/node_modules/npm");

  test("gets the script, its interpreter and the real program", () => {
    const plan = wrapped([replace("make")], {
      targets: { make: [target("/usr/bin/make")] },
      scripts: { make: script("make", "/usr/bin/dash", "-eu") },
    });
    expect(mounts(plan)).toEqual([
      "/run/podbot/wrappers/make from /scripts/make",
      "/run/podbot/real/make from /usr/bin/make",
      "/usr/bin/make from /opt/podbot/shim",
    ]);
    expect(rows(plan)).toEqual([
      ["/usr/bin/make", "make", "script", "/run/podbot/real/make", "/usr/bin/dash", "-eu", "/run/podbot/wrappers/make"],
    ]);
    expect(mountOver(plan, "/run/podbot/wrappers/make")).toMatchObject({
      access: "ro",
      identity: identityOf("/scripts/make"),
      why: "make is replaced by /scripts/make",
    });
    expect(mountOver(plan, "/run/podbot/real/make")).toMatchObject({
      access: "ro",
      identity: identityOf("/usr/bin/make"),
      why: "the real make",
    });
  });

  test("has the package around the real program with it, since that looks for its parts there", () => {
    const plan = wrapped([replace("npm")], {
      targets: { npm: [npm] },
      scripts: { npm: script("npm", "/usr/bin/dash") },
    });
    expect(mounts(plan)).toContain("/run/podbot/real/npm from /usr/lib/node_modules/npm");
    expect(rows(plan)[0]?.[3]).toBe("/run/podbot/real/npm/bin/npm-cli.js");
    expect(mountOver(plan, "/run/podbot/real/npm")).toMatchObject({
      identity: identityOf("/usr/lib/node_modules/npm"),
    });
  });

  test.each<[string, string, string]>([
    ["holds something hidden", "/home/u", "/home/u/tool.js"],
    ["has rules of its own in it", "/opt/tools", "/opt/tools/tool.js"],
  ])("goes without the package around its program where that %s", (_, around, program) => {
    const request = { commands: [replace("tool")] };
    const survey = {
      targets: { tool: [target(program, around)] },
      scripts: { tool: script("tool", "/usr/bin/dash") },
    };
    const plan = planFor(
      [said("flag", "exclude /opt/tools/secret")],
      { "/opt/tools/secret": "file" },
      { request, survey },
    );
    expect(mounts(plan)).toContain(`/run/podbot/real/tool from ${program}`);
    expect(rows(plan)[0]?.[3]).toBe("/run/podbot/real/tool");
  });

  test("is run by the real interpreter where that is wrapped itself", () => {
    const plan = wrapped([replace("bash"), replace("make")], {
      targets: { bash: [target("/usr/bin/bash")], make: [target("/usr/bin/make")] },
      scripts: { bash: script("bash", "/usr/bin/bash"), make: script("make", "/usr/bin/bash") },
    });
    expect(rows(plan).map(([, command, , , interpreter]) => [command, interpreter])).toEqual([
      ["bash", "/run/podbot/real/bash"],
      ["make", "/run/podbot/real/bash"],
    ]);
  });

  test("is run by the real interpreter where that is blocked", () => {
    const plan = wrapped([deny("bash"), replace("make")], {
      targets: { bash: [target("/usr/bin/bash")], make: [target("/usr/bin/make")] },
      scripts: { make: script("make", "/usr/bin/bash") },
    });
    expect(rows(plan).at(-1)?.[4]).toBe("/run/podbot/real/bash");
    expect(mounts(plan)).toContain("/run/podbot/real/bash from /usr/bin/bash");
  });

  test("that is not there needs no script", () => {
    const plan = wrapped([replace("make")], {
      targets: { make: [] },
      scripts: { make: script("make", "/usr/bin/dash") },
    });
    expect(mounts(plan)).toEqual([]);
    expect(plan.commands).toEqual([{ command: "make", rule: "make is replaced by /scripts/make", targets: [] }]);
  });
});

test("every program that the table names in Podbot's corner is mounted there", () => {
  const plan = wrapped([deny("bash"), deny("wget"), git, replace("make"), replace("npm")], {
    targets: {
      bash: [target("/usr/bin/bash"), target("/opt/bin/bash")],
      git: [target("/usr/bin/git"), target("/usr/lib/git-core/git")],
      make: [target("/usr/bin/make")],
      npm: [target("/usr/lib/npm/bin/npm.js", "/usr/lib/npm")],
      wget: [target("/usr/bin/busybox")],
    },
    scripts: { make: script("make", "/usr/bin/bash"), npm: script("npm", "/opt/bin/bash") },
  });
  const named = rows(plan).flatMap(([, , , real, interpreter, , path]) => [real, interpreter, path]);
  const inCorner = named.filter((path) => path?.startsWith("/run/podbot/")) as string[];
  expect(inCorner).toHaveLength(11);
  for (const path of inCorner) expect(mountOver(plan, path), path).toMatchObject({ kind: "bind" });
});

test.each([
  [deny("rm"), "rm is blocked"],
  [git, "git is guarded by @git"],
  [replace("npm"), "npm is replaced by /scripts/npm"],
])("a rule in words: %j", (command, expected) => {
  expect(describeCommand(command)).toBe(expected);
});
