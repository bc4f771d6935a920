import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Container extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  /** Words for podman that run a command in it. */
  exec(command: readonly string[]): readonly string[];
}

/** A container in which nothing happens, with the host's programs: it needs no image. */
export function startContainer(): Container {
  const directory = mkdtempSync("/var/tmp/podbot-bench-podman-");
  const root = join(directory, "root");
  const name = `podbot-bench-${process.pid}`;
  for (const part of ["usr", "proc", "dev", "sys", "etc", "run", "tmp"])
    mkdirSync(join(root, part), { recursive: true });
  for (const part of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${part}`, join(root, part));
  const settings = join(directory, "containers.conf");
  // Small machines have hybrid cgroups, which crun refuses, and low limits, which podman would exceed.
  writeFileSync(
    settings,
    '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n',
  );
  const env = { ...(process.env as Record<string, string>), CONTAINERS_CONF: settings };
  const podman = (...words: string[]) => {
    const { status, stderr } = spawnSync("podman", words, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`podman ${words[0]}: ${stderr}`);
  };
  const mounts = ["--volume", "/usr:/usr:ro"];
  podman("run", "--detach", "--name", name, "--network", "none", ...mounts, "--rootfs", root, "sleep", "infinity");
  return {
    env,
    exec: (command) => ["exec", name, ...command],
    async [Symbol.asyncDispose]() {
      podman("rm", "--force", "--time", "0", name);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
