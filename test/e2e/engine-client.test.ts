import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { getArchive, putArchive } from "../../src/engine/archive.ts";
import { connectEngine, type EngineClient } from "../../src/engine/client.ts";
import {
  createContainer,
  killContainer,
  removeContainer,
  startContainer,
  waitContainer,
} from "../../src/engine/containers.ts";
import { execAttach } from "../../src/engine/exec.ts";
import { inspectImage } from "../../src/engine/images.ts";
import { engineInfo } from "../../src/engine/info.ts";
import { inspectContainer, listContainers } from "../../src/engine/inspection.ts";
import { containerLogs } from "../../src/engine/logs.ts";
import { ping } from "../../src/engine/ping.ts";
import { openPrivateService } from "../../src/engine/service.ts";
import { eventually, until } from "../eventually.ts";
import { kill } from "../faults/machine.ts";

/**
 * A real Podman with storage of its own; nothing of the machine's is touched. The path is short: Podman fails without a
 * message, and only when a container ends, if its runroot has more than 50 characters.
 */
const directory = mkdtempSync(join(inject("run").directory, "c"));
const storage = join(directory, "storage.conf");
const env = {
  PATH: process.env["PATH"],
  HOME: join(directory, "home"),
  CONTAINERS_STORAGE_CONF: storage,
};
const Image = "localhost/podbot-e2e-engine:1";
const labels = { "podbot.e2e": "engine-client" };
const Ulimits = [
  { Name: "nofile", Soft: 512, Hard: 1_024 },
  { Name: "nproc", Soft: 400, Hard: 500 },
];
let client: EngineClient;

beforeAll(async () => {
  mkdirSync(env.HOME);
  writeFileSync(
    storage,
    `[storage]\ndriver = "overlay"\ngraphroot = "${directory}/root"\nrunroot = "${directory}/runroot"\n`,
  );
  // Before there is a service, which ends where nobody uses it.
  importImage();
  const endpoint = await openPrivateService({
    podman: "/usr/bin/podman",
    directory: join(directory, "service"),
    env,
    uid: process.getuid?.() ?? 0,
    idleSeconds: 5,
  });
  client = connectEngine(endpoint);
});

afterAll(async () => {
  for (const { id } of await listContainers(client, labels)) await removeContainer(client, id);
  client[Symbol.dispose]();
  podman("rmi", "--force", Image);
  await rest();
  endMonitors();
  spawnSync("umount", [join(directory, "root/overlay")]);
  rmSync(directory, { recursive: true, force: true });
});

function podman(...args: string[]): string {
  return execFileSync("podman", args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** A shell and a few programs with their libraries. */
function importImage(): void {
  const root = join(directory, "image");
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    copyFileSync(from, join(root, to));
  };
  for (const name of ["bash", "cat", "sleep", "id", "grep", "dd"]) {
    const path = execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    put(path, `/bin/${name}`);
    for (const [library] of execFileSync("ldd", [path], { encoding: "utf8" }).matchAll(/\/\S+/g)) put(library, library);
  }
  for (const name of ["proc", "sys", "dev", "tmp", "work"]) mkdirSync(join(root, name));
  execFileSync("tar", ["-C", root, "-cf", `${root}.tar`, "."]);
  podman(
    "import",
    "-c",
    "ENV A=b",
    "-c",
    "LABEL x=y",
    "-c",
    "WORKDIR /work",
    "-c",
    "VOLUME /vol",
    `${root}.tar`,
    Image,
  );
}

/** The service ends by itself when nobody uses it. */
async function rest(): Promise<void> {
  const { pid } = JSON.parse(readFileSync(join(directory, "service/podman.pid"), "utf8")) as { pid: number };
  for (let waited = 0; existsSync(`/proc/${pid}`) && waited < 30_000; waited += 100) await sleep(100);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
}

/** Podman leaves one behind for each exec, which would come back to the storage after five minutes. */
function endMonitors(): void {
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const [program = "", ...args] = argvOf(name);
    if (program.endsWith("/conmon") && args.some((arg) => arg.startsWith(`${directory}/`))) kill(Number(name));
  }
}

function argvOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

interface Made {
  readonly HostConfig?: object;
  readonly Cmd?: readonly string[];
}

let count = 0;
async function make({ HostConfig = {}, Cmd = ["sleep", "1000"] }: Made = {}): Promise<string> {
  const name = `podbot-e2e-engine-${count++}`;
  const host = { NetworkMode: "none", Ulimits, ...HostConfig };
  await createContainer(client, name, { Image, Cmd, Labels: labels, HostConfig: host });
  return name;
}

