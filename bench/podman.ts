import { spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

export interface Podman extends AsyncDisposable {
  readonly socket: string;
  readonly image: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A Podman with data of its own, and an empty image: containers mount the host's programs. */
export async function startPodman(base: Readonly<Record<string, string>>): Promise<Podman> {
  // A place in which the run's removal looks for engines.
  const directory = join(dirname(tmpdir()), `engine-${randomInt(1_000)}`);
  const image = "localhost/podbot-bench:latest";
  const root = join(directory, "root");
  for (const part of ["usr", "proc", "dev", "sys", "etc", "run", "tmp", "root"]) {
    mkdirSync(join(root, part), { recursive: true });
  }
  for (const part of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${part}`, join(root, part));
  const settings = join(directory, "containers.conf");
  // Small machines have hybrid cgroups, which crun refuses, and low limits, which podman would exceed.
  writeFileSync(
    settings,
    '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n',
  );
  const storage = join(directory, "storage.conf");
  writeFileSync(
    storage,
    `[storage]\ndriver = "overlay"\ngraphroot = "${directory}/graph"\nrunroot = "${directory}/run"\n`,
  );
  const env = { ...base, CONTAINERS_CONF: settings, CONTAINERS_STORAGE_CONF: storage } as Record<string, string>;
  const archive = join(directory, "root.tar");
  for (const [file, ...words] of [
    ["tar", "-C", root, "-cf", archive, "."],
    ["podman", "import", "--quiet", archive, image],
  ] as const) {
    const { status, stderr } = spawnSync(file, words, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${file} ${words[0]}: ${stderr}`);
  }
  const socket = join(directory, "podman.sock");
  const service = spawn("podman", ["system", "service", "--time=0", `unix://${socket}`], { env, stdio: "ignore" });
  const exited = once(service, "exit");
  for (let tries = 0; tries < 200 && !existsSync(socket); tries++) await wait(50);
  return {
    socket,
    image,
    env,
    async [Symbol.asyncDispose]() {
      spawnSync("podman", ["rm", "--all", "--force", "--time", "0"], { env });
      service.kill();
      await exited;
      spawnSync("umount", ["-R", join(directory, "graph/overlay")]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts a container in which nothing happens, and returns its name. */
export function startIdle({ env, image }: Podman): string {
  const name = "idle";
  const words = ["run", "--detach", "--name", name, "--network", "none", "--volume", "/usr:/usr:ro", image];
  const { status, stderr } = spawnSync("podman", [...words, "sleep", "infinity"], { env, encoding: "utf8" });
  if (status !== 0) throw new Error(`podman run: ${stderr}`);
  return name;
}
