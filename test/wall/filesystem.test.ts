// @module-tag security
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld } from "../world.ts";

/** Every way to change a file, each of which must fail on its own. */
const changes = (path: string) =>
  [
    `echo x > ${path}`,
    `echo x >> ${path}`,
    `truncate -s 0 ${path}`,
    `rm -f ${path}`,
    `mv ${path} ${path}.moved`,
    `chmod 600 ${path}`,
    `ln -f /etc/hostname ${path}`,
  ] as const;

describe("a read-only path", () => {
  test("can be read and not be changed in any way, which outside it can", async () => {
    const world = newWorld();
    const path = world.file("home/notes.txt", "notes\n");
    expect((await world.inside(`cat ${path}`)).stdout).toBe("notes\n");
    for (const change of changes(path)) {
      const { status } = await world.inside(change);
      expect(status, change).not.toBe(0);
    }
    expect(readFileSync(path, "utf8")).toBe("notes\n");
    expect(lstatSync(path).mode & 0o777).toBe(0o644);
    for (const change of changes(path).slice(0, 3)) expect(world.outside(change).status, change).toBe(0);
  });
});

describe("a writable path", () => {
  test("is written on the host itself", async () => {
    const world = newWorld();
    const path = world.file("data/a.txt");
    const script = `echo new > ${path} && echo more >> ${path} && touch ${path}.b && mv ${path}.b ${path}.c && rm ${path}.c && chmod 600 ${path}`;
    expect((await world.inside(script, "--rw", join(world.directory, "data"))).status).toBe(0);
    expect(readFileSync(path, "utf8")).toBe("new\nmore\n");
  });

  test("is the working directory, by default", async () => {
    const world = newWorld();
    expect((await world.inside("echo made > made.txt")).status).toBe(0);
    expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe("made\n");
  });

  test("does not reach through a link that points outside", async () => {
    const world = newWorld();
    const target = world.file("home/outside.txt", "before\n");
    world.link("home/project/link", target);
    expect((await world.inside("echo after > link")).status).not.toBe(0);
    expect(readFileSync(target, "utf8")).toBe("before\n");
    expect(world.outside("echo after > link").status).toBe(0);
  });
});

describe("an excluded path", () => {
  test("is an empty directory that takes no writes", async () => {
    const world = newWorld();
    world.file("home/project/secret/a/key", "key\n");
    const { stdout, stderr } = await world.inside(
      "ls -A secret; cat secret/a/key; touch secret/x; rmdir secret; mv secret s",
      "--exclude",
      "secret",
    );
    expect(stdout).toBe("");
    expect(stderr).toContain("secret/a/key: No such file");
    expect(stderr).toContain("'secret/x': Read-only file system");
    expect(readdirSync(join(world.project, "secret"))).toEqual(["a"]);
  });

  test("is a file that can be neither read nor removed nor replaced", async () => {
    const world = newWorld();
    const path = world.file("home/project/.env", "TOKEN=1\n");
    const { stdout, stderr } = await world.inside(
      "cat .env; rm -f .env; mv .env e; echo x > .env; ls",
      "--exclude",
      ".env",
    );
    expect(stdout).not.toContain("TOKEN");
    expect(stderr).toContain("Permission denied");
    expect(stderr).toContain("busy");
    expect(readFileSync(path, "utf8")).toBe("TOKEN=1\n");
    expect(world.outside("cat .env").stdout).toBe("TOKEN=1\n");
  });

  test("hides what a link leads to, under both names", async () => {
    const world = newWorld();
    world.file("home/vault/key", "key\n");
    world.link("home/.ssh", join(world.home, "vault"));
    const { stdout } = await world.inside("cat ~/.ssh/key ~/vault/key");
    expect(stdout).toBe("");
    expect(world.outside("cat ~/.ssh/key ~/vault/key").stdout).toBe("key\nkey\n");
  });

  test("warns where a file has other names that stay in view", async () => {
    const world = newWorld();
    const path = world.file("home/project/.env", "TOKEN=1\n");
    linkSync(path, join(world.project, "other"));
    const { stdout, stderr } = await world.inside("cat other", "--exclude", ".env");
    expect(stdout).toBe("TOKEN=1\n");
    expect(stderr).toContain("the file has other names (hard links)");
  });

  test("may be missing", async () => {
    const world = newWorld();
    expect((await world.inside("true", "--exclude", "nowhere", "--ro", "nothing/*", "--rw", "~/none")).status).toBe(0);
  });

  test("is found by ** however deep it lies", async () => {
    const world = newWorld();
    world.file("home/project/.env", "1\n");
    world.file("home/project/a/b/.env.local", "2\n");
    world.file("home/project/a/b/env", "3\n");
    const { stdout } = await world.inside("cat .env a/b/.env.local a/b/env", "--exclude", "**/.env*");
    expect(stdout).toBe("3\n");
  });
});

