import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { eventually } from "../eventually.ts";
import { EngineWorld, type OpenBox, openBox } from "./engine-box.ts";
import { call } from "./engines/api.ts";
import type { TestEngine } from "./engines/engine.ts";
import type { Extent } from "./extent.ts";
import { openProxy } from "./proxy.ts";

/** Bits of a process's capabilities. */
const bits = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  SETGID: 6,
  SETUID: 7,
  SYS_ADMIN: 21,
  MKNOD: 27,
  SETPCAP: 8,
  SYS_CHROOT: 18,
};
const mask = (...names: (keyof typeof bits)[]) => names.reduce((sum, name) => sum | (1n << BigInt(bits[name])), 0n);
const minimal = mask("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID");
const inner = minimal | mask("SYS_ADMIN", "MKNOD", "SETPCAP", "SYS_CHROOT");

/** What is done in a box by way of trying, and works for who may do everything. */
const attempts = {
  "make a device": 'mknod "$D/device" c 1 3',
  "mount a filesystem": 'busybox mount -t tmpfs none "$D/mounted"',
  "make a user namespace": "unshare --user true",
  "make a mount namespace": "unshare --mount true",
};
type Attempt = keyof typeof attempts;

const places = 'D=$(mktemp -d); mkdir "$D/mounted"; ';

/** What the kernel of the box lets a process see of itself. */
interface Status {
  readonly CapInh: bigint;
  readonly CapPrm: bigint;
  readonly CapEff: bigint;
  readonly CapBnd: bigint;
  readonly CapAmb: bigint;
  readonly NoNewPrivs: string;
  readonly Seccomp: string;
  readonly Seccomp_filters: string;
}

function statusOf(said: string): Status {
  const fields = Object.fromEntries([...said.matchAll(/^(\w+):\s*(.*)$/gm)].map(([, name, value]) => [name, value]));
  const hex = (name: string) => BigInt(`0x${fields[name] ?? "0"}`);
  return {
    ...(fields as unknown as Status),
    CapInh: hex("CapInh"),
    CapPrm: hex("CapPrm"),
    CapEff: hex("CapEff"),
    CapBnd: hex("CapBnd"),
    CapAmb: hex("CapAmb"),
  };
}

/** The system call of debuggers. */
const ptrace = process.arch === "arm64" ? 117 : 101;

/**
 * What an engine's container is like from inside: every promise of the profiles, by trying. What no container is needed
 * for is left out but on one engine, and what an engine is asked for is heard from one of each make.
 */
