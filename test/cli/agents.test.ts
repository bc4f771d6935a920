import { existsSync, mkdirSync, readdirSync, watch } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { type InstalledAgent, listAgents } from "../../src/keeper/installed.ts";
import { eventually } from "../eventually.ts";
import { newWorld, type World } from "../world.ts";

/** A world in which these agents are scripts, on a PATH of their own with what scripts need. */
function worldWith(scripts: Readonly<Record<string, string>>, directory = "opt/bin"): World {
  const world = newWorld();
  for (const [name, script] of Object.entries(scripts)) {
    world.file(`${directory}/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
  }
  // The machine's own agents are none of ours; its Node is.
  world.link("system/node", process.execPath);
  world.env["PATH"] = [join(world.directory, directory), join(world.directory, "system"), "/usr/bin", "/bin"].join(":");
  return world;
}

async function listed(world: World): Promise<Readonly<Record<string, InstalledAgent>>> {
  const { status, stdout, stderr } = await world.podbot(["agents", "--json"]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return Object.fromEntries((JSON.parse(stdout) as InstalledAgent[]).map((agent) => [agent.name, agent]));
}

describe("podbot agents", () => {
  test("lists every agent of the table, with the command that installs it", async () => {
    const world = worldWith({});
    const found = await listed(world);
    expect(Object.keys(found)).toEqual(agents.map(({ name }) => name));
    for (const { name, program, package: wanted } of agents) {
      expect(found[name]).toMatchObject({
        path: null,
        version: null,
        usable: false,
        problem: `${program} is not on PATH`,
        remedy: `npm install --global ${wanted.name}@${wanted.version}`,
        package: { name: wanted.name, version: wanted.version },
      });
    }
  });

  test("says where one is and what it says of itself", async () => {
    const world = worldWith({
      claude: 'echo "2.1.325 (Claude Code)"',
      codex: "echo codex-cli 0.166.0-alpha.1",
      goose: "echo ' 1.34.0'",
    });
    const found = await listed(world);
    const path = join(world.directory, "opt/bin/claude");
    expect(found["claude"]).toMatchObject({ path, version: "2.1.325", usable: true, problem: null, remedy: null });
    expect(found["codex"]).toMatchObject({ version: "0.166.0-alpha.1", usable: true });
    expect(found["goose"]).toMatchObject({ version: "1.34.0", usable: true });
  });

  test("says which can be hosted, by whom, and what is missing for it", async () => {
    const world = worldWith({
      codex: "echo codex-cli 0.166.0",
      opencode: "echo 1.18.33",
      "claude-agent-acp": "echo 0.99.0",
    });
    const found = await listed(world);
    expect(found["opencode"]?.hosted).toEqual([
      { mode: "acp", program: "opencode", usable: true, problem: null, remedy: null },
    ]);
    expect(found["codex"]?.hosted).toEqual([
      {
        mode: "acp",
        program: "codex-acp",
        usable: false,
        problem: "codex-acp is not on PATH",
        remedy: "npm install --global @agentclientprotocol/codex-acp@2.6.0",
      },
      { mode: "codex_app_server", program: "codex", usable: true, problem: null, remedy: null },
    ]);
    // It brings an agent of its own.
    expect(found["claude"]).toMatchObject({ usable: false, hosted: [{ program: "claude-agent-acp", usable: true }] });
    expect(found["goose"]?.hosted).toMatchObject([{ usable: false, problem: "goose is not on PATH" }]);
    const { stdout } = await world.podbot(["agents"]);
    expect(stdout).toMatch(/^codex +usable +0\.166\.0 +0\.166\.0 +codex_app_server +Codex /m);
    expect(stdout).toMatch(/^opencode +usable .* acp +OpenCode /m);
    expect(stdout).toMatch(/^claude +missing .* acp +Claude Code$/m);
    expect(stdout).toContain("codex-acp is not on PATH → npm install --global @agentclientprotocol/codex-acp@2.6.0");
  });

  test("shows the same as a table", async () => {
    const world = worldWith({ claude: "echo 2.1.325", goose: "echo broken; exit 127" });
    const { stdout } = await world.podbot(["agents"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^AGENT +STATE +VERSION +IMAGE +HOSTED +TITLE +PATH$/);
    expect(lines[1]).toMatch(/^claude +usable +2\.1\.325 +2\.1\.325 +– +Claude Code +\/\S+\/opt\/bin\/claude$/);
    expect(lines[2]).toMatch(/^ {2}claude-agent-acp is not on PATH → npm install --global @agentclientprotocol\//);
    expect(lines[3]).toMatch(/^codex +missing +– +0\.166\.0 +– +Codex$/);
    expect(lines[4]).toBe("  codex is not on PATH → npm install --global @openai/codex@0.166.0");
    expect(stdout).toMatch(/^goose +broken +– .*\n {2}`goose --version` gives no version → apt install libgomp1$/m);
  });

  test("asks with the program's own words, no input, an empty home and its own quiet, and nothing else", async () => {
    const world = worldWith({
      claude: [
        '[ "$*" = "--version" ] || exit 1',
        'read word && exit 2; [ -z "$(ls -A "$HOME")" ] || exit 3; [ "$GH_TOKEN" = "" ] || exit 4',
        '[ "$DISABLE_AUTOUPDATER" = 1 ] || exit 5; echo mine > "$HOME/kept" || exit 6; echo 1.0.0',
      ].join("\n"),
    });
    world.env["GH_TOKEN"] = "secret";
    expect((await listed(world))["claude"]).toMatchObject({ version: "1.0.0", usable: true });
    expect(existsSync(join(world.home, "kept"))).toBe(false);
  });

  test("asks behind a wall: neither the home nor the project can be written, and there is no network", async () => {
    const world = worldWith({});
    const attack = `echo x > ${world.home}/planted; echo x > ${world.project}/planted`;
    world.file(
      "opt/bin/claude",
      `#!/bin/sh\n{ ${attack}; } >&2\n[ "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " ")" = lo ] && echo 1.0.0\n`,
      0o755,
    );
    expect((await listed(world))["claude"]).toMatchObject({ version: "1.0.0" });
    expect(readdirSync(world.project)).toEqual([]);
    expect(existsSync(join(world.home, "planted"))).toBe(false);
    // The control: without a wall the very same script plants both.
    world.outside(join(world.directory, "opt/bin/claude"));
    expect(existsSync(join(world.home, "planted"))).toBe(true);
  });

  test("does not start what lies in the directory that one stands in, unless that is the home", async () => {
    const world = worldWith({ claude: "echo 1.0.0" }, "home/project/node_modules/.bin");
    expect((await listed(world))["claude"]).toMatchObject({
      version: null,
      usable: false,
      problem: "it lies in the directory that you stand in, so it was not started",
    });
    const { stdout } = await world.podbot(["agents", "--json"], { cwd: world.home });
    expect(JSON.parse(stdout)[0]).toMatchObject({ version: "1.0.0", usable: true });
  });

  test("passes over relative directories of PATH", async () => {
    const world = worldWith({ claude: "echo 1.0.0" }, "home/project/bin");
    world.env["PATH"] = "bin:/usr/bin:/bin";
    expect((await listed(world))["claude"]).toMatchObject({ path: null });
  });

  test("says that Node is missing or too old, where an agent needs it", async () => {
    const world = worldWith({ gemini: "echo 0.61.0", claude: "echo 2.1.325" });
    expect((await listed(world))["gemini"]).toMatchObject({ usable: true });
    world.file("old/node", "#!/bin/sh\necho v18.20.1\n", 0o755);
    world.env["PATH"] = `${join(world.directory, "old")}:${world.env["PATH"]}`;
    const found = await listed(world);
    expect(found["gemini"]).toMatchObject({
      version: "0.61.0",
      usable: false,
      problem: "it needs Node 20 or newer on PATH",
    });
    expect(found["claude"]).toMatchObject({ usable: true });
  });

  test("shows no more of what a program prints than a version, and plays no tricks on the reader", async () => {
    const world = worldWith({
      claude: "printf '\\033]0;title\\0077.7.7\\033[2J\\n'",
      codex: "echo nothing of the kind",
      qwen: "yes 1234.5678 | head -c 100000000",
    });
    const found = await listed(world);
    expect(found["claude"]?.version).toBe("7.7.7");
    expect(found["codex"]).toMatchObject({ version: null, usable: false });
    expect(found["qwen"]?.version).toBe("1234.5678");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
    expect((await world.podbot(["agents"])).stdout).not.toMatch(/\u001b/);
  });

  test("waits for none for ever, and for all at once", async () => {
    const world = worldWith(Object.fromEntries(agents.map(({ program }) => [program, "sleep 300; echo 1.0.0"])));
    // One after the other, it would take longer than a test may.
    const found = await listAgents({ env: world.env, cwd: world.project, timeoutMs: 6_000 });
    for (const { usable, version, problem } of found) {
      expect({ usable, version }).toEqual({ usable: false, version: null });
      expect(problem).toContain("gives no version");
    }
  });

  test("leaves nothing in the directory for temporary files", async () => {
    const world = worldWith({ claude: "echo 1.0.0" });
    const own = join(world.directory, "temporary");
    mkdirSync(own);
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = own;
    onTestFinished(() => {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    });
    const made = new Set<string | null>();
    const watcher = watch(own, (_, name) => void made.add(name));
    await listed(world);
    await eventually(() => expect([...made]).toContainEqual(expect.stringMatching(/^podbot-agents-/)));
    watcher.close();
    expect(readdirSync(own)).toEqual([]);
  });

  test("takes no words", async () => {
    expect(await newWorld().podbot(["agents", "claude"])).toMatchObject({ status: 2 });
  });
});
