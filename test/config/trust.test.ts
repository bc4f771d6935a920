// @module-tag security
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listTrusted, revokeTrust, trustProject } from "../../src/config/trust.ts";
import { FilesystemError } from "../../src/errors.ts";
import { failureOf, makeScratch, type Scratch } from "./scratch.ts";

const widening = "network = true\n";
const optionsOf = ({ home }: Scratch) => ({ env: {}, home });
const recordsOf = ({ home }: Scratch) => join(home, ".local/state/podbot/trust.json");

describe("a project file that widens", () => {
  test("is refused until the owner trusts it", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    const error = await failureOf(scratch.load());
    expect(error.code).toBe("CONFIG_UNTRUSTED");
    expect(error.message).toContain(file);
    expect(error.message).toContain('network.mode = "open"');

    await trustProject(file, optionsOf(scratch));
    const { config, layers, project } = await scratch.load();
    expect(config.network.mode).toBe("open");
    expect(layers.every(({ trusted }) => trusted)).toBe(true);
    expect(project).toMatchObject({ file, trusted: true });
    expect(project?.widenings.map(({ key }) => key)).toEqual(["network.mode"]);
  });

  test("is refused again when it changes, and when trust is taken back", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    await trustProject(file, optionsOf(scratch));
    scratch.inProject(".podbot/config.toml", `${widening}sandbox.nesting = true\n`);
    expect((await failureOf(scratch.load())).code).toBe("CONFIG_UNTRUSTED");
    scratch.inProject(".podbot/config.toml", widening);
    await scratch.load();
    expect(await revokeTrust(file, optionsOf(scratch))).toBe(true);
    expect((await failureOf(scratch.load())).code).toBe("CONFIG_UNTRUSTED");
    expect(await revokeTrust(file, optionsOf(scratch))).toBe(false);
  });

  test("can be looked at without being trusted", async () => {
    const scratch = makeScratch();
    scratch.inProject(".podbot/config.toml", widening);
    const { project, layers } = await scratch.load({ acceptProject: true });
    expect(project).toMatchObject({ trusted: false, widenings: [{ key: "network.mode", value: "open" }] });
    expect(layers.at(-1)?.trusted).toBe(false);
  });

  test("is measured against what the owner's own file grants", async () => {
    const scratch = makeScratch();
    scratch.inHome(".config/podbot/config.toml", "network = true\n");
    scratch.inProject(".podbot/config.toml", widening);
    expect((await scratch.load()).project?.widenings).toEqual([]);
  });

  test("is not excused by flags that grant the same", async () => {
    const scratch = makeScratch();
    scratch.inProject(".podbot/config.toml", widening);
    expect((await failureOf(scratch.load({ overrides: { network: true } }))).code).toBe("CONFIG_UNTRUSTED");
  });

  test("is told what is wrong with it before it is told that it is not trusted", async () => {
    const scratch = makeScratch();
    scratch.inProject(".podbot/config.toml", `${widening}nope = 1\n`);
    expect((await failureOf(scratch.load())).code).toBe("CONFIG_INVALID");
  });
});

describe("a project file that only narrows", () => {
  test("needs no trust, and its paths are marked for the plan to judge", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", 'filesystem.rw = ["/"]\ncommands.rm = false\n');
    const { layers, project } = await scratch.load();
    expect(layers.at(-1)).toMatchObject({ name: "project", trusted: false });
    expect(project).toMatchObject({ file, trusted: false, widenings: [] });
    expect(existsSync(recordsOf(scratch))).toBe(false);
  });
});