export function boxes(title: string, engine: TestEngine, extent: Extent): void {
  const hasAll = extent === "everything";
  const isRootless = engine.name === "podman-rootless";
  const isDocker = engine.name.startsWith("docker");
  const isGvisor = engine.runtime === "runsc";
  const isRoot = engine.name !== "docker-group";
  const home = isRoot ? "/root" : "/home/podbot";
  /** An ordinary user's Podman gives a container a network by a device that some machines keep for root. */
  const canNetwork = !isRootless || (lstatSync("/dev/net/tun").mode & 0o006) === 0o006;

  describe(`an ordinary box of ${title}`, () => {
    const secret = randomBytes(16).toString("hex");
    let box: OpenBox;
    let image: string;

    beforeAll(async () => {
      image = await derive(engine);
      box = await openBox(
        engine,
        { image, agent: { env_allowlist: ["SECRET_OF_OWNER", "NOT_SET_AT_ALL"] } },
        {
          SECRET_OF_OWNER: secret,
          LC_LINES: "one\ntwo=2\n",
          PATH: `/caller/bin:${process.env["PATH"]}`,
          OTHER_SECRET: `other-${secret}`,
        },
      );
    });
    afterAll(async () => {
      await box?.[Symbol.asyncDispose]();
      if (image !== undefined) await call(engine.socket, "DELETE", `/v1.40/images/${image}?force=true`);
    });

    test("has the warden as its first process, which takes in orphans and buries them", async () => {
      const first = await box.shell("tr '\\0' ' ' </proc/1/cmdline");
      expect(first.stdout).toMatch(new RegExp(`^/run/podbot/warden /run/podbot/in/${box.id}\\.sock `));
      await box.shell("sh -c 'sleep 60 >/dev/null 2>&1 & echo $!' >/tmp/orphan");
      await eventually(async () => {
        expect((await box.shell("cut -d' ' -f2,4 /proc/$(cat /tmp/orphan)/stat")).stdout).toBe("(sleep) 1\n");
      });
      await box.shell("kill $(cat /tmp/orphan)");
      await eventually(async () => {
        expect((await box.shell('test -e /proc/$(cat /tmp/orphan) && echo "still there"')).stdout).toBe("");
      });
    });

    test("has five capabilities for root, and none for anybody else", async () => {
      const own = statusOf((await box.shell("cat /proc/self/status")).stdout);
      expect(own.CapBnd).toBe(isRoot ? minimal : 0n);
      expect([own.CapEff, own.CapPrm]).toEqual(isRoot ? [minimal, minimal] : [0n, 0n]);
      expect(own.CapAmb).toBe(0n);
      const ordinary = "setpriv --reuid 1234 --regid 1234 --clear-groups cat /proc/self/status";
      const other = await box.shell(ordinary);
      if (isRoot) expect(statusOf(other.stdout)).toMatchObject({ CapEff: 0n, CapPrm: 0n, CapAmb: 0n });
      else expect(other.code).not.toBe(0);
      // Root has more where nobody takes it away.
      expect(statusOf(bare(engine, "cat /proc/self/status")).CapBnd & ~minimal).not.toBe(0n);
    });

    test("lets no program gain privileges, and filters system calls", async () => {
      const own = statusOf((await box.shell("cat /proc/self/status")).stdout);
      expect(own.Seccomp).toBe("2");
      // gVisor does not tell.
      if (!isGvisor) expect(own.NoNewPrivs).toBe("1");
      if (!isGvisor) expect(Number(own.Seccomp_filters)).toBeGreaterThanOrEqual(2);
      // A file that gives its owner's powers to whoever runs it: it cannot be made, and one that is there does not.
      expect((await box.shell("cp /usr/bin/id /tmp/id && chmod u+s /tmp/id")).stderr).toContain("not permitted");
      expect(bare(engine, "cp /usr/bin/id /tmp/id && chmod u+s /tmp/id && echo made")).toBe("made\n");
      const given = join(box.world.project, "id");
      copyFileSync("/usr/bin/id", given);
      chmodSync(given, 0o4755);
      const gain = (path: string) => `setpriv --reuid 1234 --clear-groups ${path} -u`;
      if (isRoot) expect((await box.shell(gain(given))).stdout).toBe("1234\n");
      // (gVisor lets no file of the host's give anything.)
      const free = bare(engine, gain("/given/id"), "--volume", `${box.world.project}:/given`);
      if (isRoot) expect(free).toBe(isGvisor ? "1234\n" : "0\n");
      const outside = statusOf(readFileSync("/proc/self/status", "utf8"));
      expect(outside).toMatchObject({ NoNewPrivs: "0", Seccomp: "0" });
    });

    test.each(Object.keys(attempts) as Attempt[])(
      "nobody in it can %s, as root of another container can",
      async (what) => {
        const script = `${places}${attempts[what]} 2>&1 && echo done`;
        const tried = (await box.shell(script)).stdout;
        const free = bare(engine, script, ...mighty);
        // A device that gVisor makes is one of its own kernel's, and leads nowhere.
        if (isGvisor && what === "make a device") {
          const read = await box.shell(`${places}mknod "$D/disk" b 254 0 && head -c 1 "$D/disk" | wc -c`);
          return expect(read).toMatchObject({
            stdout: "0\n",
            stderr: expect.stringMatching(/No such device|not permitted/),
          });
        }
        expect(tried).toMatch(/not permitted|denied|cannot|failed/i);
        expect(tried).not.toContain("done");
        // In a user namespace the kernel lets nobody make a device; and gVisor has one namespace for all mounts.
        const isImpossible = isRootless ? "make a device" : isGvisor ? "make a mount namespace" : null;
        expect(free).toMatch(what === isImpossible ? /not permitted|cannot/ : /done/);
      },
    );

    test("nobody in it can attach to the first process, as to one of his own", async () => {
      const attach = (pid: string) => `syscall(${ptrace}, 16, ${pid}, 0, 0) == 0 ? "attached" : "refused $!"`;
      expect((await box.shell(`perl -e 'print ${attach("1")}'`)).stdout).toMatch(/^refused .*(permitted|denied)/i);
      const own = `perl -e 'my $p = fork(); if (!$p) { sleep 60; exit } print ${attach("$p")}; kill 9, $p'`;
      expect((await box.shell(own)).stdout).toBe("attached");
    });

    test("has no device node of the host's that could get another mode", async () => {
      const { own, hosts } = await changeableNodes(box);
      expect(hosts).toEqual([]);
      // Root may do that to nodes of the container's own.
      if (engine.name === "podman" || engine.name === "docker")
        expect(own).toContainEqual(expect.stringMatching(/null/));
    });

    test("has a user whose files are the caller's, with a home and a name", async () => {
      const { uid, gid } = engine.caller;
      const inside = isRoot ? "0:0" : `${uid}:${gid}`;
      expect((await box.shell('echo "$(id -u):$(id -g) $HOME $PWD"')).stdout).toBe(
        `${inside} ${home} ${box.world.project}\n`,
      );
      expect(
        (await box.shell("echo made >made; mkdir directory; stat -c %a . ~ && echo kept >~/kept && cat ~/kept")).code,
      ).toBe(0);
      for (const name of ["made", "directory"]) {
        expect(lstatSync(join(box.world.project, name))).toMatchObject({ uid, gid });
      }
      expect((await box.shell("echo ${IS_SANDBOX-unset}")).stdout).toBe(isRoot ? "1\n" : "unset\n");
      expect(await box.shell("id -un")).toMatchObject({ code: 0, stdout: isRoot ? "root\n" : "podbot\n" });
      expect((await box.shell("getent passwd $(id -u) | cut -d: -f6")).stdout).toBe(`${home}\n`);
    });

    test("is labelled and named for its session, and calls itself podbot", async () => {
      expect(box.inspect().Config.Labels).toMatchObject({
        "podbot.session": box.id,
        "podbot.owner": box.world.owner,
      });
      expect(box.world.containers()).toEqual([box.name]);
      expect((await box.shell("uname -n")).stdout).toBe("podbot\n");
    });

    test("has no network but its own loopback", async () => {
      expect((await box.shell(interfaces)).stdout.trim()).toBe("lo");
      expect(
        spawnSync("sh", ["-c", interfaces], { encoding: "utf8" }).stdout.trim().split(/\s+/).length,
      ).toBeGreaterThan(1);
    });

    test("has the image's variables and the allowed ones of the caller, and no others", async () => {
      const said = (await box.shell("env")).stdout;
      const variables = Object.fromEntries(said.split("\n").map((line) => line.split(/=(.*)/s).slice(0, 2)));
      expect(variables).toMatchObject({
        PATH: imagePath,
        OF_IMAGE: "from the image",
        HOME: home,
        LANG: "C.UTF-8",
        SECRET_OF_OWNER: secret,
      });
      expect((await box.shell('printf %s "$LC_LINES"')).stdout).toBe("one\ntwo=2\n");
      expect(said).not.toMatch(/OTHER_SECRET|NOT_SET_AT_ALL|XDG_RUNTIME_DIR|PODBOT_TEST_RUN|caller|VITEST/);
    });

    test("shows values of the caller to nobody: not in what the engine says, not in a command line", async () => {
      expect((await box.shell("echo $SECRET_OF_OWNER")).stdout).toBe(`${secret}\n`);
      expect(box.inspect().text).not.toContain(secret);
      expect(box.inspect().text).toContain("from the image");
      expect(commandLines()).not.toContain(secret);
      expect(commandLines()).toContain(box.id);
      const { stdout } = await box.shell("cat /run/podbot/birth 2>&1; cat /proc/1/environ 2>&1 | wc -c");
      expect(stdout).toMatch(/No such file/);
      expect(stdout).not.toContain(secret);
    });

    test("has no socket of the host's but the warden's, and nothing of the caller's but the workspace", async () => {
      const { stdout } = await box.shell("find / -path /proc -prune -o -type s -print 2>/dev/null");
      expect(stdout).toBe(`/run/podbot/in/${box.id}.sock\n`);
      const mounts = (await box.shell("cut -d' ' -f5 /proc/self/mountinfo")).stdout.split("\n");
      expect(mounts.filter((path) => path.startsWith(box.world.directory)).toSorted()).toEqual([
        box.world.project,
        `${box.world.project}/.podbot`,
      ]);
      expect((await box.shell(`ls -A ${box.world.home}`)).stdout).toBe("project\n");
      expect(readdirSync(box.world.home).length).toBeGreaterThan(1);
    });

    test("gains no privileges by the engine's own word", () => {
      const { SecurityOpt, Privileged } = box.inspect().HostConfig;
      expect(SecurityOpt ?? []).toContainEqual(expect.stringMatching(/^no-new-privileges/));
      expect(Privileged).toBe(false);
    });
  });

  describe(`a box of ${title} that is limited in everything`, () => {
    const limits = { memory_mb: 96, cpus: 0.5, pids: 40, ulimits: ["nofile=512:600"] };
    const canLimit = !isRootless && !isGvisor;
    let box: OpenBox;

    beforeAll(async () => {
      box = await openBox(engine, {
        network: { mode: canNetwork ? "open" : "none" },
        sandbox: {
          ...limits,
          limits: canLimit ? "require" : "best-effort",
          read_only_root: true,
        },
      });
    });
    afterAll(() => box?.[Symbol.asyncDispose]());

    test("says which limits the engine cannot enforce, and starts nothing where they are required", async () => {
      const about = ["sandbox.memory_mb", "sandbox.cpus", "sandbox.pids"];
      const said = about.filter((key) => box.warnings.some((warning) => warning.startsWith(`${key} is not enforced`)));
      expect(said).toEqual(canLimit ? [] : about);
      if (canLimit) return;
      const world = new EngineWorld(engine);
      try {
        const planned = await world.plan({ sandbox: { ...limits, limits: "require" } });
        await expect(startSession(planned)).rejects.toMatchObject({
          code: "GAP",
          message: expect.stringMatching(/sandbox\.memory_mb, sandbox\.cpus, sandbox\.pids/),
        });
        expect(world.containers()).toEqual([]);
        // What can be kept is no reason to refuse.
        const light = await world.plan({ sandbox: { limits: "require" } });
        await using session = await startSession(light);
        expect(world.containers()).toEqual([`podbot-${session.id}`]);
      } finally {
        world.remove();
      }
    });

    test("kills what takes more memory than there is, and nothing else", async () => {
      const take = (mebibytes: number) => box.python(`x = b"x" * (${mebibytes} << 20); print(len(x) >> 20)`);
      expect(await take(20)).toMatchObject({ code: 0, stdout: "20\n" });
      const much = await take(300);
      if (canLimit) expect(much).toMatchObject({ code: 137, stdout: "" });
      else expect(much).toMatchObject({ code: 0, stdout: "300\n" });
      expect((await box.shell("echo alive")).stdout).toBe("alive\n");
      expect(box.inspect().HostConfig.Memory).toBe(isRootless ? 0 : 96 * 1_048_576);
    });

    test("has as much of the processors as it was given", () => {
      const found = cpuShare(box.inspect().State.Pid);
      expect(found).toBe(canLimit ? 0.5 : null);
    });

    test("has as many processes as it may, and no more", async () => {
      const bomb = `import os, time, signal
children = []
try:
    while len(children) < 100:
        pid = os.fork()
        if pid == 0: time.sleep(30); os._exit(0)
        children.append(pid)
except OSError as error: print(error.errno)
print(len(children))
for pid in children: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)`;
      const { stdout } = await box.python(bomb);
      const count = Number(stdout.trim().split("\n").at(-1));
      if (canLimit) {
        expect(stdout).toMatch(/^11\n/);
        expect(count).toBeGreaterThan(20);
        expect(count).toBeLessThan(40);
      } else expect(count).toBe(100);
      expect((await box.shell("echo alive")).stdout).toBe("alive\n");
    });

    test("has the limits of each process that were set", async () => {
      const isSaid = box.warnings.some((warning) => warning.startsWith("sandbox.ulimits is not enforced"));
      const found = (await box.shell("ulimit -Sn; ulimit -Hn")).stdout;
      // They hold, or it is said that they do not; and only an ordinary user's Podman may say so.
      expect({ found: found === "512\n600\n", isSaid }).toEqual({ found: !isSaid, isSaid: isSaid && isRootless });
      if (isSaid) return;
      const open = (count: number) => `import os\nfor n in range(${count}): os.open("/dev/null", 0)\nprint("all")`;
      expect((await box.python(open(400))).stdout).toBe("all\n");
      expect((await box.python(open(600))).stderr).toContain("Too many open files");
    });

    test("can write its home, the temporary places and the workspace, and nothing of the image", async () => {
      for (const place of ["/", "/usr", "/usr/bin", "/etc", "/var", "/opt"]) {
        const { code, stderr } = await box.shell(`touch ${place}/written`);
        expect({ place, code, stderr }).toMatchObject({ code: 1, stderr: expect.stringMatching(/Read-only|denied/) });
      }
      for (const place of [home, "/tmp", "/var/tmp", box.world.project, ...(isRoot ? ["/run"] : [])]) {
        expect({ place, ...(await box.shell(`touch ${place}/written && rm ${place}/written`)) }).toMatchObject({
          code: 0,
        });
      }
      expect(isRoot ? (await box.shell("ls -A ~")).stdout : ".bashrc").toContain(".bashrc");
      expect(await box.shell("git config --global user.name X && git config user.name")).toMatchObject({
        stdout: "X\n",
      });
      const free = "touch /usr/written && echo written";
      expect(bare(engine, free)).toBe("written\n");
    });

    test("has the network that it was given", async () => {
      const { stdout } = await box.shell(interfaces);
      // The suite's Docker has no networks, so as not to change the machine's, and its gVisor none either.
      if (isDocker || isGvisor) expect(stdout.trim()).toBe("lo");
      else if (!canNetwork) await expectRefusedNetwork(engine);
      else expect(stdout.trim().split(/\s+/).length).toBeGreaterThan(1);
    });

    test("takes the volumes that it was given along when it ends", async () => {
      const volumes = box.inspect().Mounts.flatMap(({ Type, Name }) => (Type === "volume" && Name ? [Name] : []));
      const isThere = (name: string) => engine.cli("volume", "inspect", name).status === 0;
      // An ordinary user has a directory of the session's own instead.
      expect(volumes.map(isThere)).toEqual(engine.name === "docker-group" ? [] : [true]);
      await box[Symbol.asyncDispose]();
      await eventually(() => expect(volumes.filter(isThere)).toEqual([]));
    });
  });

  describe(`a box of ${title} for containers inside`, () => {
    const gaps = [...(isRootless ? [] : ["inner-capabilities"]), "inner-protection"];

    test("is refused until its owner accepts what cannot be kept", async () => {
      const world = new EngineWorld(engine);
      try {
        const refused = startSession(await world.plan({ sandbox: { containers: "inner" } }));
        await expect(refused).rejects.toMatchObject({
          code: "GAP",
          details: { gaps: gaps.map((name) => expect.objectContaining({ name })) },
        });
        expect(world.containers()).toEqual([]);
      } finally {
        world.remove();
      }
    });

    test("has the device and the capabilities that they need, and a workspace", async () => {
      await using box = await openBox(engine, { sandbox: { containers: "inner", accept_gaps: gaps } });
      const status = statusOf((await box.shell("cat /proc/self/status")).stdout);
      expect([status.CapBnd, status.CapEff]).toEqual(isRoot ? [inner, inner] : [0n, 0n]);
      expect(status.NoNewPrivs).toBe(isGvisor ? undefined : "1");
      expect((await box.shell("stat -c %F /dev/fuse")).stdout).toBe("character special file\n");
      const map = (await box.shell("cat /proc/self/uid_map")).stdout.trim().split(/\s+/).map(Number);
      // An ordinary user's Podman has a user namespace around everything: root inside is nobody but him.
      if (isRootless) expect(map.slice(0, 3)).toEqual([0, engine.caller.uid, 1]);
      else if (!isGvisor) expect(map).toEqual([0, 0, 4_294_967_295]);
      expect((await changeableNodes(box)).hosts).toEqual([]);
      const usable = await box.shell("exec 3<>/dev/fuse && echo open");
      const mayOpen = isRoot && (!isRootless || (lstatSync("/dev/fuse").mode & 0o006) === 0o006);
      expect(usable.stdout).toBe(mayOpen ? "open\n" : "");
      const mounted = await box.shell(`${places}${attempts["mount a filesystem"]} && echo done`);
      expect(mounted).toMatchObject(isRoot ? { stdout: "done\n", stderr: "" } : { stdout: "" });
      expect(await box.shell("echo mine >mine")).toMatchObject({ code: 0 });
      const { uid, gid } = engine.caller;
      expect(lstatSync(join(box.world.project, "mine"))).toMatchObject({ uid, gid });
      writeFileSync(join(box.world.project, "mine"), "the caller's\n");
      expect((await box.shell("cat mine")).stdout).toBe("the caller's\n");
    });

    if (!hasAll) return;
    test("is not had by not saying so", async () => {
      const world = new EngineWorld(engine);
      try {
        expect((await world.plan()).plan.container).toMatchObject({ profile: "minimal", devices: [] });
        expect((await world.plan({ sandbox: { mount_dev_fuse: true } })).plan.container).toMatchObject({
          profile: "inner",
          devices: ["/dev/fuse"],
        });
        expect((await world.plan({ sandbox: { mount_dev_fuse: false } })).plan.container?.profile).toBe("minimal");
      } finally {
        world.remove();
      }
    });
  });

  test(`a privileged box of ${title} is told of as a change of trust, and has what it says`, async () => {
    const config = { sandbox: { privileged: true, mount_dev_fuse: true, selinux_label_mode: "keep_default" as const } };
    if ((engine.name === "docker" || isGvisor) && !isWhole()) {
      // These ask for capabilities that this machine has not got itself, and Podman for those that it has.
      const world = new EngineWorld(engine);
      await expect(startSession(await world.plan(config))).rejects.toMatchObject({ code: "CONTAINER_START_FAILED" });
      expect(world.containers()).toEqual([]);
      world.remove();
      return;
    }
    await using box = await openBox(engine, config);
    expect(box.warnings).toContainEqual(expect.stringContaining("This is a change of trust."));
    const { HostConfig } = box.inspect();
    expect(HostConfig.Privileged).toBe(true);
    expect((HostConfig.SecurityOpt ?? []).filter((option) => /no-new-privileges/.test(option))).toEqual([]);
    const status = statusOf((await box.shell("cat /proc/self/status")).stdout);
    expect(status.CapBnd & inner).toBe(inner);
    expect(status.CapBnd & ~inner).not.toBe(0n);
    expect(status.NoNewPrivs).toBe("0");
    const mounted = await box.shell(`${places}${attempts["mount a filesystem"]} && echo done`);
    expect(mounted).toMatchObject(isRoot ? { stdout: "done\n", stderr: "" } : { stdout: "" });
  });

  const isFirstOfMake = hasAll || engine.name === "docker";
  if (isFirstOfMake)
    test(`${title} is asked to switch SELinux labels off, or to leave them as they are`, async () => {
      const world = new EngineWorld(engine);
      try {
        await using proxy = await openProxy(world, engine.socket);
        const isOff = /"SecurityOpt":\[[^\]]*"label=disable"|"selinux_opts":\["disable"\]/;
        for (const [mode, expected] of [
          ["keep_default", false],
          ["disable_for_container", true],
        ] as const) {
          const planned = await world.plan({ engine_socket: proxy.path, sandbox: { selinux_label_mode: mode } });
          await using session = await startSession(planned);
          expect(proxy.said()).toContain(`podbot-${session.id}`);
          expect(isOff.test(proxy.said())).toBe(expected);
          const shown = world.inspect(`podbot-${session.id}`).HostConfig.SecurityOpt ?? [];
          if (isDocker) expect(shown.includes("label=disable")).toBe(expected);
        }
      } finally {
        world.remove();
      }
    });

  describe(`${title} is asked for nothing`, () => {
    if (hasAll)
      test("where no image was named", async () => {
        const world = new EngineWorld(engine);
        let connections = 0;
        const server = createServer((socket) => {
          connections += 1;
          socket.destroy();
        });
        const socket = join(world.directory, "recorder.sock");
        server.listen(socket);
        await once(server, "listening");
        try {
          const words = ["run", "--agent", "custom", "--engine-socket", socket];
          for (const image of [undefined, "", "  ", "\t\n"]) {
            const flags = image === undefined ? [] : ["--image", image];
            const said = await world.podbot([...words, ...flags, "--", "true"]);
            const code = image === undefined ? /IMAGE_REQUIRED/ : /IMAGE_REQUIRED|CONFIG_INVALID/;
            expect(said).toMatchObject({ status: 2, stdout: "", stderr: expect.stringMatching(code) });
            expect(said.stderr).toContain("image");
          }
          expect(connections).toBe(0);
          await expect(world.plan({ image: "any", engine_socket: socket })).rejects.toMatchObject({
            code: expect.stringMatching(/^ENGINE_/),
          });
          expect(connections).toBeGreaterThan(0);
        } finally {
          server.close();
          world.remove();
        }
      });

    test("but whether it has the image and the runtime, where it lacks one", async () => {
      const world = new EngineWorld(engine);
      try {
        await expect(world.plan({ image: "localhost/podbot-no-such-image:1" })).rejects.toMatchObject({
          code: "IMAGE_NOT_FOUND",
          details: { image: "localhost/podbot-no-such-image:1" },
          hint: expect.stringContaining(isDocker ? "docker pull" : "podman pull"),
        });
        await expect(world.plan({ sandbox: { runtime: "no-such-runtime" } })).rejects.toMatchObject({
          code: "OCI_RUNTIME_MISSING",
          details: { runtime: "no-such-runtime" },
        });
        expect(world.containers()).toEqual([]);
        // The engine's own is there.
        const runtime = engine.runtime ?? "runc";
        await using session = await startSession(await world.plan({ sandbox: { runtime } }));
        expect(world.containers()).toEqual([`podbot-${session.id}`]);
      } finally {
        world.remove();
      }
    });
  });
}

