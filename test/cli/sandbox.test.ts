import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { agentScript, attempts } from "../../src/cli/demo/attempts.ts";
import { Stage } from "../../src/cli/demo/stage.ts";
import { planSandbox } from "../../src/index.ts";
import { eventually } from "../eventually.ts";
import { newWorld, program, type World } from "../world.ts";

/** A plan as JSON, without the sockets that it hides: other tests bind theirs at any time. */
function withoutSockets(plan: string): string {
  const isSocket = (item: unknown) => JSON.stringify(item).includes("a program of the host is bound there");
  const { paths, operations, ...rest } = JSON.parse(plan);
  return JSON.stringify({
    paths: paths.filter((path: unknown) => !isSocket(path)),
    operations: operations.filter((operation: unknown) => !isSocket(operation)),
    ...rest,
  });
}

/** What a run leaves in the project. */
function leftovers(world: World): readonly string[] {
  return readdirSync(world.project);
}

describe("--dry-run", () => {
  test("prints a script that, pasted into a shell, does the same", async () => {
    const world = newWorld().repository();
    world.file("home/project/a dir/it's.txt", "secret\n");
    world.file("home/.ssh/key", "key\n");
    world.env["PASSED"] = "pa'ss ed";
    const script =
      "ls -A ~/.ssh 'a dir'; cat 'a dir/it'\\''s.txt'; touch .podbot/x; echo evil > .git/hooks/y; git reset --hard; echo $PASSED; cat /proc/net/dev | wc -l; exit 9";
    const flags = ["--exclude", "a dir/it's.txt", "--env", "PASSED", "--network", "none"];
    const real = await world.inside(script, ...flags);
    // A script cannot be built after a socket of another test that it masks is gone.
    await eventually(async () => {
      const dry = await world.podbot(["sandbox", "--dry-run", ...flags, "--", "sh", "-c", script]);
      expect(dry.status).toBe(0);
      expect(leftovers(world)).toEqual([".git", "a dir", "file.txt"]);
      const { stdout, stderr, status } = spawnSync("bash", [], {
        input: dry.stdout,
        cwd: "/",
        env: world.env as NodeJS.ProcessEnv,
        encoding: "utf8",
      });
      expect({ stdout, stderr, status }).toEqual({ stdout: real.stdout, stderr: real.stderr, status: real.status });
    });
    expect(real.status).toBe(9);
    expect(leftovers(world)).toEqual([".git", "a dir", "file.txt"]);
  });

  test("prints the plan as JSON, the same each time", async () => {
    const world = newWorld().repository();
    const words = ["sandbox", "--dry-run", "--json", "--rw", "~/x", "--", "true"];
    const first = await world.podbot(words);
    const second = await world.podbot(words);
    expect(withoutSockets(first.stdout)).toBe(withoutSockets(second.stdout));
    const plan = JSON.parse(first.stdout);
    expect(plan).toMatchObject({
      version: 1,
      wall: "bubblewrap",
      root: "host",
      command: ["true"],
      network: { mode: "allowlist", origin: "default" },
    });
    expect(plan.paths).toContainEqual({
      path: world.project,
      access: "rw",
      rule: ".",
      layer: "default",
      origin: "preset @base",
      beaten: [],
      mounted: true,
    });
    expect(plan.operations.every(({ why }: { why: string }) => why.length > 0)).toBe(true);
  });

  test("names what may be reached, and who says so", async () => {
    const world = newWorld();
    world.file(
      "home/.config/podbot/config.toml",
      [
        '[network]\nrules = [{ host = "no.example.org", deny = true, path = "/admin/**", methods = ["POST"] }]',
        '[network.reach]\ndb = "127.0.0.1:5432"',
        '[secrets.t]\nenv = "T"\nhosts = ["api.example.org"]',
      ].join("\n"),
    );
    const flags = ["--dry-run", "--allow", "api.example.org", "--allow", "[::1]:5432"];
    const { stdout, status } = await world.podbot(["sandbox", ...flags, "--", "true"]);
    expect(status).toBe(0);
    expect(stdout.split("\n").filter((line) => line.startsWith("# network: "))).toEqual([
      "# network: allowlist (default)",
      "# network: allow  api.example.org:80,443 (--allow)",
      "# network: allow  [::1]:5432, also at private addresses (--allow)",
      `# network: deny   POST no.example.org /admin/** (network.rules of ${world.home}/.config/podbot/config.toml)`,
      "# network: secret t is put in on api.example.org, in authorization, x-api-key",
      "# network: reach  db at 127.0.0.1:5432",
    ]);
    const json = JSON.parse((await world.podbot(["sandbox", ...flags, "--json", "--", "true"])).stdout);
    expect(json.network).toMatchObject({ mode: "allowlist", ports: [80, 443, 3128, 5432] });
    expect(json.network.policy.rules).toHaveLength(3);
  });
});

