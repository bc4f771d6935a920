import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readIfThere, wordsOf } from "../../suite/read.ts";
import type { Run } from "../../suite/run.ts";
import { execute } from "./execute.ts";
import type { EngineName } from "./record.ts";
import { Service } from "./service.ts";
import { type EngineContext, imageOf, type Started, type Starter } from "./started.ts";

/** Podman of root. */
export const podman: Starter = {
  names: ["podman"],
  prefix: "podman",
  start: (context) => startRootful(context, "podman", "runc"),
};

/** Podman of root with gVisor: a service of its own, since Podman 4 does not let a client choose the runtime. */
export const gvisorPodman: Starter = {
  names: ["podman-gvisor"],
  prefix: "gvisor",
  start: (context) => startRootful(context, "podman-gvisor", "runsc"),
};

/** The same, but gVisor leaves the network to the kernel. It starts only when a test requests it. */
export const gvisorHostPodman: Starter = {
  names: ["podman-gvisor-host"],
  prefix: "gvisorhost",
  start: (context) => startRootful(context, "podman-gvisor-host", "runsc-host"),
};

/** Podman of an ordinary user. */
export const rootlessPodman: Starter = {
  names: ["podman-rootless"],
  prefix: "user",
  async start({ run, place, archive, user }: EngineContext): Promise<Started> {
    const directory = join(run.directory, place);
    // Podman fails without a message, and only when a container ends, if its runroot has more than 50 characters.
    const runtimeDirectory = join(directory, "xdg");
    mkdirSync(join(runtimeDirectory, "podman"), { recursive: true, mode: 0o700 });
    const env = { ...run.env, ...configure(directory, "runc"), XDG_RUNTIME_DIR: runtimeDirectory };
    await execute(["chown", "-R", `${user.uid}:${user.gid}`, directory]);
    const options = { env: { ...env, HOME: user.home }, uid: user.uid, gid: user.gid };
    await execute([...importing, archive, imageOf(run)], options);
    const service = await serve(run, place, join(runtimeDirectory, "podman/podman.sock"), options);
    const engine = { socket: service.socket, image: imageOf(run), caller: user, env, command: ["podman"] };
    return {
      place,
      service,
      engines: [{ ...engine, name: "podman-rootless" }],
      async stop() {
        await stop(service, options);
        endPause(directory);
      },
    };
  },
};

/** Rootless Podman keeps a process that holds its user namespace, and with it the network. */
export function endPause(directory: string): void {
  const pid = Number(readIfThere(join(directory, "tmp/pause.pid")));
  if (pid <= 1 || !/^(catatonit -P|podman)/.test(wordsOf(pid))) return;
  process.kill(pid, "SIGKILL");
}

async function startRootful(
  { run, place, archive, root }: EngineContext,
  name: EngineName,
  runtime: "runc" | "runsc" | "runsc-host",
): Promise<Started> {
  const directory = join(run.directory, place);
  mkdirSync(directory, { mode: 0o700 });
  const env = { ...run.env, ...configure(directory, runtime) };
  const options = { env: { ...env, HOME: root.home } };
  await execute([...importing, archive, imageOf(run)], options);
  const service = await serve(run, place, join(directory, "socket"), options);
  const engine = { name, socket: service.socket, image: imageOf(run), caller: root, env, command: ["podman"] };
  return {
    place,
    service,
    engines: [runtime === "runc" ? engine : { ...engine, runtime }],
    stop: () => stop(service, options),
  };
}

type Options = NonNullable<Parameters<typeof execute>[1]>;

const importing = ["podman", "import", "--quiet"];

async function serve(run: Run, name: string, socket: string, options: Options): Promise<Service> {
  const words = ["podman", "system", "service", "--time", "0", `unix://${socket}`];
  const service = new Service(run, { name, words, socket, ...options });
  await service.start();
  return service;
}

async function stop(service: Service, options: Options): Promise<void> {
  // The service may hold locks that `podman rm` needs, so it is killed first.
  await service.kill();
  await execute(["podman", "rm", "--all", "--force", "--time", "0"], options);
}

/** Settings that keep everything below the directory; and the variables that lead to them. */
function configure(directory: string, runtime: string): Readonly<Record<string, string>> {
  const at = (path: string) => JSON.stringify(join(directory, path));
  const define = (name: string, program: string, ...flags: string[]) => {
    const words = [program, `--root=${join(directory, `${name}-state`)}`, ...flags];
    writeFileSync(join(directory, name), `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
    chmodSync(join(directory, name), 0o755);
    return `${name} = [${at(name)}]`;
  };
  // So that a Unix socket of a bound directory can be dialled from inside.
  const runsc = ["--host-uds=open", "--ignore-cgroups"];
  // Locks in files: those in shared memory are one and the same for all of a user's Podmans. No `default_ulimits`,
  // although Podman's own may be more than a machine allows: Podbot has to ask for what can be had.
  const settings = `[containers]
log_driver = "k8s-file"
[engine]
runtime = "${runtime}"
cgroup_manager = "cgroupfs"
events_logger = "file"
image_copy_tmp_dir = ${at("copy")}
lock_type = "file"
static_dir = ${at("graph/libpod")}
tmp_dir = ${at("tmp")}
volume_path = ${at("graph/volumes")}
[engine.runtimes]
${define("runc", "runc")}
${define("runsc", "runsc", ...runsc, "--network=none")}
${define("runsc-host", "runsc", ...runsc, "--network=host")}
[network]
network_config_dir = ${at("networks")}
`;
  const storage = `[storage]
driver = "overlay"
graphroot = ${at("graph")}
rootless_storage_path = ${at("graph")}
runroot = ${at("run")}
`;
  mkdirSync(join(directory, "copy"));
  writeFileSync(join(directory, "containers.conf"), settings);
  writeFileSync(join(directory, "storage.conf"), storage);
  return {
    CONTAINERS_CONF: join(directory, "containers.conf"),
    CONTAINERS_STORAGE_CONF: join(directory, "storage.conf"),
  };
}