/** A network that cannot be had is no reason to do with less. */
async function expectRefusedNetwork(engine: TestEngine): Promise<void> {
  const world = new EngineWorld(engine);
  try {
    const planned = await world.plan({ network: { mode: "open" } });
    await expect(startSession(planned)).rejects.toMatchObject({
      code: "CONTAINER_START_FAILED",
      message: expect.stringContaining("/dev/net/tun"),
    });
    await eventually(() => expect(world.containers()).toEqual([]));
  } finally {
    world.remove();
  }
}

const imagePath = "/image/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** An image with variables of its own, and with all that a wall must not take from it. */
async function derive(engine: TestEngine): Promise<string> {
  const created = await call(engine.socket, "POST", "/v1.40/containers/create", { Image: engine.image, Cmd: ["true"] });
  const { Id } = JSON.parse(created.body) as { readonly Id: string };
  const image = `podbot-e2e-box-${engine.name}`;
  try {
    const changes = [
      `ENV PATH=${imagePath}`,
      'ENV OF_IMAGE="from the image"',
      "ENV HOME=/nowhere",
      "USER 4321",
      "WORKDIR /elsewhere",
      'ENTRYPOINT ["/bin/false"]',
    ];
    const query = new URLSearchParams([
      ["container", Id],
      ["repo", `localhost/${image}`],
      ["tag", "latest"],
      ...changes.map((change): [string, string] => ["changes", change]),
    ]);
    const { status, body } = await call(engine.socket, "POST", `/v1.40/commit?${query}`, {});
    if (status !== 201) throw new Error(body);
  } finally {
    await call(engine.socket, "DELETE", `/v1.40/containers/${Id}?force=true`);
  }
  return `localhost/${image}:latest`;
}

