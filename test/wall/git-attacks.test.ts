// @module-tag security
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";

/** Made by whatever the agent's words have the owner's git execute. */
const markOf = (world: World) => join(world.directory, "executed");

/** A monitor that git asks at each look at the worktree. */
const monitor = '"[core]\\n\\tfsmonitor = \\"touch $MARK; false\\"\\n"';

const bare = (worktree: string) =>
  `mkdir -p objects refs; echo "ref: refs/heads/main" > HEAD; ` +
  `printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ${worktree}\\n\\tfsmonitor = \\"touch $MARK; false\\"\\n" > config`;

interface Attack {
  readonly prepare?: (world: World) => void;
  /** What the agent does in an earlier run, so that the next one sees less. */
  readonly before?: string;
  /** What the agent runs; `$MARK` is the file to be made. */
  readonly script: string;
  /** What the owner does then. */
  readonly owner?: string;
  readonly directory?: string;
}

const hook = "#!/bin/sh\necho mine >/dev/null\n";
const commit = "git commit -q --allow-empty -m x";
const twin = (world: World) => {
  const { project } = newWorld().repository();
  return (path: string) => {
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", project, path);
    world.git("commit", "-qm", "submodule");
  };
};
const includes = (path: string) => (world: World) => world.git("config", "include.path", path);

const attacks: Readonly<Record<string, Attack>> = {
  "a bare repository in a subdirectory in which the agent works": {
    prepare: (world) => mkdirSync(join(world.project, "sub")),
    script: bare(".."),
    directory: "sub",
  },
  "a bare repository at the top, where .git is made none": { script: `rm .git/HEAD; ${bare(".")}` },
  "a bare repository whose parts lie elsewhere": {
    script:
      `rm .git/HEAD; mkdir common; cd common; ${bare(".")}; mv HEAD ..; ` +
      'printf "[core]\\n\\tsshCommand = \\"touch $MARK; false\\"\\n[remote \\"origin\\"]\\n\\turl = ssh://x/y\\n" > config; ' +
      "cd ..; echo common > commondir",
    owner: "git fetch",
  },
  "a bare repository in a project that has refs and objects of its own": {
    prepare: (world) => {
      world.file("home/project/refs/a");
      world.file("home/project/objects/b");
    },
    script: `rm .git/HEAD; ${bare(".")}`,
  },
  "hooks that are named in a file that the owner's settings include under a condition": {
    prepare: (world) => {
      world.file("home/.gitconfig", '[includeIf "gitdir:~/"]\n\tpath = ~/.gitconfig-work\n');
      world.file("home/.gitconfig-work", "[core]\n\thooksPath = .githooks\n");
      world.file("home/project/.githooks/pre-commit", hook, 0o755);
    },
    script: "echo touch $MARK >> .githooks/pre-commit",
    owner: commit,
  },
  "hooks that are named in a file that the repository's configuration includes": {
    prepare: (world) => {
      includes("../team.gitconfig")(world);
      world.file("home/project/team.gitconfig", "[core]\n\thooksPath = .githooks\n");
      world.file("home/project/.githooks/pre-commit", hook, 0o755);
    },
    script: "echo touch $MARK >> .githooks/pre-commit",
    owner: commit,
  },
  "hooks that are named in the owner's XDG settings": {
    prepare: (world) => {
      world.env["XDG_CONFIG_HOME"] = join(world.home, "xdg");
      world.file("home/xdg/git/config", "\ufeff[core]\n\thooksPath = .githooks\n");
      world.file("home/project/.githooks/pre-commit", hook, 0o755);
    },
    script: "echo touch $MARK >> .githooks/pre-commit",
    owner: commit,
  },
  "a file that an included file includes": {
    prepare: (world) => {
      includes("../team.gitconfig")(world);
      world.file("home/project/team.gitconfig", "[include]\n\tpath = more/extra.gitconfig\n");
      world.file("home/project/more/extra.gitconfig", "[alias]\n\tst = status\n");
    },
    script: `printf ${monitor} >> more/extra.gitconfig`,
  },
  "an included file that does not exist": {
    prepare: includes("../local.gitconfig"),
    script: `printf ${monitor} > local.gitconfig`,
  },
  "a submodule that has its git directory in itself": {
    prepare: (world) => {
      world.outside("git clone -q . lib");
      world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./lib", "lib");
      world.git("commit", "-qm", "submodule");
    },
    script: `printf ${monitor} >> lib/.git/config`,
  },
  "a submodule at a deep path": {
    prepare: (world) => twin(world)("a/b/c/d/e/f/g/h"),
    script: `printf ${monitor} >> .git/modules/a/b/c/d/e/f/g/h/config`,
  },
  "a submodule that did not look like one when the run began": {
    prepare: (world) => twin(world)("libs/sub"),
    before: "mv .git/modules/libs/sub/HEAD .git/H",
    script: `mv .git/H .git/modules/libs/sub/HEAD; printf ${monitor} >> .git/modules/libs/sub/config`,
  },
  "a submodule below what looks like one": {
    prepare: (world) => twin(world)("libs/sub"),
    before: "mkdir .git/modules/libs/objects .git/modules/libs/refs; touch .git/modules/libs/HEAD",
    script: `printf ${monitor} >> .git/modules/libs/sub/config`,
  },
  "a submodule of a linked worktree elsewhere": {
    prepare: (world) => {
      twin(world)("sub");
      world.git("worktree", "add", "-q", "../tree", "-b", "tree");
      world.git("-C", "../tree", "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init");
    },
    script: `printf ${monitor} >> .git/worktrees/tree/modules/sub/config`,
    owner: "git -C ../tree status",
  },
  "hooks in a submodule, named by a relative path": {
    prepare: (world) => {
      twin(world)("libs/sub");
      world.file("home/.gitconfig", "[core]\n\thooksPath = .githooks\n");
      world.file("home/project/libs/sub/.githooks/pre-commit", hook, 0o755);
    },
    script: "echo touch $MARK >> libs/sub/.githooks/pre-commit",
    owner: `cd libs/sub; ${commit}`,
  },
  "a linked worktree in the workspace, which is led elsewhere": {
    prepare: (world) => world.git("worktree", "add", "-q", "tree", "-b", "tree"),
    script: `cp -r .git evil && printf ${monitor} >> evil/config && echo "gitdir: $PWD/evil" > tree/.git`,
    owner: "git -C tree status",
  },
  "a remote as git had them long ago": {
    script:
      "git init -q --bare evil; printf '#!/bin/sh\\ntouch %s\\n' $MARK > evil/hooks/pre-receive; chmod +x evil/hooks/*; " +
      "mkdir -p .git/remotes; printf 'URL: %s\\nPush: refs/heads/main:refs/heads/main\\n' $PWD/evil > .git/remotes/origin",
    owner: "git push",
  },
  "a branch as git had them still longer ago": {
    script:
      "git init -q --bare evil; printf '#!/bin/sh\\ntouch %s\\n' $MARK > evil/hooks/pre-receive; chmod +x evil/hooks/*; " +
      "mkdir -p .git/branches; echo $PWD/evil > .git/branches/origin",
    owner: "git push origin main",
  },
  "a script of the project's that the configuration has a program run": {
    prepare: (world) => {
      world.file("home/project/t/clean.py", "import sys; sys.stdout.write(sys.stdin.read())\n");
      world.file("home/project/.gitattributes", "file.txt filter=x\n");
      world.git("config", "filter.x.clean", "python3 t/clean.py %f");
    },
    script: "echo \"open('$MARK', 'w')\" > t/clean.py; echo x > file.txt",
    owner: "git diff",
  },
  "a program of the project's that the configuration calls": {
    prepare: (world) => {
      world.file("home/project/t/monitor.sh", "#!/bin/sh\nexit 1\n", 0o755);
      world.git("config", "core.fsmonitor", "./t/monitor.sh");
    },
    script: "printf '#!/bin/sh\\ntouch %s\\nexit 1\\n' $MARK > t/monitor.sh",
  },
};

