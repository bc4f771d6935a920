// @module-tag security
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { newWorld } from "../world.ts";

const servers: Server[] = [];

/** A listener of the host that answers `reached`. */
async function listen(address: string | { readonly port: number; readonly host: string }): Promise<Server> {
  const server = createServer((socket) => socket.end("reached\n"));
  servers.push(server);
  if (typeof address === "string") server.listen(address);
  else server.listen(address.port, address.host);
  await once(server, "listening");
  return server;
}

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Asks a Unix socket; `@name` is an abstract one. */
function ask(address: string): string {
  const python = `import socket,sys
s=socket.socket(socket.AF_UNIX); s.settimeout(3)
a=sys.argv[1]; s.connect("\\0"+a[1:] if a[0]=="@" else a); print(s.recv(99).decode(), end="")`;
  return `python3 -c '${python}' '${address}'`;
}

describe("sockets of the host on the filesystem", () => {
  test.each(["home/agent.sock", "home/.config/editor/ipc.sock", "home/project/dev.sock", "elsewhere/s.sock"])(
    "cannot be reached: %s",
    async (path) => {
      const world = newWorld();
      const socket = join(world.directory, path);
      world.file(`${path}.txt`);
      await listen(socket);
      const child = spawn("sh", ["-c", ask(socket)], { stdio: ["ignore", "pipe", "ignore"] });
      const [control] = await once(child.stdout, "data");
      expect(control.toString()).toBe("reached\n");
      const { stdout, stderr } = await world.inside(ask(socket));
      expect(stdout).toBe("");
      expect(stderr).toMatch(/ConnectionRefused|PermissionError/);
    },
  );

  test("in /tmp and /run are not there at all", async () => {
    const world = newWorld();
    const socket = `/tmp/podbot-test-${process.pid}.sock`;
    await listen(socket);
    try {
      const { stderr } = await world.inside(ask(socket));
      expect(stderr).toContain("FileNotFoundError");
    } finally {
      rmSync(socket, { force: true });
    }
    expect((await world.inside("ls -A /run | grep -v podbot; ls -A /run/user")).stdout).toBe("");
  });

  test("can be reached where a rule of the owner's names them", async () => {
    const world = newWorld();
    const socket = join(world.project, "dev.sock");
    await listen(socket);
    expect((await world.inside(ask(socket), "--rw", socket)).stdout).toBe("reached\n");
  });

  test("of agents for keys and of buses have lost their variables too", async () => {
    const world = newWorld();
    for (const name of [
      "SSH_AUTH_SOCK",
      "DBUS_SESSION_BUS_ADDRESS",
      "XDG_RUNTIME_DIR",
      "GPG_AGENT_INFO",
      "DISPLAY",
      "WAYLAND_DISPLAY",
      "TMUX",
      "VSCODE_IPC_HOOK_CLI",
      "DOCKER_HOST",
    ]) {
      world.env[name] = `planted-${name}`;
    }
    expect((await world.inside("env")).stdout).not.toContain("planted");
  });
});

describe("abstract sockets of the host", () => {
  test.each(["none", "open"])("cannot be reached with network %s", async (mode) => {
    const world = newWorld();
    const name = `podbot-abstract-${process.pid}-${mode}`;
    // Node pads abstract names, so the listener is Python's.
    const python = `import socket
s=socket.socket(socket.AF_UNIX); s.bind("\\0${name}"); s.listen(); print("ready",flush=True)
while 1: s.accept()[0].sendall(b"reached\\n")`;
    const listener = spawn("python3", ["-c", python], { stdio: ["ignore", "pipe", "inherit"] });
    await once(listener.stdout, "data");
    const child = spawn("sh", ["-c", ask(`@${name}`)], { stdio: ["ignore", "pipe", "ignore"] });
    const [control] = await once(child.stdout, "data");
    expect(control.toString()).toBe("reached\n");
    const { stdout, stderr } = await world.inside(ask(`@${name}`), "--network", mode);
    listener.kill("SIGKILL");
    expect(stdout).toBe("");
    expect(stderr).toMatch(/ConnectionRefused|PermissionError/);
  });

  test("of the sandbox's own work", async () => {
    const world = newWorld();
    const python = `import socket
a=socket.socket(socket.AF_UNIX); a.bind("\\0mine"); a.listen(); b=socket.socket(socket.AF_UNIX); b.connect("\\0mine"); print("ok")`;
    expect((await world.inside(`python3 -c '${python}'`, "--network", "open")).stdout).toBe("ok\n");
  });
});

