// @module-tag security
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { planSandbox } from "../../src/index.ts";
import { newWorld, program, type World } from "../world.ts";

/** A home with a key, and a project that its author has prepared. */
function prepared(): World {
  const world = newWorld();
  world.file("home/.ssh/id_ed25519", "SECRET\n", 0o600);
  world.file("home/.netrc", "SECRET\n", 0o600);
  return world;
}

const everywhere = (world: World) => `cat ${world.home}/.ssh/id_ed25519 ${world.home}/.netrc`;

describe("a hostile project, by links where presets look,", () => {
  test.each(["tsconfig.json", ".editorconfig", ".mcp.json", ".claude/settings.json", ".podbot"])(
    "does not get its targets shown: %s",
    async (name) => {
      for (const [target, read] of [
        ["../.ssh/id_ed25519", `cat ${name}`],
        ["../.ssh", `cat ${name}/id_ed25519`],
        ["../.netrc", `cat ${name}`],
      ] as const) {
        for (const root of ["host", "minimal"]) {
          const world = prepared();
          world.link(join(world.project, name), name.includes("/") ? `../${target}` : target);
          expect(world.outside(read).stdout).toBe("SECRET\n");
          const { stdout } = await world.inside(`${read}; ${everywhere(world)}`, "--root", root);
          expect(stdout).toBe("");
        }
      }
    },
  );

  test("does not get private places shown", async () => {
    const world = prepared();
    const place = `/tmp/podbot-attack-${process.pid}`;
    mkdirSync(place);
    const server = createServer((socket) => socket.end("reached")).listen(join(place, "s"));
    try {
      await once(server, "listening");
      world.link("home/project/.editorconfig", place);
      world.link("home/project/tsconfig.json", join(place, "s"));
      expect((await world.inside(`ls -A ${place}; test -S tsconfig.json && echo socket`)).stdout).toBe("");
    } finally {
      server.close();
      rmSync(place, { recursive: true, force: true });
    }
  });
});

describe("a socket of the host's", () => {
  test.each(["/tmp", "/var/tmp"])(
    "in %s is out of reach, also where a directory around it is shown",
    async (parent) => {
      const world = prepared();
      const place = `${parent}/podbot-attack-${process.pid}`;
      mkdirSync(place);
      const server = createServer((socket) => socket.end("reached")).listen(join(place, "s"));
      try {
        await once(server, "listening");
        world.link("home/seen", place);
        const look = `for file in ${place}/s ${world.home}/seen/s; do test -S $file && echo socket; done; ls ${place}`;
        expect(world.outside(look).stdout).toBe("socket\nsocket\ns\n");
        for (const flag of ["--ro", "--rw"]) {
          expect((await world.inside(look, flag, place)).stdout).toBe("s\n");
          expect((await world.inside(look, flag, `${world.home}/seen`)).stdout).toBe("s\n");
        }
        // Whoever names it means it.
        expect((await world.inside(look, "--ro", `${place}/s`)).stdout).toContain("socket\n");
      } finally {
        server.close();
        rmSync(place, { recursive: true, force: true });
      }
    },
  );
});

