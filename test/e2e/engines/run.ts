import { spawnSync } from "node:child_process";
import { createHash, randomInt } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const prefix = "/var/tmp/podbot-e2e-";

/** The variable by which processes of a run are found. */
const mark = "PODBOT_E2E_RUN";

/** One run of the tests: everything that its engines have lies in one directory, and is found by its id. */
export interface Run {
  readonly id: string;
  readonly directory: string;
  readonly image: string;
  /** For every process that is started for it. */
  readonly env: Readonly<Record<string, string>>;
}

export function newRun(): Run {
  const run = runOf(Array.from({ length: 6 }, () => "abcdefghjkmnpqrstuvwxyz".charAt(randomInt(23))).join(""));
  mkdirSync(run.directory, { mode: 0o755 });
  writeFileSync(join(run.directory, "owner"), identify(process.pid) ?? "");
  mkdirSync(join(run.directory, "pids"));
  return run;
}

/** Runs whose main process is gone. */
export function deadRuns(): readonly Run[] {
  return readdirSync("/var/tmp")
    .map((name) => join("/var/tmp", name))
    .filter((path) => path.startsWith(prefix) && lstatSync(path).isDirectory() && lstatSync(path).uid === 0)
    .filter((path) => {
      const owner = readIfThere(join(path, "owner"));
      return owner !== "" && identify(Number.parseInt(owner, 10)) !== owner;
    })
    .map((path) => runOf(path.slice(prefix.length)));
}

function runOf(id: string): Run {
  return {
    id,
    directory: prefix + id,
    image: `localhost/podbot-e2e-${id}:latest`,
    env: { [mark]: id },
  };
}

/** Ends what still runs, unmounts what is mounted and removes what is there. Containers should be gone already. */
export async function erase(run: Run): Promise<void> {
  const traces = tracesOf(run);
  for (let tries = 0; tries < 50 && processesOf(run).length > 0; tries++) {
    for (const pid of processesOf(run)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {}
    }
    await sleep(50);
  }
  for (const path of mountsOf(run).toReversed()) spawnSync("umount", ["--lazy", path]);
  for (const path of traces) removeTrace(path);
  // The owner last, so that a run that was not removed to its end is found again.
  for (const name of listIfThere(run.directory)) {
    if (name !== "owner") rmSync(join(run.directory, name), { recursive: true, force: true, maxRetries: 5 });
  }
  rmSync(run.directory, { recursive: true, force: true });
  const left = [
    ...processesOf(run).map((pid) => `process ${pid}: ${commandLine(pid).join(" ")}`),
    ...mountsOf(run).map((path) => `mount ${path}`),
    ...[...traces, run.directory].filter((path) => existsSync(path)),
  ];
  if (left.length > 0) throw new Error(`the run ${run.id} of the engines left behind:\n${left.join("\n")}`);
}

/** Processes that were started for a run, and those in its containers. */
function processesOf(run: Run): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      if (readIfThere(`/proc/${pid}/environ`).split("\0").includes(`${mark}=${run.id}`)) return true;
      const [program = "", ...words] = commandLine(pid);
      if (/^(conmon|containerd-shim|runc|runsc)/.test(basename(program)))
        return words.some((word) => word.includes(`${run.directory}/`));
      // In a container: its root is a mount of files of the run.
      const root = readIfThere(`/proc/${pid}/mountinfo`)
        .split("\n")
        .findLast((line) => line.split(" ")[4] === "/");
      return root?.includes(`${run.directory}/`) ?? false;
    });
}

function mountsOf(run: Run): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${run.directory}/`));
}

/** What lies outside the directory: cgroups in every hierarchy, and the sockets of containerd's shims. */
function tracesOf(run: Run): readonly string[] {
  const root = "/sys/fs/cgroup";
  const hierarchies = [root, ...readdirSync(root).map((name) => join(root, name))];
  const places = listIfThere(run.directory).map((name) => join(run.directory, name));
  // Docker's are below a parent of the run, Podman's are named by container.
  const cgroups = [
    `podbot-e2e-${run.id}`,
    ...places
      .flatMap((place) => listIfThere(join(place, "graph/overlay-containers")))
      .filter((id) => /^[0-9a-f]{64}$/.test(id))
      .flatMap((id) => [`libpod_parent/libpod-${id}`, `libpod_parent/libpod-conmon-${id}`]),
  ];
  const sockets = places.flatMap((place) =>
    listIfThere(join(place, "data/containers")).map((id) => {
      const name = createHash("sha256")
        .update(join(place, "containerd/socket/moby", id))
        .digest("hex");
      return join("/run/containerd/s", name);
    }),
  );
  return [...hierarchies.flatMap((hierarchy) => cgroups.map((name) => join(hierarchy, name))), ...sockets];
}

function removeTrace(path: string): void {
  if (!path.startsWith("/sys/")) {
    rmSync(path, { force: true });
  } else if (existsSync(path)) {
    // A cgroup is removed like an empty directory, but those in it first.
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeTrace(join(path, entry.name));
    }
    // One that was just left may be in use for a moment; if it still is then, it is told of at the end.
    spawnSync("sh", ["-c", 'for _ in $(seq 20); do rmdir "$1" && exit; sleep 0.05; done', "sh", path]);
  }
}

function commandLine(pid: number): readonly string[] {
  return readIfThere(`/proc/${pid}/cmdline`).split("\0");
}

/** A process, and not another that has its number later. */
function identify(pid: number): string | null {
  const stat = readIfThere(`/proc/${pid}/stat`);
  const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return started === undefined ? null : `${pid} ${started}\n`;
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function listIfThere(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
