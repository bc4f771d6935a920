import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listIfThere, parentOf, pids, readIfThere, wordsOf } from "./read.ts";
import { accountOf, type Run } from "./run.ts";

export interface RunProcess {
  readonly pid: number;
  readonly words: string;
}

/** Waits for the run's processes to end, kills the rest after the grace period, and returns those it killed. */
export async function endProcesses(run: Run, graceMs: number): Promise<readonly string[]> {
  for (const end = performance.now() + graceMs; ; await sleep(50)) {
    if (processesOf(run).length === 0) return [];
    if (performance.now() >= end) break;
  }
  const left = processesOf(run).map(({ pid, words }) => `process ${pid}: ${words}`);
  for (const path of cgroupsOf(run, [])) thaw(path);
  for (let tries = 0; tries < 600 && processesOf(run).length > 0; tries++) {
    for (const { pid } of processesOf(run)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {}
    }
    await sleep(50);
  }
  return left;
}

/** Processes of a run and of its containers, without this one and the workers that its Vitest ends. */
export function processesOf(run: Run): readonly RunProcess[] {
  const confined = confinedTo(run);
  return pids()
    .filter((pid) => pid !== process.pid)
    .map((pid) => ({ pid, words: wordsOf(pid) }))
    .filter(({ pid, words }) => {
      if (isWorker(words) && parentOf(pid) === process.pid) return false;
      return confined.has(pid) || hasEnvironmentOf(run, pid) || isProgramOf(run, words) || hasRootOf(run, pid);
    });
}

/** Processes in the cgroup of a soak, which a disturbance freezes. */
function confinedTo(run: Run): ReadonlySet<number> {
  const lists = cgroupsOf(run, []).map((path) => readIfThere(join(path, "cgroup.procs")));
  return new Set(lists.flatMap((list) => list.split("\n").map(Number)));
}

/** The workers of the Vitest in this process. */
export function ownWorkers(): readonly number[] {
  return pids().filter((pid) => parentOf(pid) === process.pid && isWorker(wordsOf(pid)));
}

function isWorker(words: string): boolean {
  return words.includes("vitest/dist/workers/");
}

/** Runs a command in a session of its own, so that a second Ctrl-C does not stop the cleaning half-way. */
function undisturbed(...words: readonly string[]): void {
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
  spawnSync("setsid", ["--wait", ...words], { env });
}

function hasEnvironmentOf(run: Run, pid: number): boolean {
  const marks = Object.entries(run.env).map(([name, value]) => `${name}=${value}`);
  return readIfThere(`/proc/${pid}/environ`)
    .split("\0")
    .some((line) => marks.includes(line) || (line.includes(`${run.directory}/`) && !/^(OLD)?PWD=/.test(line)));
}

/** Programs that the tests start, some of them with an empty environment. */
function isProgramOf(run: Run, words: string): boolean {
  const [program = ""] = words.split(" ");
  if (!/^(bwrap|conmon|containerd|git|node|podbot|runc|runsc|ssh|unshare)/.test(basename(program))) return false;
  return words.includes(`${run.directory}/`);
}

/** A container's root is a mount whose files lie in the run's directory. */
function hasRootOf(run: Run, pid: number): boolean {
  const root = readIfThere(`/proc/${pid}/mountinfo`)
    .split("\n")
    .findLast((line) => line.split(" ")[4] === "/");
  return root?.includes(`${run.directory}/`) ?? false;
}

/**
 * Removes what a run created outside its directory: mounts, the account, cgroups, sockets of containerd's shims, records
 * of held names, and files that bear the run's id. Returns what it could not remove.
 */
export function removeTraces(run: Run): string[] {
  const places = listIfThere(run.directory).map((name) => join(run.directory, name));
  return [
    ...mountsOf(run).flatMap((path) => unmount(run, path)),
    ...removeAccount(accountOf(run)),
    ...cgroupsOf(run, places).flatMap(removeCgroup),
    ...[...socketsOf(places), ...filesOf(run), ...claimsOf(run)].flatMap(removeFile),
  ];
}

function mountsOf(run: Run): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${run.directory}/`))
    .toReversed();
}

function unmount(run: Run, path: string): readonly string[] {
  // Without --no-mtab, umount would keep notes in /run.
  undisturbed("umount", "--lazy", "--no-mtab", path);
  return mountsOf(run).includes(path) ? [`mount ${path}`] : [];
}

function removeAccount(name: string): readonly string[] {
  const isIn = (file: string) => readIfThere(file).includes(`\n${name}:`);
  if (isIn("/etc/passwd")) undisturbed("userdel", "--force", name);
  if (isIn("/etc/group")) undisturbed("groupdel", name);
  return ["/etc/passwd", "/etc/group"].filter(isIn).map((file) => `${name} in ${file}`);
}

/** In every hierarchy: Docker's are below a parent of the run, Podman's are named by container. */
function cgroupsOf(run: Run, places: readonly string[]): readonly string[] {
  const root = "/sys/fs/cgroup";
  const hierarchies = [root, ...listIfThere(root).map((name) => join(root, name))];
  const names = [
    `podbot-${run.id}`,
    ...places
      .flatMap((place) => listIfThere(join(place, "graph/overlay-containers")))
      .filter((id) => /^[0-9a-f]{64}$/.test(id))
      .flatMap((id) => [`libpod_parent/libpod-${id}`, `libpod_parent/libpod-conmon-${id}`]),
  ];
  return hierarchies.flatMap((hierarchy) => names.map((name) => join(hierarchy, name))).filter(existsSync);
}

/** A killed soak can leave frozen processes, which take no signal. */
function thaw(path: string): void {
  for (const [name, state] of [
    ["freezer.state", "THAWED"],
    ["cgroup.freeze", "0"],
  ] as const)
    if (existsSync(join(path, name))) writeFileSync(join(path, name), state);
}

function removeCgroup(path: string): readonly string[] {
  // A cgroup is removed like an empty directory, but those in it first.
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeCgroup(join(path, entry.name));
  // The kernel may keep a cgroup busy for a moment after its last process ended.
  undisturbed("sh", "-c", 'for _ in $(seq 20); do rmdir "$1" && exit; sleep 0.05; done', "sh", path);
  return existsSync(path) ? [`cgroup ${path}`] : [];
}

function socketsOf(places: readonly string[]): readonly string[] {
  return places.flatMap((place) =>
    listIfThere(join(place, "data/containers")).map((id) => {
      const name = createHash("sha256")
        .update(join(place, "containerd/socket/moby", id))
        .digest("hex");
      return join("/run/containerd/s", name);
    }),
  );
}

/** Tests that need a place outside the run's directory put the run's id into the name of theirs. */
function filesOf({ id }: Run): readonly string[] {
  return ["/usr/local/lib", "/var/tmp"].flatMap((directory) =>
    listIfThere(directory)
      .filter((name) => name.startsWith(`podbot-test-${id}`))
      .map((name) => join(directory, name)),
  );
}

/**
 * Podbot records in the user's own home, whatever HOME says, which names it holds for a sandbox. A killed one leaves its
 * record to the next.
 */
function claimsOf({ directory }: Run): readonly string[] {
  const held = join(userInfo().homedir, ".local/state/podbot/held");
  return listIfThere(held)
    .map((name) => join(held, name))
    .filter((path) => path.endsWith(".json") && readIfThere(path).includes(`"${directory}/`));
}

function removeFile(path: string): readonly string[] {
  rmSync(path, { recursive: true, force: true });
  return existsSync(path) ? [path] : [];
}