/** Nodes in /dev to which the user inside can give a mode, the one that they have: the container's, and the host's. */
async function changeableNodes(box: OpenBox): Promise<Readonly<Record<"own" | "hosts", readonly string[]>>> {
  const nodes = ["full", "fuse", "null", "random", "tty", "urandom", "zero"].map((name) => `/dev/${name}`);
  const outside = nodes.filter(existsSync).map((path) => {
    const { dev, ino } = lstatSync(path);
    return `${path} ${dev}:${ino}`;
  });
  const change = 'chmod "$(stat -c %a $node)" $node';
  const script = `for node in ${nodes.join(" ")}; do ${change} && stat -c '%n %d:%i' $node; done 2>/dev/null`;
  const changed = (await box.shell(script)).stdout.split("\n");
  return {
    own: changed.filter((line) => !outside.includes(line)),
    hosts: changed.filter((line) => outside.includes(line)),
  };
}

/** What the machine may have taken from everybody is not asked for, as --privileged would. */
const mighty = ["--cap-add=SYS_ADMIN", "--cap-add=MKNOD", "--security-opt=seccomp=unconfined"];

const interfaces = "tail -n +3 /proc/net/dev | cut -d: -f1";

/** The same script in a container of the engine's own making, which shows what a test would see without the wall. */
function bare(engine: TestEngine, script: string, ...flags: string[]): string {
  const limits = ["nofile", "nproc"].flatMap((name) => ["--ulimit", `${name}=1024:1024`]);
  return engine.cli("run", "--rm", "--network", "none", ...limits, ...flags, engine.image, "sh", "-c", script).stdout;
}