describe("names of paths", () => {
  test.each([
    "with space",
    "new\nline",
    "quote'\"s",
    "-dash",
    "[bracket]",
    "ünïcode",
    "tab\tbed",
    "$(echo x)",
    "star*",
  ])("may be %j", async (name) => {
    const world = newWorld();
    world.file(join(world.project, name, "secret"), "secret\n");
    const pattern = `./${name.replace(/[[*?]/g, "[$&]")}`;
    const { stdout } = await world.podbot(["sandbox", "--exclude", pattern, "--", "ls", "-A", "--", `./${name}`]);
    expect(stdout).toBe("");
    expect(existsSync(join(world.project, name, "secret"))).toBe(true);
  });

  test("may climb with .. and begin with ~", async () => {
    const world = newWorld();
    world.file("home/a/x", "a\n");
    world.file("home/b/x", "b\n");
    const { stdout } = await world.inside("cat ~/a/x ~/b/x", "--exclude", "../a", "--exclude", "~/b");
    expect(stdout).toBe("");
  });
});

describe("a protected path in a writable directory", () => {
  test("cannot be carried off by renaming a directory above it", async () => {
    const world = newWorld();
    world.file("home/project/a/b/protected.txt", "kept\n");
    const script = "mv a x || mv a/b a/y || mv a/b/protected.txt z || rm -rf a/b; ls -R";
    await world.inside(script, "--ro", "a/b/protected.txt");
    expect(readFileSync(join(world.project, "a/b/protected.txt"), "utf8")).toBe("kept\n");
    expect(world.outside("mv a x && mv x a").status).toBe(0);
  });

  test("leaves its neighbours writable", async () => {
    const world = newWorld();
    world.file("home/project/a/b/protected.txt");
    const { status } = await world.inside(
      "touch a/new a/b/new && mv a/new a/other && mkdir a/c",
      "--ro",
      "a/b/protected.txt",
    );
    expect(status).toBe(0);
  });
});

describe("a name that a preset protects only where it exists", () => {
  test("may be created, and the owner is told", async () => {
    const world = newWorld();
    const { stderr, status } = await world.inside("echo '{}' > biome.json");
    expect(status).toBe(0);
    expect(stderr).toContain("biome.json was created during the run");
    expect((await world.inside("echo '{ }' > biome.json")).status).not.toBe(0);
  });
});

describe("Podbot's own configuration", () => {
  test("cannot be created where it is missing, and nothing is left behind", async () => {
    const world = newWorld();
    const { status, stderr } = await world.inside("mkdir -p .podbot && echo 'network = true' > .podbot/config.toml");
    expect(status).not.toBe(0);
    expect(stderr).toContain("Read-only file system");
    expect(existsSync(join(world.project, ".podbot"))).toBe(false);
  });

  test("stays read-only even if a rule opens it", async () => {
    const world = newWorld();
    const file = world.file("home/.config/podbot/config.toml", "# mine\n");
    const { status } = await world.inside(`echo x > ${file}`, "--rw", "~/.config", "--rw", file);
    expect(status).not.toBe(0);
    expect((await world.inside("touch ~/.config/other", "--rw", "~/.config")).status).toBe(0);
  });
});

