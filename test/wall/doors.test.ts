// @module-tag security
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findBwrap, findNativePrograms } from "../../src/machine/programs.ts";
import type { NetworkPlan } from "../../src/plan/request.ts";
import { openSandbox } from "../../src/sandbox/open.ts";
import { BubblewrapWall } from "../../src/wall/bubblewrap/wall.ts";
import { type Doors, openDoors } from "../../src/wall/doors.ts";
import type { Birth, Box, BoxBirth, Exit } from "../../src/wall/wall.ts";
import { findFirstProcess } from "../first-process.ts";
import { answer, dialling } from "../native/guarded-box.ts";
import { buildPrograms } from "../native/programs.ts";
import { World } from "../world.ts";

beforeAll(buildPrograms);

const policy = { learn: false, rules: [], secrets: [], reach: {} };
const guarded: NetworkPlan = { mode: "allowlist", origin: "", policy, ports: [53, 80, 443, 8080] };
const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", HOME: "/tmp" };

interface Ground {
  readonly world: World;
  readonly wall: BubblewrapWall;
  /** A program behind the wall, and what it says. */
  run(
    argv: readonly [string, ...string[]],
    birth?: Partial<Birth>,
    network?: NetworkPlan,
  ): Promise<Exit & { said: string }>;
  start(birth?: Partial<BoxBirth>, network?: NetworkPlan): Promise<Box>;
}

function lay(native = findNativePrograms()): Ground {
  const world = new World();
  onTestFinished(() => rmSync(world.directory, { recursive: true, force: true }));
  const bwrap = findBwrap(world.env["PATH"] as string);
  const wall = new BubblewrapWall({ bwrap, native, heldDirectory: join(world.directory, "held") });
  const plan = async (command: readonly [string, ...string[]], session: boolean, network: NetworkPlan) => {
    const planned = await planSandbox({ command, session, cwd: world.project, env: world.env });
    return { ...planned.plan, network };
  };
  return {
    world,
    wall,
    async run(argv, birth = {}, network = guarded) {
      const path = join(world.directory, "said");
      const stdio = [openSync("/dev/null", "r"), openSync(path, "w"), openSync(path, "a")] as const;
      try {
        const exit = await wall.run(await plan(argv, false, network), { env, ...birth }, stdio);
        return { ...exit, said: readFileSync(path, "utf8") };
      } finally {
        stdio.forEach(closeSync);
      }
    },
    async start(birth = {}, network = guarded) {
      mkdirSync(join(world.directory, "run"), { recursive: true });
      const directory = mkdtempSync(join(world.directory, "run", "session-"));
      return wall.start(await plan(["true"], true, network), { env, id: "abcdefghij", directory, ...birth });
    },
  };
}

const python = (script: string) => ["python3", "-c", `${dialling}\n${script}`] as const;

