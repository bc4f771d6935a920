import { execFileSync } from "node:child_process";

/** System call numbers by name, as a header of the kernel has them. */
export function syscallNumbers(header: string): ReadonlyMap<string, number> {
  // The generic table leaves this one to each architecture; arm64 has it.
  const input = `#define __ARCH_WANT_SYS_CLONE3\n#include <${header}>\n`;
  const macros = execFileSync("gcc", ["-E", "-dM", "-x", "c", "-"], { input, encoding: "utf8" });
  const found = macros.matchAll(/^#define __NR(?:3264)?_(\w+) (\d+)$/gm);
  return new Map([...found].map(([, name, number]) => [name as string, Number(number)]));
}
