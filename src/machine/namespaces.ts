import { readFileSync } from "node:fs";

/** A switch of the kernel that keeps ordinary users from making user namespaces, and the command that mends it. */
export interface NamespaceBar {
  readonly what: string;
  readonly remedy: string;
}

/** Why user namespaces may be refused here, as far as the kernel says. */
export function namespaceBars(read: (path: string) => string | null = readSetting): readonly NamespaceBar[] {
  const bars: NamespaceBar[] = [];
  if (read("/proc/sys/kernel/unprivileged_userns_clone") === "0") {
    bars.push({
      what: "kernel.unprivileged_userns_clone is 0",
      remedy: "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    });
  }
  if (read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1") {
    bars.push({
      what: "AppArmor restricts unprivileged user namespaces (Ubuntu 23.10 and later)",
      remedy:
        "give bwrap an AppArmor profile that allows userns (package apparmor-profiles: bwrap-userns-restrict), or: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    });
  }
  if (read("/proc/sys/user/max_user_namespaces") === "0") {
    bars.push({ what: "user.max_user_namespaces is 0", remedy: "sudo sysctl -w user.max_user_namespaces=28633" });
  }
  return bars;
}

function readSetting(path: string): string | null {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return null;
  }
}

/** Whether Landlock can keep abstract sockets of the host apart (ABI 6, Linux 6.12). */
export function canScopeAbstractSockets(release: string): boolean {
  return isAtLeast(release, 6, 12);
}

/** Whether mounts can be built by descriptor, with their flags. */
export function canMountByDescriptor(release: string): boolean {
  return isAtLeast(release, 5, 12);
}

function isAtLeast(release: string, wantedMajor: number, wantedMinor: number): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
