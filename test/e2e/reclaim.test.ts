import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPrograms, environment, makeScratch, ordinary, sanitized } from "../native/programs.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

/** Somebody of a container's. */
const other = 4_321;
const ownerOf = (path: string) => {
  const { uid, gid } = lstatSync(path);
  return `${uid}:${gid}`;
};
const modeOf = (path: string) => lstatSync(path).mode & 0o7777;

describe.each([ordinary, sanitized])("podbot-reclaim, $build build,", ({ reclaim }) => {
  /** A script as the first process of a pid namespace, with mounts of its own: whatever it kills, it is its own. */
  async function run(script: string) {
    const own = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--propagation", "private"];
    const guarded = `[ $$ = 1 ] || exit 99\n${script}`;
    const child = spawn("unshare", [...own, "bash", "-c", guarded], {
      env: { ...environment, RECLAIM: reclaim, OTHER: String(other) },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close"),
    ]);
    return { status, stdout, stderr };
  }

  const site = () => {
    const root = mkdtempSync(join(scratch, "site-"));
    mkdirSync(join(root, "work"));
    return { root, work: join(root, "work") };
  };

  /** Takes back what a script has left in the workspace. */
  const taken = async ({ root }: { root: string }, before: string) =>
    await run(`cd ${root}/work || exit 98\n(set -e\n${before}\n) || exit 97\n"$RECLAIM" ${root}/work`);
  const done = { status: 0, stdout: "", stderr: "" };

  it("gives files, directories, links and pipes to the user who runs it", async () => {
    const where = site();
    const names = ["file", "directory", "directory/file", "link", "pipe", "socket", "by group"];
    const made = await taken(
      where,
      `touch file 'by group'; mkdir directory; touch directory/file; ln -s nowhere link; mkfifo pipe
       python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
       chown -hR $OTHER:$OTHER .; chown 0:$OTHER 'by group'
       [ "$(stat -c %u:%g directory/file)" = $OTHER:$OTHER ]`,
    );
    expect(made).toEqual(done);
    expect(names.map((name) => ownerOf(join(where.work, name)))).toEqual(names.map(() => "0:0"));
  });

  /**
   * The same program as root of a user namespace like that of a rootless container: root is 70001 outside, and 65536
   * more ids begin at 200001 there, so that 65534 is both an id of the container and what unknown ids look like.
   */
  const inContainer = ({ work }: { work: string }, before: string) => {
    const own = ["unshare", "--user", "bash", "-c", 'read; exec setpriv --reuid 0 --regid 0 --clear-groups "$0" "$1"'];
    return run(`cd ${work} || exit 98
       (set -e; ${before}
       ) || exit 97
       mkfifo ../go; exec 3<>../go
       setpriv --reuid 70001 --regid 70001 --groups 70001,70002 ${own.map((word) => `'${word}'`).join(" ")} \
         "$RECLAIM" . <&3 &
       until [ "$(readlink /proc/$!/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do :; done
       printf '0 70001 1\\n1 200001 65536\\n' >../map
       for map in uid_map gid_map; do cat ../map >/proc/$!/$map; done
       echo >&3; wait $!`);
  };
  const inside = (id: number) => 200_000 + id;
  /** What a user of the host sees of each. */
  const seen = (work: string, names: readonly string[]) =>
    names.map((name) => `${name} ${ownerOf(join(work, name))} ${modeOf(join(work, name)).toString(8)}`);

  it("leaves the owner's files their groups and set-group-ID bits, and the host's other users theirs", async () => {
    const where = site();
    const names = ["shared", "shared/f", "shared/sg", "roots", "anothers", "nobodys"];
    const made = await inContainer(
      where,
      `mkdir shared; touch shared/f shared/sg roots anothers nobodys; chown -R 70001:70002 .
       chmod 2775 shared; chmod 664 shared/f; chmod 2755 shared/sg
       chown 0:0 roots; chown 70003:70001 anothers; chown 65534:65534 nobodys`,
    );
    expect(made).toEqual(done);
    expect(seen(where.work, names)).toEqual([
      "shared 70001:70002 2775",
      "shared/f 70001:70002 664",
      "shared/sg 70001:70002 2755",
      "roots 0:0 644",
      "anothers 70003:70001 644",
      "nobodys 65534:65534 644",
    ]);
  });

  it("takes what the container's users have left, its nobody's as well, and uid and gid each on its own", async () => {
    const where = site();
    const names = ["user", "nobody", "group", "nogroup", "in-shared", "in-shared/f"];
    const made = await inContainer(
      where,
      `touch user nobody group nogroup; mkdir in-shared; touch in-shared/f
       chown ${inside(1000)}:${inside(1000)} user; chown ${inside(65534)}:${inside(65534)} nobody
       chown 70001:${inside(7)} group; chown 70001:${inside(65534)} nogroup
       chown ${inside(1000)}:70002 in-shared in-shared/f; chmod 2700 in-shared`,
    );
    expect(made).toEqual(done);
    expect(seen(where.work, names)).toEqual([
      "user 70001:70001 644",
      "nobody 70001:70001 644",
      "group 70001:70001 644",
      "nogroup 70001:70001 644",
      "in-shared 70001:70001 2700",
      "in-shared/f 70001:70001 644",
    ]);
  });

  it("follows no link, wherever it leads", async () => {
    const where = site();
    const made = await taken(
      where,
      `mkdir ../outside; touch ../outside/file; chown -R $OTHER:$OTHER ../outside
       ln -s ../outside to-directory; ln -s ../outside/file to-file; ln -s . to-itself; ln -s / to-root
       chown -h $OTHER:$OTHER to-directory to-file to-itself to-root`,
    );
    expect(made).toEqual(done);
    const outside = ["outside", "outside/file"].map((name) => ownerOf(join(where.root, name)));
    expect(outside).toEqual([`${other}:${other}`, `${other}:${other}`]);
    expect(["to-directory", "to-file", "to-root"].map((name) => ownerOf(join(where.work, name)))).toEqual([
      "0:0",
      "0:0",
      "0:0",
    ]);
  });

  it("takes each name of a file that has several", async () => {
    const where = site();
    expect(await taken(where, "touch a; mkdir d; ln a d/b; chown $OTHER:$OTHER a")).toEqual(done);
    const [a, b] = ["a", "d/b"].map((name) => lstatSync(join(where.work, name)));
    expect([a?.uid, b?.uid, a?.nlink, a?.ino === b?.ino]).toEqual([0, 0, 2, true]);
  });

  it("leaves what is mounted read-only, and takes what is mounted for writing", async () => {
    const where = site();
    const made = await taken(
      where,
      `mkdir ../ro ../rw ro rw; touch ../ro/file ../rw/file rest; chown -R $OTHER:$OTHER ../ro ../rw rest
       mount --bind ../ro ro; mount -o remount,bind,ro ro; mount --bind ../rw rw`,
    );
    expect(made).toEqual(done);
    const owners = ["ro/file", "rw/file", "work/rest"].map((name) => ownerOf(join(where.root, name)));
    expect(owners).toEqual([`${other}:${other}`, "0:0", "0:0"]);
  });

  it("keeps modes, but for the one that would run a program as whoever owns it", async () => {
    const where = site();
    const modes = { plain: 0o640, closed: 0o000, program: 0o755, sticky: 0o1777, private: 0o700, barred: 0o000 };
    const made = await taken(
      where,
      `touch plain closed program suid; mkdir sticky private barred; touch barred/file
       chown -R $OTHER:$OTHER .; chmod 640 plain; chmod 0 closed barred; chmod 755 program; chmod 1777 sticky
       chmod 700 private; chmod 4755 suid`,
    );
    expect(made).toEqual(done);
    expect(Object.keys(modes).map((name) => modeOf(join(where.work, name)))).toEqual(Object.values(modes));
    expect(modeOf(join(where.work, "suid"))).toBe(0o755);
    expect(ownerOf(join(where.work, "barred/file"))).toBe("0:0");
  });

  /** Makes a directory in a directory, and so on, with a file in the last; its path is longer than any call takes. */
  const dig = (levels: number) => `python3 -c '
import os, sys
for level in range(${levels}):
    name = "d%03d" % level + "x" * 196
    os.mkdir(name); os.chown(name, ${other}, ${other}); os.chdir(name)
open("last", "w"); os.chown("last", ${other}, ${other})'`;
  const count = `find . -user $OTHER | wc -l; find . -user 0 -name last | wc -l`;

  it("reaches the ground of a tree that is deeper than a path is long", async () => {
    const { work } = site();
    const found = await run(`cd ${work}; ${dig(300)}; "$RECLAIM" ${work}; echo $?; ${count}; rm -rf ${work}`);
    expect(found).toEqual({ status: 0, stdout: "0\n0\n1\n", stderr: "" });
  });

  it("says by its status that a tree was deeper than it has descriptors, and does the rest", async () => {
    const { work } = site();
    const found = await run(
      `cd ${work}; ${dig(60)}; touch rest; chown $OTHER rest
       (ulimit -n 40; "$RECLAIM" ${work}; echo $?); stat -c %u rest; find . -user $OTHER | wc -l; rm -rf ${work}`,
    );
    const [status, rest, left] = found.stdout.split("\n");
    expect([found.stderr, status, rest]).toEqual(["", "1", "0"]);
    expect(Number(left)).toBeGreaterThan(10);
  });

  it("takes names of any bytes", async () => {
    const where = site();
    const made = await taken(
      where,
      `touch $'a\\nb' $'\\xff\\xfe' ' ' -- '-rf' '...' '*'; mkdir $'d\\n'; touch $'d\\n/f'; chown -R $OTHER:$OTHER .
       chown 0:0 .`,
    );
    expect(made).toEqual(done);
    const { stdout } = await run(`find ${where.work} -mindepth 1 -printf '%U\\n' | sort | uniq -c`);
    expect(stdout.trim()).toBe("8 0");
  });

  it("kills whatever else runs first, but not the first process nor who started it", async () => {
    const { root, work } = site();
    const found = await run(
      `setsid sleep 300 & setpriv --reuid $OTHER --regid $OTHER --clear-groups sleep 300 & trap "" TERM
       (trap "" TERM INT HUP; sleep 300; touch ${root}/survived) &
       sleep 0.2
       bash -c '"$RECLAIM" ${work}; echo "$?" >${root}/status'
       sleep 0.1
       wait -n; wait -n; wait -n
       cat ${root}/status; ls -d /proc/[0-9]* | wc -l; jobs -rp | wc -l`,
    );
    // Left are the first process, and ls and wc while they count.
    const [status, processes, jobs] = found.stdout.split("\n");
    expect([found.status, status, jobs]).toEqual([0, "0", "0"]);
    expect(Number(processes)).toBeLessThanOrEqual(4);
  });

  it("leaves nothing to those who make more and more, nor to those who fork away", { timeout: 60_000 }, async () => {
    const { work } = site();
    const busy = `i=0; while :; do i=$((i+1)); : >$0-$i; done`;
    const runaway = `import os
while True:
    open("fork-%d" % os.getpid(), "w")
    if os.fork(): os._exit(0)`;
    const found = await run(
      `cd ${work}; chmod 777 .
       as() { setpriv --reuid $OTHER --regid $OTHER --clear-groups "$@"; }
       for n in 1 2 3; do as bash -c '${busy}' $n & done; as python3 -c '${runaway}' &
       sleep 1
       bash -c '"$RECLAIM" ${work}; echo $?'
       sleep 0.3; find . -user 0 -type f | wc -l; find . -user $OTHER | wc -l`,
    );
    const [status, own, foreign] = found.stdout.split("\n");
    expect({ status, foreign }).toEqual({ status: "0", foreign: "0" });
    expect(Number(own)).toBeGreaterThan(10);
  });

  it.each([
    ["a directory that is missing", "/missing", /^podbot-reclaim: \/missing: No such file or directory\n$/],
    ["what is no directory", "/dev/null", /^podbot-reclaim: \/dev\/null: Not a directory\n$/],
    ["nothing", "", /^usage: podbot-reclaim DIRECTORY\n$/],
    ["two", "/tmp /var", /^usage: podbot-reclaim DIRECTORY\n$/],
  ])("refuses %s, and kills nobody", async (_, argument, message) => {
    const found = await run(`sleep 300 & "$RECLAIM" ${argument}; echo $?; kill -0 $! && echo alive`);
    expect(found.stdout).toBe("125\nalive\n");
    expect(found.stderr).toMatch(message);
  });

  it("leaves the directory itself to its owner", async () => {
    const where = site();
    expect(await taken(where, "chown $OTHER:$OTHER .")).toEqual(done);
    expect(ownerOf(where.work)).toBe(`${other}:${other}`);
  });
});