describe("a command behind bubblewrap with doors", () => {
  test("reaches them by whatever address it dials, and nobody else", async () => {
    const listening = createServer((socket) => socket.end("host")).listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as { port: number };
    const dials = [
      'dial("203.0.113.7", 80)',
      'dial("2001:db8::7", 443)',
      'dial("203.0.113.7", 22)',
      'dial("8.8.8.8", 53, socket.SOCK_DGRAM)',
      'dial("8.8.8.8", 123, socket.SOCK_DGRAM)',
      'dial("8.8.8.8", 53)',
      `dial("127.0.0.1", ${port})`,
    ].join("\n");
    expect(await lay().run(python(dials), { onDoors: answer })).toEqual({
      code: 0,
      killed: false,
      said: [
        "203.0.113.7 80 door ::ffff:203.0.113.7 80",
        "2001:db8::7 443 door 2001:db8::7 443",
        "203.0.113.7 22 Connection refused",
        "8.8.8.8 53 answer to hello",
        "8.8.8.8 123 Connection refused",
        "8.8.8.8 53 door ::ffff:8.8.8.8 53",
        `127.0.0.1 ${port} Connection refused`,
        "",
      ].join("\n"),
    });
    const control = spawnSync("python3", ["-c", `import socket; socket.create_connection(("127.0.0.1", ${port}))`]);
    expect(control.status).toBe(0);
    listening.close();
  });

  test("has no descriptor and no variable of all that, and nobody's network", async () => {
    const script = "ls /proc/self/fd | tr '\\n' ' '; env | cut -d= -f1 | sort | tr '\\n' ' '; tail -n +3 /proc/net/dev";
    const { said } = await lay().run(["sh", "-c", script]);
    expect(said).toMatch(/^0 1 2 3 HOME LANG (OLDPWD )?PATH PWD (SHLVL )?(_ )?\s*lo:.*\n$/);
  });

  test("cannot take a door's place, close it, or leave its network", async () => {
    const script = `
bind() { python3 -c "import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('', $1)); s.listen()" 2>/dev/null && echo bound $1; }
bind 443; bind 8080; bind 8081
unshare -Urn true 2>/dev/null && echo left
ip link set lo down 2>/dev/null && echo down
nsenter -t 1 -n true 2>/dev/null && echo entered
true`;
    expect((await lay().run(["sh", "-c", script])).said).toBe("bound 8081\n");
  });

  test("is refused at once where nobody holds the doors any more", async () => {
    const script =
      'dial("203.0.113.7", 443)\nimport os, time\nopen("one", "w")\nwhile not os.path.exists("two"): time.sleep(0.01)\ndial("203.0.113.7", 443)';
    const ground = lay();
    const running = ground.run(python(script), {
      onDoors: (doors) => {
        answer(doors);
        const look = async () => {
          while (spawnSync("test", ["-e", join(ground.world.project, "one")]).status !== 0) await sleep(10);
          await doors[Symbol.asyncDispose]();
          await sleep(10);
          writeFileSync(join(ground.world.project, "two"), "");
        };
        void look();
      },
    });
    expect((await running).said).toBe(
      "203.0.113.7 443 door ::ffff:203.0.113.7 443\n203.0.113.7 443 Connection refused\n",
    );
  });

  test("does not begin before somebody is behind them", async () => {
    const ground = lay();
    let begun: boolean | undefined;
    const { code } = await ground.run(["sh", "-c", "echo >begun"], {
      onDoors: () => {
        const look = "for _ in $(seq 20); do [ -e begun ] && exit; sleep 0.01; done; false";
        begun = spawnSync("sh", ["-c", look], { cwd: ground.world.project }).status === 0;
      },
    });
    expect([code, begun]).toEqual([0, false]);
  });

  test("does not go on where whoever is given them cannot take them", async () => {
    const ground = lay();
    const onDoors = () => {
      throw new Error("no hands");
    };
    await expect(ground.run(["sleep", "60"], { onDoors })).rejects.toThrow("no hands");
  });

  test("never begins where they cannot be opened", async () => {
    const ground = lay();
    const twice = { ...guarded, ports: [443, 443] };
    const onDoors = () => expect.unreachable();
    const refused = ground.run(["sh", "-c", "echo >begun"], { onDoors }, twice);
    await expect(refused).rejects.toMatchObject({
      code: "DOORS_FAILED",
      message: expect.stringContaining("podbot-gate: cannot listen at port 443"),
    });
    expect(spawnSync("test", ["-e", join(ground.world.project, "begun")]).status).toBe(1);
  });

  test("that cannot be found is told as such, and bubblewrap's own failures stay its own", async () => {
    await expect(lay().run(["no-such-program"])).rejects.toMatchObject({ code: "COMMAND_NOT_FOUND" });
    const ground = lay();
    const { plan } = await planSandbox({ command: ["true"], cwd: ground.world.project, env: ground.world.env });
    const lost = { ...plan, network: guarded, cwd: "/nowhere", directory: "/nowhere" };
    const nothing = openSync("/dev/null", "r+");
    const running = ground.wall.run(lost, { env }, [nothing, nothing, nothing]);
    await expect(running).rejects.toMatchObject({ code: "WALL_FAILED", message: expect.stringContaining("/nowhere") });
    closeSync(nothing);
  });

  test("finds what it is to trust, and cannot change it", async () => {
    const trust = [
      { target: "/run/podbot/trust/authority.pem", bytes: Buffer.from("authority\n") },
      { target: "/etc/passwd", bytes: Buffer.from("covered\n") },
    ];
    const script = `cat /run/podbot/trust/authority.pem /etc/passwd; stat -c %a /run/podbot/trust/authority.pem
for path in /run/podbot/trust/authority.pem /etc/passwd /run/podbot/trust/new; do echo x 2>/dev/null >$path && echo wrote; done; true`;
    const { said } = await lay().run(["sh", "-c", script], { trust });
    expect(said.replaceAll(/^sh: .*\n/gm, "")).toBe("authority\ncovered\n444\n");
  });

  test("never begins where that cannot be made, and nothing is left of it", async () => {
    const unmade = {
      target: "/etc/passwd",
      get bytes(): Buffer {
        throw new Error("it cannot be made");
      },
    };
    const ground = lay();
    const file = join(ground.world.project, "began");
    const made = { target: "/run/podbot/trust/authority.pem", bytes: Buffer.from("authority\n") };
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
    const before = pipes();
    for (const trust of [
      [unmade, made],
      [made, unmade],
    ]) {
      await expect(ground.run(["touch", file], { trust })).rejects.toThrow("it cannot be made");
      await expect(ground.start({ trust })).rejects.toThrow("it cannot be made");
    }
    await expect.poll(pipes).toBeLessThanOrEqual(before);
    expect(existsSync(file)).toBe(false);
    await ground.run(["touch", file], { trust: [made] });
    expect(existsSync(file)).toBe(true);
  });
});

