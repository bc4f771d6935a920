// @module-tag security
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bind, give, openBench, type Posted, starts, step, withContent } from "./tree.ts";

const bench = openBench(beforeAll, afterAll);

let made = 0;

interface Change {
  /** A script that runs between podbot-launch and bubblewrap, which finds the list of mounts at descriptor 5. */
  readonly between?: string;
  /** Options of bubblewrap's, behind the one that mounts the tree. */
  readonly options?: readonly string[];
  readonly steps?: readonly Buffer[];
  /** Words of podbot-enter's, behind the list of mounts. */
  readonly entering?: readonly string[];
  readonly command?: readonly string[];
}

const ran = { status: 0, stdout: "ran\n", stderr: "" };

describe.each(starts)("podbot-enter --mounts, %s build, started by %s,", (build, user) => {
  /** A directory of the host's, with a file and some directories. */
  function prepare(...names: readonly string[]): string {
    const directory = give(join(bench.scratch, `host-${made++}`), user, null);
    for (const name of ["ro", "rw", "free", ...names]) give(join(directory, name), user, null);
    give(join(directory, "file"), user, "content");
    return directory;
  }

  const planned = (host: string) => [
    bind("ro", "/"),
    bind("ro", join(host, "ro")),
    bind("rw", join(host, "rw")),
    withContent("cover", "0000", join(host, "file"), ""),
    step("point", "directory", "/proc"),
  ];

  /** Builds a tree, has the real bubblewrap make a box of it, and enters that. */
  function enter(host: string, change: Change = {}): Posted {
    const { between = "", options = [], steps = [], entering = [], command = ["echo", "ran"] } = change;
    const wall = ["bwrap", "--unshare-user", "--unshare-pid", "--die-with-parent", "--bind", "/tmp/tree", "/"];
    const inside = [bench.programs[build].enter, "--mounts", "5", ...entering, "2", "--", ...command];
    const words = [...wall, "--proc", "/proc", ...options, "--", ...inside].map(quote).join(" ");
    const script = `${between}\nexec ${words}`;
    return bench.post({ build, user, steps: [...planned(host), ...steps], script });
  }

  const refusal = (place: string, why: string) => ({
    status: 125,
    stdout: "",
    stderr: `podbot-enter: changed: ${place}: ${why}\n`,
  });
  const unreadable = refusal("/proc/self/mountinfo", "the list of mounts cannot be read");

  /** Has another list than podbot-launch's compared. */
  function listed(bytes: Buffer): string {
    const path = join(bench.scratch, `list-${made++}`);
    writeFileSync(path, bytes);
    return `exec 5<${path}`;
  }

  /** Adds to the list, or edits its entries. */
  const added = (host: string, entry: string) =>
    `cat <&5 >${host}/rw/list; printf '%s\\0' ${quote(entry)} >>${host}/rw/list; exec 5<${host}/rw/list`;
  const edited = (host: string, edit: string) => `sed -z ${quote(edit)} <&5 >${host}/rw/list; exec 5<${host}/rw/list`;

  it("begins where the mounts are those of podbot-launch's list", () => {
    expect(enter(prepare())).toEqual(ran);
  });

  it("begins in the directory that was compared, wherever bubblewrap has gone by its name", () => {
    const host = prepare();
    const at = (directory: string) => {
      const entering = ["--directory", directory];
      return enter(host, { options: ["--chdir", join(host, "free")], entering, command: ["pwd", "-P"] }).stdout;
    };
    expect(at(join(host, "rw"))).toBe(`${join(host, "rw")}\n`);
    expect(at(join(host, "elsewhere"))).toBe(`${join(host, "free")}\n`);
  });

  it("begins nothing where there is a mount more", () => {
    const host = prepare();
    const place = join(host, "free");
    const why = "a mount is there that the plan does not have";
    expect(enter(host, { options: ["--tmpfs", place] })).toEqual(refusal(place, why));
    expect(enter(host, { options: ["--tmpfs", place], steps: [step("point", "directory", place)] })).toEqual(ran);
    const over = enter(host, { options: ["--ro-bind", join(host, "ro"), join(host, "ro")] });
    expect(over).toEqual(refusal(join(host, "ro"), why));
  });

  it("begins nothing where a mount is missing, unless it only came along", () => {
    const host = prepare();
    const entry = "0:1 rw,nosuid,nodev,relatime /gone";
    expect(enter(host, { between: added(host, `mount ${entry}`) })).toEqual(refusal("/gone", "its mount is missing"));
    expect(enter(host, { between: added(host, `beside ${entry}`) })).toEqual(ran);
  });

  if (user === "root") {
    it("begins nothing where a planned mount was taken away", () => {
      const host = prepare();
      const place = join(host, "rw");
      expect(enter(host, { between: `umount /tmp/tree${place}` })).toEqual(refusal(place, "its mount is missing"));
    });
  }

  it("begins nothing where a mount has other flags", () => {
    const host = prepare();
    const { status, stdout, stderr } = enter(host, { options: ["--remount-ro", join(host, "rw")] });
    expect([status, stdout]).toEqual([125, ""]);
    expect(stderr).toMatch(/^podbot-enter: changed: .*\/rw: /);
  });

  it("begins nothing where there is another file or directory", () => {
    const host = prepare();
    for (const name of ["ro", "file"]) {
      const place = join(host, name);
      const edit = edited(host, `s#^inode [0-9]*:[0-9]* \\(${place}\\)$#inode 1:1 \\1#`);
      expect(enter(host, { between: edit })).toEqual(refusal(place, "another file or directory is mounted there"));
    }
  });

  it("begins nothing where the way to a place was shut, unless only root could go it before", () => {
    const host = prepare();
    const place = give(join(host, "rw/dir"), user, null);
    const steps = [bind("ro", place)];
    const between = `chmod 0 ${host}/rw`;
    const shut = enter(host, { steps, between });
    const changed = refusal(place, "another file or directory is mounted there");
    expect(shut).toEqual(user === "root" ? ran : changed);
    chmodSync(join(host, "rw"), 0o755);
    expect(enter(host, { steps })).toEqual(ran);
  });

  it("begins nothing where a mount is of another device", () => {
    const host = prepare();
    const place = join(host, "ro");
    const edit = edited(host, `s#^mount [0-9:]* \\(.* ${place}\\)$#mount 9:9 \\1#`);
    expect(enter(host, { between: edit }).stderr).toMatch(/^podbot-enter: changed: .*\/ro: /);
  });

  it.each([" ", "a b", "a\nb", "a\tb", "a\\b", "a\\040b", "ünï", "#", "a:b", "\u007f\u0001", "*"])(
    "knows a place that is named %j",
    (name) => {
      const host = prepare(name);
      const place = join(host, name);
      give(join(place, "file"), user, "content");
      const steps = [bind("rw", place), withContent("cover", "0444", join(place, "file"), "")];
      expect(enter(host, { steps })).toEqual(ran);
      const options = ["--tmpfs", place];
      expect(enter(host, { steps: [step("point", "directory", place)], options })).toEqual(ran);
      const more = enter(host, { options });
      expect([more.status, more.stdout]).toEqual([125, ""]);
      expect(more.stderr).toMatch(/: a mount is there that the plan does not have\n$/);
    },
  );

  it.each<readonly [string, Buffer]>([
    ["without its last byte", Buffer.from("any /")],
    ["of nothing but NUL", Buffer.from("\0")],
    ["with an unknown entry", Buffer.from("any /\0all /\0")],
    ["with an entry that has no place", Buffer.from("mount 0:1 rw\0")],
    ["with an entry of one word", Buffer.from("mount\0")],
    ["with a relative place", Buffer.from("any proc\0")],
    ["with a mount at a relative place", Buffer.from("beside 0:1 rw x\0")],
    ["with an inode nowhere", Buffer.from("inode 1:1\0")],
    ["of random bytes", Buffer.from(Array.from({ length: 5_000 }, (_, at) => (at * 7_919) % 251))],
  ])("begins nothing with a list %s", (_, bytes) => {
    expect(enter(prepare(), { between: listed(bytes) })).toEqual(unreadable);
  });

  it("begins nothing with a list that is empty, closed, a directory or without an end", () => {
    const host = prepare();
    const empty = enter(host, { between: listed(Buffer.alloc(0)) });
    expect(empty.stderr).toMatch(/: a mount is there that the plan does not have\n$/);
    for (const between of ["exec 5<&-", "exec 5</etc", "exec 5>/dev/null", "exec 5</dev/zero"]) {
      expect(enter(host, { between })).toEqual(unreadable);
    }
    // The control: a list can be made by hand.
    expect(enter(host, { between: listed(Buffer.from("any /\0")) })).toEqual(ran);
  });

  it("compares a list of a hundred thousand mounts", () => {
    const entries = Array.from({ length: 100_000 }, (_, at) => `beside 0:1 rw,nosuid,nodev,relatime /${at}\0`);
    const between = listed(Buffer.from(["any /proc\0", ...entries, "mount 0:1 rw /z\0"].join("")));
    expect(enter(prepare(), { between }).stderr).toMatch(/^podbot-enter: changed: \//);
  });
});

describe.each(starts)("podbot-launch, %s build, started by %s,", (build, user) => {
  /** Has the directory above a mount exchanged as soon as the mount is there. */
  function exchange(): { readonly place: string; readonly run: Posted } {
    const host = give(join(bench.scratch, `host-${made++}`), user, null);
    give(join(host, "sub"), user, null);
    const place = give(join(host, "sub/dir"), user, null);
    const filling = Array.from({ length: 2_000 }, (_, at) => bind("ro", "/etc", `/run/${at}`));
    const steps = [bind("rw", "/"), step("tmpfs", "0755", place), step("tmpfs", "0755", "/run"), ...filling];
    const before = `(for try in $(seq 5000); do
        for pid in $(cat /proc/$$/task/$$/children); do
          grep -qs ${place} /proc/$pid/mountinfo && break 2
        done
      done; mv ${host}/sub ${host}/other; mkdir -p ${place}) &`;
    return { place, run: bench.post({ build, user, steps, before }) };
  }

  it("ends where a mount went away together with the directory that it lies on", () => {
    // The exchange may come too late on a busy machine.
    for (let tries = 0; tries < 10; tries++) {
      const { place, run } = exchange();
      if (run.status === 0) continue;
      expect([run.status, run.stderr]).toEqual([
        125,
        `podbot-launch: changed: ${place}: its mount is no longer there\n`,
      ]);
      return;
    }
    expect.unreachable("no exchange came in time");
  });
});

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