describe("the working directory", () => {
  test.each([
    ["/", "everything would be writable"],
    ["HOME", "your whole home would be writable"],
    ["/proc", "/proc is private inside"],
    ["/run", "/run is private inside"],
  ])("is refused at %s", async (place, why) => {
    const world = newWorld();
    const { status, stderr } = await world.podbot([
      "sandbox",
      "-C",
      place === "HOME" ? world.home : place,
      "--",
      "true",
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain(why);
    expect(stderr).toContain("way out:");
  });

  test("is refused inside what is hidden", async () => {
    const world = newWorld();
    mkdirSync(join(world.home, ".ssh/project"), { recursive: true });
    for (const place of [".ssh", ".ssh/project"]) {
      const { status, stderr } = await world.podbot(["sandbox", "-C", join(world.home, place), "--", "true"]);
      expect(status).toBe(2);
      expect(stderr).toContain("it is hidden by exclude ~/.ssh (preset @base, default)");
    }
  });
});

describe("places that are private inside", () => {
  test.each(["/proc", "/dev/shm", "/run/user", "/tmp", "/proc/self"])("take no rule: %s", async (place) => {
    const world = newWorld();
    const { status, stderr } = await world.podbot(["sandbox", "--rw", place, "--", "true"]);
    if (!existsSync(place)) return expect(status).toBe(0);
    expect(status).toBe(2);
    expect(stderr).toContain("is private inside");
  });

  test("start empty and are gone afterwards", async () => {
    const world = newWorld();
    const name = `podbot-private-${process.pid}`;
    const { stdout, status } = await world.inside(
      `ls -A /tmp; touch /tmp/${name} /run/${name} /dev/shm/${name} && echo wrote`,
    );
    expect({ stdout, status }).toEqual({ stdout: "wrote\n", status: 0 });
    for (const place of ["/tmp", "/run", "/dev/shm"]) expect(existsSync(join(place, name))).toBe(false);
  });

  test("can hold a path of the host's that a rule names", async () => {
    const world = newWorld();
    const directory = `/tmp/podbot-shared-${process.pid}`;
    world.file(join(directory, "x"), "shared\n");
    try {
      expect((await world.inside(`cat ${directory}/x`)).status).not.toBe(0);
      expect((await world.inside(`cat ${directory}/x && touch ${directory}/y`, "--rw", directory)).stdout).toBe(
        "shared\n",
      );
      expect(existsSync(join(directory, "y"))).toBe(true);
    } finally {
      world.outside(`rm -r ${directory}`);
    }
  });
});

describe("a minimal root", () => {
  test("has programs, the project and a home of its own, and nothing else", async () => {
    const world = newWorld();
    world.file("home/.bashrc", "mine\n");
    const { stdout, stderr, status } = await world.inside(
      "ls -d /var /opt /srv /mnt /root; cat ~/.bashrc; git --version && echo kept > ~/kept.txt && touch made; touch /new",
      "--root",
      "minimal",
    );
    expect(stdout).toContain("git version");
    for (const gone of ["/opt", "/srv", "/mnt", "/root"]) expect(stderr).toContain(`'${gone}': No such file`);
    expect(stderr).toContain(".bashrc: No such file");
    expect(stderr).toContain("'/new': Read-only file system");
    expect(status).not.toBe(0);
    expect(existsSync(join(world.project, "made"))).toBe(true);
    expect(existsSync(join(world.home, "kept.txt"))).toBe(false);
    expect((await world.inside("cat ~/kept.txt", "--root", "minimal")).stdout).toBe("kept\n");
    expect((await world.inside("cat /etc/shadow", "--root", "minimal")).status).not.toBe(0);
  });
});

describe("mount points", () => {
  test("need not exist on the host, and are not made there", async () => {
    const world = newWorld();
    world.outside("rmdir ~/.cache ~/.npm");
    world.file("home/.bashrc", "mine\n");
    world.link("home/link", ".bashrc");
    world.file("home/.ssh/key", "key\n");
    const { stdout, status } = await world.inside(
      "echo cached > ~/.cache/x && touch ~/.npm/y && cat ~/.bashrc ~/link; ls -A ~/.ssh; touch ~/new && echo writable; true",
    );
    expect({ stdout, status }).toEqual({ stdout: "mine\nmine\n", status: 0 });
    expect(existsSync(join(world.home, ".cache"))).toBe(false);
    expect((await world.inside("cat ~/.cache/x")).stdout).toBe("cached\n");
  });
});

describe("caches", () => {
  test("are the sandbox's own: kept, writable, and never the host's", async () => {
    const world = newWorld();
    world.file("home/.cache/tool/bin", "host\n");
    const { stdout, status } = await world.inside("ls -A ~/.cache; echo evil > ~/.cache/tool");
    expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
    expect(readFileSync(join(world.home, ".cache/tool/bin"), "utf8")).toBe("host\n");
    expect((await world.inside("cat ~/.cache/tool")).stdout).toBe("evil\n");
  });

  test("can be the host's, read-only, by a rule", async () => {
    const world = newWorld();
    world.file("home/.cache/tool", "host\n");
    const { stdout, stderr } = await world.inside("cat ~/.cache/tool; echo x > ~/.cache/tool", "--ro", "~/.cache");
    expect(stdout).toBe("host\n");
    expect(stderr).toContain("Read-only");
  });
});

describe("what the host later executes or trusts", () => {
  test.each([
    ".bashrc",
    ".profile",
    ".cargo/bin/tool",
    "go/bin/tool",
    ".bun/bin/tool",
    ".local/bin/tool",
    ".npm-global/bin/tool",
    ".claude/settings.json",
    ".claude/hooks/hook.sh",
    ".claude/CLAUDE.md",
    ".claude.json",
    ".config/systemd/user/x.service",
    ".gitconfig",
  ])("cannot be planted: ~/%s", async (path) => {
    const world = newWorld();
    const file = world.file(join(world.home, path), "host\n");
    const { status } = await world.inside(`echo evil > ${file} || echo evil > ${file}.new || rm -f ${file}`);
    expect(status).not.toBe(0);
    expect(readFileSync(file, "utf8")).toBe("host\n");
    expect(world.outside(`echo evil > ${file}`).status).toBe(0);
  });

  test.each([
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/AGENTS.md",
    ".codex/new.config.toml",
    ".local/share/opencode/bin/server",
    ".local/share/opencode/snapshot/p/hooks/post-commit",
    ".local/share/goose/apps/app.html",
  ])("can be planted in a directory that is gone afterwards, and not in the host's: ~/%s", async (path) => {
    const world = newWorld();
    const file = world.file(join(world.home, path), "host\n");
    const script = `mkdir -p $(dirname ${file}); echo evil > ${file}; echo evil > ${file}.new && echo made`;
    expect((await world.inside(script)).stdout).toBe("made\n");
    expect(readFileSync(file, "utf8")).toBe("host\n");
    expect(existsSync(`${file}.new`)).toBe(false);
    const { stdout } = await world.inside(`cat ${file}; ls ${file}.new`);
    expect(stdout).not.toContain("evil");
    expect(stdout).not.toContain("new");
    expect(world.outside(script).stdout).toBe("made\n");
    expect(readFileSync(file, "utf8")).toBe("evil\n");
  });

  test("is what an agent still obeys inside, where it is the host's", async () => {
    const world = newWorld();
    for (const name of ["config.toml", "hooks.json", "AGENTS.md", "auth.json"]) {
      world.file(`home/.codex/${name}`, `${name} of the host\n`);
    }
    world.file("home/.codex/state_5.sqlite", "a database\n");
    const { stdout } = await world.inside("cd ~/.codex; cat *; stat -c %a .; ls -A");
    expect(stdout).toBe(
      [
        ...["AGENTS.md", "auth.json", "config.toml", "hooks.json"].map((name) => `${name} of the host`),
        ...["700", "AGENTS.md", "auth.json", "config.toml", "hooks.json", ""],
      ].join("\n"),
    );
  });

  test("but transcripts of agents can be written", async () => {
    const world = newWorld();
    world.file("home/.claude/projects/p/1.jsonl");
    world.file("home/.codex/sessions/1.jsonl");
    world.file("home/.codex/auth.json");
    const script =
      "cd; for f in .claude/projects/p/2.jsonl .codex/sessions/2.jsonl .codex/auth.json; do echo x >$f; done";
    expect((await world.inside(script)).status).toBe(0);
    for (const path of [".claude/projects/p/2.jsonl", ".codex/sessions/2.jsonl", ".codex/auth.json"]) {
      expect(readFileSync(join(world.home, path), "utf8")).toBe("x\n");
    }
  });

  test("and memories of agents, which they read into every conversation, cannot", async () => {
    const world = newWorld();
    const file = world.file("home/.claude/projects/p/memory/MEMORY.md", "host\n");
    expect((await world.inside(`echo evil >> ${file}`)).status).not.toBe(0);
    expect(readFileSync(file, "utf8")).toBe("host\n");
    expect(world.outside(`echo evil >> ${file}`).status).toBe(0);
  });
});

describe("credential stores", () => {
  test.each([
    ".ssh/id_ed25519",
    ".gnupg/secring",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".netrc",
    ".npmrc",
    ".docker/config.json",
    ".kube/config",
    ".config/gcloud/x.json",
    ".git-credentials",
    ".pypirc",
    ".cargo/credentials.toml",
    ".local/share/keyrings/login.keyring",
    ".mozilla/firefox/cookies.sqlite",
    ".config/google-chrome/Default/Cookies",
    ".bash_history",
    ".local/share/fish/fish_history",
  ])("are hidden: ~/%s", async (path) => {
    const world = newWorld();
    const file = world.file(join(world.home, path), "SECRET\n", 0o600);
    const { stdout } = await world.inside(`cat ${file}; grep -rs SECRET ~ --exclude-dir=project`);
    expect(stdout).not.toContain("SECRET");
    expect(world.outside(`cat ${file}`).stdout).toBe("SECRET\n");
  });
});
