import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { holdLease } from "../../src/github/lease.ts";
import type { SessionRecord } from "../../src/registry/record.ts";
import { isClockSteady, patience } from "../faults/thorough.ts";
import { appKey } from "../github/town.ts";
import { cloneOf, configOf, inClone, leftovers, openClone, repository, say, settle } from "./github-world.ts";

describe("an agent on a clone behind bubblewrap", () => {
  test("works in it, commits, and pushes with a token that it never asked for", async () => {
    const { world, town } = await settle();
    const script = [
      "pwd",
      "git symbolic-ref --short HEAD",
      "git remote get-url origin",
      "echo two >two.txt && git add two.txt && git commit -qm second && git push -q",
      "git rev-list --count origin/main",
    ].join(" && ");
    const { status, stdout, stderr } = await inClone(world, script);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "podbot: cloning example/name, main\n" });
    expect(stdout).toBe(`/work\nmain\n${town.origin}/example/name.git\n2\n`);
    expect(town.minted).toMatchObject([{ repository: "name", permissions: { contents: "write", metadata: "read" } }]);
    expect(town.git.refused).toBe(0);
    expect(leftovers(world)).toEqual([]);
  });

  test("reaches that repository and no other of the host's", async () => {
    const { world, town } = await settle();
    const { stdout, stderr } = await inClone(
      world,
      `for name in name other; do git ls-remote ${town.origin}/example/$name.git >/dev/null && echo $name; done`,
    );
    expect(stdout).toBe("name\n");
    expect(stderr).toContain("403");
    // It was the gateway, and not that server: on the machine's own network the server itself decides.
    const open = await inClone(world, `git ls-remote ${town.origin}/example/other.git`, "--network", "open");
    expect(open.stderr).not.toContain("403");
    expect(town.git.refused).toBe(1);
  });

  test("does not write where the caller stands; without a clone it does", async () => {
    const { world } = await settle();
    const script = `touch ${world.project}/written; touch /work/here || touch here`;
    expect((await inClone(world, script, "--quiet")).stderr).toContain("Read-only file system");
    expect(existsSync(join(world.project, "written"))).toBe(false);
    await world.podbot(["run", "--agent", "custom", "--", "sh", "-c", `touch ${world.project}/written`]);
    expect(existsSync(join(world.project, "written"))).toBe(true);
  });

  test.each([
    ["that the host does not have", (_: string) => `/podbot-test-${process.pid}/deep`],
    ["that the host has, and that is covered", (home: string) => join(home, "covered")],
    ["in a private place", (_: string) => "/tmp/clone"],
  ])("finds it in a directory %s", async (_name, at) => {
    const { world, town } = await settle();
    const directory = at(world.home);
    world.file("home/covered/file");
    world.file("home/.config/podbot/config.toml", configOf(town, ["[workspace]", `base_dir = "${directory}"`]));
    for (const root of ["host", "minimal"]) {
      const { status, stdout, stderr } = await inClone(world, "pwd; ls; git log --oneline | wc -l", "--root", root);
      expect({ root, status, stdout, stderr }).toMatchObject({ status: 0, stdout: `${directory}\n1\n` });
    }
    expect(readdirSync(join(world.home, "covered"))).toEqual(["file"]);
    expect(existsSync(`/podbot-test-${process.pid}`)).toBe(false);
  });

  test("has git ask nobody else, whatever the owner's own settings say", async () => {
    const { world, town } = await settle();
    const helper = `!f() { echo password=stale; }; f`;
    world.file(
      "home/.gitconfig",
      `[credential]\n\thelper = "${helper}"\n[url "ssh://git@elsewhere/"]\n\tinsteadOf = ${town.origin}/\n`,
    );
    const { status, stderr } = await inClone(world, "git commit -q --allow-empty -m x && git push -q");
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(town.git.refused).toBe(0);
    // Those settings do lead elsewhere.
    const outside = world.outside(`git ls-remote ${town.origin}/example/name.git`);
    expect(outside.stderr).toMatch(/ssh|elsewhere/);
  });

  test("is told what would be lost, and only that", async () => {
    const { world } = await settle();
    const lost = (script: string) =>
      inClone(world, script).then(({ stderr }) => stderr.split("\n").slice(1).join("\n"));
    expect(await lost("git commit -q --allow-empty -m x; touch a b")).toContain(
      "The clone of example/name is gone, and with it changes in 2 files that were not committed and a commit that",
    );
    expect(await lost("git commit -q --allow-empty -m x && git push -q")).toBe("");
  });

  test("leaves nothing, however it has hidden it", async () => {
    const { world } = await settle();
    const deep = "import os\nfor _ in range(60): os.mkdir('d' * 100); os.chdir('d' * 100)";
    const script = `mkdir -p locked/in && touch locked/in/file && chmod 000 locked; python3 -c "${deep}"`;
    expect(await inClone(world, script, "--quiet")).toMatchObject({ status: 0 });
    expect(leftovers(world)).toEqual([]);
  });
});