describe("--debug", () => {
  test("names the rule and the layer that won, and those that lost", async () => {
    const world = newWorld();
    world.file("home/ex/file");
    world.file("home/.config/podbot/config.jsonc", '{ "filesystem": { "ro": ["~/ex"] }, /* mine */ }');
    const { stderr } = await world.inside("true", "--debug", "--rw", "~/ex");
    expect(stderr).toContain(`podbot(config): read ${world.home}/.config/podbot/config.jsonc`);
    expect(stderr).toContain(
      `ro      ${world.home}/ex: ~/ex (${world.home}/.config/podbot/config.jsonc, global); already so; it beat rw ~/ex (--rw, flag)`,
    );
    expect(stderr).toContain("podbot(network): allowlist (default)");
    expect(stderr).toContain("rw ~/ex (--rw, flag) has no effect");
  });
});

describe("bad input", () => {
  /** Nothing starts and nothing is left: the command would have left a file. */
  async function expectRefused(world: World, status: number, message: string, ...flags: string[]) {
    const before = leftovers(world);
    const outcome = await world.podbot(["sandbox", ...flags, "--", "touch", "started"]);
    expect(outcome.stderr).toContain(message);
    // Each problem of a configuration carries its own way out.
    expect(outcome.stderr).toMatch(/way out:|CONFIG_INVALID/);
    expect(outcome.status).toBe(status);
    expect(outcome.stdout).toBe("");
    expect(leftovers(world)).toEqual(before);
    return outcome;
  }

  test.each<[string, readonly string[], string]>([
    ["an unknown flag", ["--exlude", "x"], "there is no flag --exlude"],
    ["a flag without its value", ["--ro"], ""],
    ["an unknown network", ["--network", "most"], '--network "most" is not a mode'],
    ["a host that is none", ["--allow", "https://x.org"], '--allow: "https://x.org" is not a host'],
    ["an unknown root", ["--root", "none"], '--root "none" is not a style'],
    ["an unknown preset", ["--preset", "@nope"], 'There is no preset "@nope"'],
    ["an invalid glob", ["--exclude", "a[b"], "is not a valid glob: a `[` is never closed"],
    ["an empty path", ["--rw", ""], "is blank"],
    ["another user's home", ["--rw", "~root/x"], "`~user` is not understood"],
    ["a command rule without value", ["--cmd", "git"], '--cmd "git" says nothing'],
    ["a preset for another command", ["--cmd", "npm=@git"], "@git"],
    ["a time that is none", ["--timeout", "soon"], "is not a length of time"],
    ["a directory that does not exist", ["-C", "nowhere"], "does not exist"],
    ["a file as directory", ["-C", "/etc/hostname"], "is not a directory"],
    ["a missing config file", ["-c", "none.toml"], "none.toml"],
  ])("%s", async (_, flags, message) => {
    const world = newWorld();
    if (flags.length > 1) return void (await expectRefused(world, 2, message, ...flags));
    const { status } = await world.podbot(["sandbox", ...flags]);
    expect(status).toBe(2);
  });

  test("no command", async () => {
    const { status, stderr } = await newWorld().podbot(["sandbox"]);
    expect(status).toBe(2);
    expect(stderr).toContain("there is no command to run");
  });

  test("two configuration files side by side", async () => {
    const world = newWorld();
    world.file("home/.config/podbot/config.toml", "");
    world.file("home/.config/podbot/config.json", "{}");
    const { stderr } = await expectRefused(world, 2, "config.toml");
    expect(stderr).toContain("config.json");
  });

  test("a configuration of a megabyte of garbage", async () => {
    const world = newWorld();
    for (const name of ["config.toml", "config.json", "config.yaml"]) {
      const file = world.file(`home/.config/podbot/${name}`, "\u0001[{:".repeat(250_000));
      const { stderr } = await expectRefused(world, 2, file);
      expect(stderr.length).toBeLessThan(2_000);
      expect(stderr).not.toContain("\u0001");
      world.outside(`rm ${file}`);
    }
  });

  test("several mistakes are told together, each with file, key, value and way out", async () => {
    const world = newWorld();
    const file = world.file(
      "home/.config/podbot/config.toml",
      'netwrok = true\n[sandbox]\nroot = "tiny"\n[filesystem]\nrw = "x"\n',
    );
    const { stderr } = await expectRefused(world, 2, file);
    for (const part of ["netwrok", "network", "sandbox.root", "tiny", "filesystem.rw"]) expect(stderr).toContain(part);
  });

  test("an unreadable file, or a directory where a file should be", async () => {
    const world = newWorld();
    mkdirSync(join(world.project, "dir.toml"));
    await expectRefused(world, 2, "dir.toml", "-c", "dir.toml");
  });

  test("HOME missing, relative, or a file", async () => {
    const world = newWorld();
    for (const home of [undefined, "", "home", "/etc/hostname", "/nonexistent"]) {
      world.env["HOME"] = home;
      const { status, stderr } = await world.podbot(["sandbox", "--", "touch", "started"]);
      expect(status).toBe(125);
      expect(stderr).toContain("HOME");
    }
  });

  test("no bubblewrap", async () => {
    const world = newWorld();
    world.env["PATH"] = "/nonexistent";
    await expectRefused(world, 125, "bubblewrap (bwrap) is not on PATH");
  });

  test("a bubblewrap that others than root could write", async () => {
    const world = newWorld();
    world.file("home/project/bin/bwrap", readFileSync("/usr/bin/bwrap", "latin1"), 0o755);
    world.env["PATH"] = `${world.project}/bin`;
    await expectRefused(world, 125, "is not the system's");
  });

  test("user namespaces refused", async () => {
    const world = newWorld();
    const outer = ["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--", process.execPath, program];
    const { status, stderr } = spawnSync("bwrap", [...outer, "sandbox", "--", "touch", "started"], {
      cwd: world.project,
      env: world.env as NodeJS.ProcessEnv,
      encoding: "utf8",
    });
    expect(stderr).toContain("refuses user namespaces");
    expect(status).toBe(125);
    expect(leftovers(world)).toEqual([]);
  });

  test("a path swapped between the plan and the start", async () => {
    const world = newWorld();
    world.file("home/data/x");
    world.file("home/.ssh/key", "key\n");
    const planned = await planSandbox({
      command: ["touch", join(world.home, "data/started")],
      cwd: world.project,
      env: world.env,
      config: { filesystem: { rw: ["~/data"] } },
    });
    renameSync(join(world.home, "data"), join(world.home, "moved"));
    symlinkSync(join(world.home, ".ssh"), join(world.home, "data"));
    const descriptors = [openSync("/dev/null", "r"), openSync("/dev/null", "w"), openSync("/dev/null", "w")] as const;
    await expect(planned.run(descriptors)).rejects.toMatchObject({ code: "PATH_CHANGED" });
    for (const descriptor of descriptors) closeSync(descriptor);
    expect(readdirSync(join(world.home, ".ssh"))).toEqual(["key"]);
    expect(leftovers(world)).toEqual([]);
  });

  test("JSON errors for programs", async () => {
    const { stderr, status } = await newWorld().podbot(["sandbox", "--json", "--preset", "@nope", "--", "true"]);
    expect(status).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "PRESET_UNKNOWN", details: { preset: "@nope" } } });
  });

  test("names that would play with the terminal are shown, not obeyed", async () => {
    const world = newWorld();
    const { stderr } = await world.podbot(["sandbox", "--preset", "@\u001b[2J", "--exclude", "x", "--", "true"]);
    expect(stderr).not.toContain("\u001b");
    expect(stderr).toContain("u001b[2J");
  });
});

