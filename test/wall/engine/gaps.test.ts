import { describe, expect, test } from "vitest";
import type { ContainerWishes } from "../../../src/plan/container.ts";
import type { Request } from "../../../src/plan/request.ts";
import type { Rule } from "../../../src/policy/rule.ts";
import { engineExtras, findEngineGaps } from "../../../src/wall/engine/gaps.ts";
import {
  allowlist,
  type ContainerChange,
  cwd,
  imageRules,
  planFor,
  planInImage,
  said,
  unlimited,
} from "../../plan/ordinary.ts";

const here = { arch: "x64", uid: 1000 };
const docker = { flavour: "docker", rootless: false } as const;
const weak = { enforces: { memory: false, cpus: true, pids: false } };
const limits = { ...unlimited, mode: "require", memoryMb: 64, cpus: 1, pids: 10 } as const;
const curl = { commands: [{ kind: "deny", name: "curl" }] } as const;

function gaps(more: ContainerChange = {}, machine = here, rules: readonly Rule[] = []) {
  return findEngineGaps(planInImage(rules, {}, more), machine);
}

describe("a gap of an engine", () => {
  const cases: readonly [string, ContainerChange, readonly string[]][] = [
    ["there is none with a rootless Podman of this machine", {}, []],
    ["there is none with Docker", { engine: docker }, []],
    ["an engine elsewhere", { engine: { local: false } }, ["remote-engine"]],
    ["one that maps users", { engine: { ...docker, remapped: true } }, ["userns-remap"]],
    ["capabilities outside a user namespace", { engine: docker, wishes: { inner: true } }, ["inner-capabilities"]],
    ["a rootful Podman's too", { engine: { rootless: false }, wishes: { inner: true } }, ["inner-capabilities"]],
    ["not inside one: a rootless Docker's", { engine: { ...docker, rootless: true }, wishes: { inner: true } }, []],
    ["nor a rootless Podman's", { wishes: { inner: true } }, []],
    ["nor where there are none", { engine: { rootless: false } }, []],
    ["a privileged container is the owner's affair", { engine: docker, wishes: { privileged: true } }, []],
    ["rules for commands", { request: curl }, ["commands"]],
    ["limits that are required", { engine: weak, request: { limits } }, ["limits"]],
    ["limits that are enforced are none", { request: { limits } }, []],
    ["nor those that are not required", { engine: weak, request: { limits: { ...limits, mode: "best-effort" } } }, []],
    [
      "several at once",
      { engine: { ...weak, local: false }, request: { ...curl, limits } },
      ["remote-engine", "commands", "limits"],
    ],
    ["one that the owner accepts is none", { request: { ...curl, acceptedGaps: ["commands"] } }, []],
    ["accepting one accepts no other", { request: { ...curl, acceptedGaps: ["limits"] } }, ["commands"]],
  ];
  test.each(cases)("%s", (_, change, expected) => {
    expect(gaps(change).map(({ name }) => name)).toEqual(expected);
  });

  describe("is what containers inside could uncover:", () => {
    const tree = { [`${cwd}/docs`]: "directory", [`${cwd}/.env`]: "file", "/data": "directory" } as const;
    const base = imageRules("!@all", "@base");
    const found = (line: string | null, wishes: Partial<ContainerWishes>, request: Partial<Request> = {}) =>
      findEngineGaps(
        planInImage(line === null ? base : [...base, said("flag", line)], tree, { wishes, request }),
        here,
      ).map(({ name }) => name);

    test.each(["ro docs", "exclude docs", "exclude .env", "ro /data"])("%s", (line) => {
      expect(found(line, { inner: true })).toEqual(["inner-protection"]);
      expect(found(line, {})).toEqual([]);
      expect(found(line, { inner: true }, { acceptedGaps: ["inner-protection"] })).toEqual([]);
      expect(found(line, { inner: true }, { acceptedGaps: ["inner-capabilities"] })).toEqual(["inner-protection"]);
    });

    test.each([null, "rw docs", "rw /data", "exclude /etc/passwd"])("not %s, where nothing is covered", (line) => {
      expect(found(line, { inner: true })).toEqual([]);
    });
  });

  test.each<readonly [string, ContainerChange, number, readonly string[]]>([
    ["none with a rootless engine", {}, 1000, []],
    ["none for root", { engine: docker }, 0, []],
    ["a container of root's, for anybody else", { engine: { rootless: false } }, 1000, ["doors"]],
    ["none where Docker helps", { engine: docker }, 1000, []],
    ["one on another machine", { engine: { local: false } }, 0, ["remote-engine", "doors"]],
    ["a virtual machine", { engine: { runtime: "/usr/bin/kata-runtime" } }, 0, ["doors"]],
    ["one that may be", { wishes: { runtime: "krun" }, engine: docker }, 0, ["doors"]],
    ["none with crun", { engine: { runtime: "crun" } }, 0, []],
    ["none with what containerd calls runc", { engine: { runtime: "io.containerd.runc.v2" } }, 0, []],
    ["with gVisor it has to be tried", { engine: { runtime: "runsc-host" } }, 0, []],
  ])("of doors is %s", (_, change, uid, expected) => {
    const request = { ...change.request, network: allowlist };
    expect(gaps({ ...change, request }, { ...here, uid }).map(({ name }) => name)).toEqual(expected);
    // Without any, nothing of that matters.
    expect(gaps(change, { ...here, uid }).map(({ name }) => name)).toEqual(expected.filter((name) => name !== "doors"));
  });

  test("is a machine for which there is no filter", () => {
    expect(gaps({}, { ...here, arch: "riscv64" }).map(({ name }) => name)).toEqual(["seccomp"]);
    expect(gaps({}, { ...here, arch: "arm64" })).toEqual([]);
  });

  test("is no affair of a plan for another wall", () => {
    expect(findEngineGaps(planFor([]), { ...here, arch: "riscv64" })).toEqual([]);
  });

  test("says what it means and what to do", () => {
    const all = gaps(
      {
        engine: { ...docker, ...weak, local: false, remapped: true },
        wishes: { inner: true },
        request: { ...curl, limits, network: allowlist },
      },
      { ...here, arch: "riscv64" },
      [said("flag", "ro /usr/bin")],
    );
    expect(all).toHaveLength(8);
    for (const { about, remedy } of all) {
      expect(about).toMatch(/^\S.*\.$/);
      expect(remedy).toMatch(/^(Use|Leave) .*\.$/);
    }
    const text = all.map(({ about, remedy }) => `${about} ${remedy}`).join("\n");
    expect(text).toContain("sandbox.memory_mb, sandbox.pids cannot be enforced");
    expect(text).toContain("curl");
    expect(text).toContain("unix:///run/user/1000/podman/podman.sock is not on this machine");
  });
});

test("what an engine adds by itself is told, with what can be done", () => {
  const { name, about, remedy } = engineExtras("a mount at /hostprivate");
  expect([name, about.includes("a mount at /hostprivate")]).toEqual(["engine-extras", true]);
  expect(remedy).toContain('sandbox.accept_gaps = ["engine-extras"]');
});
