import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { listIfThere, parentOf, pids, readIfThere, wordsOf } from "./read.ts";
import { foreignRuns } from "./run.ts";

/** A snapshot of what tests can create on a machine, one line per item. */
export interface MachineState {
  /**
   * Kinds that other programs rarely create: a new one counts as left behind. While another run of the tests goes on,
   * they are among the shared ones, since their names do not say whose they are.
   */
  readonly certain: readonly string[];
  /** Kinds that other programs create too: a new one counts as left behind if its line contains `podbot`. */
  readonly shared: readonly string[];
}

export interface Leftovers {
  readonly ours: readonly string[];
  readonly others: readonly string[];
}

/**
 * Looks at processes, mounts, accounts, networks, cgroups, containers and the places for files outside the project.
 * `mark` is a variable that the processes of the tests have in their environment.
 */
export function machineState(mark: string): MachineState {
  // A run of another checkout that is going on cleans up by itself.
  const going = foreignRuns();
  const belongsToNoOtherRun = (line: string) => !going.some(({ id }) => line.includes(id));
  const nameless = [
    ...listIfThere("/run/netns").map((name) => `network namespace ${name}`),
    ...listIfThere("/sys/class/net").map((name) => `network interface ${name}`),
    ...cgroups("/sys/fs/cgroup", 3).map((path) => `cgroup ${path}`),
    ...["/var/lib/containers/storage/overlay-containers", "/var/lib/docker/containers"]
      .flatMap((directory) => listIfThere(directory))
      .filter((name) => /^[0-9a-f]{64}$/.test(name))
      .map((name) => `container ${name}`),
  ].filter(belongsToNoOtherRun);
  const named = [
    ...mountTargets().map((path) => `mount ${path}`),
    ...["passwd", "group", "subuid", "subgid"].flatMap((name) =>
      readIfThere(`/etc/${name}`)
        .split("\n")
        .map((line) => `/etc/${name}: ${line.split(":")[0]}`),
    ),
    ...files(),
  ].filter(belongsToNoOtherRun);
  const shared = [...processes(mark, belongsToNoOtherRun), ...named];
  return going.length > 0 ? { certain: [], shared: [...shared, ...nameless] } : { certain: nameless, shared };
}

/** The items of `after` that are not in `before`. */
export function leftovers(before: MachineState, after: MachineState): Leftovers {
  const isNew = (known: readonly string[]) => {
    const set = new Set(known);
    return (line: string) => !set.has(line);
  };
  // Another run may have begun or ended in between, so either list of before is searched.
  const known = [...before.certain, ...before.shared];
  const certain = after.certain.filter(isNew(known));
  const shared = after.shared.filter(isNew(known));
  return {
    ours: [...certain, ...shared.filter((line) => /podbot/i.test(line))],
    others: shared.filter((line) => !/podbot/i.test(line)),
  };
}

function mountTargets(): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[4] ?? []);
}

/** Lists cgroups of container engines and of Podbot only, because systemd creates others all the time. */
function cgroups(directory: string, depth: number): readonly string[] {
  if (depth === 0 || !existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(directory, name))
    .flatMap((path) => [...(/podbot|libpod|docker/.test(path) ? [path] : []), ...cgroups(path, depth - 1)]);
}

/** Processes of the tests: their command, working directory or environment names a run, or they have the mark. */
function processes(mark: string, belongsToNoOtherRun: (about: string) => boolean): readonly string[] {
  const callers = ancestors();
  return pids()
    .filter((pid) => !callers.has(pid))
    .flatMap((pid) => {
      const words = wordsOf(pid);
      const about = `${words}\n${linkIfThere(`/proc/${pid}/cwd`)}\n${readIfThere(`/proc/${pid}/environ`)}`;
      const isOurs = about.includes(mark) || /\/var\/tmp\/podbot-|PODBOT_TEST_RUN/.test(about);
      if (!isOurs || !belongsToNoOtherRun(about)) return [];
      return [`process ${pid} of podbot's tests: ${words.slice(0, 200)}`];
    });
}

/** This process and its callers were there before the tests. */
function ancestors(): ReadonlySet<number> {
  const found = new Set<number>();
  for (let pid = process.pid; pid > 1 && !found.has(pid); pid = parentOf(pid)) found.add(pid);
  return found;
}

function linkIfThere(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function files(): readonly string[] {
  const home = homedir();
  const below = (directory: string) => listIfThere(directory).map((name) => join(directory, name));
  return [
    ...["/", "/tmp", "/var/tmp", "/dev/shm", "/usr/local/lib", "/usr/local/bin"].flatMap(below),
    ...["/run", "/run/user", "/run/podbot", "/run/containerd/s", "/run/lock"].flatMap(below),
    ...["/etc/cni/net.d", "/var/lib", "/var/lib/containers", "/var/lib/containers/cache"].flatMap(below),
    ...["", ".config", ".local", ".local/state", ".local/share", ".cache", ".local/state/podbot"].flatMap((name) =>
      below(join(home, name)),
    ),
    ...below(join(home, ".local/state/podbot/held")),
  ];
}