describe("the project's own configuration", () => {
  test("may narrow without being asked", async () => {
    const world = newWorld();
    world.file("home/project/secret.txt", "secret\n");
    world.file(
      "home/project/.podbot/config.toml",
      '[filesystem]\nexclude = ["secret.txt"]\nro = ["docs"]\n[commands]\ncurl = false\n',
    );
    const { stdout, status } = await world.inside("cat secret.txt; true");
    expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
  });

  test.each([
    ["the network", "network = true\n", "network"],
    ["a writable path", '[filesystem]\nrw = ["~/elsewhere"]\n', "opens"],
    ["a hidden path, by a longer one", '[filesystem]\nro = ["~/.ssh/key"]\n', "opens"],
    ["a private path", '[filesystem]\nro = ["/tmp/podbot-private-*"]\n', "opens"],
    ["a cache of the host's", '[filesystem]\nrw = ["~/.cache/x"]\n', "opens"],
    ["a file, shown as a script", '[commands]\nls = "~/.ssh/key"\n', "commands.ls"],
    ["a preset less", '[filesystem]\npresets = ["!@base"]\n', "!@base"],
    ["a variable", '[environment]\npass = ["TOKEN"]\n', "environment.pass"],
    ["an unguarded command", "[commands]\ngit = true\n", "commands.git"],
  ])("may not widen: %s, until it is trusted as it is", async (_, text, part) => {
    const world = newWorld();
    const place = mkdtempSync("/tmp/podbot-private-");
    onTestFinished(() => rmSync(place, { recursive: true }));
    world.file("home/elsewhere/x");
    world.file("home/.ssh/key", "key\n");
    world.file("home/.cache/x/y");
    const file = world.file("home/project/.podbot/config.toml", text);
    const refused = await world.inside("true");
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain(part);
    expect(refused.stderr).toContain("podbot trust");
    expect((await world.podbot(["trust"])).stdout).toContain(`Trusted as it is now: ${file}`);
    expect((await world.inside("true")).status).toBe(0);
    expect((await world.podbot(["trust", "--list"])).stdout).toContain(file);
    world.file(file, `${text}\n# changed\n`);
    expect((await world.inside("true")).status).toBe(2);
    await world.podbot(["trust"]);
    await world.podbot(["trust", "--revoke"]);
    expect((await world.inside("true")).status).toBe(2);
  });
});