describe("an agent's directory in the home that is a link", () => {
  /** As people have it who keep their settings in a repository. */
  function linked(to: string): World {
    const world = prepared();
    world.file(`${to}/auth.json`, "LOGIN\n");
    world.file("home/.bashrc", "mine\n");
    world.file("home/.local/bin/own", "own\n");
    world.link("home/.codex", join(world.directory, to));
    return world;
  }

  test("into the workspace grants nothing by what was planted there", async () => {
    const world = linked("home/project/codex");
    const { home } = world;
    const plant = [
      `ln -s ${home}/.local/bin log`,
      `ln -s ${home}/.bashrc history.jsonl`,
      `ln -s ${home}/.ssh/id_ed25519 AGENTS.md`,
      `ln -s ${home}/.netrc .env`,
    ].join(" && ");
    expect((await world.inside(`cd codex && ${plant}`)).status).toBe(0);
    const attack = `${everywhere(world)}; echo evil >>${home}/.bashrc; echo evil >${home}/.local/bin/git; cat ${home}/.bashrc`;
    for (let round = 0; round < 2; round++) expect((await world.inside(attack)).stdout).toBe("mine\n");
    expect(existsSync(join(home, ".local/bin/git"))).toBe(false);
    expect(world.outside(attack).stdout).toBe("SECRET\nSECRET\nmine\nevil\n");
  });

  test("to elsewhere is followed, and its own links are not", async () => {
    const world = linked("home/dotfiles/codex");
    world.link("home/dotfiles/codex/config.toml", join(world.home, ".ssh/id_ed25519"));
    const { stdout } = await world.inside("cat ~/.codex/auth.json; cat ~/.codex/config.toml ~/.ssh/id_ed25519");
    expect(stdout).toBe("LOGIN\n");
  });

  test("shows nothing that is hidden, to make room for one that is missing", async () => {
    const world = prepared();
    world.file("home/.ansible/local/vault", "SECRET\n");
    world.link("home/.local", ".ansible/local");
    world.file("home/project/opencode", `#!/bin/sh\ncat ~/.local/vault ~/.ansible/local/vault\n`, 0o755);
    expect(world.outside("./opencode").stdout).toBe("SECRET\nSECRET\n");
    const { stdout } = await world.podbot(["sandbox", "--", "./opencode"]);
    expect(stdout).toBe("");
  });
});

describe("a program that a project has put on PATH", () => {
  test.each(["agents", "doctor", "sandbox"])("is not started outside, by podbot %s", async (command) => {
    const world = prepared();
    world.file("home/project/.venv/bin/bwrap", `#!/bin/sh\ntouch ${world.home}/owned\n`, 0o755);
    world.file("home/project/below/file");
    world.env["PATH"] = `${world.project}/.venv/bin:${world.env["PATH"]}`;
    // Whoever is asked for a version is asked behind the wall.
    world.file("home/bin/claude", "#!/bin/sh\necho 1.2.3\n", 0o755);
    world.env["PATH"] = `${world.home}/bin:${world.env["PATH"]}`;
    const below = ["-C", join(world.project, "below"), "--", "echo", "inside"];
    const { stdout } = await world.podbot([command, ...(command === "sandbox" ? below : [])]);
    expect(stdout).not.toBe("");
    expect(existsSync(join(world.home, "owned"))).toBe(false);
  });
});

describe("a socket that goes between the plan and the start", () => {
  test.each([true, false])("is nobody's obstacle, with the directory around it (%s) or without", async (whole) => {
    const world = prepared();
    const place = join(world.project, "a/b");
    mkdirSync(place, { recursive: true });
    const server = createServer().listen(join(place, "s"));
    await once(server, "listening");
    const { plan, run } = await planSandbox({ command: ["true"], cwd: world.project, env: world.env });
    expect(plan.operations).toContainEqual(expect.objectContaining({ kind: "mask", target: join(place, "s") }));
    expect(plan.operations).toContainEqual(expect.objectContaining({ kind: "bind", target: place, access: "rw" }));
    server.close();
    await once(server, "close");
    if (whole) rmSync(join(world.project, "a"), { recursive: true });
    using nothing = openNothing();
    expect((await run([nothing.fd, nothing.fd, nothing.fd])).code).toBe(0);
    // A directory that is named is another matter.
    if (!whole) return;
    mkdirSync(place, { recursive: true });
    const named = await planSandbox({
      command: ["true"],
      cwd: world.project,
      env: world.env,
      config: { filesystem: { ro: [place] } },
    });
    rmSync(place, { recursive: true });
    await expect(named.run([nothing.fd, nothing.fd, nothing.fd])).rejects.toMatchObject({ code: "PATH_CHANGED" });
  });
});

