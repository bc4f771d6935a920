// @module-tag security
import { execFileSync } from "node:child_process";
import { linkSync, lstatSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bind, emptyRoot, give, openBench, snapshot, starts, step, withContent } from "./tree.ts";

const bench = openBench(beforeAll, afterAll);

let made = 0;

/** What an agent has in its hands, and what it would like to have there. */
interface Host {
  /** A directory that agents write to; with `file`, `dir` and `dir/file`. */
  readonly open: string;
  /** A directory that no step mounts; with `file` and `dir`. */
  readonly victim: string;
}

describe.each(starts)("podbot-launch, %s build, started by %s", (build, user) => {
  let top = "";

  function prepare(): Host {
    top = give(join(bench.scratch, `host-${made++}`), user, null);
    const [open, victim] = [join(top, "open"), join(top, "victim")];
    for (const directory of [open, victim]) {
      give(directory, user, null);
      give(join(directory, "dir"), user, null);
      for (const name of ["file", "dir/file"]) give(join(directory, name), user, `content of ${name}`);
    }
    return { open, victim };
  }

  function post(steps: readonly Buffer[]): readonly [number | null, string] {
    const { status, stderr } = bench.post({ build, user, steps });
    return [status, stderr];
  }

  /** Asserts that the steps are refused because of a path, and that nothing on the host is another than before. */
  function refused(steps: readonly Buffer[], path: string, why: string | RegExp): void {
    const before = snapshot(top);
    const [status, stderr] = post(steps);
    expect(stderr).toBe(`podbot-launch: changed: ${path}: ${typeof why === "string" ? why : why.exec(stderr)?.[0]}\n`);
    expect(status).toBe(125);
    expect(snapshot(top)).toEqual(before);
  }

  const accepted = (steps: readonly Buffer[]) => expect(post(steps)).toEqual([0, ""]);

  describe("refuses a source", () => {
    it.each<readonly [string, (open: string) => void, string]>([
      [
        "that is another file",
        (open) => {
          renameSync(join(open, "file"), join(open, "moved"));
          give(join(open, "file"), user, "content of file");
        },
        "it is no longer the file or directory that was surveyed",
      ],
      [
        "that is a link to what was there",
        (open) => {
          renameSync(join(open, "file"), join(open, "moved"));
          symlinkSync("moved", join(open, "file"));
        },
        "it is no longer the file or directory that was surveyed",
      ],
      ["that is gone", (open) => rmSync(join(open, "file")), "No such file or directory"],
      [
        "that is a directory by now",
        (open) => {
          renameSync(join(open, "file"), join(open, "moved"));
          give(join(open, "file"), user, null);
        },
        "it is no longer the file or directory that was surveyed",
      ],
    ])("%s", (_, change, why) => {
      const { open } = prepare();
      const steps = [emptyRoot, bind("rw", join(open, "file"))];
      accepted(steps);
      change(open);
      refused(steps, join(open, "file"), why);
    });

    it("that was a link when it was surveyed", () => {
      const { open, victim } = prepare();
      symlinkSync(victim, join(open, "link"));
      refused([emptyRoot, bind("rw", join(open, "link"), "/x")], join(open, "link"), "it is a link now");
    });

    it("that is reached through a link by now", () => {
      const { open } = prepare();
      const source = join(open, "dir/file");
      const steps = [emptyRoot, bind("ro", source, "/x")];
      accepted(steps);
      renameSync(join(open, "dir"), join(open, "moved"));
      symlinkSync("moved", join(open, "dir"));
      refused(steps, source, "on the way to it is a link");
    });
  });

  describe("makes nothing in the host's directories for", () => {
    it.each<readonly [string, (target: string) => Buffer]>([
      ["a bound directory", (target) => bind("ro", "/etc", target)],
      ["a bound file", (target) => bind("ro", "/etc/passwd", target)],
      ["a file system in memory", (target) => step("tmpfs", "0755", target)],
      ["a directory", (target) => step("directory", "0755", target)],
      ["a file", (target) => withContent("file", "0644", target, "x")],
      ["a cover", (target) => withContent("cover", "0000", target, "")],
      ["a link", (target) => step("link", "/etc", target)],
      ["a directory of bubblewrap's", (target) => step("point", "directory", target)],
      ["a file of bubblewrap's", (target) => step("point", "file", target)],
    ])("%s", (_, make) => {
      const { open } = prepare();
      for (const name of ["missing/below", "dir/missing"]) {
        const target = join(open, name);
        const why = /it is missing|it would be made in a directory of the host's/;
        refused([emptyRoot, bind("rw", open), make(target)], target, why);
      }
      accepted([emptyRoot, make("/missing/below")]);
      accepted([
        emptyRoot,
        bind("rw", open),
        step("tmpfs", "0755", join(open, "dir")),
        make(join(open, "dir/missing")),
      ]);
    });
  });

  describe("follows no link that stands in the way of", () => {
    const steps: readonly (readonly [string, (target: string) => Buffer, "dir" | "file"])[] = [
      ["a bound directory", (target) => bind("ro", "/etc", target), "dir"],
      ["a bound file", (target) => bind("ro", "/etc/passwd", target), "file"],
      ["a file system in memory", (target) => step("tmpfs", "0755", target), "dir"],
      ["a file", (target) => withContent("file", "0644", target, "x"), "file"],
      ["a cover", (target) => withContent("cover", "0000", target, ""), "file"],
      ["a mode", (target) => step("mode", "0700", target), "file"],
      ["a seal", (target) => step("seal", target), "dir"],
      ["a point", (target) => step("point", "directory", target), "dir"],
    ];
    it.each(steps)("%s", (name, make, kind) => {
      const { open, victim } = prepare();
      const base = kind === "file" ? [emptyRoot, bind("own", open)] : [bind("rw", "/")];
      const link = join(open, "link");
      for (const place of [join(victim, kind), `/host${victim}/${kind}`, join(victim, "dangling"), kind]) {
        symlinkSync(place, link);
        refused([...base, make(link)], link, /(?<=: )[^:]*(?=\n)/);
        rmSync(link);
      }
      for (const place of [victim, `/host${victim}`, "."]) {
        symlinkSync(place, link);
        refused([...base, make(join(link, kind))], join(link, kind), /(?<=: )[^:]*(?=\n)/);
        rmSync(link);
      }
      if (name !== "a seal") accepted([emptyRoot, bind("own", open), make(join(open, kind))]);
    });
  });

  it("refuses what is mounted onto itself where another has taken its place", () => {
    const { open } = prepare();
    const whole = [bind("rw", "/")];
    for (const [name, content] of [
      ["file", "content of file"],
      ["dir", null],
    ] as const) {
      const source = join(open, name);
      const steps = [...whole, bind("rw", open), bind("ro", source)];
      accepted(steps);
      // Where the tree shows another directory at this place, the source is found, and is not what is covered.
      const other = give(join(open, `other-${name}`), user, content);
      const over = [...whole, bind("rw", other, source), bind("ro", source)];
      refused(over, source, "another file or directory has taken its place");
    }
  });

  it("refuses a directory where a file is due, and a file where a directory is", () => {
    const { open } = prepare();
    const [file, dir] = [join(open, "file"), join(open, "dir")];
    const base = [emptyRoot, bind("own", open)];
    refused([...base, bind("ro", "/etc", file)], file, "it is no directory");
    refused([...base, step("tmpfs", "0755", file)], file, "it is no directory");
    refused([...base, step("directory", "0755", file)], file, "it is no directory");
    refused([...base, step("point", "directory", file)], file, "it is no directory");
    refused([...base, bind("ro", "/etc/passwd", dir)], dir, "it is a directory");
    refused([...base, withContent("cover", "0000", dir, "")], dir, "it is a directory");
    refused([...base, step("point", "file", dir)], dir, "it is a directory");
    refused([...base, withContent("file", "0600", dir, "")], dir, "Is a directory");
    refused([...base, step("link", "x", dir)], dir, "it cannot be made a link");
    const below = join(file, "below");
    for (const make of [bind("ro", "/etc", below), withContent("file", "0600", below, ""), step("link", "x", below)]) {
      refused([...base, make], below, /Not a directory|on the way to it is something else than directories/);
    }
    refused([bind("ro", "/etc/passwd", "/")], "/", "the root is no directory");
  });

  it("covers pipes and sockets without opening them", () => {
    const { open } = prepare();
    const [fifo, socket] = [join(open, "fifo"), join(open, "socket")];
    execFileSync("mkfifo", [fifo]);
    execFileSync("python3", ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", socket]);
    const covers = [fifo, socket].map((place) => withContent("cover", "0444", place, "covered"));
    const look = `cat /tmp/tree${fifo} /tmp/tree${socket}`;
    const before = snapshot(top);
    const run = bench.post({ build, user, steps: [emptyRoot, bind("rw", open), ...covers], script: look });
    expect(run).toEqual({ status: 0, stdout: "coveredcovered", stderr: "" });
    expect(snapshot(top)).toEqual(before);
  });

  it("changes no mode, and makes no link or file, outside of what is its own", () => {
    const { open } = prepare();
    const [file, dir] = [join(open, "file"), join(open, "dir")];
    for (const base of [[bind("rw", "/")], [emptyRoot, bind("rw", open)]]) {
      refused([...base, step("mode", "0777", file)], file, "it is not Podbot's own");
      refused([...base, step("mode", "0777", dir)], dir, "it is not Podbot's own");
      for (const target of [file, dir, join(open, "new")]) {
        refused([...base, step("link", "x", target)], target, "it would be made in a directory of the host's");
        const content = withContent("file", "0777", target, "x");
        refused([...base, content], target, "it would be made in a directory of the host's");
      }
    }
    refused([emptyRoot, step("mode", "0777", "/none")], "/none", "it is not Podbot's own");
  });

  it("writes no file through a mount that lies in a directory of its own", () => {
    const { open, victim } = prepare();
    const [file, target] = [join(victim, "file"), join(open, "file")];
    const steps = [emptyRoot, bind("own", open), bind("rw", file, target)];
    accepted(steps);
    refused(
      [...steps, withContent("file", "0600", target, "x")],
      target,
      "it would be made in a directory of the host's",
    );
    const over = [emptyRoot, bind("own", open), bind("rw", victim, join(open, "dir"))];
    refused([...over, withContent("file", "0600", join(open, "dir/file"), "x")], join(open, "dir/file"), /it would .*/);
  });

  it("takes no directory of the host's for its own because it was mounted after one was taken away", () => {
    const { open } = prepare();
    const missing = join(open, "missing");
    const again = [emptyRoot, step("tmpfs", "0755", "/a"), bind("ro", "/"), emptyRoot, bind("rw", open)];
    accepted(again);
    refused([...again, step("directory", "0755", missing)], missing, "it is missing");
  });

  describe("in a directory of its own, where an agent has planted something,", () => {
    it("makes mount points, files and links", () => {
      const { open } = prepare();
      accepted([
        ...[emptyRoot, bind("own", open, "/home")],
        ...[step("tmpfs", "0755", "/home/a/b"), withContent("cover", "0000", "/home/a/c", "")],
        ...[withContent("file", "0600", "/home/file", "new"), step("link", "x", "/home/link")],
        ...[step("link", "x", "/home/link"), step("mode", "0700", "/home/dir")],
      ]);
      expect(readdirSync(join(open, "a"))).toEqual(["b", "c"]);
      expect(readFileSync(join(open, "file"), "utf8")).toBe("new");
      expect(readlinkSync(join(open, "link"))).toBe("x");
      expect([lstatSync(join(open, "file")).mode & 0o777, lstatSync(join(open, "dir")).mode & 0o777]).toEqual([
        0o600, 0o700,
      ]);
      refused([emptyRoot, bind("own", open, "/home"), step("link", "y", "/home/link")], "/home/link", /it cannot.*/);
    });

    it("writes to no pipe, even if something reads it", () => {
      const { open } = prepare();
      const fifo = join(open, "fifo");
      execFileSync("mkfifo", ["-m", "666", fifo]);
      const steps = [emptyRoot, bind("own", open), withContent("file", "0600", fifo, "x")];
      refused(steps, fifo, "No such device or address");
      const run = bench.post({ build, user, steps, before: `exec 9<>${fifo}` });
      expect([run.status, run.stderr]).toEqual([125, `podbot-launch: changed: ${fifo}: it is no file\n`]);
    });

    it("writes to no file that has another name", () => {
      const { open, victim } = prepare();
      const target = join(open, "hard");
      linkSync(join(victim, "file"), target);
      const base = [emptyRoot, bind("own", open)];
      refused([...base, withContent("file", "0600", target, "x")], target, "it has another name too");
      refused([...base, step("mode", "0666", target)], target, "it has another name too");
    });
  });

  it.each(["/a/../b", "/../etc", "/./a", "/a/.", "/..", "//a", "/a//b", "/a/"])(
    "refuses the place %j, which the kernel spells otherwise",
    (place) => {
      const base = [emptyRoot, step("directory", "0755", "/a"), step("directory", "0755", "/b")];
      for (const make of [step("tmpfs", "0755", place), step("link", "x", place), step("seal", place)]) {
        expect(post([...base, make])).toEqual([125, "podbot-launch: the letter names a path that cannot be\n"]);
      }
    },
  );
});
