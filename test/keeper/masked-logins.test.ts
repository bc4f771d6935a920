// @module-tag security
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { PartialConfig } from "../../src/config/types.ts";
import { loginNames, maskLogins } from "../../src/keeper/masked-logins.ts";
import type { Operation } from "../../src/plan/plan.ts";
import { planFor } from "../plan/ordinary.ts";

const directory = realpathSync.native(mkdtempSync(join(tmpdir(), "podbot-logins-")));
afterAll(() => rmSync(directory, { recursive: true }));

function homeWith(files: Readonly<Record<string, string>>): string {
  const home = mkdtempSync(join(directory, "home-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), content);
  }
  return home;
}

const why = "";
const root: Operation = { kind: "bind", source: "/", target: "/", access: "ro", identity: null, why };

/** What is laid over files of a home, by name. */
function laid(home: string, names: readonly string[], ...operations: readonly Operation[]) {
  const plan = { ...planFor([], {}), operations: [root, ...operations] };
  const files = maskLogins(plan, home, names, (real) => real.toUpperCase());
  return Object.fromEntries(files.map(({ target, bytes }) => [target.slice(home.length + 1), `${Buffer.from(bytes)}`]));
}

const login = '{"OPENAI_API_KEY":"abc","auth_mode":"x"}';

describe("over a login that the home shows", () => {
  test("lies one with surrogates, and over those of others one without any token", () => {
    const home = homeWith({ ".codex/auth.json": login, ".qwen/.env": "OPENAI_API_KEY=abc\nOPENAI_MODEL=m\n" });
    const files = laid(home, [".codex"]);
    expect(JSON.parse(files[".codex/auth.json"] ?? "")).toEqual({ OPENAI_API_KEY: "ABC", auth_mode: "x" });
    expect(files[".qwen/.env"]).toBe("OPENAI_MODEL=m\n");
    expect(laid(home, [".qwen/.env"])[".qwen/.env"]).toBe("OPENAI_API_KEY=ABC\nOPENAI_MODEL=m\n");
  });

  test("lies nothing that could be read, where it is not what it should be", () => {
    const home = homeWith({ ".codex/auth.json": "OPENAI_API_KEY=abc" });
    expect(laid(home, [".codex"])).toEqual({ ".codex/auth.json": "" });
  });

  test("lies a copy where a link leads to", () => {
    const home = homeWith({ "dotfiles/auth.json": login });
    symlinkSync("dotfiles", join(home, ".codex"));
    expect(Object.keys(laid(home, [".codex"]))).toEqual(["dotfiles/auth.json"]);
  });
});

describe("over what is left of a login", () => {
  test("lies nothing that could be read, and over its neighbours nothing at all", () => {
    const key = '{"primaryApiKey":"abc"}';
    const home = homeWith({
      ...{ ".claude.json": key, ".claude.json.backup": key, ".claude.json.backup.1700000000000": key },
      ...{ ".claude/backups/.claude.json.backup.1": key, ".claude/.credentials.json.bak": key },
      ...{ ".codex/auth.json~": login, ".claude.jsonc": key, ".codex/author.json": "", notes: key },
    });
    symlinkSync("notes", join(home, ".claude.json.old"));
    const { ".claude.json": masked = "", ...others } = laid(home, [".claude", ".claude.json"]);
    expect(JSON.parse(masked)).toEqual({ primaryApiKey: "ABC" });
    expect(others).toEqual({
      ...{ ".claude.json.backup": "", ".claude.json.backup.1700000000000": "", notes: "" },
      ...{ ".claude/backups/.claude.json.backup.1": "", ".claude/.credentials.json.bak": "", ".codex/auth.json~": "" },
    });
  });

  test("lies nothing twice, nor where it is not seen", () => {
    const home = homeWith({ ".codex/auth.json": login, ".codex/auth.json.bak/x": login });
    symlinkSync("auth.json", join(home, ".codex/auth.json.link"));
    expect(Object.keys(laid(home, [".codex"]))).toEqual([".codex/auth.json"]);
    const old = homeWith({ ".codex/auth.json.old": login });
    expect(laid(old, [], { kind: "mask", target: join(old, ".codex/auth.json.old"), why })).toEqual({});
  });
});

describe("nothing is laid over a login", () => {
  test("that is a directory", () => {
    const home = homeWith({ ".codex/auth.json/x": login });
    expect(laid(home, [".codex"])).toEqual({});
  });

  test("that is not there, is hidden, or lies in a directory that begins empty", () => {
    const home = homeWith({ ".codex/auth.json": login });
    const path = join(home, ".codex/auth.json");
    const fresh: Operation = { kind: "tmpfs", target: join(home, ".codex"), mode: 0o755, why };
    expect(laid(homeWith({}), [".codex"])).toEqual({});
    expect(laid(home, [".codex"], { kind: "mask", target: path, why })).toEqual({});
    expect(laid(home, [".codex"], fresh)).toEqual({});
    // Unless it is shown there, itself or as a copy.
    const bound: Operation = { kind: "bind", source: path, target: path, access: "rw", identity: null, why };
    expect(Object.keys(laid(home, [".codex"], fresh, bound))).toEqual([".codex/auth.json"]);
    const copied: Operation = { kind: "copy", source: path, target: path, identity: null, why };
    expect(Object.keys(laid(home, [".codex"], fresh, copied))).toEqual([".codex/auth.json"]);
  });

  test("where another directory is mounted over the home", () => {
    const home = homeWith({ ".codex/auth.json": login });
    const other: Operation = { kind: "bind", source: homeWith({}), target: home, access: "rw", identity: null, why };
    expect(laid(home, [".codex"], other)).toEqual({});
  });
});

describe("a login is the agent's own", () => {
  const names = (value: PartialConfig, command: string, session: boolean) => {
    const { config } = mergeLayers([defaultLayer(), { name: "global", source: "test", trusted: true, value }]);
    return loginNames(config, { ...planFor([], {}), command: [command] }, session);
  };

  test("by the configuration in a session, unless the owner keeps it outside", () => {
    expect(names({ agent: { kind: "codex" } }, "/x/anything", true)).toEqual([".codex"]);
    expect(names({ agent: { kind: "codex" }, creds: { copy_codex: false } }, "codex", true)).toEqual([]);
  });

  test("by the program elsewhere", () => {
    expect(names({}, "/usr/bin/codex", false)).toEqual([".codex"]);
    expect(names({}, "make", false)).toEqual([]);
  });
});