function openNothing(): Disposable & { readonly fd: number } {
  const fd = openSync("/dev/null", "r+");
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

describe("what an agent leaves in .git for the next run", () => {
  test("grants nothing: hooksPath and include of a planted submodule", async () => {
    const world = prepared().repository();
    const plant = `mkdir -p .git/modules/e && echo ref > .git/modules/e/HEAD && printf '[core]\\nhooksPath = ${world.home}/.ssh/id_ed25519\\n[include]\\npath = ${world.home}/.netrc\\n' > .git/modules/e/config`;
    expect((await world.inside(plant)).status).toBe(0);
    expect((await world.inside(everywhere(world))).stdout).toBe("");
  });

  test("opens no other repository: commondir, a .git file with a forged worktree, a .git link, a bare ancestor", async () => {
    const victim = newWorld().repository();
    const target = join(victim.project, ".git/planted");
    const plants: Record<string, string> = {
      commondir: `mkdir .git && echo 'ref: refs/heads/main' > .git/HEAD && echo ${victim.project}/.git > .git/commondir`,
      file: `mkdir f && echo 'ref: x' > f/HEAD && echo ${victim.project}/.git > f/commondir && printf '[core]\\nworktree = ..\\n' > f/config && echo 'gitdir: f' > .git`,
      link: `ln -s ${victim.project}/.git .git`,
    };
    for (const [name, plant] of Object.entries(plants)) {
      const world = newWorld();
      world.outside(plant);
      const { status } = await world.inside(`touch ${target}`);
      expect({ name, status: status === 0, written: existsSync(target) }).toEqual({
        name,
        status: false,
        written: false,
      });
    }
    const world = newWorld();
    world.outside("mkdir sub objects refs; echo 'ref: x' > HEAD");
    expect((await world.inside("touch ../planted", "-C", join(world.project, "sub"))).status).not.toBe(0);
  });

  test("does not make Podbot look away: a repository that no longer looks like one is refused", async () => {
    for (const spoil of ["mv .git/HEAD .git/H", "chmod 600 .git", "rm -rf .git/objects"]) {
      if (spoil.startsWith("chmod") && process.getuid?.() === 0) continue;
      const world = newWorld().repository();
      expect((await world.inside(spoil)).status).toBe(0);
      const { status, stderr } = await world.inside("true");
      expect({ spoil, status }).toEqual({ spoil, status: 2 });
      expect(stderr).toContain("is no git directory that can be read and protected");
      chmodSync(join(world.project, ".git"), 0o755);
    }
  });

  test("cannot use a directory that only looks unwritable", async () => {
    if (process.getuid?.() === 0) return;
    const world = newWorld().repository();
    chmodSync(join(world.project, ".git"), 0o555);
    const { status } = await world.inside("chmod 755 .git; echo ../evil > .git/commondir");
    chmodSync(join(world.project, ".git"), 0o755);
    expect(status).toBe(125);
    expect(existsSync(join(world.project, ".git/commondir"))).toBe(false);
  });

  test("cannot take a subdirectory's repository away from it", async () => {
    const world = newWorld().repository();
    mkdirSync(join(world.project, "sub"));
    const flags = ["-C", join(world.project, "sub")];
    expect((await world.inside("git init -q . || mkdir .git/x", ...flags)).status).not.toBe(0);
    expect((await world.inside("git status --short", ...flags)).status).toBe(0);
    expect(existsSync(join(world.project, "sub/.git"))).toBe(false);
  });
});

describe("signals from inside", () => {
  test("do not leave: neither a kill of the group, nor Node's debugger", async () => {
    const world = newWorld();
    for (const number of [9, 10, 15]) {
      const script = `import os,signal,time
signal.signal(10,1); signal.signal(15,1)
os.kill(0,${number}); time.sleep(0.3); print("alive")`;
      // A shell in the same group stands for whoever started Podbot.
      const child = spawn(
        "sh",
        [
          "-c",
          `"$0" "$@"; echo "caller lives: $?"`,
          process.execPath,
          program,
          "sandbox",
          "--",
          "python3",
          "-c",
          script,
        ],
        {
          cwd: world.project,
          env: world.env as NodeJS.ProcessEnv,
          detached: true,
          stdio: ["ignore", "pipe", "pipe"],
        },
      );
      let said = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => {
          said += chunk.toString();
        });
      }
      await once(child, "close");
      expect(said).not.toContain("Debugger");
      expect(said).toContain(`caller lives: ${number === 9 ? 137 : 0}`);
    }
  });
});