test("a clone is kept for a session that is left to itself, and gone when that is stopped", async () => {
  const { world, town } = await settle();
  const words = ["run", "--detach", ...repository, "--quiet", "--agent", "custom", "--", "sleep", "1000"];
  const { status, stdout, stderr } = await world.podbot(words);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const id = stdout.trim();
  const push = ["exec", id, "--", "sh", "-c", "pwd && git commit -q --allow-empty -m x && git push -q"];
  expect(await world.podbot(push)).toEqual({ status: 0, stdout: "/work\n", stderr: "" });
  expect(await world.podbot(["stop", id])).toMatchObject({ status: 0 });
  expect(leftovers(world)).toEqual([]);
  expect(town.git.refused).toBe(0);
});

test("a clone whose keeper was killed can still be looked at, and goes with the session", async () => {
  const { world } = await settle();
  const words = ["run", "--detach", ...repository, "--quiet", "--agent", "custom", "--", "sh", "-c"];
  const id = (await world.podbot([...words, "echo work >file; exec sleep 1000"])).stdout.trim();
  const session = join(world.home, ".local/state/podbot/sessions", id);
  const file = join(session, "clone/file");
  await expect.poll(() => existsSync(file)).toBe(true);
  const { keeper, directory } = JSON.parse(readFileSync(join(session, "record.json"), "utf8")) as SessionRecord;
  await world.podbot(["ps"]);
  expect(existsSync(join(directory, "secrets/ghapp_token"))).toBe(true);
  process.kill(keeper.pid, "SIGKILL");
  await expect.poll(() => world.podbot(["ps"]).then(({ stdout }) => stdout)).not.toContain("running");
  expect(readFileSync(file, "utf8")).toBe("work\n");
  // Its token is gone as soon as somebody has looked.
  expect(existsSync(join(directory, "secrets"))).toBe(false);
  expect(await world.podbot(["stop", id])).toMatchObject({ status: 0 });
  expect(leftovers(world)).toEqual([]);
});

test.runIf(isClockSteady)(
  "whoever leaves the token to the daemon has the first one, and holds nobody up who writes the next",
  async () => {
    // Long enough to clone with it.
    const tokenMs = patience * 6_000;
    const { world, town } = await settle({ tokenMs });
    const session = await openClone(world, { githubToken: "daemon" }, { detached: true });
    const runtime = join(world.directory, "run/podbot", session.id);
    expect((await say(session.sandbox, "cat /run/secrets/ghapp_token")).stdout).toBe(town.minted[0]?.value);
    const lease = holdLease(runtime);
    expect(lease).not.toBeNull();
    lease?.release();
    await new Promise((resolve) => setTimeout(resolve, tokenMs + 500));
    expect(town.minted).toHaveLength(1);
    await session.stop();
    // A keeper that keeps it has that right.
    const kept = await openClone(world);
    expect(holdLease(join(world.directory, "run/podbot", kept.id))).toBeNull();
  },
);

