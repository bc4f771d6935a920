// @module-tag security
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bind, emptyRoot, give, openBench, type Post, starts, step, withContent } from "./tree.ts";

const bench = openBench(beforeAll, afterAll);

let made = 0;

describe.each(starts)("podbot-launch, %s build, started by %s, builds of its steps", (build, user) => {
  /** A directory of the host's, with files that its owner may read. */
  function host(files: Readonly<Record<string, string>> = {}): string {
    const directory = give(join(bench.scratch, `host-${made++}`), user, null);
    for (const [name, content] of Object.entries(files)) give(join(directory, name), user, content);
    return directory;
  }

  function look(steps: readonly Buffer[], script: string, more: Partial<Post> = {}): string {
    const { status, stdout, stderr } = bench.post({ build, user, steps, script: `cd /tmp/tree\n${script}`, ...more });
    expect([stderr, status]).toEqual(["", 0]);
    return stdout;
  }

  /** Prints the flags of the mounts at and below a place of the tree. */
  const flags = (place = "") =>
    `awk '$5 ~ "^/tmp/tree${place}(/|$)" { print substr($5, 10) " " $6 }' /proc/self/mountinfo | cut -d, -f1-3 | sort -u`;

  it("directories, files and links in memory, with their modes whatever the umask", () => {
    const steps = [
      emptyRoot,
      step("directory", "0750", "/a/b"),
      withContent("file", "0640", "/a/b/c d", "one\0two\n"),
      step("link", "../up", "/a/link"),
      step("tmpfs", "1777", "/scratch"),
    ];
    const before = "umask 077";
    const script = "stat -c '%A %n' . a a/b a/b/* scratch; readlink a/link; tr '\\0' '|' <\"a/b/c d\"; umask";
    const modes = ["drwxr-xr-x .", "drwxr-xr-x a", "drwxr-x--- a/b", "-rw-r----- a/b/c d", "drwxrwxrwt scratch"];
    expect(look(steps, script, { before })).toBe([...modes, "../up", "one|two", "0077", ""].join("\n"));
  });

  it("binds that are read-only or not, and neither of which has set-user-ID programs or devices", () => {
    const source = host({ file: "content" });
    const steps = [emptyRoot, bind("ro", source, "/ro"), bind("rw", source, "/rw"), bind("own", source, "/own/deep")];
    const script = `${flags()}; cat ro/file; touch ro/new 2>/dev/null || echo; touch rw/new own/deep/newer; ls ro`;
    expect(look(steps, script)).toBe(
      [
        ...[" rw,nosuid,nodev", "/own/deep rw,nosuid,nodev", "/ro ro,nosuid,nodev", "/rw rw,nosuid,nodev"],
        ...["content", "file", "new", "newer", ""],
      ].join("\n"),
    );
  });

  it("files bound over files, which are made where the file system is the tree's own", () => {
    const source = join(host({ file: "content" }), "file");
    expect(look([emptyRoot, bind("ro", source, "/x/y")], "cat x/y; stat -c %a x")).toBe("content755\n");
  });

  it("read-only files over others, which leave those as they are", () => {
    const directory = host({ secret: "secret", settings: "old" });
    const steps = [
      bind("rw", "/"),
      withContent("cover", "0000", join(directory, "secret"), ""),
      withContent("cover", "0644", join(directory, "settings"), "new"),
    ];
    const script = `cd .${directory}; stat -c '%a %s' secret; cat settings ${directory}/*; echo x >>settings`;
    const ends = bench.post({ build, user, steps, script: `cd /tmp/tree; ${script}` });
    expect([ends.stdout, ends.stderr]).toEqual(["0 0\nnewsecretold", expect.stringMatching(/Read-only file system/)]);
  });

  it("modes of what is its own", () => {
    const steps = [emptyRoot, step("directory", "0755", "/a"), withContent("file", "0644", "/a/b", "")];
    const changes = [step("mode", "0711", "/"), step("mode", "0700", "/a"), step("mode", "0111", "/a/b")];
    expect(look([...steps, ...changes], "stat -c %a . a a/b")).toBe("711\n700\n111\n");
  });

  it("file systems that take no more changes once they are sealed", () => {
    const steps = [
      emptyRoot,
      step("tmpfs", "0755", "/c"),
      withContent("file", "0666", "/c/f", "x"),
      step("seal", "/c"),
    ];
    const script = `${flags("/c")}; touch c/new || touch open; (echo >c/f) 2>/dev/null || ls . c`;
    const { stdout } = bench.post({ build, user, steps, script: `cd /tmp/tree; ${script}` });
    expect(stdout).toMatch(/^\/c ro,nosuid,nodev\n\.:\nc\n(open\n)?\nc:\nf\n$/);
  });

  it("places for bubblewrap's own mounts", () => {
    const steps = [emptyRoot, step("point", "directory", "/dev"), step("point", "file", "/run/ca.pem")];
    expect(look(steps, "stat -c '%F %a' dev run/ca.pem")).toBe("directory 755\nregular empty file 444\n");
  });

  it("a root that takes the place of the one before, of which nothing is left", () => {
    const source = host({ file: "content" });
    const steps = [emptyRoot, step("directory", "0755", "/old"), bind("ro", source, "/")];
    expect(look(steps, `ls; ${flags()}`)).toBe("file\n ro,nosuid,nodev\n");
  });

  it("what lies below the machine's own /tmp", () => {
    const workspace = give(mkdtempSync(join(realpathSync(tmpdir()), "podbot-workspace-")), user);
    try {
      give(join(workspace, "file"), user, "content");
      const steps = [
        bind("ro", "/"),
        bind("rw", workspace),
        withContent("cover", "0444", join(workspace, "file"), "y"),
      ];
      expect(look(steps, `cd .${workspace}; cat file; touch new; ${flags(workspace)}`)).toBe(
        `y${workspace} rw,nosuid,nodev\n${workspace}/file ro,nosuid,nodev\n`,
      );
      expect(statSync(join(workspace, "new")).size).toBe(0);
    } finally {
      rmSync(workspace, { recursive: true, force: true });
    }
  });

  it.runIf(process.getuid?.() === 0)("what is mounted on the host, but not what is mounted there later", () => {
    const source = host();
    mkdirSync(join(source, "sub"));
    mkdirSync(join(source, "late"));
    const before = `mount -t tmpfs -o mode=0755 sub ${source}/sub && mkdir ${source}/sub/dir && echo in >${source}/sub/f
      (while [ ! -e ${source}/asked ]; do sleep 0.01; done
       mount -t tmpfs late ${source}/late && touch ${source}/late/f ${source}/answered) &`;
    const wait = `touch ${source}/asked; while [ ! -e ${source}/answered ]; do sleep 0.01; done`;
    chmodSync(source, 0o777);
    const steps = [emptyRoot, bind("ro", source, "/ro"), bind("rw", source, "/rw")];
    const privately = `grep -c '/tmp/tree.* \\(shared\\|master\\):' /proc/self/mountinfo`;
    const script = `${wait}\ncat ro/sub/f; ls ro/late rw/late; ${flags("/ro")}; ${privately}; true`;
    expect(look(steps, script, { before })).toBe(
      ["in", ...["ro/late:", "", "rw/late:"], ...["/ro ro,nosuid,nodev", "/ro/sub ro,nosuid,nodev", "0", ""]].join(
        "\n",
      ),
    );
  });
});
