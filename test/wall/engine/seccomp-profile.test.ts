import { describe, expect, test } from "vitest";
import { withoutForeignCalls } from "../../../src/wall/engine/seccomp-profile.ts";

const profile = {
  defaultAction: "SCMP_ACT_ERRNO",
  defaultErrnoRet: 38,
  archMap: [
    { architecture: "SCMP_ARCH_X86_64", subArchitectures: ["SCMP_ARCH_X86", "SCMP_ARCH_X32"] },
    { architecture: "SCMP_ARCH_AARCH64", subArchitectures: ["SCMP_ARCH_ARM"] },
  ],
  syscalls: [
    { names: ["read", "write"], action: "SCMP_ACT_ALLOW", args: [] },
    { names: ["bpf"], action: "SCMP_ACT_ALLOW", includes: { caps: ["CAP_SYS_ADMIN"] } },
  ],
};

describe("an engine's filter for this machine's own calls", () => {
  test("has every rule, and no other architecture", () => {
    expect(JSON.parse(withoutForeignCalls(JSON.stringify(profile)) as string)).toEqual({
      ...profile,
      archMap: [
        { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
        { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
      ],
    });
  });

  test.each([
    ["nothing", ""],
    ["no JSON", "{"],
    ["no profile", "[]"],
    ["null", "null"],
    ["no rules", JSON.stringify({ ...profile, syscalls: undefined })],
    ["architectures of somebody's choice", JSON.stringify({ ...profile, archMap: ["SCMP_ARCH_X86_64"] })],
    ["a list of architectures", JSON.stringify({ ...profile, archMap: undefined, architectures: ["SCMP_ARCH_X86"] })],
  ])("is left to the engine where there is %s", (_what, text) => {
    expect(withoutForeignCalls(text)).toBeNull();
  });
});
