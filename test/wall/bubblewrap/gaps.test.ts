import { describe, expect, test } from "vitest";
import type { Plan } from "../../../src/plan/plan.ts";
import { findGaps } from "../../../src/wall/bubblewrap/gaps.ts";
import { allowlist, openNetwork, planFor } from "../../plan/ordinary.ts";

const modern = { arch: "x64", release: "6.12.0-generic" };
const none: Partial<Plan> = {};
const open: Partial<Plan> = { network: openNetwork };
const guarded: Partial<Plan> = { network: allowlist };

function gaps(more: Partial<Plan>, machine: { readonly arch: string; readonly release: string }): readonly string[] {
  return findGaps({ ...planFor([]), ...more }, machine).map(({ name }) => name);
}

describe("a gap", () => {
  test.each([
    ["there is none on a modern machine", open, modern, []],
    ["there is none on arm64", open, { ...modern, arch: "arm64" }, []],
    ["abstract sockets, with network on an older kernel", open, { ...modern, release: "6.11.9" }, ["abstract-sockets"]],
    [
      "abstract sockets, with network on a much older kernel",
      open,
      { ...modern, release: "5.15.0-91" },
      ["abstract-sockets"],
    ],
    ["with a network of its own an older kernel has none", guarded, { ...modern, release: "5.15.0-91" }, []],
    ["without network an older kernel has none", none, { ...modern, release: "5.15.0-91" }, []],
    ["the filter, on an architecture that has none", none, { ...modern, arch: "riscv64" }, ["seccomp"]],
    ["all at once", open, { arch: "ia32", release: "4.19" }, ["abstract-sockets", "mounts-by-path", "seccomp"]],
    [
      "mounts by path, on a kernel that cannot set their flags",
      none,
      { ...modern, release: "5.11.22" },
      ["mounts-by-path"],
    ],
    ["mounts by descriptor, on the first kernel that can", none, { ...modern, release: "5.12.0-rc1" }, []],
    [
      "one that the owner accepts is none",
      { ...open, acceptedGaps: ["abstract-sockets"] },
      { ...modern, release: "6.1" },
      [],
    ],
    [
      "accepting one accepts no other",
      { ...open, acceptedGaps: ["seccomp"] },
      { arch: "ia32", release: "6.1" },
      ["abstract-sockets"],
    ],
  ])("%s", (_, plan, machine, expected) => {
    expect(gaps(plan, machine)).toEqual(expected);
  });

  test("says what it means and what to do", () => {
    const [sockets, seccomp] = findGaps({ ...planFor([]), ...open }, { arch: "riscv64", release: "6.1" });
    expect(sockets?.about).toContain("before 6.12");
    expect(sockets?.remedy).toContain('sandbox.accept_gaps = ["abstract-sockets"]');
    expect(sockets?.remedy).toContain("--network none");
    expect(seccomp?.about).toContain("riscv64");
    expect(seccomp?.remedy).toContain("x64 or arm64");
  });
});