describe("nothing is started", () => {
  const cases: readonly (readonly [string, readonly string[], string, RegExp, number])[] = [
    ["where no branch is named", ["--repo", "example/name"], "", /--repo needs --branch/, 2],
    ["where no repository is named", ["--branch", "main"], "", /--branch needs --repo/, 2],
    ["for an address", ["--repo", "https://github.com/a/b", "--branch", "main"], "", /it is an address/, 2],
    ["for an option", ["--repo=a/b", "--branch=--upload-pack=x"], "", /taken for an option/, 2],
    ["where a directory is named, too", [...repository, "--workspace", "."], "", /works on a clone, and a dir/, 2],
    ["without any network", [...repository, "--network", "none"], "", /the network is off/, 2],
    ["masked, without a gateway", [...repository, "--network", "open"], 'token = "masked"', /needs the gateway/, 2],
    ["where a file wants a clone of nothing", [], '[workspace]\nsource = "github_clone"', /no repository was named/, 2],
    ["for a repository that is not the App's", ["--repo", "example/absent", "--branch", "main"], "", /absent|not/, 125],
  ];

  test.each(cases)("%s", async (_name, flags, config, words, exit) => {
    const { world, town } = await settle({}, [config]);
    const { status, stdout, stderr } = await world.podbot(["run", ...flags, "--agent", "custom", "--", "echo", "ran"]);
    expect({ status, stdout, stderr }).toEqual({ status: exit, stdout: "", stderr: expect.stringMatching(words) });
    expect(town.minted).toEqual([]);
    expect(leftovers(world)).toEqual([]);
  });

  test("for another owner's repository of the same name, whatever the App's own has", async () => {
    const { world, town } = await settle();
    const run = (name: string) =>
      world.podbot(["run", "--repo", name, "--branch", "main", "--agent", "custom", "--", "echo", "ran"]);
    const { status, stdout, stderr } = await run("evil/name");
    expect({ status, stdout, stderr }).toEqual({
      status: 125,
      stdout: "",
      stderr: expect.stringContaining("GitHub gave a token for something else than evil/name."),
    });
    expect(leftovers(world)).toEqual([]);
    expect(town.minted).toHaveLength(1);
    expect(await run("example/name")).toMatchObject({ status: 0, stdout: "ran\n" });
  });

  test("where a project takes every permission away, which to GitHub means all; it may leave some", async () => {
    const { world, town } = await settle();
    const say = (levels: string) => world.file("home/project/.podbot/config.toml", `[github.permissions]\n${levels}`);
    say('contents = "none"\nmetadata = "none"\n');
    const { status, stderr } = await inClone(world, "true");
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining("GITHUB_CONFIG") });
    expect(town.asked).toEqual([]);
    say('contents = "read"\nmetadata = "none"\n');
    expect(await inClone(world, "true")).toMatchObject({ status: 0 });
    expect(town.minted).toMatchObject([{ permissions: { contents: "read" } }]);
  });

  test("without an App; what is missing is named at once", async () => {
    const { world } = await settle();
    world.file("home/.config/podbot/config.toml", "[github]\napp_id = 1\n");
    const { status, stderr } = await inClone(world, "true");
    expect({ status, stderr }).toMatchObject({ status: 2 });
    expect(stderr).toContain("github.installation_id, github.private_key_path");
  });

  test("where the App's key is refused, and nothing waits", async () => {
    const { world, town } = await settle();
    town.troubles.push({ status: 401, body: { message: "A JSON web token could not be decoded" } });
    const { status, stderr } = await inClone(world, "true");
    expect({ status, stderr }).toMatchObject({ status: 125, stderr: expect.stringContaining("GITHUB_AUTHENTICATION") });
    expect(leftovers(world)).toEqual([]);
  });
});

test("a host that is allowed on the command line turns the network on, for a clone too", async () => {
  const { world, town } = await settle({}, ["[network]", 'mode = "none"']);
  expect((await inClone(world, "true")).stderr).toContain("the network is off");
  const { host } = new URL(town.origin);
  expect(await inClone(world, "git push -q", "--allow", host)).toMatchObject({ status: 0 });
});

