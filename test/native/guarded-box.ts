import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import type { Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import type { Server } from "node:net";
import { text } from "node:stream/consumers";
import { environment } from "./programs.ts";

/** A box of bubblewrap's with a network of its own, in which a shell waits for scripts. */
export interface GuardedBox extends AsyncDisposable {
  /** Its first process, as bubblewrap tells. */
  readonly pid: number;
  readonly network: string;
  /** Runs a script of Python's in it, as an ordinary user without capabilities. */
  python(script: string): Promise<string>;
}

export async function openGuardedBox(): Promise<GuardedBox> {
  const names = ["user", "pid", "ipc", "uts", "net"].map((name) => `--unshare-${name}`);
  const root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"];
  const words = [...names, ...root, "--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--info-fd", "3"];
  const child = spawn("bwrap", [...words, "python3", "-u", "-c", servant], {
    env: environment,
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  const info = JSON.parse(await text(child.stdio[3] as NodeJS.ReadableStream)) as Record<string, number>;
  const { stdin, stdout } = child as ChildProcess & { stdin: NodeJS.WritableStream; stdout: NodeJS.ReadableStream };
  let heard = "";
  stdout.on("data", (bytes) => {
    heard += String(bytes);
  });
  const box: GuardedBox = {
    pid: Number(info["child-pid"]),
    network: String(info["net-namespace"]),
    async python(script) {
      stdin.write(`${JSON.stringify(script)}\n`);
      while (!heard.includes("\0")) await once(stdout, "data");
      const answer = heard.slice(0, heard.indexOf("\0"));
      heard = heard.slice(answer.length + 1);
      return answer;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(child, "close");
      child.kill("SIGKILL");
      await closed;
    },
  };
  // bubblewrap tells of the box before it is done with its network.
  await box.python("");
  return box;
}

/** Executes a script a line, and says what it has said. */
const servant = `
import contextlib, io, json, sys, traceback
space = {}
for line in sys.stdin:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try: exec(json.loads(line), space)
        except Exception: print(traceback.format_exc())
    sys.stdout.write(said.getvalue() + "\\0")
    sys.stdout.flush()
`;

/** Scripts that dial: each says what came of it, in one line. */
export const dialling = `
import socket
def dial(address, port, kind=socket.SOCK_STREAM):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as s:
        s.settimeout(10)
        try:
            s.connect((address, port))
            s.send(b"hello")
            print(address, port, s.recv(100).decode())
        except OSError as error: print(address, port, error.strerror or error)
`;

/** What a gate has handed over, and how it ended. */
export interface Passed extends Disposable {
  readonly status: number | null;
  readonly said: string;
  readonly tcp: ReadonlyMap<number, Server>;
  readonly dns: DatagramSocket | undefined;
  readonly ports: readonly number[];
}

/** Starts a program that hands doors to its parent, over Node's own channel, and waits for its end. */
export async function passThrough(
  program: string,
  words: readonly string[],
  options: SpawnOptions = { stdio: ["ignore", "ignore", "pipe", "ipc"] },
  onDoor: (door: Server | DatagramSocket, child: ChildProcess) => void = () => {},
): Promise<Passed> {
  const child = spawn(program, words, { env: environment, ...options });
  const tcp = new Map<number, Server>();
  let dns: DatagramSocket | undefined;
  child.on("message", (message, handle) => {
    const { door, port } = message as { door: string; port: number };
    if (door === "udp") dns = handle as DatagramSocket;
    else tcp.set(port, handle as Server);
    onDoor(handle as Server | DatagramSocket, child);
  });
  const [said, [status]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    // A child whose channel was closed out here never says that all of it is closed.
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return {
    status,
    said,
    tcp,
    dns,
    ports: [...tcp.keys()],
    [Symbol.dispose]() {
      for (const server of tcp.values()) server.close();
      dns?.close();
    },
  };
}

/** Answers at every door with what was dialled. */
export function answer({ tcp, dns }: Pick<Passed, "tcp" | "dns">): void {
  for (const server of [...tcp.values(), ...(dns === undefined ? [] : [dns])]) answerAt(server);
}

export function answerAt(door: Server | DatagramSocket): void {
  if ("send" in door) {
    door.on("message", (question, { address, port }) => door.send(`answer to ${question}`, port, address));
  } else {
    door.on("connection", (socket) => {
      socket.on("error", () => {}).end(`door ${socket.localAddress} ${socket.localPort}`);
    });
  }
}
