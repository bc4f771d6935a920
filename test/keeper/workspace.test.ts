import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import type { LoadedConfig, PartialConfig } from "../../src/config/types.ts";
import { PolicyError, UsageError, WallError } from "../../src/errors.ts";
import { chooseWorkspace, type WorkspaceWish } from "../../src/keeper/workspace.ts";
import { failure } from "../failure.ts";

function loaded(value: PartialConfig = {}): LoadedConfig {
  const layers = [defaultLayer(), { name: "global", source: "/etc/podbot.toml", trusted: true, value } as const];
  return { ...mergeLayers(layers), layers, warnings: [], files: [] };
}

/** A directory with `work`, `other/project` and `link`, which leads to the project. */
function place(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-workspace-")));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, "work"));
  mkdirSync(join(directory, "other/project"), { recursive: true });
  symlinkSync("other/project", join(directory, "link"));
  return directory;
}

const wish = (cwd: string, more: Partial<WorkspaceWish> = {}): WorkspaceWish => ({
  cwd,
  named: false,
  home: "/home/u",
  wall: "engine",
  ...more,
});
const mountOf = (host_path: string, allowed_roots: readonly string[] = []) =>
  loaded({ workspace: { source: "host_mount", host_path }, mounts: { allowed_roots } });

describe("what the agent works on", () => {
  test.each(["engine", "bubblewrap"] as const)("is where the caller stands (%s)", (wall) => {
    const cwd = place();
    expect(chooseWorkspace(loaded(), wish(cwd, { wall }))).toEqual({ kind: "mounted", path: cwd, inside: null });
  });

  test("is seen at another path in a container, if somebody says so", () => {
    const cwd = place();
    const config = loaded({ workspace: { container_path: "/code" } });
    expect(chooseWorkspace(config, wish(cwd)).inside).toBe("/code");
    expect(chooseWorkspace(config, wish(cwd, { wall: "bubblewrap" })).inside).toBeNull();
  });

  test("is the directory that a file names, where the owner has opened one above it", () => {
    const directory = place();
    const config = mountOf(join(directory, "link"), [directory]);
    const found = { kind: "mounted", path: join(directory, "other/project") };
    const cwd = join(directory, "work");
    expect(chooseWorkspace(config, wish(cwd))).toEqual({ ...found, inside: "/workspace" });
    expect(chooseWorkspace(config, wish(cwd, { wall: "bubblewrap" }))).toEqual({ ...found, inside: null });
  });

  test("is not where the caller stands, where a file wants a clone", () => {
    const cwd = place();
    const config = loaded({ workspace: { source: "github_clone" } });
    expect(failure(UsageError, () => chooseWorkspace(config, wish(cwd))).hint).toContain("--repo OWNER/NAME");
    // Named, or only so by default, it is.
    expect(chooseWorkspace(config, wish(cwd, { named: true })).path).toBe(cwd);
    expect(chooseWorkspace(loaded(), wish(cwd)).path).toBe(cwd);
  });

  test("is what the caller names all the same, whatever a file says, and needs no opening", () => {
    const directory = place();
    const cwd = join(directory, "work");
    expect(chooseWorkspace(mountOf(join(directory, "link")), wish(cwd, { named: true })).path).toBe(cwd);
    const empty = loaded({ workspace: { source: "empty" } });
    expect(chooseWorkspace(empty, wish(cwd, { named: true }))).toMatchObject({ kind: "mounted", path: cwd });
  });

  test("is nothing of the caller's, where it is to be empty", () => {
    const cwd = place();
    const config = loaded({ workspace: { source: "empty", base_dir: "/src" } });
    expect(chooseWorkspace(config, wish(cwd))).toEqual({ kind: "empty", path: cwd, inside: "/src" });
    const error = failure(WallError, () => chooseWorkspace(config, wish(cwd, { wall: "bubblewrap" })));
    expect(error).toMatchObject({ code: "GAP", hint: expect.stringContaining("--wall engine") });
  });
});