describe("a clone that fails", () => {
  test("shows no token, though the server repeats it", async () => {
    const { world, town } = await settle();
    town.gitAnswer = (sent) => `What is ${Buffer.from(sent.replace(/^basic /i, ""), "base64").toString()}?`;
    const { status, stderr } = await inClone(world, "true");
    expect({ status, stderr }).toEqual({ status: 125, stderr: expect.stringContaining("CLONE_FAILED") });
    expect(stderr).toContain("What is x-access-token:[REDACTED]?");
    expect(stderr).not.toContain(town.minted[0]?.value);
  });

  test("says what git says, and leaves nothing", async () => {
    const { world } = await settle();
    const words = ["run", "--repo", "example/name", "--branch", "absent", "--agent", "custom", "--", "echo", "ran"];
    const { status, stdout, stderr } = await world.podbot(words);
    expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
    expect(stderr).toContain("Remote branch absent not found in upstream origin");
    expect(stderr).toContain("CLONE_FAILED");
    expect(leftovers(world)).toEqual([]);
  });

  test("is one of a tag, too", async () => {
    const { world, town } = await settle();
    const bare = join(town.directory, "git/example/name.git");
    expect(spawnSync("git", ["-C", bare, "tag", "v1", "main"], { env: world.env as NodeJS.ProcessEnv }).status).toBe(0);
    const words = ["run", "--repo", "example/name", "--branch", "v1", "--agent", "custom", "--", "true"];
    expect((await world.podbot(words)).stderr).toContain("example/name has no branch v1: what has that name is a tag");
    expect(leftovers(world)).toEqual([]);
  });

  test("is called off by whoever stops the session, at once", async () => {
    const { world, town } = await settle();
    const calledOff = new AbortController();
    // A server that never answers.
    town.git.served = 0;
    const starting = openClone(world, {}, { signal: calledOff.signal, onFurnished: () => calledOff.abort() });
    await expect(starting).rejects.toThrow();
    expect(leftovers(world)).toEqual([]);
  });
});

describe("a token in a directory of the caller's", () => {
  test("is there where it was asked for, for what the directory is a clone of; otherwise nobody asks for one", async () => {
    const { world, town } = await settle();
    cloneOf(world, `${town.origin}/example/other.git`);
    const script = "pwd; cat /run/secrets/ghapp_token; echo; ls /run/podbot/git-askpass; echo $GIT_ASKPASS";
    const run = (...flags: string[]) =>
      world.podbot(["run", ...flags, "--agent", "custom", "--", "sh", "-c", script]).then(({ stdout }) => stdout);
    expect(await run()).toBe(`${world.project}\n\n\n`);
    expect(town.asked).toEqual([]);
    const askpass = "/run/podbot/git-askpass";
    const { stderr } = await world.podbot(["run", "--github-token", "--agent", "custom", "--", "true"]);
    expect(stderr).toContain("and no way there: --allow localhost:");
    town.minted.length = 0;
    expect(await run("--github-token")).toBe(`${world.project}\n${town.minted[0]?.value}\n${askpass}\n${askpass}\n`);
    expect(town.minted).toMatchObject([{ repository: "other" }]);
  });

  test("is not to be had where nobody can tell what for", async () => {
    const { world, town } = await settle();
    const run = () => world.podbot(["run", "--github-token", "--agent", "custom", "--", "echo", "ran"]);
    const refused = {
      status: 2,
      stdout: "",
      stderr: expect.stringMatching(/--github-token is for one repository on localhost.*\n.*--repo OWNER\/NAME/),
    };
    expect(await run()).toEqual(refused);
    cloneOf(world, "https://x:sesame@elsewhere.example/example/name.git");
    const { stderr } = await run();
    expect(stderr).toMatch(/--github-token is for one repository/);
    expect(stderr).not.toContain("sesame");
    // Nor by a file that says that this is a worktree of another repository.
    const other = join(world.home, "other");
    renameSync(world.project, other);
    world.file("home/project/.git", `gitdir: ${other}/.git\n`);
    spawnSync("git", ["-C", other, "remote", "set-url", "origin", `${town.origin}/example/name.git`]);
    expect(await run()).toEqual(refused);
    expect(town.asked).toEqual([]);
    // The control: that other one has it.
    const control = ["run", "--github-token", "--workspace", other, "--agent", "custom", "--", "echo", "ran"];
    expect(await world.podbot(control)).toMatchObject({ status: 0, stdout: "ran\n" });
    expect(town.minted).toMatchObject([{ repository: "name" }]);
  });

  test("cannot be changed inside, nor can what answers git", async () => {
    const { world } = await settle();
    const session = await openClone(world);
    const { stdout } = await say(
      session.sandbox,
      "for f in /run/secrets/ghapp_token /run/secrets/new /run/podbot/git-askpass; do (echo x >$f) 2>/dev/null && echo $f; done; stat -c %a /run/secrets /run/secrets/ghapp_token",
    );
    expect(stdout).toBe("700\n600\n");
  });

  test("is given to git for that host alone", async () => {
    const { world, town } = await settle();
    const session = await openClone(world);
    const ask = (prompt: string) => say(session.sandbox, `$GIT_ASKPASS "${prompt}"`);
    const place = town.origin.replace("http://", "");
    const url = `http://x-access-token@${place}`;
    expect(await ask(`Username for '${town.origin}': `)).toMatchObject({ status: 0, stdout: "x-access-token\n" });
    expect(await ask(`Password for '${url}': `)).toMatchObject({ status: 0, stdout: town.minted[0]?.value });
    for (const other of [`${url}.evil.example`, "https://x-access-token@evil.example", `https://evil.example/${url}`]) {
      expect(await ask(`Password for '${other}': `)).toMatchObject({ status: 1, stdout: "" });
    }
  });
});

