// @module-tag security
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { until } from "../eventually.ts";
import { newWorld, program, type World } from "../world.ts";

/** Starts the built program with a script inside, and waits until that has said `ready`. */
async function ready(world: World, script: string, ...flags: string[]) {
  const child = world.spawn(["sandbox", ...flags, "--", "bash", "-c", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  while (!said.includes("ready")) await once(child.stdout as NodeJS.ReadableStream, "data");
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, said }));
  return { child, ended };
}

/** Processes whose command line holds a word, anywhere on the machine. */
function processesWith(word: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word);
      } catch {
        return false;
      }
    });
}

describe("processes of the host", () => {
  test("can be neither seen nor signalled nor traced nor looked into", async () => {
    const world = newWorld();
    const victim = spawn("sleep", ["300"], { stdio: "ignore", env: { ...inject("run").env, SECRET_OF_THE_HOST: "1" } });
    try {
      const probe = `kill -0 ${victim.pid}; cat /proc/${victim.pid}/environ; ls /proc/${victim.pid}/root/; ls /proc | grep -c '^[0-9]'`;
      const { stdout, stderr } = await world.inside(`${probe}; ls -d /proc/[0-9]* | wc -l`);
      expect(stdout).not.toContain("SECRET");
      expect(stderr).toContain(`/proc/${victim.pid}/environ: No such file`);
      expect(Number(stdout.trim().split("\n").at(-1))).toBeLessThan(8);
      expect(world.outside(probe).stdout).toContain("SECRET_OF_THE_HOST");
      expect(victim.exitCode).toBeNull();
    } finally {
      victim.kill("SIGKILL");
    }
  });

  test("no Node and nothing of Podbot's but bubblewrap's own init stays inside", async () => {
    const world = newWorld();
    const { stdout } = await world.inside('for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; echo; done');
    const lines = stdout.trim().split("\n");
    expect(lines[0]).toMatch(/^bwrap --args \d+ -- /);
    expect(lines.slice(1).every((line) => /^(sh|tr) /.test(line))).toBe(true);
  });
});

describe("privileges", () => {
  test("are all dropped, for root too, and cannot come back", async () => {
    const world = newWorld();
    const { stdout } = await world.inside("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status /proc/1/status");
    for (const line of stdout
      .trim()
      .split("\n")
      .filter((text) => /Cap/.test(text)))
      expect(line).toMatch(/\t0{16}$/);
    expect(stdout).toContain("/proc/self/status:NoNewPrivs:\t1");
    expect(stdout).toContain("/proc/self/status:Seccomp:\t2");
  });

  test("user namespaces are off, and nothing can be mounted or unmounted", async () => {
    const world = newWorld();
    for (const attempt of [
      "unshare -Ur true",
      "unshare -m true",
      "mount -t tmpfs none /tmp",
      `umount ${world.project}`,
      "mount -o remount,rw /",
    ]) {
      expect((await world.inside(attempt)).status, attempt).not.toBe(0);
    }
    if (process.getuid?.() === 0) expect(spawnSync("unshare", ["-Ur", "true"]).status).toBe(0);
  });
});

describe("set-user-ID programs", () => {
  test("cannot be left behind, by any call", async () => {
    const world = newWorld();
    const python = `import os
for make in (lambda: os.chmod("a", 0o4755), lambda: os.open("b", os.O_CREAT | os.O_WRONLY, 0o4755), lambda: os.mknod("c", 0o104755)):
    try: make(); print("made")
    except OSError as error: print(error.errno)`;
    const attempt = `umask 0; touch a; chmod 644 a; python3 -c '${python}'`;
    expect((await world.inside(attempt)).stdout).toBe("1\n1\n1\n");
    expect(world.outside("find . -perm -4000").stdout).toBe("");
    expect(world.outside(attempt).stdout).toBe("made\nmade\nmade\n");
  });
});

