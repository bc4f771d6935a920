// @module-tag security
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../eventually.ts";
import { answer, dialling, openGuardedBox, passThrough } from "./guarded-box.ts";
import { buildPrograms, environment, ordinary, sanitized } from "./programs.ts";

beforeAll(buildPrograms);

const ownNetwork = ["--user", "--map-root-user", "--net"];

/** The gate with a channel that is not Node's: what it says there is heard, and what it is told is up to the test. */
function startWithPlainChannel(gate: string, words: readonly string[]): ChildProcess {
  return spawn(gate, words, {
    env: { ...environment, NODE_CHANNEL_FD: "3" },
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
}

/** Where a helper that has a network of its own meets whoever wants its doors. */
interface Meeting extends AsyncDisposable {
  readonly socket: string;
  bring(program: string, ports: readonly string[], before?: readonly string[]): ChildProcess;
  /** As a helper that is none. */
  say(words: string): Promise<void>;
  /** Resolves when somebody listens. */
  made(): Promise<void>;
}

async function openMeeting(): Promise<Meeting> {
  const directory = mkdtempSync(join(tmpdir(), "podbot-meeting-"));
  const socket = join(directory, "socket");
  const made = async () => {
    for (let tries = 0; tries < 400 && !existsSync(socket); tries++) await wait(25);
  };
  return {
    socket,
    made,
    bring: (program, ports, before = []) =>
      spawn("unshare", [...ownNetwork, program, ...before, "--here", socket, ...ports], {
        env: environment,
        stdio: ["ignore", "ignore", "pipe"],
      }),
    async say(words) {
      // A socket has its name before somebody listens at it.
      const connection = await eventually(async () => {
        const connecting = connect(socket);
        await once(connecting, "connect");
        return connecting;
      });
      connection.on("error", () => {});
      connection.end(words);
      connection.resume();
      // Not `once`: what is not read to its end is broken off.
      await new Promise((resolve) => connection.on("close", resolve));
    },
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function ended(child: ChildProcess): Promise<{ readonly status: number | null; readonly said: string }> {
  const [said, [status]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { status, said };
}

describe.each([ordinary, sanitized])("podbot-gate, $build build", ({ gate }) => {
  it("opens doors to which every address leads, and no other port", async () => {
    await using box = await openGuardedBox();
    await box.python(dialling);
    expect(await box.python('dial("203.0.113.7", 443)')).toBe("203.0.113.7 443 Network is unreachable\n");
    using passed = await passThrough(gate, [`${box.pid}`, box.network, "80", "443"]);
    expect(passed).toMatchObject({ status: 0, said: "", ports: [53, 80, 443] });
    answer(passed);
    for (const [address, port, seen] of [
      ["203.0.113.7", 443, "::ffff:203.0.113.7"],
      ["198.18.3.4", 80, "::ffff:198.18.3.4"],
      ["127.0.0.1", 80, "::ffff:127.0.0.1"],
      ["8.8.8.8", 53, "::ffff:8.8.8.8"],
      ["2001:db8::7", 443, "2001:db8::7"],
      ["::1", 80, "::1"],
    ] as const) {
      expect(await box.python(`dial("${address}", ${port})`)).toBe(`${address} ${port} door ${seen} ${port}\n`);
    }
    for (const address of ["203.0.113.7", "2001:db8::7", "127.0.0.1"]) {
      expect(await box.python(`dial("${address}", 22)`)).toBe(`${address} 22 Connection refused\n`);
    }
  });

  it("hears questions for names wherever they are asked, and answers come from there", async () => {
    await using box = await openGuardedBox();
    using passed = await passThrough(gate, [`${box.pid}`, box.network]);
    answer(passed);
    await box.python(dialling);
    const ask = (address: string, port: number) => box.python(`dial("${address}", ${port}, socket.SOCK_DGRAM)`);
    // Connected: what comes from anybody else is not heard.
    expect(await ask("8.8.8.8", 53)).toBe("8.8.8.8 53 answer to hello\n");
    expect(await ask("127.0.0.1", 53)).toBe("127.0.0.1 53 answer to hello\n");
    expect(await ask("2001:db8::53", 53)).toBe("2001:db8::53 53 Connection refused\n");
    expect(await ask("8.8.8.8", 123)).toBe("8.8.8.8 123 Connection refused\n");
  });

  it("opens doors again when whoever had them is gone, and in between there are none", async () => {
    await using box = await openGuardedBox();
    await box.python(dialling);
    for (let round = 0; round < 3; round++) {
      using passed = await passThrough(gate, [`${box.pid}`, "-", "443", "8080"]);
      expect(passed.ports).toEqual([53, 443, 8080]);
      answer(passed);
      expect(await box.python('dial("203.0.113.7", 443)')).toContain("door");
      for (const server of passed.tcp.values()) server.close();
      expect(await box.python('dial("203.0.113.7", 443)')).toBe("203.0.113.7 443 Connection refused\n");
    }
  });

  it("leaves no door behind when whoever had them is killed", async () => {
    await using box = await openGuardedBox();
    await box.python(dialling);
    const script = `
const words = ${JSON.stringify([`${box.pid}`, box.network, "443"])};
const gate = require("child_process").spawn(${JSON.stringify(gate)}, words, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
gate.on("message", ({ door }, server) => door === "tcp" && server.on("connection", (socket) => socket.end("held")));
gate.on("close", () => console.log("open"));`;
    const holder = spawn(process.execPath, ["-e", script], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    await once(holder.stdout as NodeJS.ReadableStream, "data");
    expect(await box.python('dial("203.0.113.7", 443)')).toBe("203.0.113.7 443 held\n");
    holder.kill("SIGKILL");
    await once(holder, "close");
    expect(await box.python('dial("203.0.113.7", 443)')).toBe("203.0.113.7 443 Connection refused\n");
    using passed = await passThrough(gate, [`${box.pid}`, box.network, "443"]);
    answer(passed);
    expect(await box.python('dial("203.0.113.7", 443)')).toContain("door");
  });

  it("enters no network but the one that is meant", async () => {
    await using box = await openGuardedBox();
    const other = await passThrough(gate, [`${box.pid}`, `${Number(box.network) + 1}`, "443"]);
    expect(other).toMatchObject({ status: 125, ports: [] });
    expect(other.said).toBe("podbot-gate: the process is in another network than it should be\n");
    const own = await passThrough(gate, [`${process.pid}`, "-", "443"]);
    expect(own).toMatchObject({ status: 125, said: "podbot-gate: the process is in our own network\n", ports: [] });
  });

  it("leaves a network alone that leads anywhere else", async ({ skip }) => {
    // A bridge, as something that is not the loopback and is up.
    const script = `
import fcntl, socket, struct, time
control = socket.socket()
fcntl.ioctl(control, 0x89a0, b"out\\0") # SIOCBRADDBR
fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"out", 1)) # SIOCSIFFLAGS, IFF_UP
print("up", flush=True)
time.sleep(60)
`;
    const child = spawn("unshare", [...ownNetwork, "python3", "-c", script], { stdio: ["ignore", "pipe", "ignore"] });
    const [up] = await Promise.race([once(child.stdout, "data"), once(child, "close")]);
    skip(!(up instanceof Buffer), "this kernel has no bridges");
    const refused = await passThrough(gate, [`${child.pid}`, "-", "443"]);
    child.kill("SIGKILL");
    expect(refused).toMatchObject({ status: 125, said: "podbot-gate: the network has a way out\n", ports: [] });
  });

  it("raises a loopback that nobody has raised", async () => {
    const words = [...ownNetwork, "sh", "-c", "echo made; exec sleep 60"];
    const child = spawn("unshare", words, { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout as NodeJS.ReadableStream, "data");
    using passed = await passThrough(gate, [`${child.pid}`, "-", "443"]);
    child.kill("SIGKILL");
    expect(passed).toMatchObject({ status: 0, said: "", ports: [53, 443] });
  });

  it("says which port it cannot have, and hands nothing over", async () => {
    await using box = await openGuardedBox();
    await box.python('import socket; s = socket.socket(); s.bind(("0.0.0.0", 8080)); s.listen()');
    const passed = await passThrough(gate, [`${box.pid}`, box.network, "443", "8080"]);
    expect(passed).toMatchObject({ status: 125, ports: [], dns: undefined });
    expect(passed.said).toMatch(/^podbot-gate: cannot listen at port 8080: Address (already )?in use\n$/);
  });

  it("lets nobody inside take a door's place", async () => {
    await using box = await openGuardedBox();
    using _passed = await passThrough(gate, [`${box.pid}`, box.network, "8080"]);
    const bind = (port: number, kind: string) => `
import socket
for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    for address in ("0.0.0.0", "127.0.0.1", "203.0.113.7"):
        with socket.socket(socket.AF_INET, socket.${kind}) as s:
            s.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                s.bind((address, ${port}))
                if socket.${kind} == socket.SOCK_STREAM: s.listen()
                print("bound", address, option)
            except OSError as error: pass
`;
    expect(await box.python(bind(8080, "SOCK_STREAM"))).toBe("");
    expect(await box.python(bind(443, "SOCK_STREAM"))).toBe("");
    expect(await box.python(bind(53, "SOCK_DGRAM"))).toBe("");
    expect(await box.python(bind(8081, "SOCK_STREAM"))).toContain("bound 0.0.0.0");
  });

  it("does not reach what listens on the host's own loopback", async () => {
    const server = createServer((socket) => socket.end("host")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    await using box = await openGuardedBox();
    using _passed = await passThrough(gate, [`${box.pid}`, box.network, "443"]);
    await box.python(dialling);
    expect(await box.python(`dial("127.0.0.1", ${port})`)).toBe(`127.0.0.1 ${port} Connection refused\n`);
    const control = spawn("python3", ["-c", `${dialling}\ndial("127.0.0.1", ${port})`], {
      stdio: ["ignore", "pipe", 2],
    });
    expect(await text(control.stdout as NodeJS.ReadableStream)).toBe(`127.0.0.1 ${port} host\n`);
    server.close();
  });

  it.each([
    ["junk", "hello\n", /^podbot-gate: a door was not taken over\n$/],
    ["a refusal", '{"cmd":"NODE_HANDLE_NACK"}\n', /^podbot-gate: a door was not taken over\n$/],
    [
      "a line without end",
      "x".repeat(300),
      /^podbot-gate: nobody has taken a door over: Message (too )?(long|large)\n$/,
    ],
    ["an answer in pieces", "\n", /not taken over/],
  ])("ends at once when the channel has %s instead of an answer", async (_, words, complaint) => {
    await using box = await openGuardedBox();
    const child = startWithPlainChannel(gate, [`${box.pid}`, box.network, "443"]);
    (child.stdio[3] as NodeJS.WritableStream).on("error", () => {}).write(words);
    const { status, said } = await ended(child);
    expect(status).toBe(125);
    expect(said).toMatch(complaint);
  });

  it.each([0, 1, 2])("ends when the channel does, after %i doors", async (taken) => {
    await using box = await openGuardedBox();
    const child = startWithPlainChannel(gate, [`${box.pid}`, box.network, "443"]);
    const channel = child.stdio[3] as unknown as Socket;
    channel.on("error", () => {});
    for (let door = 0; door < taken; door++) {
      await once(channel, "data");
      channel.write('{"cmd":"NODE_HANDLE_ACK"}\n');
    }
    channel.destroy();
    const { status, said } = await ended(child);
    expect(status).toBe(125);
    expect(said).toMatch(/^podbot-gate: (nobody has taken a door over|cannot hand a door over): .*\n$/);
    // And it can be tried again.
    using passed = await passThrough(gate, [`${box.pid}`, box.network, "443"]);
    expect(passed.status).toBe(0);
  });

  it("says who is missing", async () => {
    const gone = spawn("true");
    await once(gone, "close");
    const passed = await passThrough(gate, [`${gone.pid}`, "-", "443"]);
    expect(passed).toMatchObject({ status: 125, ports: [] });
    expect(passed.said).toMatch(
      /^podbot-gate: cannot look at the network of the process: No such file or directory\n$/,
    );
  });

  it.each([
    [[]],
    [["1"]],
    [["0", "-"]],
    [["-1", "-"]],
    [["x", "-"]],
    [["1", "x"]],
    [["1", "0"]],
    [["1", "-5"]],
    [["1", "99999999999999999999"]],
    [["1", "-", "0"]],
    [["1", "-", "65536"]],
    [["1", "-", "80", "x"]],
  ])("refuses the arguments %j", async (words) => {
    const passed = await passThrough(gate, words);
    expect(passed.status).toBe(125);
    expect(passed.said).toMatch(/^podbot-gate: (usage|NETWORK|a port|too many).*\n$/);
  });

  it("opens many doors, and refuses too many", async () => {
    await using box = await openGuardedBox();
    const ports = (count: number) => Array.from({ length: count }, (_, at) => `${10_000 + at}`);
    using many = await passThrough(gate, [`${box.pid}`, box.network, ...ports(512)]);
    expect(many).toMatchObject({ status: 0, said: "" });
    expect(many.tcp.size).toBe(513);
    const tooMany = await passThrough(gate, [`${box.pid}`, box.network, ...ports(513)]);
    expect(tooMany).toMatchObject({ status: 125, said: "podbot-gate: too many ports\n", ports: [] });
  });

  it.each([undefined, "", "x", "-1", "2", "99"])("refuses the channel %j", async (name) => {
    await using box = await openGuardedBox();
    const env = { ...environment, ...(name === undefined ? {} : { NODE_CHANNEL_FD: name }) };
    const child = spawn(gate, [`${box.pid}`, "-", "443"], { env, stdio: ["ignore", "ignore", "pipe"] });
    const { status, said } = await ended(child);
    expect(status).toBe(125);
    expect(said).toMatch(/^podbot-gate: (NODE_CHANNEL_FD names no channel|cannot hand a door over: .*)\n$/);
  });

  describe("where somebody else must bring them", () => {
    it("passes on what a helper in that network opens, which then ends", async () => {
      await using meeting = await openMeeting();
      const relayed = passThrough(gate, ["--relay", meeting.socket]);
      const helper = ended(meeting.bring(gate, ["80", "443"]));
      using passed = await relayed;
      expect(passed).toMatchObject({ status: 0, said: "", ports: [53, 80, 443] });
      expect(passed.dns).toBeDefined();
      expect(await helper).toEqual({ status: 0, said: "" });
      expect(existsSync(meeting.socket)).toBe(false);
    });

    it("says in the helper's words what is wrong, and hands nothing over", async () => {
      await using meeting = await openMeeting();
      const relayed = passThrough(gate, ["--relay", meeting.socket]);
      const taken = 's = socket.socket(); s.bind(("", 443)); s.listen()';
      const script = `import socket, subprocess, sys; ${taken}; sys.exit(subprocess.run(sys.argv[1:]).returncode)`;
      const helper = ended(meeting.bring("python3", ["443"], ["-c", script, gate]));
      const passed = await relayed;
      expect(passed).toMatchObject({ status: 125, ports: [], dns: undefined });
      expect(passed.said).toMatch(/^podbot-gate: cannot listen at port 443: Address (already )?in use\n$/);
      expect((await helper).status).toBe(125);
    });

    it.each([
      ["nothing but words", "no doors today\n", "no doors today"],
      ["half a line", "half", "the helper speaks in riddles"],
      ["a zero byte", "a\0b\n", "the helper speaks in riddles"],
      ["a line without end", "x".repeat(5_000), "the helper speaks in riddles"],
    ])("takes %s for a failure", async (_what, words, said) => {
      await using meeting = await openMeeting();
      const relayed = passThrough(gate, ["--relay", meeting.socket]);
      await meeting.say(words);
      expect(await relayed).toMatchObject({ status: 125, said: `podbot-gate: ${said}\n`, ports: [] });
    });

    it("can be reached by nobody but its owner and root", async () => {
      await using meeting = await openMeeting();
      const relayed = passThrough(gate, ["--relay", meeting.socket]);
      await meeting.made();
      expect(statSync(meeting.socket).mode & 0o777).toBe(0o600);
      await meeting.say("enough\n");
      expect(await relayed).toMatchObject({ status: 125 });
    });
  });
});