describe("a session behind bubblewrap with doors", () => {
  const shell = async (box: Box, argv: readonly [string, ...string[]]) => {
    const running = await openSandbox(box).exec({ argv, timeoutMs: 20_000 });
    running.stdin.end();
    const [said] = await Promise.all([text(running.stdout), running.exited]);
    return said;
  };

  test("has them when it is born, and loses them with its end", async () => {
    const box = await lay().start();
    const doors = box.doors as Doors;
    expect([...doors.tcp.keys()]).toEqual([53, 80, 443, 8080]);
    answer(doors);
    expect(await shell(box, python('dial("203.0.113.7", 443)'))).toBe("203.0.113.7 443 door ::ffff:203.0.113.7 443\n");
    await box[Symbol.asyncDispose]();
    expect([...doors.tcp.values()].filter(({ listening }) => listening)).toEqual([]);
    expect(() => doors.dns.address()).toThrow();
    await doors[Symbol.asyncDispose]();
  });

  test("has none where the plan has none", async () => {
    await using box = await lay().start({}, { mode: "none", origin: "", policy: null, ports: [] });
    expect(box.doors).toBe(null);
  });

  test("gets new ones when the first are gone, by whoever may enter its network", async () => {
    await using box = await lay().start();
    const dial = () => shell(box, python('dial("203.0.113.7", 443)'));
    const pid = findFirstProcess("/run/podbot/in/abcdefghij.sock") as number;
    await box.doors?.[Symbol.asyncDispose]();
    expect(await dial()).toBe("203.0.113.7 443 Connection refused\n");
    await using doors = await openDoors(findNativePrograms(), { pid }, [443]);
    answer(doors);
    expect(await dial()).toBe("203.0.113.7 443 door ::ffff:203.0.113.7 443\n");
    const taken = openDoors(findNativePrograms(), { pid }, [443]);
    await expect(taken).rejects.toMatchObject({ code: "DOORS_FAILED", message: expect.stringMatching(/in use/i) });
  });

  test("is not there where they cannot be opened", async () => {
    const ground = lay();
    await expect(ground.start({}, { ...guarded, ports: [443, 443] })).rejects.toMatchObject({ code: "DOORS_FAILED" });
    expect(await ground.wall.list()).not.toContain("abcdefghij");
  });

  test("is not there where it is not wanted any more", async () => {
    const ground = lay();
    for (const delayMs of [null, 0, 5, 10, 20, 40]) {
      const unwanted = new AbortController();
      if (delayMs === null) unwanted.abort();
      else setTimeout(() => unwanted.abort(), delayMs);
      const box = await ground.start({ signal: unwanted.signal }).catch((error: unknown) => {
        expect(String(error)).toMatch(/abort/i);
        return null;
      });
      await box?.[Symbol.asyncDispose]();
      expect(await ground.wall.list()).not.toContain("abcdefghij");
    }
  });

  test("finds what it is to trust", async () => {
    const trust = [{ target: "/run/podbot/trust/authority.pem", bytes: Buffer.from("authority\n") }];
    await using box = await lay().start({ trust });
    expect(await shell(box, ["cat", "/run/podbot/trust/authority.pem"])).toBe("authority\n");
  });
});

describe("doors that are opened for a process", () => {
  test("are refused in words where there is no such process, or it is our own", async () => {
    const native = findNativePrograms();
    await expect(openDoors(native, { pid: 2 ** 31 - 1 }, [443])).rejects.toMatchObject({ code: "DOORS_FAILED" });
    await expect(openDoors(native, { pid: process.pid }, [443])).rejects.toThrow("our own network");
    await expect(openDoors({ gate: "/nowhere" }, { pid: 1 }, [443])).rejects.toMatchObject({ code: "DOORS_FAILED" });
  });

  test("are not opened for somebody who does not want them any more", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(openDoors(findNativePrograms(), { pid: 1 }, [443], signal)).rejects.toThrow("enough");
  });

  test("keep no process alive", async () => {
    const holding = () => process.getActiveResourcesInfo().filter((name) => /^(TCPServer|UDP)/.test(name));
    const before = holding();
    await using box = await lay().start();
    expect(box.doors?.tcp.size).toBe(4);
    expect(holding()).toEqual(before);
    const control = createServer().listen(0, "127.0.0.1");
    await once(control, "listening");
    expect(holding()).toEqual([...before, "TCPServerWrap"]);
    control.close();
  });
});