describe("standard descriptors", () => {
  test("may not be directories: all below one would be open, masks or not", async () => {
    const world = newWorld();
    world.file("home/.netrc", "SECRET\n");
    const home = openSync(world.home, "r");
    const child = world.spawn(["sandbox", "--", "cat", "/proc/self/fd/0/.netrc"], { stdio: [home, "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
    }
    const [code] = await once(child, "close");
    closeSync(home);
    expect(code).toBe(2);
    expect(said).not.toContain("SECRET");
    expect(said).toContain("standard input is a directory");
  });
});

describe("inherited descriptors", () => {
  test("are closed, though a shell outside would have passed them on", async () => {
    const world = newWorld();
    const secret = world.file("home/.ssh/key", "SECRET\n");
    const root = openSync("/", "r");
    const key = openSync(secret, "r");
    try {
      const stdio = ["ignore", "pipe", "pipe", "ignore", "ignore", "ignore", "ignore", "ignore", root, key] as const;
      const script = "ls /proc/self/fd; cat <&9; ls /proc/self/fd/8/root; ls -l /proc/1/fd";
      const { stdout, stderr } = spawnSync(process.execPath, [program, "sandbox", "--", "sh", "-c", script], {
        cwd: world.project,
        env: world.env as NodeJS.ProcessEnv,
        stdio: [...stdio],
        encoding: "utf8",
      });
      expect(stdout.split("\n").slice(0, 4)).toEqual(["0", "1", "2", "3"]);
      expect(stdout).not.toContain("SECRET");
      expect(stdout).not.toMatch(/-> \/(root|etc|$)/m);
      expect(stderr).toMatch(/9: Bad file descriptor|9: bad/i);
      const control = spawnSync("sh", ["-c", "cat <&9"], { stdio: [...stdio], encoding: "utf8" });
      expect(control.stdout).toBe("SECRET\n");
    } finally {
      closeSync(root);
      closeSync(key);
    }
  });
});

describe("the environment", () => {
  test("is an allowlist, in every process inside", async () => {
    const world = newWorld();
    world.env["PLANTED_TOKEN"] = "hunter2";
    const everywhere =
      "env; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/1/environ; cat /proc/*/cmdline";
    const { stdout } = await world.inside(everywhere);
    expect(stdout).not.toContain("hunter2");
    expect(stdout).toContain(`HOME=${world.home}`);
    expect((await world.inside(everywhere, "--env", "PLANTED_TOKEN")).stdout).toContain("PLANTED_TOKEN=hunter2");
  });

  test("takes values from the command line and from secrets, which no plan and no argument list holds", async () => {
    const world = newWorld();
    world.file("home/token", "s3cr3t-value\n", 0o600);
    world.file(
      "home/.config/podbot/config.toml",
      `[secrets.token]\nfile = "${world.home}/token"\n[environment.set]\nTOKEN = "!secret token"\nMAYBE = "!secret? gone"\n[secrets.gone]\nenv = "NOT_SET"\n`,
    );
    const { stdout } = await world.inside(
      'echo "$TOKEN $PLAIN ${MAYBE-unset}"; cat /proc/1/cmdline',
      "--env",
      "PLAIN=a b",
    );
    expect(stdout.split("\n")[0]).toBe("s3cr3t-value a b unset");
    expect(stdout.split("\n")[1]).not.toContain("s3cr3t");
    for (const form of [[], ["--json"]]) {
      const dry = await world.podbot(["sandbox", "--dry-run", ...form, "--env", "PLAIN=a b", "--", "true"]);
      expect(dry.stdout).toContain("TOKEN");
      expect(dry.stdout).not.toContain("s3cr3t");
      expect(dry.stdout).not.toContain("a b");
    }
  });
});

describe("the list of mounts", () => {
  test("stands in no argument list that others can read", async () => {
    const world = newWorld();
    const mark = basename(world.directory);
    const { child, ended } = await ready(
      world,
      `echo ready; sleep 300; : ${mark}`,
      "--exclude",
      "~/a-telling-name",
      "--ro",
      "~/.ssh",
    );
    const lines = processesWith(mark).map((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1"));
    const inits = lines.filter((line) => line.includes("/run/podbot/enter"));
    expect(inits.length).toBeGreaterThan(0);
    for (const line of inits) expect(line).not.toMatch(/bind|tmpfs|telling/);
    child.kill("SIGKILL");
    await ended;
  });
});

describe("signals", () => {
  test("SIGTERM reaches the command's own trap, whose exit status is kept", async () => {
    const world = newWorld();
    const { child, ended } = await ready(
      world,
      "trap 'echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.05; done",
    );
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: 7, signal: null, said: "ready\ncleaned\n" });
  });

  test.each([
    ["SIGINT", 130],
    ["SIGHUP", 129],
    ["SIGTERM", 143],
    ["SIGQUIT", 131],
  ] as const)("%s ends a command that has no trap with %i", async (signal, code) => {
    const world = newWorld();
    const { child, ended } = await ready(world, "exec sh -c 'echo ready; exec sleep 300'");
    child.kill(signal);
    expect((await ended).code).toBe(code);
  });

  test("a command that ignores them is killed when the grace period is over", async () => {
    const world = newWorld();
    world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 0.2\n");
    const { child, ended } = await ready(world, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    child.kill("SIGTERM");
    expect((await ended).code).toBe(137);
  });

  test("a second request does not wait", async () => {
    const world = newWorld();
    const { child, ended } = await ready(world, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    child.kill("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 200));
    child.kill("SIGTERM");
    expect((await ended).code).toBe(137);
  });

  test("a timeout ends it with 124", async () => {
    const world = newWorld();
    expect((await world.inside("exec sleep 300", "--timeout", "300ms")).status).toBe(124);
    expect((await world.inside("exit 3", "--timeout", "1m")).status).toBe(3);
  });

  test("when Podbot is killed outright, everything inside dies and the next run cleans up", async () => {
    const world = newWorld().repository();
    const mark = `mark-${process.pid}-${Date.now()}`;
    const { child, ended } = await ready(
      world,
      `bash -c 'exec -a ${mark} sleep 300' & exec -a ${mark} bash -c 'echo ready; sleep 300; :'`,
    );
    expect(processesWith(mark).length).toBeGreaterThan(0);
    expect(existsSync(join(world.project, ".podbot"))).toBe(true);
    child.kill("SIGKILL");
    await ended;
    await until("nobody is left", () => processesWith(mark).length === 0);
    // Any other Podbot of this user's may have been the next one already.
    expect((await world.inside("true")).status).toBe(0);
    expect(existsSync(join(world.project, ".podbot"))).toBe(false);
    expect(world.git("status", "--short")).toBe("");
  });
});

describe("two sandboxes in one directory", () => {
  test("share what is held, and the one that stays keeps its protection", async () => {
    const world = newWorld().repository();
    const { ended } = await ready(
      world,
      "echo ready; until [ -e go ]; do sleep 0.02; done; rm go; mkdir .podbot/x || echo x > .git/commondir || rmdir .podbot || echo kept",
    );
    expect((await world.inside("mkdir .podbot/x")).status).not.toBe(0);
    expect(existsSync(join(world.project, ".podbot"))).toBe(true);
    writeFileSync(join(world.project, "go"), "");
    expect((await ended).said).toBe("ready\nkept\n");
    expect(existsSync(join(world.project, ".podbot"))).toBe(false);
    expect(world.git("status", "--short")).toBe("");
  });

  test("whichever ends first", async () => {
    const world = newWorld();
    const first = await ready(world, "echo ready; until [ -e one ]; do sleep 0.02; done");
    const second = await ready(
      world,
      "echo ready; until [ -e two ]; do sleep 0.02; done; mkdir .podbot/x 2>/dev/null || rmdir .podbot 2>/dev/null || echo refused",
    );
    writeFileSync(join(world.project, "one"), "");
    expect((await first.ended).code).toBe(0);
    expect(existsSync(join(world.project, ".podbot"))).toBe(true);
    writeFileSync(join(world.project, "two"), "");
    expect((await second.ended).said).toBe("ready\nrefused\n");
    expect(existsSync(join(world.project, ".podbot"))).toBe(false);
  });
});

describe("exit status", () => {
  test.each([0, 1, 2, 42, 125, 126, 127, 255])("%i is the command's own", async (code) => {
    const world = newWorld();
    const { status, stderr } = await world.inside(`exit ${code}`);
    expect({ status, stderr }).toEqual({ status: code, stderr: "" });
  });

  test("a missing command is 127 and one that cannot be executed 126, in Podbot's own words", async () => {
    const world = newWorld();
    world.file("home/project/plain.txt");
    const missing = await world.podbot(["sandbox", "--", "no-such-command"]);
    expect(missing.status).toBe(127);
    expect(missing.stderr).toContain('"no-such-command" does not exist inside the sandbox');
    const plain = await world.podbot(["sandbox", "--", "./plain.txt"]);
    expect(plain.status).toBe(126);
    expect(plain.stderr).toContain("cannot be executed");
  });
});

describe("standard streams", () => {
  test("are the caller's own: nothing is lost or mixed", async () => {
    const world = newWorld();
    const child = world.spawn(["sandbox", "--", "sh", "-c", "cat; echo error >&2"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    const input = Buffer.alloc(4 << 20, "0123456789abcdef");
    child.stdin?.end(input);
    const chunks: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
    let errors = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
    });
    const [code] = await once(child, "close");
    expect(code).toBe(0);
    expect(Buffer.concat(chunks).equals(input)).toBe(true);
    expect(errors).toBe("error\n");
  });

  test("arguments arrive as they were", async () => {
    const world = newWorld();
    const words = ["a b", "", "'\"", "$HOME", "*", "new\nline", "-x", "--"];
    const { stdout } = await world.podbot(["sandbox", "--", "printf", "[%s]", ...words]);
    expect(stdout).toBe(words.map((word) => `[${word}]`).join(""));
  });
});
