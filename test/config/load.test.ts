import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Config } from "../../src/config/types.ts";
import { failureOf, loadText, makeScratch } from "./scratch.ts";

/** The sample of Podbot's first design, unedited. */
const sample = `
engine_socket = "unix:///run/user/1000/podman/podman.sock"
image = "ghcr.io/example/podbot-sandbox:latest"

[github]
app_id = 12345
installation_id = 67890
private_key_path = "/home/user/.config/podbot/github-app.pem"

[workspace]
source = "host_mount" # "github_clone" or "host_mount"
base_dir = "/work" # github_clone only
host_path = "/abs/path/to/project" # host_mount only
container_path = "/workspace/project" # defaults to "/workspace"

[creds]
copy_claude = true
copy_codex = true

[sandbox]
privileged = false
mount_dev_fuse = true

[agent]
kind = "codex"
mode = "codex_app_server" # "podbot", "codex_app_server", or "acp"
command = "opencode" # required when kind = "custom"
args = ["acp"] # required when kind = "custom"
env_allowlist = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FACTORY_API_KEY"]
`;

describe("without any file", () => {
  test("the defaults are the configuration", async () => {
    const { config, layers, files, warnings, project } = await makeScratch().load();
    expect(config.network.mode).toBe("allowlist");
    expect(config.commands).toEqual({ git: "@git" });
    expect(layers.map(({ name }) => name)).toEqual(["default"]);
    expect({ files, warnings, project }).toEqual({ files: [], warnings: [], project: undefined });
  });
});

describe("files of earlier designs", () => {
  test("the sample loads, with a word about what is ignored", async () => {
    const { config, warnings } = await loadText("toml", sample);
    expect(config.agent).toEqual({
      kind: "codex",
      mode: "codex_app_server",
      permissive: true,
      command: "opencode",
      args: ["acp"],
      env_allowlist: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FACTORY_API_KEY"],
    });
    expect(config.github.app_id).toBe(12345);
    expect(config.workspace.container_path).toBe("/workspace/project");
    expect(warnings).toEqual(['agent.command and agent.args are ignored: only agent.kind = "custom" reads them']);
  });

  test("a legacy file loads unedited", async () => {
    const { config, warnings } = await loadText("toml", '[workspace]\nbase_dir = "/work"\n[agent]\nmode = "podbot"\n');
    expect(config.workspace).toEqual({ source: "github_clone", base_dir: "/work", container_path: "/workspace" });
    expect(warnings).toEqual([]);
  });
});

describe("the layers", () => {
  test("stand in order: defaults, global, project, environment, flags", async () => {
    const scratch = makeScratch();
    const global = scratch.inHome(".config/podbot/config.toml", 'filesystem.ro = ["g"]\nsandbox.grace_seconds = 1\n');
    const project = scratch.inProject(
      ".podbot/config.yaml",
      "filesystem: {ro: [p]}\nsandbox: {grace_seconds: 2, root: minimal}\n",
    );
    const { config, layers, files, origins } = await scratch.load({
      env: { PODBOT_FILESYSTEM_RO: "e", PODBOT_SANDBOX_GRACE_SECONDS: "3" },
      overrides: { filesystem: { ro: ["f"] }, sandbox: { grace_seconds: 4 } },
    });
    expect(config.filesystem.ro).toEqual(["g", "p", "e", "f"]);
    expect(config.sandbox).toMatchObject({ grace_seconds: 4, root: "minimal" });
    expect(layers.map(({ name, source, trusted }) => [name, source, trusted])).toEqual([
      ["default", "built in", true],
      ["global", global, true],
      ["project", project, false],
      ["environment", "PODBOT_* environment", true],
      ["flag", "command line", true],
    ]);
    expect(files).toEqual([global, project]);
    expect(origins.filter(({ key }) => key === "filesystem.ro").map(({ layer }) => layer)).toEqual([
      "global",
      "project",
      "environment",
      "flag",
    ]);
  });

  test("find the global file where XDG says, or where PODBOT_CONFIG_PATH points", async () => {
    const scratch = makeScratch();
    scratch.inHome(".config/podbot/config.toml", 'image = "home"');
    scratch.inHome("xdg/podbot/config.jsonc", '{ "image": "xdg" /* chosen */ }');
    scratch.inProject("mine.yml", "image: named");
    const imageWith = async (env: Record<string, string>) => (await scratch.load({ env })).config.image;
    const XDG_CONFIG_HOME = join(scratch.home, "xdg");
    expect(await imageWith({})).toBe("home");
    expect(await imageWith({ XDG_CONFIG_HOME })).toBe("xdg");
    expect(await imageWith({ XDG_CONFIG_HOME, PODBOT_CONFIG_PATH: "mine.yml" })).toBe("named");
    expect(await imageWith({ XDG_CONFIG_HOME, PODBOT_CONFIG_PATH: "" })).toBe("xdg");
  });

  test("take a file named by --config, which is trusted, in place of the project's", async () => {
    const scratch = makeScratch();
    scratch.inProject(".podbot/config.toml", 'image = "project"');
    const named = scratch.inProject("conf/other.toml", "network = true");
    const loaded = await scratch.load({ configFile: "conf/other.toml" });
    expect(loaded.config.network.mode).toBe("open");
    expect(loaded.config.image).toBeUndefined();
    expect(loaded.layers.at(-1)).toMatchObject({ name: "project", source: named, trusted: true });
    expect(loaded.project).toBeUndefined();
  });

  test.each(["toml", "yaml", "json"])("read a reference to a secret in %s", async (format) => {
    const text = {
      toml: 'secrets.T.env = "T"\nenvironment.set.A = "!secret T"\nenvironment.set.B = "!secret? T"',
      yaml: 'secrets: {T: {env: T}}\nenvironment:\n  set:\n    A: !secret T\n    B: "!secret? T"',
      json: '{"secrets": {"T": {"env": "T"}}, "environment": {"set": {"A": "!secret T", "B": "!secret? T"}}}',
    }[format] as string;
    expect((await loadText(format, text)).config.environment.set).toEqual({
      A: { kind: "secret", name: "T", optional: false },
      B: { kind: "secret", name: "T", optional: true },
    });
  });

  test("keep literals of flags that look like references", async () => {
    const value = { kind: "literal" as const, value: "!secret T" };
    const { config } = await makeScratch().load({ overrides: { environment: { set: { TITLE: value } } } });
    expect(config.environment.set["TITLE"]).toEqual(value);
  });

  test("pass warnings on", async () => {
    const { warnings, layers } = await makeScratch().load({ env: { PODBOT_NETWROK: "x" } });
    expect(warnings).toEqual(["PODBOT_NETWROK is ignored: there is no such setting; did you mean PODBOT_NETWORK?"]);
    expect(layers.map(({ name }) => name)).toEqual(["default"]);
  });
});

