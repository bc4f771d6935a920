import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { accountOf } from "../../suite/run.ts";
import { execute } from "./execute.ts";
import { Service, type ServiceOptions } from "./service.ts";
import { type EngineContext, imageOf, type Started, type Starter } from "./started.ts";

/** The command line of the package that has the daemon; an earlier `docker` in PATH may be anything. */
const program = "/usr/bin/docker";

/** A Docker daemon with a containerd of its own, for root and for the group of an ordinary user. */
export const docker: Starter = {
  names: ["docker", "docker-group"],
  prefix: "docker",
  async start(context: EngineContext): Promise<Started> {
    const { run, place, archive, root, user } = context;
    const directory = join(run.directory, place);
    mkdirSync(directory);
    const socket = join(directory, "socket");
    // Docker would use the machine's containerd if one runs.
    const containerd = new Service(run, configureContainerd(place, join(directory, "containerd")));
    const service = new Service(run, {
      name: place,
      words: await daemonWords(context, directory, socket),
      socket,
      pidfile: pidfileIn(directory),
    });
    const env = { ...run.env, DOCKER_HOST: `unix://${socket}`, DOCKER_CONFIG: join(directory, "config") };
    const cli = (...words: string[]) => execute([program, ...words], { env: { ...env, HOME: root.home } });

    async function end(): Promise<void> {
      await service.stop();
      await containerd.stop();
    }

    try {
      await containerd.start();
      await service.start();
      await cli("import", archive, imageOf(run));
    } catch (error) {
      await end();
      throw error;
    }
    const engine = { socket, image: imageOf(run), env, command: [program] };
    return {
      place,
      service,
      engines: [
        { ...engine, name: "docker", caller: root },
        { ...engine, name: "docker-group", caller: user },
      ],
      async stop() {
        service.resume();
        try {
          // By name: Docker may still list a nameless container that it has removed, and fail to remove it again.
          const listed = service.isRunning ? await cli("ps", "--all", "--format", "{{.Names}}") : "";
          const names = listed.split("\n").filter((name) => name !== "");
          if (names.length > 0) await cli("rm", "--force", ...names);
        } finally {
          await end();
        }
      },
    };
  },
};

const pidfileIn = (directory: string) => join(directory, "pid");

async function daemonWords({ run, place, user }: EngineContext, directory: string, socket: string): Promise<string[]> {
  const settings = join(directory, "daemon.json");
  // Docker 20.10 writes a key to /etc/docker unless this setting names another path. Later versions write none.
  const isOld = (await execute(["dockerd", "--version"])).includes("version 20.10");
  writeFileSync(settings, JSON.stringify(isOld ? { "deprecated-key-path": join(directory, "key.json") } : {}));
  return [
    "dockerd",
    ...["--host", `unix://${socket}`],
    ...["--group", String(user.gid)],
    ...["--config-file", settings],
    ...["--data-root", join(directory, "data")],
    ...["--exec-root", join(directory, "exec")],
    ...["--pidfile", pidfileIn(directory)],
    ...["--containerd", join(directory, "containerd/socket")],
    ...["--cgroup-parent", `/${accountOf(run)}/${place}`],
    // No network of its own: nothing of the machine's is changed.
    ...["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"],
  ];
}

function configureContainerd(place: string, directory: string): ServiceOptions {
  mkdirSync(directory);
  const at = (path: string) => JSON.stringify(join(directory, path));
  const settings = `version = 2
root = ${at("root")}
state = ${at("state")}
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = ${at("socket")}
[plugins."io.containerd.internal.v1.opt"]
path = ${at("opt")}
`;
  writeFileSync(join(directory, "config.toml"), settings);
  return {
    name: `${place}-containerd`,
    words: ["containerd", "--config", join(directory, "config.toml")],
    socket: join(directory, "socket"),
    isReady: canConnect,
  };
}

function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