/** What a script says in a container made for it. */
async function sayIn(HostConfig: object, script: string): Promise<string> {
  const name = await make({ HostConfig, Cmd: ["bash", "-c", script] });
  await startContainer(client, name);
  await waitContainer(client, name);
  const said = await containerLogs(client, name);
  await removeContainer(client, name);
  return said;
}

async function run(name: string, input: string, ...argv: string[]): Promise<string> {
  const stream = await execAttach(client, name, { argv, env: { FOO: "bar" } });
  stream.end(input);
  return await text(stream);
}

describe("a real Podman", () => {
  test("answers, again and again", async () => {
    for (let turn = 0; turn < 50; turn++) await ping(client);
  });

  test("says what it is", async () => {
    const info = await engineInfo(client);
    expect(info).toMatchObject({ flavour: "podman", rootless: false, selinux: false, usernsRemap: false });
    expect(info.version).toMatch(/^\d+\.\d+/);
    expect(info.knownRuntimes).toContain(info.defaultRuntime);
  });

  test("shows an image, or none", async () => {
    expect(await inspectImage(client, Image)).toMatchObject({
      env: ["A=b"],
      workingDir: "/work",
      labels: { x: "y" },
      volumes: ["/vol"],
    });
    expect(await inspectImage(client, "localhost/none:1")).toBeNull();
  });

  test("has a container from its creation to its end", async () => {
    const name = await make();
    expect(await inspectContainer(client, name)).toMatchObject({ name, status: "created", pid: 0 });
    expect(await killContainer(client, name, "SIGTERM")).toBe(false);
    await startContainer(client, name);
    await startContainer(client, name);
    const running = await inspectContainer(client, name);
    expect(running).toMatchObject({ status: "running", labels: expect.objectContaining(labels) });
    await eventually(() => expect(readFileSync(`/proc/${running?.pid}/cmdline`, "utf8")).toContain("sleep"));
    expect((await listContainers(client, labels)).map((container) => container.name)).toContain(name);
    expect(await listContainers(client, { "podbot.e2e": "other" })).toEqual([]);
    const ended = waitContainer(client, name);
    expect(await killContainer(client, name, "SIGKILL")).toBe(true);
    expect(await ended).toEqual({ exitCode: 137, error: null });
    await Promise.all([removeContainer(client, name), removeContainer(client, name), removeContainer(client, name)]);
    expect(await inspectContainer(client, name)).toBeNull();
    expect(await waitContainer(client, name)).toBeNull();
  });

  test("says why something cannot be made or started", async () => {
    await expect(createContainer(client, "podbot-e2e-none", { Image: "localhost/none:1" })).rejects.toMatchObject({
      code: "IMAGE_NOT_FOUND",
    });
    const name = await make({ Cmd: ["nosuchprogram"] });
    await expect(createContainer(client, name, { Image, Cmd: ["sleep"] })).rejects.toMatchObject({
      code: "CONTAINER_CREATE_FAILED",
      details: { conflict: true },
    });
    await expect(startContainer(client, name)).rejects.toMatchObject({
      code: "CONTAINER_START_FAILED",
      message: expect.stringContaining("nosuchprogram"),
    });
  });

  test("runs a program as a stream, with half-close and megabytes", async () => {
    const name = await make();
    await startContainer(client, name);
    expect(await run(name, "hello", "cat")).toBe("hello");
    expect(await run(name, "", "bash", "-c", "echo $FOO; id -u")).toBe("bar\n0\n");
    const much = "0123456789abcdef".repeat(262_144);
    expect(await run(name, much, "cat")).toBe(much);
  });

  test("takes a gigabyte in and out without holding it", async () => {
    const name = await make({ HostConfig: { Mounts: [{ Type: "tmpfs", Target: "/big" }] } });
    await startContainer(client, name);
    const size = 1_024 * 1_024 * 1_024;
    let most = 0;
    const before = process.memoryUsage().rss;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss - before);
    }, 20);
    try {
      await putArchive(client, name, "/big", Readable.from(tarOf("big", size), { objectMode: false }));
      const stream = await getArchive(client, name, "/big/big");
      let got = 0;
      for await (const piece of stream ?? []) got += (piece as Buffer).length;
      expect(got).toBeGreaterThanOrEqual(size);
    } finally {
      clearInterval(watch);
    }
    expect(most).toBeLessThan(200 * 1_024 * 1_024);
    await expect(putArchive(client, "podbot-e2e-none", "/", Readable.from(tarOf("x", 10)))).rejects.toMatchObject({
      code: "UPLOAD_FAILED",
      details: { container: "podbot-e2e-none" },
    });
    expect(await getArchive(client, name, "/nowhere")).toBeNull();
  });
});

