// @module-tag security
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBwrap } from "../../src/machine/programs.ts";
import { buildPrograms, environment, makeScratch, ordinary, sanitized } from "./programs.ts";
import { birthOf, socketPathIn } from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

const identityOf = (path: string) => {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
};
/** Lets every call pass: a filter all the same. */
const anyFilter = Buffer.from([6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
const apart = ["--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"];

interface Change {
  /** What bubblewrap is told besides. */
  readonly words?: readonly string[];
  readonly bounds?: readonly string[];
  readonly mounts?: readonly string[];
  readonly without?: "filter" | "pid" | "ipc";
}

describe.each([ordinary, sanitized])("podbot-warden with bounds, $build build,", (programs) => {
  /** A warden in a box with little in it. Resolves with what it says: nothing where it calls as it should. */
  async function heardFrom({ words = [], bounds = [], mounts = [], without }: Change): Promise<string> {
    const path = socketPathIn(scratch);
    const place = dirname(path);
    const token = Buffer.alloc(32, 7);
    const bin = dirname(programs.warden);
    const expected = [
      ...["/usr", identityOf("/usr"), "ro", place, identityOf(place), "rw"],
      ...(bin.startsWith("/usr/") ? [] : [bin, identityOf(bin), "ro"]),
      ...mounts,
    ];
    // An identity that no namespace has: so the warden looks, even where a test names nothing.
    const all = [
      "!0:0",
      ...["pid", "ipc", "uts", "net"].map((kind) => readlinkSync(`/proc/self/ns/${kind}`)),
      ...bounds,
    ];
    writeFileSync(join(place, "birth"), birthOf(token, { mounts: expected, bounds: all }));
    writeFileSync(join(place, "filter"), anyFilter);
    const server = createServer().listen(path);
    await once(server, "listening");
    const filter = openSync(join(place, "filter"), "r");
    const links = ["lib", "lib64", "bin"].filter((name) => existsSync(`/usr/${name}`));
    const child = spawn(
      findBwrap(process.env["PATH"] ?? ""),
      [
        ...apart.filter((word) => without !== "ipc" || word !== "--unshare-ipc"),
        ...(without === "pid" ? [] : ["--unshare-pid", "--as-pid-1"]),
        ...["--die-with-parent", "--ro-bind", "/usr", "/usr", "--dev", "/dev", "--proc", "/proc"],
        ...links.flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
        ...(bin.startsWith("/usr/") ? [] : ["--ro-bind", bin, bin]),
        ...["--bind", place, place, ...words],
        ...(without === "filter" ? [] : ["--seccomp", "3"]),
        ...[programs.warden, path, join(place, "birth")],
      ],
      { env: environment, stdio: ["ignore", "ignore", "ignore", filter] },
    );
    closeSync(filter);
    const ended = once(child, "exit");
    const [socket] = await once(server, "connection");
    let said = Buffer.alloc(0);
    for await (const bytes of socket) {
      said = Buffer.concat([said, bytes]);
      if (said.length >= 40 && said[7] === "1".charCodeAt(0)) break;
    }
    child.kill("SIGKILL");
    await ended;
    server.close();
    expect(said.subarray(8, 40)).toEqual(token);
    return said.subarray(40).toString();
  }

  it("calls where there is nothing but what was planned", async () => {
    expect(await heardFrom({})).toBe("");
  });

  const odd = mkdtempSync(join(scratch, "odd-"));
  const volume = join(odd, "volumes", "5f".repeat(32), "_data");
  const engines = join(odd, "overlay-containers", "5f".repeat(32), "userdata");
  mkdirSync(volume, { recursive: true });
  mkdirSync(engines, { recursive: true });
  for (const name of ["hosts", "resolv.conf", "key"]) writeFileSync(join(engines, name), "");
  const empty = mkdtempSync(join(scratch, "empty-"));
  const deep = "/dev/a/b/c/d/e/f/zero";
  /** A control group of this machine that is not the box's. */
  const group = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].find((path) => existsSync(path)) as string;
  const shown = mkdtempSync(join(scratch, "shown-"));
  mkdirSync(join(shown, "build"));
  const expectedShown = { words: ["--bind", shown, "/w"], mounts: ["/w", identityOf(shown), "rw"] };

  it.each<[string, Change]>([
    ["a volume of the image", { words: ["--bind", volume, "/data"] }],
    ["files that the engine writes", { words: ["--bind", join(engines, "hosts"), "/etc/hosts"] }],
    ["these elsewhere", { words: ["--bind", join(engines, "resolv.conf"), "/somewhere/resolv.conf"] }],
    ["a device that was asked for", { words: ["--dev-bind", "/dev/null", "/dev/fuse"], bounds: ["/dev/fuse"] }],
    ["memory that was asked for", { words: ["--tmpfs", "/tmp"], bounds: ["/tmp"] }],
    [
      "what hides a part of /proc",
      { words: ["--ro-bind", empty, "/proc/bus", "--ro-bind", "/dev/null", "/proc/keys"] },
    ],
    ["the kernel's settings to read", { words: ["--ro-bind", "/sys", "/sys"] }],
    ["memory in /dev/shm", { words: ["--tmpfs", "/dev/shm"] }],
    ["the plan's own", expectedShown],
  ])("takes %s", async (_, change) => {
    expect(await heardFrom(change)).toBe("");
  });

  it.each<[string, Change, string]>([
    ["a directory of the host's", { words: ["--ro-bind", "/etc", "/hostprivate"] }, "the mount /hostprivate"],
    ["one with an odd name", { words: ["--ro-bind", "/etc", "/a b"] }, "the mount /a b"],
    ["a file of the host's", { words: ["--ro-bind", "/etc/passwd", "/etc/hosts"] }, "the mount /etc/hosts"],
    ["what an engine copied for others", { words: ["--bind", engines, "/run/secrets"] }, "the mount /run/secrets"],
    ["a file beside those of the engine", { words: ["--bind", join(engines, "key"), "/key"] }, "the mount /key"],
    ["something in /proc", { words: ["--ro-bind", "/etc/passwd", "/proc/version"] }, "the mount /proc/version"],
    ["an empty directory there to write in", { words: ["--bind", empty, "/proc/bus"] }, "the mount /proc/bus"],
    ["something in /dev", { words: ["--ro-bind", "/etc", "/dev/etc"] }, "the mount /dev/etc"],
    ["the kernel's settings to write", { words: ["--bind", "/sys/kernel", "/sys/kernel"] }, "the mount /sys/kernel"],
    ["control groups of the host's to write in", { words: ["--bind", group, "/sys/group"] }, "the mount /sys/group"],
    ["another's processes", { words: ["--ro-bind", "/proc", "/proc/bus"] }, "the mount /proc/bus"],
    ["memory that was not asked for", { words: ["--tmpfs", "/tmp"] }, "the mount /tmp"],
    ["a device", { words: ["--dev-bind", "/dev/null", "/dev/fuse"] }, "the device /dev/fuse"],
    ["one deeper", { words: ["--dev-bind", "/dev/zero", "/dev/net/tun"] }, "the device /dev/net/tun"],
    ["one much deeper", { words: ["--dev-bind", "/dev/zero", deep] }, `the device ${deep}`],
    ["what lies too deep", { words: ["--dir", `/dev${"/d".repeat(18)}`] }, "what is too deep in /dev"],
    [
      "one in /dev/hugepages",
      { words: ["--dev-bind", "/dev/zero", "/dev/hugepages/zero"] },
      "the device /dev/hugepages/zero",
    ],
    ["one under another's name", { words: ["--dev-bind", "/dev/zero", "/dev/null"] }, "the device /dev/null"],
    [
      "a volume in what is mounted",
      { ...expectedShown, words: [...expectedShown.words, "--bind", volume, "/w/build"] },
      "the mount /w/build",
    ],
    ["no filter", { without: "filter" }, "calls that the engine's own filter would have denied"],
    ["the host's namespace", { without: "ipc" }, "the host's namespace ipc"],
    ["other processes", { without: "pid" }, "processes that are not the box's, the host's namespace pid"],
    [
      "two things",
      { words: ["--ro-bind", "/etc", "/one", "--ro-bind", "/etc", "/two"] },
      "the mount /one, the mount /two",
    ],
  ])("refuses %s", async (_, change, found) => {
    expect(await heardFrom(change)).toBe(`extra ${found}`);
  });

  it("tells the host's memory from that of the box", async () => {
    const host = ["--bind", "/dev/shm", "/dev/shm"];
    const found = await heardFrom({ words: host, bounds: [`!${identityOf("/dev/shm")}`] });
    expect(found).toBe("extra the mount /dev/shm");
  });
});
