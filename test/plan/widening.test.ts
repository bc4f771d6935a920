// @module-tag security
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import type { Rule } from "../../src/policy/rule.ts";
import { failure } from "../failure.ts";
import { accessInside } from "./mount-table.ts";
import { cwd, planFor, presetRules, said } from "./ordinary.ts";
import type { Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");
const untrusted = (line: string): Rule => said("project", line, { trusted: false, origin: "/p/.podbot/config.toml" });

describe("the project's configuration, untrusted,", () => {
  const tree: Tree = {
    "/home/u/data/a": "file",
    "/home/u/.ssh/id": "file",
    [`${cwd}/src`]: "directory",
    [`${cwd}/.env`]: "file",
  };

  test.each([
    ["ro src", `${cwd}/src`, "ro"],
    ["exclude src", `${cwd}/src`, "exclude"],
    ["exclude ~/data", "/home/u/data/a", "exclude"],
    ["ro ~/data", "/home/u/data/a", "ro"],
    ["rw src", `${cwd}/src`, "rw"],
    ["exclude *", `${cwd}/src`, "exclude"],
    ["rw ~/none", "/home/u/none", "ro"],
    ["rw ~/.ssh", "/home/u/.ssh/id", "exclude"],
  ] as const)("may say %s", (line, path, access) => {
    expect(accessInside(planFor([...base, untrusted(line)], tree), path)).toBe(access);
  });

  test.each([
    ["rw ~/data", [], "/home/u/data"],
    ["rw ~/data/a", [], "/home/u/data/a"],
    ["rw /usr", [], "/usr"],
    ["ro ~/.ssh/id", [], "/home/u/.ssh/id"],
    ["ro ~/.ssh/*", [], "/home/u/.ssh/id"],
    ["rw src", [said("global", "ro sr?")], `${cwd}/src`],
    ["ro .env", [said("flag", "exclude .e*")], `${cwd}/.env`],
  ])("may not say %s", (line, others, path) => {
    const error = failure(PolicyError, () => planFor([...base, ...others, untrusted(line)], tree));
    expect(error.code).toBe("CONFIG_UNTRUSTED");
    expect(error.message).toContain(`  /p/.podbot/config.toml: ${line} opens ${path}`);
    expect(error.details).toEqual({ paths: [path] });
    expect(error.hint).toContain("podbot trust");
  });

  test("is told of everything that it may not say, at once", () => {
    const error = failure(PolicyError, () =>
      planFor([...base, untrusted("rw ~/data"), untrusted("rw src"), untrusted("ro ~/.ssh/id")], tree),
    );
    expect(error.details).toEqual({ paths: ["/home/u/data", "/home/u/.ssh/id"] });
  });

  test("may say all of it once it is trusted", () => {
    const trusted = (line: string) => said("project", line);
    const plan = planFor([...base, trusted("rw ~/data"), trusted("ro ~/.ssh/id")], tree);
    expect(accessInside(plan, "/home/u/data/a")).toBe("rw");
    expect(accessInside(plan, "/home/u/.ssh/id")).toBe("ro");
  });
});

describe("the project's configuration, untrusted, may not open what is private inside:", () => {
  const refused = (call: () => unknown) => expect(failure(PolicyError, call).code).toBe("CONFIG_UNTRUSTED");

  test("what lies in /tmp", () => {
    refused(() => planFor([...base, untrusted("ro /tmp/tmux-1000")], { "/tmp/tmux-1000/default": "socket" }));
  });

  test.each(["ro ~/.ssh", "ro /opt/podbot", "rw ~/.cache"])("what a minimal root leaves out, by %s", (line) => {
    const tree: Tree = { "/home/u/.ssh/id": "file", "/home/u/.cache": "directory" };
    refused(() => planFor([said("default", "rw ."), untrusted(line)], tree, { request: { root: "minimal" } }));
  });

  test("though what a minimal root shows may be named", () => {
    const rules = [said("default", "rw ."), untrusted("ro /usr/bin"), untrusted("ro src")];
    const plan = planFor(rules, { [`${cwd}/src`]: "directory" }, { request: { root: "minimal" } });
    expect(accessInside(plan, `${cwd}/src`)).toBe("ro");
  });

  const caches: Tree = { "/home/u/.cache/pip": "directory", "/home/u/.npm": "directory" };

  test.each(["rw ~/.cache", "ro ~/.cache", "rw ~/.cache/pip"])(
    "the host's cache below the sandbox's own, by %s",
    (line) => refused(() => planFor([...presetRules(), untrusted(line)], caches)),
  );

  test("though it may hide the sandbox's own", () => {
    const plan = planFor([...presetRules(), untrusted("exclude ~/.cache")], caches);
    expect(accessInside(plan, "/home/u/.cache/pip")).toBe("exclude");
    expect(plan.kept.some((path) => path.endsWith("/cache"))).toBe(false);
  });
});