describe("what Podman makes of a body in Docker's words", () => {
  test("honours limits, privileges and the read-only root", async () => {
    const said = await sayIn(
      {
        ReadonlyRootfs: true,
        CapDrop: ["ALL"],
        CapAdd: ["CHOWN"],
        SecurityOpt: ["no-new-privileges", "label=disable"],
        PidsLimit: 77,
        NanoCpus: 500_000_000,
        Memory: 67_108_864,
      },
      `ulimit -Sn; ulimit -Hn; ulimit -Su; grep -E '^(NoNewPrivs|CapEff):' /proc/self/status
echo x >/nope; cat /sys/fs/cgroup/{memory/memory.limit_in_bytes,pids/pids.max,cpu/cpu.cfs_quota_us,memory.max,pids.max,cpu.max} 2>/dev/null`,
    );
    expect(said).toContain("512\n1024\n400\n");
    expect(said).toContain("NoNewPrivs:\t1");
    expect(said).toContain("CapEff:\t0000000000000001");
    expect(said).toContain("Read-only file system");
    expect(said).toMatch(/67108864\n77\n50000/);
  });

  test("honours tmpfs options", async () => {
    const Mounts = [{ Type: "tmpfs", Target: "/x", TmpfsOptions: { SizeBytes: 1_048_576, Mode: 0o700 } }];
    expect(await sayIn({ Mounts }, "grep ' /x ' /proc/self/mountinfo")).toMatch(/nosuid,nodev.*size=1024k,mode=700/);
  });

  test("mounts a directory without what is mounted below it only where BindOptions stand there", async () => {
    const source = join(directory, "source");
    mkdirSync(join(source, "below"), { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "podbot-e2e", join(source, "below")]);
    try {
      const mount = { Type: "bind", Source: source, Target: "/x", ReadOnly: true };
      const script = "grep -c ' /x' /proc/self/mountinfo; (echo >/x/y) 2>&1; (echo >/x/below/y) 2>&1";
      const bound = await sayIn({ Mounts: [{ ...mount, BindOptions: { NonRecursive: true } }] }, script);
      expect(bound.split("\n")[0]).toBe("1");
      expect(bound.match(/Read-only/g)).toHaveLength(2);
      // What lies below stays writable: a read-only mount must not be recursive.
      const recursive = await sayIn({ Mounts: [mount] }, script);
      expect(recursive.split("\n")[0]).toBe("2");
      expect(recursive.match(/Read-only/g)).toHaveLength(1);
    } finally {
      execFileSync("umount", [join(source, "below")]);
    }
  });

  test("makes a missing source, instead of refusing it", async () => {
    const source = join(directory, "missing");
    await make({ HostConfig: { Mounts: [{ Type: "bind", Source: source, Target: "/x", BindOptions: {} }] } }).then(
      (name) => startContainer(client, name),
    );
    expect(existsSync(source)).toBe(true);
  });

  test("ignores the name of a runtime", async () => {
    const name = await make({ HostConfig: { Runtime: "nosuchruntime" } });
    await startContainer(client, name);
    expect(await inspectContainer(client, name)).toMatchObject({ status: "running" });
  });

  test("honours a user namespace of its own that maps each to itself", async () => {
    const UsernsMode = "auto:uidmapping=0:0:65536,gidmapping=0:0:65536";
    expect(await sayIn({ UsernsMode }, "cat /proc/self/uid_map")).toMatch(/^\s+0\s+0\s+65536\n$/);
  });

  test("removes a container that was to remove itself", async () => {
    const name = await make({ HostConfig: { AutoRemove: true }, Cmd: ["bash", "-c", "sleep 2; exit 7"] });
    const ended = waitContainer(client, name, { condition: "next-exit" });
    await sleep(200);
    await startContainer(client, name);
    expect(await ended).toMatchObject({ exitCode: 7 });
    await until("it is removed", async () => (await inspectContainer(client, name)) === null);
  });
});

/** One file of zeros as a tar. */
function* tarOf(name: string, size: number): Generator<Buffer> {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write("        0", 148);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  yield header;
  const piece = Buffer.alloc(1_024 * 1_024);
  for (let left = size; left > 0; left -= piece.length) yield left < piece.length ? piece.subarray(0, left) : piece;
  yield Buffer.alloc(((512 - (size % 512)) % 512) + 1_024);
}