describe("a clone", () => {
  const clone = { clone: true } as const;

  test.each(["engine", "bubblewrap"] as const)(
    "lies where the configuration says, and nothing is mounted (%s)",
    (wall) => {
      const cwd = place();
      const found = chooseWorkspace(loaded({ workspace: { base_dir: "/src" } }), wish(cwd, { ...clone, wall }));
      expect(found).toEqual({ kind: "clone", path: cwd, inside: "/src" });
      // Whatever the configuration says of another source: whoever names a repository wants that.
      expect(chooseWorkspace(mountOf(cwd, [cwd]), wish(cwd, { ...clone, wall })).kind).toBe("clone");
    },
  );

  test("is not made where a directory was named", () => {
    const error = failure(UsageError, () => chooseWorkspace(loaded(), wish(place(), { ...clone, named: true })));
    expect(error.hint).toContain("--github-token");
  });

  test.each(["/etc", "/usr/x", "/proc/x", "/", "/run/x", "/home"])("does not lie at %s", (base_dir) => {
    const config = loaded({ workspace: { base_dir } });
    for (const wall of ["engine", "bubblewrap"] as const) {
      expect(failure(PolicyError, () => chooseWorkspace(config, wish("/srv", { ...clone, wall }))).code).toBe(
        "MOUNT_REFUSED",
      );
    }
  });

  test("does not cover the caller's home, and lies where a link leads", () => {
    const home = place();
    const at = (base_dir: string) =>
      chooseWorkspace(loaded({ workspace: { base_dir } }), wish("/srv", { ...clone, wall: "bubblewrap", home }));
    expect(failure(PolicyError, () => at(home)).message).toContain("your home");
    expect(at(join(home, "link")).inside).toBe(join(home, "other/project"));
  });
});

describe("a directory is refused", () => {
  const refusal = (config: LoadedConfig, given: WorkspaceWish) =>
    failure(PolicyError, () => chooseWorkspace(config, given));

  test.each(["engine", "bubblewrap"] as const)("that a file names and the owner has not opened (%s)", (wall) => {
    const directory = place();
    const [host, work] = [join(directory, "other/project"), join(directory, "work")];
    const none = refusal(mountOf(host), wish(work, { wall }));
    expect(none).toMatchObject({ code: "MOUNT_REFUSED", hint: expect.stringContaining("mounts.allowed_roots") });
    expect(none.message).toContain("/etc/podbot.toml, global");
    refusal(mountOf(host, [work]), wish(work, { wall }));
    expect(chooseWorkspace(mountOf(host, [directory]), wish(work, { wall })).path).toBe(host);
  });

  test.each(["engine", "bubblewrap"] as const)("that a file names and that is none (%s)", (wall) => {
    const directory = place();
    writeFileSync(join(directory, "file"), "");
    for (const name of ["missing", "file"]) {
      const error = refusal(mountOf(join(directory, name), [directory]), wish(directory, { wall }));
      expect(error.code).toBe("PATH_REFUSED");
      expect(error.message).toContain(`workspace.host_path = "${directory}/${name}" is no directory`);
      expect(error.message).toContain("/etc/podbot.toml, global");
    }
    expect(chooseWorkspace(mountOf(join(directory, "work"), [directory]), wish(directory, { wall })).path).toBe(
      join(directory, "work"),
    );
  });

  test("that lies elsewhere than its name does", () => {
    const directory = place();
    const outside = join(directory, "work");
    const inside = join(directory, "other");
    symlinkSync(outside, join(inside, "trap"));
    expect(refusal(mountOf(join(inside, "trap"), [inside]), wish(directory)).message).toContain(
      `resolves to "${outside}"`,
    );
    expect(chooseWorkspace(mountOf(join(inside, "project"), [inside]), wish(directory)).kind).toBe("mounted");
  });

  test("that a container cannot spare, even where the caller stands; bubblewrap has no such place", () => {
    expect(refusal(loaded(), wish("/usr/lib")).code).toBe("MOUNT_REFUSED");
    expect(refusal(loaded(), wish("/")).message).toContain("whole filesystem");
    const config = loaded({ workspace: { container_path: "/etc/x" } });
    expect(refusal(config, wish(place())).message).toContain('"/etc/x"');
    expect(chooseWorkspace(loaded(), wish("/usr/lib", { wall: "bubblewrap" })).path).toBe("/usr/lib");
  });

  test("an opened root may be written with the home", () => {
    const home = place();
    const config = mountOf(join(home, "other/project"), ["~/other"]);
    expect(chooseWorkspace(config, wish("/srv/x", { home })).path).toBe(join(home, "other/project"));
    refusal(mountOf(join(home, "work"), ["~/other"]), wish("/srv/x", { home }));
  });
});
