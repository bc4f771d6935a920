import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Layer, LayerName, PartialConfig } from "../../src/config/types.ts";
import { PolicyError } from "../../src/errors.ts";
import { collectRules, elsewhereRules, ownRules, presetsOf, writableBy } from "../../src/keeper/rules.ts";
import { choosePresets } from "../../src/policy/presets.ts";
import { failure } from "../failure.ts";

const from = { home: "/home/u", cwd: "/home/u/project" };

function layer(name: LayerName, filesystem: PartialConfig["filesystem"], more: Partial<Layer> = {}): Layer {
  return {
    name,
    source: `${name}'s source`,
    trusted: true,
    value: filesystem === undefined ? {} : { filesystem },
    ...more,
  };
}

describe("the rules of a layer", () => {
  test("are what it says of paths, in the order of access", () => {
    const rules = collectRules(
      [layer("global", { exclude: ["~/x"], ro: ["a", "../b"], rw: ["/c"] })],
      [],
      "host",
      from,
    );
    expect(rules).toEqual(
      [
        { access: "rw", pattern: "/c", written: "/c" },
        { access: "ro", pattern: "/home/u/project/a", written: "a" },
        { access: "ro", pattern: "/home/u/b", written: "../b" },
        { access: "exclude", pattern: "/home/u/x", written: "~/x" },
      ].map((rule) => ({ ...rule, layer: "global", origin: "global's source", trusted: true })),
    );
  });

  test("are patterns by their own letters, not by those of where they are read from", () => {
    const value = { exclude: ["secret", "*.key"] };
    const rules = collectRules([layer("flag", value)], [], "host", { home: "/home/u", cwd: "/home/u/[id]" });
    expect(rules).toMatchObject([
      { pattern: "/home/u/[id]/secret", written: "secret" },
      { pattern: "/home/u/[[]id]/*.key", written: "*.key", glob: true },
    ]);
    expect(rules[0]).not.toHaveProperty("glob");
  });

  test("follow those of the layers before it", () => {
    const layers = [layer("global", { ro: ["g"] }), layer("project", { rw: ["p"] }), layer("flag", { exclude: ["f"] })];
    expect(collectRules(layers, [], "host", from).map((rule) => rule.layer)).toEqual(["global", "project", "flag"]);
  });

  test("name the flag by which they were given", () => {
    const rules = collectRules([layer("flag", { ro: ["a"], rw: ["b"], exclude: ["c"] })], [], "host", from);
    expect(rules.map(({ origin }) => origin)).toEqual(["--rw", "--ro", "--exclude"]);
  });

  test("are as trusted as the layer is", () => {
    const rules = collectRules([layer("project", { rw: ["~/data"] }, { trusted: false })], [], "host", from);
    expect(rules).toMatchObject([{ trusted: false }]);
  });

  test("are none where it says nothing", () => {
    expect(collectRules([layer("global", undefined), layer("flag", {})], [], "host", from)).toEqual([]);
  });

  test.each([
    ["[a", "PATTERN_INVALID"],
    ["", "PATH_REFUSED"],
    ["~other/x", "PATH_REFUSED"],
  ])("are refused where a path is %j", (path, code) => {
    const error = failure(PolicyError, () => collectRules([layer("flag", { exclude: [path] })], [], "host", from));
    expect(error.code).toBe(code);
  });
});

describe("the rules of presets", () => {
  test("come before all layers", () => {
    const rules = collectRules([layer("flag", { ro: ["a"] })], choosePresets(["!@all", "@lint/go"]), "host", from);
    expect(rules.map(({ layer: name }) => name)).toEqual([
      "default",
      "default",
      "default",
      "default",
      "default",
      "flag",
    ]);
  });

  test("know the home, the working directory and the sandbox's own directories", () => {
    const rules = collectRules([], choosePresets(["!@all", "@base", "@caches"]), "host", from);
    const rest = { layer: "default", trusted: true };
    expect(rules).toContainEqual({ access: "rw", pattern: from.cwd, written: ".", origin: "preset @base", ...rest });
    expect(rules).toContainEqual({ access: "ro", pattern: from.home, written: "~", origin: "preset @base", ...rest });
    expect(rules).toContainEqual({
      access: "rw",
      pattern: "/home/u/.cache",
      written: "~/.cache",
      origin: "preset @caches",
      own: "cache",
      ...rest,
    });
  });

  test("know which directories begin empty, for whom, and what is copied there", () => {
    const rules = collectRules([], choosePresets(["!@all", "@agents"]), "host", from);
    const rule = (written: string) => rules.find((each) => each.written === written);
    expect(rule("~/.codex")).toMatchObject({ pattern: "/home/u/.codex", fresh: { program: "codex", covers: true } });
    expect(rule("~/.claude")?.fresh).toEqual({ program: "claude" });
    expect(rule("~/.codex/config.toml")).toMatchObject({ access: "ro", copied: true });
    expect(rule("~/.codex/hooks.json")).not.toHaveProperty("copied");
  });

  test("say which of them only protect", () => {
    const rules = collectRules([], choosePresets(["!@all", "@base", "@lint/ts"]), "host", from);
    expect(rules.find(({ written }) => written === "tsconfig.json")).toMatchObject({ access: "ro", guard: true });
    expect(rules.find(({ written }) => written === "~")).not.toHaveProperty("guard");
  });

  test("in a minimal root leave the home out, since the host's is not there", () => {
    const rules = collectRules([], choosePresets([]), "minimal", from);
    expect(rules.filter(({ written }) => written.startsWith("~"))).toEqual([]);
    expect(rules).toContainEqual(expect.objectContaining({ access: "rw", pattern: from.cwd }));
    expect(rules).toContainEqual(expect.objectContaining({ access: "exclude", pattern: "/etc/shadow" }));
    expect(rules).toContainEqual(expect.objectContaining({ access: "ro", pattern: `${from.cwd}/tsconfig.json` }));
  });
});

