// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deniedSyscalls, type SeccompArch, seccompProgram } from "../../src/wall/seccomp.ts";
import { runFilter } from "./classic-bpf.ts";
import { syscallNumbers } from "./syscall-numbers.ts";

const allow = 0x7fff0000;
const errno = (name: keyof typeof errnos) => 0x50000 | errnos[name];
const errnos = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 };

const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003, arm: 0x40000028 };
/** Newer than the headers of some distributions. */
const recent: [string, number][] = [
  ["open_tree_attr", 467],
  ["fchmodat2", 452],
];
const x86Only = ["ioperm", "iopl", "modify_ldt", "uselib"];

const numbers: Record<SeccompArch, ReadonlyMap<string, number>> = {
  // Every machine has the generic table, which is arm64's; that of x64 is found on x64 alone.
  arm64: new Map([...recent, ...syscallNumbers("asm-generic/unistd.h")]),
  x64: new Map([...recent, ...syscallNumbers("asm/unistd.h")]),
};
const nameOf = {
  x64: new Map([...numbers.x64].map(([name, number]) => [number, name])),
  arm64: new Map([...numbers.arm64].map(([name, number]) => [number, name])),
};

const wholly = deniedSyscalls.filter(({ when }) => when === undefined);
/** Which argument of a call is the mode that it gives a file. */
const modeOf: Record<string, number> = {
  chmod: 1,
  creat: 1,
  fchmod: 1,
  fchmodat: 2,
  fchmodat2: 2,
  mknod: 1,
  mknodat: 2,
  open: 2,
  openat: 3,
};
const priorities = ["setpriority", "ioprio_set"];
const arguable = new Set([
  ...["clone", "ioctl", "socket", "socketpair", "unshare"],
  ...priorities,
  ...Object.keys(modeOf),
]);

const namespaceBits = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000];

/** The verdict that the documentation promises, worked out the long way. */
function expected(arch: SeccompArch, nesting: boolean, nr: number, args: readonly bigint[]): number {
  if (nr >= 0x4000_0000 || (arch === "x64" && nr >= 512 && nr <= 547)) return errno("ENOSYS");
  const name = nameOf[arch].get(nr) ?? "";
  const [first = 0, second = 0, third = 0, fourth = 0] = args.map((arg) => Number(arg & 0xffff_ffffn));
  const rule = wholly.find((denied) => denied.name === name);
  if (rule) return nesting && rule.allowedWhenNesting ? allow : errno(rule.errno);
  if (name === "clone" && !nesting) {
    // The lowest bits are the signal that the parent gets.
    return namespaceBits.some((bit) => bit > 0xff && (first & bit) !== 0) ? errno("EPERM") : allow;
  }
  if (name === "unshare" && !nesting) {
    const harmless = [0x100, 0x200, 0x400, 0x800, 0x10000, 0x40000];
    return harmless.reduce((rest, bit) => rest & ~bit, first) === 0 ? allow : errno("EPERM");
  }
  const mode = modeOf[name];
  if (mode !== undefined) {
    const flags = name === "open" ? second : name === "openat" ? third : 0o100;
    const creates = (flags & 0o100) !== 0 || (flags & 0o20000000) !== 0;
    return creates && ([first, second, third, fourth][mode] as number) & 0o4000 ? errno("EPERM") : allow;
  }
  if (name === "ioctl") {
    const isConsoles = (second >= 0x4b00 && second < 0x4c00) || (second >= 0x5600 && second < 0x5700);
    return [0x5412, 0x541c, 0x540c, 0x5423].includes(second) || isConsoles ? errno("EPERM") : allow;
  }
  if (name === "setpriority") return first === 0 ? allow : errno("EPERM");
  if (name === "ioprio_set") return first === 1 ? allow : errno("EPERM");
  if (name === "socket" || name === "socketpair") {
    if (second % 16 === 10 || ![1, 2, 10, 16].includes(first)) return errno("EAFNOSUPPORT");
    return first === 16 && third !== 0 ? errno("EPROTONOSUPPORT") : allow;
  }
  return allow;
}

