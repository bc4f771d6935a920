// @module-tag security
import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { newWorld, program } from "../world.ts";

const isRoot = process.getuid?.() === 0;
const nodes = ["null", "zero", "full", "random", "urandom", "tty"];
/** The modes that they have: where that succeeds, nothing is changed. */
const change = nodes.map((name) => `chmod 666 /dev/${name} && echo changed`).join("; ");

describe.runIf(isRoot)("the host's device nodes, which root owns,", () => {
  test("cannot get another mode, owner or time from inside, and work", async () => {
    const world = newWorld();
    const { stdout, stderr, status } = await world.inside(
      `${change}; touch -c -d 2001-01-01 /dev/full && echo touched; chgrp 0 /dev/full && echo given
       echo x >/dev/null && head -c 3 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c; echo x >/dev/full || echo full`,
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: "3\n2\nfull\n" });
    expect(stderr.match(/Read-only file system/g)).toHaveLength(nodes.length + 2);
    // The same in a box of bubblewrap alone, whose user namespace may not know the owner of one.
    const alone = ["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-user", "--cap-drop", "ALL", "sh", "-c", change];
    expect(spawnSync("bwrap", alone, { encoding: "utf8" }).stdout).toMatch(/^(changed\n){5,6}$/);
  });

  test("cannot get another mode by a descriptor either", () => {
    const world = newWorld();
    const devices = [openSync("/dev/null", "r"), openSync("/dev/zero", "w")] as const;
    const script = "chmod 666 /proc/self/fd/0 || chmod 666 /proc/self/fd/1 || echo shut >&2";
    const words = ["sandbox", "--network", "none", "--", "sh", "-c", script];
    const { stderr } = spawnSync(process.execPath, [program, ...words], {
      cwd: world.project,
      env: world.env as NodeJS.ProcessEnv,
      stdio: [devices[0], devices[1], "pipe"],
      encoding: "utf8",
    });
    expect(stderr).toMatch(/shut\n$/);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
    // Outside, the descriptor is the same as ever.
    expect(fstatSync(devices[0]).rdev).toBe(fstatSync(openSync("/dev/null", "r")).rdev);
    for (const device of devices) closeSync(device);
  });
});

/** Runs a script on a terminal of its own; what appears on it. */
const onTerminal = (script: string, env: NodeJS.ProcessEnv, cwd: string) => {
  const python = `import os, pty, sys
pid, terminal = pty.fork()
if pid == 0: os.execvp("sh", ["sh", "-c", sys.argv[1]])
said = b""
while True:
    try: part = os.read(terminal, 4096)
    except OSError: part = b""
    if not part: break
    said += part
sys.stdout.buffer.write(said.replace(b"\\r\\n", b"\\n"))`;
  return spawnSync("python3", ["-c", python, script], { env, cwd, encoding: "utf8" }).stdout;
};

describe("the caller's terminal", () => {
  test("cannot be opened to other users from inside, by whatever name, and works", () => {
    const world = newWorld();
    const open = (name: string) => `chmod 777 ${name} 2>/dev/null && echo "opened ${name}"`;
    const names = ["/dev/tty", "/dev/console", '"$(tty)"', "/proc/self/fd/0", "/proc/self/fd/2"];
    const attempts = [
      ...names.map(open),
      `python3 -c 'import os; os.fchmod(1, 0o777)' 2>/dev/null && echo 'opened 1'`,
      "echo seen >/dev/tty; test -t 0 && test -t 2 && tty",
    ].join("; ");
    world.file("home/project/attempts.sh", `${attempts}\n`);
    const mode = 'stat -c %a "$(tty)"';
    const script = `chmod 620 "$(tty)"; ${process.execPath} ${program} sandbox --network none -- sh attempts.sh; ${mode}
      chmod 600 "$(tty)" && ${mode}`;
    const said = onTerminal(script, world.env as NodeJS.ProcessEnv, world.project);
    expect(said).toMatch(/^seen\n\/dev\/\S+\n620\n600\n$/m);
    expect(said).not.toContain("opened");
  });
});
