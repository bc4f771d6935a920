import { describe, expect, test } from "vitest";
import { MachineError } from "../../src/errors.ts";
import { canScopeAbstractSockets, namespaceBars } from "../../src/machine/namespaces.ts";
import { requireLinux } from "../../src/machine/programs.ts";

describe("a machine that is not Linux", () => {
  test.each(["darwin", "win32", "freebsd"])("is refused, with the way out: %s", (platform) => {
    expect(() => requireLinux(platform)).toThrowError(
      expect.objectContaining({ code: "PLATFORM_UNSUPPORTED", hint: expect.stringContaining("virtual machine") }),
    );
    expect(() => requireLinux(platform)).toThrowError(MachineError);
  });

  test("and Linux is not", () => {
    expect(() => requireLinux("linux")).not.toThrow();
  });
});

describe("switches that refuse user namespaces", () => {
  test.each([
    ["/proc/sys/kernel/unprivileged_userns_clone", "0"],
    ["/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"],
    ["/proc/sys/user/max_user_namespaces", "0"],
  ])("are named with what mends them: %s", (path, value) => {
    const bars = namespaceBars((asked) => (asked === path ? value : null));
    expect(bars).toHaveLength(1);
    expect(bars[0]?.remedy).toContain("sysctl -w");
  });

  test("are not seen where there are none", () => {
    expect(namespaceBars(() => null)).toEqual([]);
  });
});

test.each([
  ["6.12.0", true],
  ["6.18.44-generic", true],
  ["7.0", true],
  ["6.11.9", false],
  ["5.15.0-91-generic", false],
])("Linux %s keeps abstract sockets apart: %s", (release, able) => {
  expect(canScopeAbstractSockets(release)).toBe(able);
});