describe("started by root", () => {
  test("nothing below /proc/sys, and no other switch of the kernel's, can be written", async () => {
    const world = newWorld();
    const { stdout } = await world.inside(
      'find /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus -type f 2>/dev/null | while read -r f; do (: >> "$f") 2>/dev/null && echo "$f"; done',
    );
    // An ordinary user may set what belongs to namespaces of the sandbox's own.
    expect(stdout).not.toMatch(/core_pattern|modprobe|hotplug|usermodehelper|sysrq/);
    if (process.getuid?.() === 0) expect(stdout).toBe("");
  });
});

test("the caller's keys are not listed, nor what the kernel tells its root of memory", async () => {
  const world = newWorld();
  const files = "/proc/keys /proc/key-users /proc/slabinfo /proc/vmallocinfo /proc/timer_list /proc/kpagecount";
  const script = `for file in ${files}; do head -c 1 $file 2>/dev/null | wc -c; done | sort | uniq -c | tr -s " "`;
  expect((await world.inside(script)).stdout).toBe(" 6 0\n");
  // A sandbox that has sandboxes inside must show all of /proc.
  world.env["PODBOT_SANDBOX_NESTING"] = "true";
  expect((await world.inside("head -c 1 /proc/key-users | wc -c")).stdout).toBe("1\n");
});

describe("the owner's own variables", () => {
  test("act inside only: a preloaded library is not loaded by the wall", async () => {
    const world = newWorld();
    const mark = join(world.project, "mark");
    const source = world.file(
      "home/p.c",
      `#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void f(void) { if (access("/run/podbot/enter", F_OK)) open("${mark}-outside", O_CREAT, 0644); else open("${mark}-inside", O_CREAT, 0644); }\n`,
    );
    const library = join(world.home, "p.so");
    expect(spawnSync("gcc", ["-shared", "-fPIC", "-o", library, source]).status).toBe(0);
    expect((await world.inside("true", "--env", `LD_PRELOAD=${library}`)).status).toBe(0);
    expect([existsSync(`${mark}-inside`), existsSync(`${mark}-outside`)]).toEqual([true, false]);
  });

  test("that move credential stores move their protection too", async () => {
    const world = newWorld();
    world.env["GNUPGHOME"] = join(world.home, "keys");
    world.env["KUBECONFIG"] = `${world.home}/a.yaml:${world.home}/b.yaml`;
    world.env["XDG_CONFIG_HOME"] = join(world.home, "conf");
    for (const path of ["keys/secret", "a.yaml", "b.yaml", "conf/gh/hosts.yml"])
      world.file(join(world.home, path), "SECRET\n");
    const { stdout } = await world.inside("cat ~/keys/secret ~/a.yaml ~/b.yaml ~/conf/gh/hosts.yml");
    expect(stdout).toBe("");
  });
});

describe("the directory that the caller stands in", () => {
  test("is meant, not its name", async () => {
    const world = newWorld();
    const { status, stderr } = await world.podbot(["sandbox", "--", "touch", "started"], { cwdIdentity: "1:1" });
    expect(status).toBe(125);
    expect(stderr).toContain("is no longer the directory that you stand in");
    expect(existsSync(join(world.project, "started"))).toBe(false);
  });
});

describe("two sandboxes with different homes in one directory", () => {
  test("still share what is held", async () => {
    const world = newWorld();
    const wait = "until [ -e go ]; do sleep 0.02; done; mkdir .podbot/x || rmdir .podbot || echo kept";
    const other = world.inside(`touch ready; ${wait}`);
    while (!existsSync(join(world.project, "ready"))) await new Promise((resolve) => setTimeout(resolve, 20));
    mkdirSync(join(world.directory, "home2"));
    const env = { ...world.env, HOME: join(world.directory, "home2") };
    expect((await world.podbot(["sandbox", "--", "true"], { env })).status).toBe(0);
    world.file("home/project/go");
    expect((await other).stdout).toContain("kept");
    expect(existsSync(join(world.project, ".podbot"))).toBe(false);
  });
});

describe("a Podbot that the agent could rewrite", () => {
  test("is refused", async () => {
    const world = newWorld();
    const own = join(world.project, "node_modules/podbot");
    cpSync(join(program, ".."), join(own, "dist"), { recursive: true });
    cpSync(join(program, "../../native/bin"), join(own, "native/bin"), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [join(own, "dist/podbot.cjs"), "sandbox", "--", "true"], {
      cwd: world.project,
      env: world.env as NodeJS.ProcessEnv,
      encoding: "utf8",
    });
    expect(stderr).toContain("lies where the sandbox may write");
    expect(status).toBe(125);
  });
});