/** Whether root of this machine has every capability that there is. */
function isWhole(): boolean {
  const last = Number(readFileSync("/proc/sys/kernel/cap_last_cap", "utf8"));
  return statusOf(readFileSync("/proc/self/status", "utf8")).CapBnd === (1n << BigInt(last + 1)) - 1n;
}

function commandLines(): string {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1");
      } catch {
        return "";
      }
    })
    .join("\n");
}

/** How many processors the control group of a process may use; null: all. */
function cpuShare(pid: number): number | null {
  const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const [, , legacy] = groups.find(([, controllers = ""]) => controllers.split(",").includes("cpu")) ?? [];
  if (legacy !== undefined) {
    const read = (file: string) => Number(readFileSync(join("/sys/fs/cgroup/cpu", legacy, file), "utf8"));
    const quota = read("cpu.cfs_quota_us");
    return quota < 0 ? null : quota / read("cpu.cfs_period_us");
  }
  const [, , unified = "/"] = groups.find(([hierarchy]) => hierarchy === "0") ?? [];
  const file = join("/sys/fs/cgroup", unified, "cpu.max");
  const [quota, period] = existsSync(file) ? readFileSync(file, "utf8").split(" ") : [];
  return quota === undefined || quota === "max" ? null : Number(quota) / Number(period);
}