describe("a rule for a path in the project", () => {
  test("may not lead out of it by a link, unless it hides", async () => {
    const world = newWorld();
    world.link("home/project/build", world.file("home/.ssh/key", "key\n"));
    for (const flag of ["--ro", "--rw"]) {
      const { status, stderr } = await world.inside("cat build", flag, "build");
      expect(status).toBe(2);
      expect(stderr).toContain("a link leads out of the working directory");
    }
    expect((await world.inside("true", "--exclude", "build")).status).toBe(0);
  });
});

describe("commands that read the configuration", () => {
  test.each([["config", "show"], ["trust"]])("%s says so where the directory is missing, or HOME", async (...words) => {
    const world = newWorld();
    const missing = await world.podbot([...words, "-C", "nowhere"]);
    expect(missing.status).toBe(2);
    expect(missing.stderr).toContain("There is no directory");
    world.env["HOME"] = undefined;
    const homeless = await world.podbot(words);
    expect(homeless.status).toBe(125);
    expect(homeless.stderr).toContain("HOME is not set");
  });
});

describe("podbot config show", () => {
  test("prints each value with its layer", async () => {
    const world = newWorld();
    const file = world.file(
      "home/.config/podbot/config.yaml",
      "sandbox:\n  grace_seconds: 3\nfilesystem:\n  ro: [a]\n",
    );
    world.env["PODBOT_SANDBOX_ROOT"] = "minimal";
    const { stdout } = await world.podbot(["config", "show"]);
    expect(stdout).toMatch(new RegExp(`sandbox.grace_seconds +3 +\\(global: ${file}\\)`));
    expect(stdout).toMatch(/sandbox.root +"minimal" +\(environment: /);
    expect(stdout).toMatch(/network.mode +"allowlist" +\(default\)/);
    const { config } = JSON.parse((await world.podbot(["config", "show", "--json"])).stdout);
    expect(config.sandbox).toMatchObject({ grace_seconds: 3, root: "minimal" });
  });
});

describe("help and version", () => {
  test("need nothing and say enough", async () => {
    const world = newWorld();
    world.env["HOME"] = undefined;
    world.env["PATH"] = undefined;
    const help = await world.podbot(["--help"]);
    expect(help.status).toBe(0);
    expect(await world.podbot([])).toEqual(help);
    for (const name of ["sandbox", "check", "doctor", "demo", "config", "trust"]) {
      expect(help.stdout).toContain(`  ${name} `);
      const own = await world.podbot([name, "--help"]);
      expect(own.stdout).toContain(`Usage: podbot ${name}`);
      expect(await world.podbot(["help", name])).toEqual(own);
    }
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
    expect((await world.podbot(["--version"])).stdout).toBe(`podbot ${version}\n`);
  });

  test("a mistyped command is answered with the one that was meant", async () => {
    const { status, stderr } = await newWorld().podbot(["sandbx", "--", "true"]);
    expect(status).toBe(2);
    expect(stderr).toContain("Did you mean `podbot sandbox`?");
  });
});

describe("podbot doctor", () => {
  test("says what this machine can enforce", async () => {
    const { status, stdout } = await newWorld().podbot(["doctor"]);
    expect(status).toBe(0);
    for (const name of ["platform", "node", "bubblewrap", "namespaces", "native programs", "git"])
      expect(stdout).toContain(name);
    expect(stdout).toContain("Sandboxes can be started here.");
  });

  test("says what is missing and what mends it", async () => {
    const world = newWorld();
    world.env["PATH"] = "/nonexistent";
    const { status, stdout } = await world.podbot(["doctor", "--json"]);
    expect(status).toBe(125);
    expect(JSON.parse(stdout).findings).toContainEqual({
      name: "bubblewrap",
      state: "missing",
      found: "not on PATH",
      remedy: expect.stringContaining("apt install bubblewrap"),
    });
  });
});

describe("podbot demo", () => {
  test("stages attempts that would all succeed without a wall", async () => {
    const world = newWorld();
    const stage = new Stage(world.env["PATH"] ?? "");
    const server = createServer((socket) => socket.end("reached")).listen(0, "127.0.0.1");
    try {
      await once(server, "listening");
      const child = spawn("sh", ["-c", agentScript()], {
        cwd: stage.repository,
        env: {
          PATH: world.env["PATH"] ?? "",
          HOME: stage.home,
          DEMO_TOKEN: "a secret",
          DEMO_NODE: process.execPath,
          DEMO_PORT: `${(server.address() as AddressInfo).port}`,
        },
      });
      let said = "";
      child.stdout.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
      await once(child, "close");
      // Swapping .git away leaves the last attempt, which needs it, without a repository.
      const failed = said
        .trim()
        .split("\n")
        .filter((line) => !line.endsWith(" 0"));
      expect(failed.map((line) => attempts[Number.parseInt(line, 10)]?.title)).toEqual([
        "throw work away: git reset --hard",
      ]);
    } finally {
      server.close();
      stage[Symbol.dispose]();
    }
  });

  test("shows what was done, what was stopped, by which rule, and the diff", async () => {
    const { status, stdout } = await newWorld().podbot(["demo"]);
    expect(stdout).toContain("The wall held");
    expect(stdout).toMatch(/stopped {2}steal an ssh key .*exclude ~\/\.ssh \(preset @base\)/);
    expect(stdout).toContain("+echo Hello, world");
    expect(status).toBe(0);
    expect(readdirSync("/tmp").filter((name) => name.startsWith("podbot-demo-"))).toEqual([]);
  });
});