describe("what is wrong", () => {
  test("in any layer is told in one error", async () => {
    const scratch = makeScratch();
    const global = scratch.inHome(".config/podbot/config.toml", 'imge = "x"\nsandbox.nesting = 1979-05-27\n');
    const project = scratch.inProject(
      ".podbot/config.json",
      '{"agent": {"mode": "codex_app_server"}, "commands": {"npm": null}}',
    );
    const error = await failureOf(
      scratch.load({ env: { PODBOT_SANDBOX_WALL: "brick" }, overrides: { sandbox: { grace_seconds: -1 } } }),
    );
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message.split("\n")).toEqual([
      "6 problems in the configuration:",
      `  ${global}: imge: is not a known key; did you mean image?`,
      `  ${global}: sandbox.nesting = a date: is not true or false; write one of the two, without quotes`,
      `  ${project}: commands.npm = null: is not a rule for a command; write true, false, "@git" or the path of a script`,
      '  PODBOT_* environment: PODBOT_SANDBOX_WALL = "brick": is not one of auto, bubblewrap, engine; choose one of these',
      "  command line: sandbox.grace_seconds = -1: is not a number from 0 to 3600; write the digits, without quotes",
      `  ${project}: agent.mode = "codex_app_server": is not a mode of agent.kind = "claude"; use podbot or acp, or another agent.kind`,
    ]);
  });

  test("is SECRET_MISSING when only secrets are", async () => {
    const missing = 'environment.set.A = "!secret NOPE"\n';
    expect((await failureOf(loadText("toml", missing))).code).toBe("SECRET_MISSING");
    expect((await failureOf(loadText("toml", `${missing}imag = 1`))).code).toBe("CONFIG_INVALID");
  });

  test.each([
    ["toml", "github.app_id = 9223372036854775807", "github.app_id = 9223372036854775807: is not a whole number"],
    ["toml", "github.app_id = 99999999999999999999", "github.app_id = 99999999999999999999: is not a whole number"],
    ["toml", "github.app_id = inf", "github.app_id = Infinity: is not a whole number"],
    ["toml", "github.app_id = 07:32:00", "github.app_id = a date: is not a whole number"],
    ["json", '{"github": {"app_id": 1e400}}', "github.app_id = Infinity: is not a whole number"],
    ["yaml", "github: {app_id: .nan}", "github.app_id = NaN: is not a whole number"],
    ["yaml", "github: {app_id: 2001-12-14}", 'github.app_id = "2001-12-14": is not a whole number'],
  ])("in %s may be an odd value: %s", async (format, text, message) => {
    expect((await failureOf(loadText(format, text))).message).toContain(message);
  });
});