function prepared({ prepare }: Attack): World {
  const world = newWorld().repository();
  prepare?.(world);
  return world;
}

function ownerUses({ owner = "git status" }: Attack, world: World, at: string): boolean {
  world.outside(`cd ${at}; ${owner}`);
  return existsSync(markOf(world));
}

const withMark = (world: World, script: string) => `MARK=${markOf(world)}; ${script}`;

describe("what an agent leaves does not have the owner's git execute it:", () => {
  test.each(Object.entries(attacks))("%s", async (_, attack) => {
    const { script, directory = ".", before: earlier = "true" } = attack;
    const free = prepared(attack);
    free.outside(`cd ${directory}; ${withMark(free, `${earlier}; ${script}`)}`);
    expect(ownerUses(attack, free, directory)).toBe(true);

    const world = prepared(attack);
    world.outside(`cd ${directory}; ${earlier}`);
    const before = names(world.project);
    await world.inside("true", "-C", join(world.project, directory));
    expect(names(world.project)).toEqual(before);
    await world.inside(withMark(world, script), "-C", join(world.project, directory));
    expect(ownerUses(attack, world, directory)).toBe(false);
  });
});

/** Nothing of Podbot's is left. */
function names(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
}

describe("a link on the way to what git obeys", () => {
  test.each<[string, (world: World) => void, string, string]>([
    [
      "to hooks",
      (world) => {
        world.file("home/project/tools/hooks/pre-commit", hook, 0o755);
        world.link("home/project/.githooks", "tools/hooks");
        world.git("config", "core.hooksPath", ".githooks");
      },
      ".githooks",
      "rm .githooks; mkdir .githooks",
    ],
    [
      "to one hook",
      (world) => {
        world.file("home/project/tools/v1/pre-commit", hook, 0o755);
        world.link("home/project/tools/current", "v1");
        world.link("home/project/.git/hooks/pre-commit", "../../tools/current/pre-commit");
      },
      "tools/current",
      "mkdir tools/v2; ln -sfn v2 tools/current",
    ],
    [
      "to an included file",
      (world) => {
        world.file("home/project/cfg/x.inc", "[alias]\n\tx = status\n");
        world.link("home/project/cur", "cfg");
        world.git("config", "includeIf.gitdir:~/.path", "../cur/x.inc");
      },
      "cur",
      "rm cur; mkdir cur",
    ],
  ])(
    "%s can be neither replaced nor carried off; where bubblewrap mounts by path, both are told",
    async (_, prepare, link, script) => {
      const world = newWorld().repository();
      prepare(world);
      const led = readlinkSync(join(world.project, link));
      const tried = await world.inside(`${script}; mv ${link} moved; echo x > target; ln -sfn target ${link}; true`);
      expect(tried.stderr).not.toContain("is a link");
      expect(tried.stderr).not.toContain("was replaced");
      expect(readlinkSync(join(world.project, link))).toBe(led);
      const accepted = ["--config", world.file("gaps.toml", 'sandbox.accept_gaps = ["mounts-by-path"]\n')];
      const { stderr } = await world.inside(script, ...accepted);
      expect(stderr).toContain(`${world.project}/${link} is a link: what it leads to is protected`);
      expect(stderr).toContain(`${world.project}/${link} was a link to something protected and was replaced`);
    },
  );
});