describe("the engine's socket", () => {
  test("is out of reach by every path, and handed in by --docker with a warning", async () => {
    const world = newWorld();
    const socket = join(world.directory, "engine", "docker.sock");
    world.file("engine/x");
    await listen(socket);
    world.env["DOCKER_HOST"] = `unix://${socket}`;
    expect((await world.inside(ask(socket))).stdout).toBe("");
    const { stdout, stderr } = await world.inside(`${ask(socket)}; echo $DOCKER_HOST`, "--docker");
    expect(stdout).toBe(`reached\nunix://${socket}\n`);
    expect(stderr).toContain("This is a change of trust");
  });

  test("may be absent, unless it was asked for", async () => {
    const world = newWorld();
    world.env["DOCKER_HOST"] = "unix:///nowhere/docker.sock";
    expect((await world.inside("true")).status).toBe(0);
    const { status, stderr } = await world.inside("true", "--docker");
    expect(status).toBe(125);
    expect(stderr).toContain("There is no engine socket at /nowhere/docker.sock");
  });
});

/** Connects by TCP and prints the answer or the error's name. */
function dial(host: string, port: number): string {
  return `python3 -c 'import socket
try: s=socket.create_connection(("${host}",${port}),3); print(s.recv(99).decode(),end="")
except OSError as e: print(type(e).__name__, e.errno)'`;
}

describe("the network", () => {
  test("has doors by default and nothing else: whoever asks for the world is answered by Podbot", async () => {
    const world = newWorld();
    const server = await listen({ port: 0, host: "127.0.0.1" });
    const { port } = server.address() as { port: number };
    const ask =
      'import urllib.request,urllib.error\\ntry: urllib.request.urlopen("http://169.254.169.254/")\\nexcept urllib.error.HTTPError as e: print(e.code, "NETWORK_DENIED" in e.read().decode())';
    const { stdout } = await world.inside(
      `${dial("127.0.0.1", port)}; python3 -c "$(printf '${ask}')"; tail -n +3 /proc/net/dev | cut -d: -f1`,
    );
    const [own, metadata, ...interfaces] = stdout.trim().split("\n");
    expect(own).toBe("ConnectionRefusedError 111");
    expect(metadata).toBe("403 True");
    expect(interfaces.map((name) => name.trim())).toEqual(["lo"]);
  });

  test("is loopback alone with --network none; nothing of the host's or beyond answers, and at once", async () => {
    const world = newWorld();
    const server = await listen({ port: 0, host: "127.0.0.1" });
    const { port } = server.address() as { port: number };
    const { stdout } = await world.inside(
      `${dial("127.0.0.1", port)}; ${dial("169.254.169.254", 80)}; tail -n +3 /proc/net/dev | cut -d: -f1`,
      "--network",
      "none",
    );
    const [own, metadata, ...interfaces] = stdout.trim().split("\n");
    expect(own).toBe("ConnectionRefusedError 111");
    expect(metadata).toBe("OSError 101");
    expect(interfaces.map((name) => name.trim())).toEqual(["lo"]);
  });

  test("is the host's with --network open", async () => {
    const world = newWorld();
    const server = await listen({ port: 0, host: "127.0.0.1" });
    const { port } = server.address() as { port: number };
    expect((await world.inside(dial("127.0.0.1", port), "--network", "open")).stdout).toBe("reached\n");
    expect((await world.inside(dial("127.0.0.1", port), "--network=true")).stdout).toBe("reached\n");
    expect((await world.inside("cat /etc/resolv.conf >/dev/null && echo readable", "--network", "open")).stdout).toBe(
      existsSync("/etc/resolv.conf") ? "readable\n" : "",
    );
  });

  test("inside, a loopback server works without network", async () => {
    const world = newWorld();
    const python = `import socket,threading
a=socket.create_server(("127.0.0.1",0)); threading.Thread(target=lambda: a.accept()[0].sendall(b"ok")).start()
print(socket.create_connection(a.getsockname()).recv(9).decode())`;
    expect((await world.inside(`python3 -c '${python}'`)).stdout).toBe("ok\n");
  });
});