describe("a file that", () => {
  test("lies beside another is ambiguous, and both are named", async () => {
    const scratch = makeScratch();
    const jsonc = scratch.inHome(".config/podbot/config.jsonc", "{}");
    const toml = scratch.inHome(".config/podbot/config.toml", "");
    const error = await failureOf(scratch.load());
    expect(error.code).toBe("CONFIG_AMBIGUOUS");
    expect(error.message).toBe(`${jsonc} and ${toml} lie side by side.`);
  });

  test("is a directory is not meant", async () => {
    const scratch = makeScratch();
    mkdirSync(join(scratch.cwd, ".podbot/config.toml"), { recursive: true });
    scratch.inProject(".podbot/config.json", '{"sandbox": {"root": "minimal"}}');
    scratch.inProject(".podbot/config.txt", "not a format");
    scratch.inProject(".podbot/other.toml", "not the name");
    expect((await scratch.load()).config.sandbox.root).toBe("minimal");
  });

  test("stands where the directory should be is no configuration", async () => {
    const scratch = makeScratch();
    scratch.inProject(".podbot", "a file");
    expect((await scratch.load()).files).toEqual([]);
  });

  test.each([
    ["--config", { configFile: "nope.toml" }],
    ["PODBOT_CONFIG_PATH", { env: { PODBOT_CONFIG_PATH: "/nope.toml" } }],
  ])("was named by %s must exist", async (named, options) => {
    const error = await failureOf(makeScratch().load(options));
    expect(error.code).toBe("CONFIG_NOT_FOUND");
    expect(error.message).toContain(`nope.toml, named by ${named}, does not exist.`);
  });

  test.each([
    ["conf.txt", "has a name that ends in none of .toml, .jsonc, .json, .yaml, .yml"],
    ["dir.toml", "is not a regular file"],
  ])("was named but is %s is refused", async (name, message) => {
    const scratch = makeScratch();
    scratch.inProject("conf.txt", "x");
    mkdirSync(join(scratch.cwd, "dir.toml"));
    const error = await failureOf(scratch.load({ configFile: name }));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toBe(`${join(scratch.cwd, name)} ${message}`);
  });

  test("is a named pipe is refused instead of waited for", async () => {
    const scratch = makeScratch();
    mkdirSync(join(scratch.cwd, ".podbot"));
    execFileSync("mkfifo", [join(scratch.cwd, ".podbot/config.toml")]);
    expect((await failureOf(scratch.load())).message).toContain("is not a regular file");
  });

  test("never ends is refused after the first mebibyte", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", "#".repeat((1 << 20) + 1));
    const error = await failureOf(scratch.load());
    expect(error.message).toBe(`${file} is larger than 1 MiB, which no configuration needs`);
    scratch.inProject(".podbot/config.toml", "#".repeat(1 << 20));
    expect((await scratch.load()).files).toEqual([file]);
  });

  test("is a link to nothing is refused, since it may have held restrictions", async () => {
    const scratch = makeScratch();
    mkdirSync(join(scratch.home, ".config/podbot"), { recursive: true });
    symlinkSync(join(scratch.home, "nope"), join(scratch.home, ".config/podbot/config.toml"));
    const error = await failureOf(scratch.load());
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toContain("cannot be opened: ENOENT");
  });

  test("cannot be parsed is named with its line", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", "a = 1\n= 2\n");
    const error = await failureOf(scratch.load());
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toContain(`${file}:2 is not valid TOML`);
    expect(error.details).toEqual({ file, line: 2 });
  });

  // Root reads everything, so there only a link that leads to itself cannot be read.
  test("lies in a directory that cannot be listed is not passed over", async () => {
    const scratch = makeScratch();
    const directory = join(scratch.cwd, ".podbot");
    if (process.getuid?.() === 0) symlinkSync(directory, directory);
    else {
      mkdirSync(directory);
      chmodSync(directory, 0);
    }
    const error = await failureOf(scratch.load());
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toMatch(/cannot be listed: (ELOOP|EACCES)/);
  });
});

describe("what a command says by itself", () => {
  const complete = ({ agent }: Config) => (agent.mode === "podbot" ? { agent: { mode: "acp" } as const } : {});

  test("comes after all layers, which it knows, and is checked with them", async () => {
    const scratch = makeScratch();
    const { config, origins } = await scratch.load({ complete, overrides: { acp: { delegation: "allow_fs" } } });
    expect(config.agent.mode).toBe("acp");
    expect(origins.find(({ key }) => key === "agent.mode")).toMatchObject({ layer: "flag", source: "this command" });
    const wrong = scratch.load({ complete: () => ({ agent: { mode: "codex_app_server" } }) });
    await expect(wrong).rejects.toThrow('this command: agent.mode = "codex_app_server": is not a mode of');
  });

  test("is nothing where it has nothing to say", async () => {
    const { config, layers } = await makeScratch().load({ complete, overrides: { agent: { mode: "acp" } } });
    expect(config.agent.mode).toBe("acp");
    expect(layers.map(({ source }) => source)).not.toContain("this command");
  });
});