const arches: readonly SeccompArch[] = process.arch === "x64" ? ["x64", "arm64"] : ["arm64"];
const variants = arches.flatMap((arch) => [false, true].map((nesting) => ({ arch, nesting })));

describe.each(variants)("the filter for $arch, nesting: $nesting,", ({ arch, nesting }) => {
  const program = seccompProgram({ arch, nesting });
  const run = (nr: number, args: readonly bigint[] = [0n, 0n, 0n, 0n]) =>
    runFilter(program, { nr, arch: auditArch[arch], args }).verdict;

  test("knows the numbers that the kernel's headers give", () => {
    for (const { name, errno: error, allowedWhenNesting } of wholly) {
      if (arch === "arm64" && x86Only.includes(name)) continue;
      const number = numbers[arch].get(name);
      if (number === undefined) throw new Error(`no header knows ${name}`);
      expect([name, run(number)]).toEqual([name, nesting && allowedWhenNesting ? allow : errno(error)]);
    }
  });

  test("answers openat2 as a kernel without it, also where sandboxes are built inside", () => {
    expect(deniedSyscalls.find(({ name }) => name === "openat2")).toMatchObject({
      errno: "ENOSYS",
      allowedWhenNesting: false,
    });
    expect(run(437)).toBe(errno("ENOSYS"));
  });

  test("allows every call that is not listed", () => {
    const listed = new Set(deniedSyscalls.map(({ name }) => name));
    for (let nr = 0; nr < 512; nr += 1) {
      const name = nameOf[arch].get(nr);
      if (name === undefined || !listed.has(name)) expect([nr, run(nr)]).toEqual([nr, allow]);
    }
  });

  test("gives the promised verdict for any call with any arguments", () => {
    const interesting = [...arguable].flatMap((name) => numbers[arch].get(name) ?? []);
    const nr = fc.oneof(fc.nat(600), fc.constantFrom(...interesting), fc.integer({ min: 0, max: 0xffffffff }));
    const low = fc.oneof(
      fc.nat(50),
      fc.constantFrom(
        ...[0x5412, 0x541c, 0x5413, 0x540c, 0x5423, 0x4b33, 0x4c00, 0x5601, 0x55ff, 0xc0d05601],
        ...namespaceBits,
        0o100,
        0o4755,
        0o755,
        0x1200011,
        0x3d0f00,
        0x200,
        0x80000 | 10,
      ),
      fc.integer({ min: 0, max: 0xffffffff }),
    );
    const arg = fc.tuple(fc.constantFrom(0n, 1n, 0xffffffffn), low).map(([high, value]) => {
      return (high << 32n) | BigInt(value);
    });
    fc.assert(
      fc.property(nr, fc.tuple(arg, arg, arg, arg), (number, args) => {
        expect(run(number, args)).toBe(expected(arch, nesting, number, args));
      }),
      { numRuns: 20_000 },
    );
  });

  test("answers ENOSYS to calls of other architectures", () => {
    for (const other of Object.values(auditArch)) {
      if (other === auditArch[arch]) continue;
      for (const nr of [0, 1, 39, 1000]) {
        expect(runFilter(program, { nr, arch: other, args: [] }).verdict).toBe(errno("ENOSYS"));
      }
    }
    expect(run(0x4000_0000 | 39)).toBe(errno("ENOSYS"));
    expect(run(0xffffffff)).toBe(errno("ENOSYS"));
  });

  test("is short, so that no jump overflows, and quick to allow", () => {
    expect(program.length / 8).toBeLessThan(200);
    const others = [...numbers[arch]].filter(([name]) => !arguable.has(name));
    const outcomes = others.map(([, nr]) => runFilter(program, { nr, arch: auditArch[arch], args: [] }));
    const steps = outcomes.filter(({ verdict }) => verdict === allow).map((outcome) => outcome.steps);
    expect(Math.max(...steps)).toBeLessThanOrEqual(12);
  });
});

test("every listed call says why, and the list has no call twice without saying which use", () => {
  const keys = deniedSyscalls.map(({ name, when = "" }) => `${name} ${when}`);
  expect(new Set(keys).size).toBe(keys.length);
  for (const { why } of deniedSyscalls) expect(why).toMatch(/^.{20,120}$/);
});