describe("Podbot's own configuration, through a linked directory,", () => {
  test("cannot be created where it is missing", async () => {
    const world = newWorld();
    mkdirSync(join(world.home, "dot/config"), { recursive: true });
    world.link("home/.config", join(world.home, "dot/config"));
    const plant = "mkdir -p config/podbot && echo 'network = true' > config/podbot/config.toml";
    expect((await world.inside(plant, "-C", join(world.home, "dot"))).status).not.toBe(0);
    expect(existsSync(join(world.home, "dot/config/podbot"))).toBe(false);
  });

  test("stays read-only if a rule names it and another what is in it", async () => {
    const world = newWorld();
    const file = world.file("home/.config/podbot/config.toml", "# mine\n");
    const flags = ["--rw", "~/.config", "--ro", "~/.config/podbot", "--rw", "~/.config/podbot/*"];
    expect((await world.inside(`echo x > ${file}`, ...flags)).status).not.toBe(0);
  });
});

describe("odd spellings", () => {
  test("a directory whose name looks like a pattern is that directory, and no other", async () => {
    const world = newWorld();
    for (const name of ["[slug]", "s", "a*", "ab"]) mkdirSync(join(world.project, name));
    for (const [name, other] of [
      ["[slug]", "s"],
      ["a*", "ab"],
    ] as const) {
      const flags = ["-C", join(world.project, name)];
      expect((await world.inside("touch here", ...flags)).status).toBe(0);
      expect((await world.inside(`touch ../${other}/there`, ...flags)).status).not.toBe(0);
      expect((await world.inside("mkdir .podbot", ...flags)).status).not.toBe(0);
      world.file(join(world.project, name, "secret/x"));
      expect((await world.inside("ls -A secret", ...flags, "--exclude", "sec*")).stdout).toBe("");
    }
  });

  test("a home whose name looks like a pattern hides its stores", async () => {
    const world = newWorld();
    const home = join(world.directory, "ho[m]e");
    world.file(join(home, ".ssh/key"), "SECRET\n");
    mkdirSync(join(world.directory, "work"));
    const env = { ...world.env, HOME: home };
    const words = ["sandbox", "-C", join(world.directory, "work"), "--", "cat", join(home, ".ssh/key")];
    const { stdout } = await world.podbot(words, { env });
    expect(stdout).toBe("");
  });

  test("a hooks path with a comment is understood", async () => {
    const world = newWorld().repository();
    writeFileSync(
      join(world.project, ".git/config"),
      `${readFileSync(join(world.project, ".git/config"), "utf8")}[core] ; here\n\thooksPath = "my hooks" # ours\n`,
    );
    world.file("home/project/my hooks/pre-commit");
    expect((await world.inside("echo evil > 'my hooks/pre-commit'")).status).not.toBe(0);
  });

  test("hooks that are links protect what they lead to", async () => {
    const world = newWorld().repository();
    world.file("home/project/scripts/pre-commit");
    world.link("home/project/.git/hooks/pre-commit", "../../scripts/pre-commit");
    expect((await world.inside("echo evil > scripts/pre-commit")).status).not.toBe(0);
  });

  test("a name that is not UTF-8 does not slip through a pattern", async () => {
    const world = newWorld();
    world.outside("mkdir \"$(printf 'caf\\351')\"; echo 1 > \"$(printf 'caf\\351')/.env\"");
    const { status, stderr } = await world.inside("true", "--exclude", "**/.env");
    expect(status).toBe(2);
    expect(stderr).toContain("not UTF-8");
  });
});

describe("a protected file that the owner replaces during the run", () => {
  test("is told of afterwards, since its mount is lost", async () => {
    const world = newWorld().repository();
    const running = world.inside("touch ready; until [ -e go ]; do sleep 0.02; done");
    while (!existsSync(join(world.project, "ready"))) await new Promise((resolve) => setTimeout(resolve, 20));
    world.git("config", "branch.main.remote", "origin");
    world.file("home/project/go");
    expect((await running).stderr).toContain(".git/config was replaced outside during the run");
  });
});