describe("the presets of a configuration", () => {
  test("are those of @all where no layer says anything", () => {
    expect(presetsOf([layer("global", undefined)])).toEqual(choosePresets([]));
  });

  test("are changed by one layer after the other", () => {
    const layers = [
      layer("global", { presets: ["!@git", "@git-strict"] }),
      layer("flag", { presets: ["@git", "!@caches"] }),
    ];
    expect(presetsOf(layers)).toEqual(choosePresets(["@git-strict", "!@caches"]));
  });
});

describe("the rules for stores that lie elsewhere", () => {
  const lines = (systemHome: string, env: Readonly<Record<string, string | undefined>> = {}) =>
    elsewhereRules(from, systemHome, env).map(({ access, pattern, written }) => `${access} ${pattern} (${written})`);

  test("are none where nothing lies elsewhere", () => {
    expect(lines("/home/u", { HOME: "/home/u", KUBECONFIG: undefined, NETRC: "" })).toEqual([]);
  });

  test("hide what a variable names, each of several, with its own name", () => {
    expect(lines("/home/u", { KUBECONFIG: "/k/a:/k/b/", GNUPGHOME: "/g", CARGO_HOME: "/c" })).toEqual([
      "exclude /c/credentials ($CARGO_HOME/credentials)",
      "exclude /c/credentials.toml ($CARGO_HOME/credentials.toml)",
      "exclude /g ($GNUPGHOME)",
      "exclude /k/a ($KUBECONFIG)",
      "exclude /k/b ($KUBECONFIG)",
    ]);
  });

  test("pass over what is no absolute path", () => {
    expect(lines("/home/u", { KUBECONFIG: "relative:~/x", GNUPGHOME: "." })).toEqual([]);
  });

  test("hide the stores of the home that the system knows, where HOME is another", () => {
    expect(lines("/root")).toContain("exclude /root/.ssh (/root/.ssh)");
    expect(lines("/root").every((line) => line.startsWith("exclude /root/"))).toBe(true);
  });

  test.each(["/", ""])("know no stores in a home like %j", (systemHome) => {
    expect(lines(systemHome)).toEqual([]);
  });

  test("are the preset's, and trusted", () => {
    for (const rule of elsewhereRules(from, "/root", {})) {
      expect(rule).toMatchObject({ layer: "default", origin: "preset @base", trusted: true });
    }
  });
});

describe("Podbot's own rules", () => {
  const rules = ownRules(from, {
    configDirectory: "/home/u/.config/podbot",
    stateDirectories: ["/home/u/.local/state/podbot", "/home/u/.local/state/podbot/held"],
    configFiles: ["/home/u/project/.podbot/config.toml", "/elsewhere/podbot.toml"],
    installation: ["/opt/podbot/dist"],
    scripts: ["/home/u/project/tools/npm.sh"],
  });

  test("keep what Podbot obeys and executes outside, whoever asks", () => {
    expect(rules.map(({ access, pattern }) => `${access} ${pattern}`)).toEqual([
      "ro /home/u/project/.podbot",
      "ro /home/u/.config/podbot",
      "ro /home/u/.local/state/podbot",
      "ro /home/u/.local/state/podbot/held",
      "ro /home/u/project/.podbot/config.toml",
      "ro /elsewhere/podbot.toml",
      "ro /opt/podbot/dist",
      "ro /home/u/project/tools/npm.sh",
    ]);
    for (const rule of rules) expect(rule).toMatchObject({ layer: "podbot", trusted: true, guard: true });
  });

  test("keep the directories that it obeys from being made", () => {
    const held = rules.filter(({ placeholder }) => placeholder !== undefined);
    expect(held.map(({ pattern, placeholder }) => [pattern, placeholder])).toEqual([
      ["/home/u/project/.podbot", { kind: "directory" }],
      ["/home/u/.config/podbot", { kind: "directory" }],
      ["/home/u/.local/state/podbot", { kind: "directory" }],
      ["/home/u/.local/state/podbot/held", { kind: "directory" }],
    ]);
  });
});

describe("before anything is planned, an agent may write", () => {
  const layers = [
    layer("global", { rw: ["~/shared", "~/many/a*/x"] }),
    layer("flag", { rw: ["/data"], ro: ["/data/x"] }),
  ];
  const isWritable = writableBy(layers, "host", from, ["/state/kept"]);

  test.each([
    ["/home/u/project", "/home/u/project/x", "/home/u/shared/pip.conf", "/data", "/data/x/y", "/state/kept/npm/x"],
    // Whatever a pattern could come to match.
    ["/home/u/many/b", "/home/u/many/abc/x/y"],
  ])("what the workspace, the configuration and the caller name: %s", (...paths) => {
    for (const path of paths) expect(isWritable(path), path).toBe(true);
  });

  test.each(["/home/u/.npmrc", "/home/u/sharedness", "/home/u/.cargo/registry/index/x", "/", "/etc/apt", "/dat"])(
    "and not %s",
    (path) => {
      expect(isWritable(path)).toBe(false);
    },
  );

  test("and where a link that they name leads to", () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-rules-")));
    try {
      mkdirSync(join(root, "real"));
      symlinkSync("real", join(root, "link"));
      const writable = writableBy([layer("flag", { rw: [join(root, "link")] })], "host", from, []);
      expect([join(root, "real/x"), join(root, "link/x"), join(root, "other")].map(writable)).toEqual([
        true,
        true,
        false,
      ]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
