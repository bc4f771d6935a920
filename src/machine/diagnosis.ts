import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { release } from "node:os";
import { holesOf, type KnownHole, versionOf } from "./known-holes.ts";
import { canScopeAbstractSockets, namespaceBars } from "./namespaces.ts";
import { findNativePrograms, findOnPath, installHints, ofTheSystem } from "./programs.ts";

/** One thing that was looked at, and what would mend it. */
export interface Finding {
  readonly name: string;
  /** `ok`; `weak`: works, with less protection or comfort; `missing`: no sandbox can be started. */
  readonly state: "ok" | "weak" | "missing";
  readonly found: string;
  readonly remedy: string | null;
  /** Published holes of the version that was found; absent where there are none. */
  readonly holes?: readonly KnownHole[];
}

/** The same finding, with the holes of what was found. A distribution may have mended them. */
export function withHoles(finding: Finding, holes: readonly KnownHole[]): Finding {
  if (holes.length === 0) return finding;
  const about = holes.map(({ cves, what }) => `${cves.join(", ")} (${what}), unless your distribution has patched it`);
  return {
    name: finding.name,
    state: finding.state === "ok" ? "weak" : finding.state,
    found: [finding.found, ...about].join("; "),
    remedy: [...(finding.remedy === null ? [] : [finding.remedy]), ...holes.map(({ remedy }) => remedy)].join(" "),
    holes,
  };
}

/** Options without which the wall is not built. */
const neededOptions = ["--bind-fd", "--ro-bind-fd", "--args", "--disable-userns", "--perms", "--chmod", "--remount-ro"];

/** Looks at this machine by trying. Version numbers only tell of holes that are known. */
export function diagnose(path: string, cwd: string = process.cwd()): readonly Finding[] {
  const bwrap = findOnPath("bwrap", ofTheSystem(path));
  return [
    platform(),
    node(),
    ...(bwrap === null ? [finding("bubblewrap", "missing", "not on PATH", installHints)] : bubblewrap(bwrap, cwd)),
    native(),
    mounts(),
    kernel(),
    program("git", ofTheSystem(path), "Debian or Ubuntu: apt install git"),
  ];
}

/** Whether a sandbox can be started at all. */
export function isAble(findings: readonly Finding[]): boolean {
  return findings.every(({ state }) => state !== "missing");
}

function finding(name: string, state: Finding["state"], found: string, remedy: string | null = null): Finding {
  return { name, state, found, remedy };
}

function platform(): Finding {
  return process.platform === "linux"
    ? finding("platform", "ok", `Linux ${release()}, ${process.arch}`)
    : finding("platform", "missing", process.platform, "Use Linux, a virtual machine, or WSL 2.");
}

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 20 || (major === 20 && minor >= 19)
    ? finding("node", "ok", process.version)
    : finding("node", "missing", process.version, "Install Node 20.19 or later.");
}

function bubblewrap(bwrap: string, cwd: string): readonly Finding[] {
  // Who works here could have put it here: it is not even asked for its version.
  if (bwrap.startsWith(`${realpathSync.native(cwd)}/`)) {
    return [finding("bubblewrap", "missing", `${bwrap} lies where a sandbox may write`, installHints)];
  }
  const version = versionOf(bwrap);
  const options = spawnSync(bwrap, ["--help"], { encoding: "utf8" }).stdout.split(/\s+/);
  const lacking = neededOptions.filter((option) => !options.includes(option));
  return [
    lacking.length === 0
      ? withHoles(finding("bubblewrap", "ok", `${version} at ${bwrap}`), holesOf("bubblewrap", version))
      : finding(
          "bubblewrap",
          "missing",
          `${version} lacks ${lacking.join(", ")}`,
          `Install a newer one. ${installHints}`,
        ),
    namespaces(bwrap),
  ];
}

function namespaces(bwrap: string): Finding {
  const words = [
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
  ];
  const { status, stderr } = spawnSync(bwrap, words, { encoding: "utf8" });
  if (status === 0) return finding("namespaces", "ok", "user, pid, network, ipc and mount namespaces can be made");
  const bars = namespaceBars();
  return finding(
    "namespaces",
    "missing",
    [stderr.trim(), ...bars.map(({ what }) => what)].join("; "),
    bars.map(({ remedy }) => remedy).join("; ") || "In a container, allow user namespaces and an unmasked /proc.",
  );
}

function native(): Finding {
  const launch = attempt(() => findNativePrograms().launch);
  return launch === null
    ? finding(
        "native programs",
        "missing",
        `none for ${process.arch}`,
        "In a checkout: make build. Otherwise reinstall.",
      )
    : finding("native programs", "ok", launch);
}

/** The launcher tries what each start needs: mounts by descriptor, in a namespace of its own. */
function mounts(): Finding {
  const launch = attempt(() => findNativePrograms().launch);
  if (launch === null) return finding("mounts", "missing", "the launcher is not installed", "Reinstall Podbot.");
  const { status, stderr } = spawnSync(launch, ["--probe"], { encoding: "utf8", env: {} });
  if (status === 0) return finding("mounts", "ok", "can be built by descriptor");
  const profile = `printf 'profile podbot-launch ${launch} flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/podbot-launch && sudo apparmor_parser -r /etc/apparmor.d/podbot-launch`;
  const remedies = namespaceBars().map(({ what, remedy }) => (what.startsWith("AppArmor") ? profile : remedy));
  return finding(
    "mounts",
    "missing",
    `cannot be built by descriptor: ${stderr.trim()}`,
    remedies.join("; ") || 'Use Linux 5.12 or later, or sandbox.accept_gaps = ["mounts-by-path"].',
  );
}

function attempt<T>(find: () => T): T | null {
  try {
    return find();
  } catch {
    return null;
  }
}

function kernel(): Finding {
  return canScopeAbstractSockets(release())
    ? finding("abstract sockets", "ok", "kept apart by Landlock with an open network too")
    : finding(
        "abstract sockets",
        "weak",
        "this kernel cannot keep them apart when the network is open",
        'Use Linux 6.12 or later, --network none, or sandbox.accept_gaps = ["abstract-sockets"].',
      );
}

function program(name: string, path: string, remedy: string): Finding {
  const found = findOnPath(name, path);
  return found === null ? finding(name, "weak", "not on PATH", remedy) : finding(name, "ok", found);
}