describe("what cannot be protected is named, and nothing starts:", () => {
  test.each<[string, string, string]>([
    ["a linked worktree whose name is not UTF-8", "git worktree add -q \"$(printf '../w\\351')\" -b w", "worktrees"],
    ["hooks whose path is not UTF-8", "git config core.hooksPath \"$(printf 'h\\351')\"", "not UTF-8"],
    [
      "a protected name that leads to such a one",
      "ln -s \"$(printf 'h\\351')\" .mcp.json; touch h$(printf '\\351')",
      ".mcp.json",
    ],
    ["a configuration that is too large", "head -c 1100000 /dev/zero | tr '\\0' '\\n' >> .git/config", ".git/config"],
    [".git as a pipe", "mv .git g; mkfifo .git", ".git is there, but is no git directory"],
    ["an included pipe", "mkfifo pipe; git config include.path ../pipe", "/pipe"],
    ["an index that is too large", "truncate -s 100G .git/index", ".git/index"],
    [
      "more submodules than can be",
      "for n in $(seq 401); do mkdir -p .git/modules/$n; echo > .git/modules/$n/HEAD; done",
      ".git/modules",
    ],
    ["a bare repository beside a repository", bare("."), "looks like a bare repository"],
  ])("%s", async (_, prepare, named) => {
    const world = newWorld().repository();
    expect((await world.inside("true")).status).toBe(0);
    world.outside(prepare);
    const { status, stderr } = await world.inside("true");
    world.outside("rm -rf h* .mcp.json ../w* .git/worktrees");
    expect(stderr).toContain("(PATH_REFUSED");
    expect(stderr).toContain(named);
    expect(status).toBe(2);
    rmSync(join(world.project, ".git"), { recursive: true });
  });
});

test.each([
  [".podbot", "mkdir gone"],
  [".git/hooks", "mkdir .git/gone"],
])("%s as a link that leads nowhere is held where it leads to, and stops no start", async (name, script) => {
  const world = newWorld().repository();
  if (name === ".git/hooks") rmSync(join(world.project, name), { recursive: true });
  world.link(join(world.project, name), "gone");
  expect((await world.inside("true")).status).toBe(0);
  const { status, stderr } = await world.inside(`${script}; touch ${name}/x`);
  expect(stderr).not.toContain("was replaced");
  expect(status).not.toBe(0);
  expect(existsSync(join(world.project, name))).toBe(false);
  expect(world.outside(script).status).toBe(0);
});

describe("while an agent works, and afterwards, git goes on as before", () => {
  test("with HEAD, submodules of both kinds and worktrees, inside and outside", async () => {
    const world = newWorld().repository();
    twin(world)("libs/sub");
    world.outside(
      "git clone -q . own; git -c protocol.file.allow=always submodule --quiet add ./own own; git commit -qm own",
    );
    world.git("worktree", "add", "-q", join(world.home, "tree"), "-b", "tree");
    world.outside("git clone -q --bare . ../up.git; git remote add origin ../up.git; git fetch -q");
    const work =
      "git diff HEAD && git log -1 --format=%s HEAD && git status --short && (cd libs/sub && echo x > y && git add y && git commit -qm sub) && " +
      "(cd own && echo x > y && git add y && git commit -qm own) && git commit -qam both && git fetch -q";
    const inside = await world.inside(work);
    expect(inside).toEqual({ status: 0, stdout: "own\n", stderr: "" });
    expect(world.outside("git push -q origin main && git status --short")).toEqual({
      status: 0,
      stdout: "",
      stderr: "",
    });
  });
});
