import { describe, expect, test } from "vitest";
import { certificateBundles, kernelSwitches, questions } from "../../src/plan/request.ts";
import { allowlist, cwd, home, openNetwork, ordinaryRequest, presetRules, said } from "./ordinary.ts";

describe("the questions of a request", () => {
  test("are where it stands, what its rules name, and what the wall itself mounts", () => {
    const rule = said("flag", "ro a");
    const commands = [{ kind: "deny", name: "rm" }] as const;
    const ask = questions(ordinaryRequest({ rules: [rule], commands }));
    expect(ask).toMatchObject({ cwd, home, uid: 1000, commands, path: "/usr/bin", network: false, emptyRoot: false });
    expect(ask.rules[0]).toBe(rule);
    expect(ask.rules.slice(1)).toEqual(
      ["/", "/opt/podbot/enter", "/opt/podbot/shim", "/proc/key-users", "/proc/keys"].map((pattern) => ({
        access: "ro",
        pattern,
        written: pattern,
        layer: "podbot",
        origin: "the wall",
        trusted: true,
      })),
    );
  });

  test.each([
    ["off", { git: false, gitStrict: false }],
    ["on", { git: true, gitStrict: false }],
    ["strict", { git: true, gitStrict: true }],
  ] as const)("about git are asked as far as it is protected: %s", (mode, expected) => {
    expect(questions(ordinaryRequest({ git: { mode, layer: "default" } }))).toMatchObject(expected);
  });

  test("include the engine's socket where it is handed in", () => {
    const patterns = questions(ordinaryRequest({ dockerSocket: "/run/docker.sock" })).rules.map(
      ({ pattern }) => pattern,
    );
    expect(patterns).toContain("/run/docker.sock");
  });

  test("include where root could change the kernel, if it is root who asks", () => {
    const patterns = questions(ordinaryRequest({ uid: 0 })).rules.map(({ pattern }) => pattern);
    expect(patterns).toEqual(expect.arrayContaining([...kernelSwitches]));
    expect(patterns).toContain("/proc/sys");
  });

  test("include how names are resolved where there is a network", () => {
    expect(questions(ordinaryRequest({ network: openNetwork })).network).toBe(true);
    expect(questions(ordinaryRequest({ network: allowlist })).network).toBe(true);
  });

  test("include whom everybody trusts, where a gateway must be trusted too", () => {
    const asked = (network: typeof allowlist) =>
      questions(ordinaryRequest({ network })).rules.map((rule) => rule.pattern);
    expect(asked(allowlist)).toEqual(expect.arrayContaining([...certificateBundles]));
    expect(asked(openNetwork)).not.toContain(certificateBundles[0]);
  });

  test("include mount points that may be missing, which an empty root has not", () => {
    const rules = presetRules("!@all", "@caches");
    const points = ["/home/u/.cache", "/home/u/.npm"];
    expect(questions(ordinaryRequest({ rules })).mountPoints.slice(0, 2)).toEqual(points);
    expect(questions(ordinaryRequest({ rules, root: "minimal" }))).toMatchObject({ mountPoints: [], emptyRoot: true });
  });

  test("include those that only one program needs, for that program", () => {
    const rules = [said("default", "rw ~/.agent", { fresh: { program: "agent" } })];
    expect(questions(ordinaryRequest({ rules })).mountPoints).toEqual([]);
    const command = ["/opt/bin/agent"] as const;
    expect(questions(ordinaryRequest({ rules, command })).mountPoints).toEqual(["/home/u/.agent"]);
  });

  test("take no directory for a mount point that is not the sandbox's own", () => {
    expect(questions(ordinaryRequest({ rules: [said("flag", "rw ~/data")] })).mountPoints).toEqual([]);
  });
});