test("the App's key is hidden in every sandbox, whether it has a token or not", async () => {
  const { world, town } = await settle();
  world.file("home/.config/podbot/config.toml", configOf(town));
  const script = `cat ${town.keyFile}; cat ${town.trustFile}`;
  for (const { stdout } of [await inClone(world, script), await world.inside(script)]) {
    expect(stdout).not.toContain("PRIVATE KEY");
    // What lies beside it is seen.
    expect(stdout).toContain("BEGIN CERTIFICATE");
  }
  expect(world.outside(script).stdout).toContain("PRIVATE KEY");
  // Also where it lies in what the agent works on.
  const key = world.file("home/project/app.pem", appKey, 0o600);
  world.file("home/.config/podbot/config.toml", configOf({ app: { ...town.app, privateKeyPath: key } }));
  expect(await world.inside(`cat ${key}; mv ${key} other; cat other; ls app.pem`)).toMatchObject({
    stdout: "app.pem\n",
  });
});

test("a key that takes the place of another while a sandbox runs is not seen in there, where keys belong", async () => {
  const { world, town } = await settle();
  const keys = join(world.home, ".config/podbot/keys");
  const replace = (key: string) => {
    world.file("home/next.pem", appKey, 0o600);
    renameSync(join(world.home, "next.pem"), key);
  };
  const look = async (key: string) => {
    const session = await openClone(world);
    const before = await say(session.sandbox, `cat ${key}`);
    replace(key);
    const after = await say(session.sandbox, `cat ${key}; ls ${keys}`);
    await session.stop();
    return [before, after].map(({ stdout }) => stdout.includes("PRIVATE KEY"));
  };
  expect(await look(join(keys, "app.pem"))).toEqual([false, false]);
  expect((await inClone(world, "true")).stderr).not.toContain("private key");
  // Elsewhere it is, and whoever keeps it there is told.
  const key = world.file("home/.config/podbot/app.pem", appKey, 0o600);
  world.file("home/.config/podbot/config.toml", configOf({ app: { ...town.app, privateKeyPath: key } }));
  expect(await look(key)).toEqual([false, true]);
  expect((await inClone(world, "true")).stderr).toContain(`Keep it in ${keys}.`);
});

test("what git obeys where the caller stands stays protected beside a clone, though he makes that writable", async () => {
  const { world, town } = await settle();
  cloneOf(world, `${town.origin}/example/name.git`);
  const git = join(world.project, ".git");
  const probe = `touch ${git}/hooks/pre-commit && echo hook; echo x >>${git}/config && echo config; touch ${world.project}/file && echo file`;
  const plain = ["run", "--quiet", "--agent", "custom", "--", "sh", "-c", probe];
  expect((await world.podbot(plain)).stdout).toBe("file\n");
  expect((await inClone(world, probe, "--quiet", "--rw", world.project)).stdout).toBe("file\n");
  // Without that, nothing is; and without the preset, everything.
  expect((await inClone(world, probe, "--quiet")).stdout).toBe("");
  const bare = ["--quiet", "--rw", world.project, "--preset", "!@git"];
  expect((await inClone(world, probe, ...bare)).stdout).toBe("hook\nconfig\nfile\n");
});

test("what a program asks for is checked like the command line's", async () => {
  const { world } = await settle();
  await expect(openClone(world, { branch: undefined as unknown as string })).rejects.toThrow(UsageError);
});