describe("trust", () => {
  test("does not pass from one project to another through a link", async () => {
    const trusted = makeScratch();
    await trustProject(trusted.inProject(".podbot/config.toml", widening), optionsOf(trusted));
    await trusted.load();

    const whole = join(trusted.home, "evil-directory");
    mkdirSync(whole);
    symlinkSync(join(trusted.cwd, ".podbot"), join(whole, ".podbot"));
    expect((await failureOf(trusted.load({ cwd: whole }))).code).toBe("CONFIG_UNTRUSTED");

    const single = join(trusted.home, "evil-file");
    mkdirSync(join(single, ".podbot"), { recursive: true });
    symlinkSync(join(trusted.cwd, ".podbot/config.toml"), join(single, ".podbot/config.toml"));
    expect((await failureOf(trusted.load({ cwd: single }))).code).toBe("CONFIG_UNTRUSTED");
  });

  test("holds by whatever link the project is reached", async () => {
    const scratch = makeScratch();
    await trustProject(scratch.inProject(".podbot/config.toml", widening), optionsOf(scratch));
    const link = join(scratch.home, "link");
    symlinkSync(scratch.cwd, link);
    expect((await scratch.load({ cwd: link })).project?.trusted).toBe(true);
  });

  test("is given to what was reviewed, and to nothing newer", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    const { project } = await scratch.load({ acceptProject: true });
    const hash = project?.hash as string;
    scratch.inProject(".podbot/config.toml", `${widening}# changed\n`);
    const error = await failureOf(trustProject(file, { ...optionsOf(scratch), hash }));
    expect(error.message).toContain("has changed since it was reviewed");
    scratch.inProject(".podbot/config.toml", widening);
    expect(await trustProject(file, { ...optionsOf(scratch), hash })).toEqual({ file, hash });
  });

  test("is recorded where only the owner can write, one record for each file", async () => {
    const scratch = makeScratch();
    mkdirSync(join(scratch.home, ".local/state/podbot"), { recursive: true, mode: 0o755 });
    const file = scratch.inProject(".podbot/config.toml", widening);
    await trustProject(file, optionsOf(scratch));
    scratch.inProject(".podbot/config.toml", "");
    const second = await trustProject(file, optionsOf(scratch));
    expect(await listTrusted(optionsOf(scratch))).toEqual([second]);
    const records = recordsOf(scratch);
    expect(statSync(records).mode & 0o777).toBe(0o600);
    expect(statSync(join(records, "..")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(records, ".."))).toEqual(["trust.json"]);
  });

  test("lies where XDG_STATE_HOME says", async () => {
    const scratch = makeScratch();
    const env = { XDG_STATE_HOME: join(scratch.home, "state") };
    await trustProject(scratch.inProject(".podbot/config.toml", widening), { env, home: scratch.home });
    expect((await scratch.load({ env })).project?.trusted).toBe(true);
    expect(readFileSync(join(scratch.home, "state/podbot/trust.json"), "utf8")).toContain(scratch.cwd);
    expect((await failureOf(scratch.load())).code).toBe("CONFIG_UNTRUSTED");
  });

  test("in a project that is gone can still be taken back", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    await trustProject(file, optionsOf(scratch));
    rmSync(scratch.cwd, { recursive: true });
    expect(await revokeTrust(file, optionsOf(scratch))).toBe(true);
    expect(await listTrusted(optionsOf(scratch))).toEqual([]);
  });

  test("of nothing is an empty list", async () => {
    expect(await listTrusted(optionsOf(makeScratch()))).toEqual([]);
  });
});

describe("records that are not sound", () => {
  test.each([
    ["not JSON", "{"],
    ["another version", '{"version": 2, "trusted": []}'],
    ["not a list", '{"version": 1, "trusted": {}}'],
    ["a record without a hash", '{"version": 1, "trusted": [{"file": "/x"}]}'],
    ["a list", "[]"],
    ["nothing", ""],
  ])("stop the run instead of granting or forgetting: %s", async (_, content) => {
    const scratch = makeScratch();
    scratch.inHome(".local/state/podbot/trust.json", content);
    scratch.inProject(".podbot/config.toml", "");
    const error = await scratch.load().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FilesystemError);
    expect(error).toMatchObject({ code: "FILESYSTEM", hint: "Remove the file and trust your projects again." });
  });

  test("are refused when others could have written them", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    await trustProject(file, optionsOf(scratch));
    chmodSync(recordsOf(scratch), 0o666);
    await expect(scratch.load()).rejects.toThrow("could have been written by someone else");
  });

  test("that cannot be opened or written are named", async () => {
    const scratch = makeScratch();
    const file = scratch.inProject(".podbot/config.toml", widening);
    mkdirSync(join(recordsOf(scratch), ".."), { recursive: true });
    symlinkSync(recordsOf(scratch), recordsOf(scratch));
    await expect(scratch.load()).rejects.toThrow("cannot be read: ELOOP");
    rmSync(recordsOf(scratch));
    mkdirSync(recordsOf(scratch));
    await expect(scratch.load()).rejects.toThrow("cannot be read: EISDIR");
    rmSync(join(scratch.home, ".local"), { recursive: true });
    writeFileSync(join(scratch.home, ".local"), "");
    await expect(trustProject(file, optionsOf(scratch))).rejects.toThrow("cannot be written");
  });
});
