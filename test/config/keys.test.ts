import { describe, expect, test } from "vitest";
import { keys } from "../../src/config/keys.ts";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import { validateLayer } from "../../src/config/validate.ts";

describe("the table of keys", () => {
  test("gives these defaults", () => {
    expect(mergeLayers([defaultLayer()]).config).toEqual({
      github: {
        api_url: "https://api.github.com",
        permissions: { contents: "write", metadata: "read" },
        token: "file",
      },
      workspace: { source: "github_clone", base_dir: "/work", container_path: "/workspace" },
      mounts: { allowed_roots: [] },
      creds: { copy_claude: true, copy_codex: true, copy_agent: true, mode: "copy" },
      agent: { kind: "claude", mode: "podbot", permissive: true, args: [], env_allowlist: [] },
      acp: { delegation: "disabled" },
      sandbox: {
        wall: "auto",
        root: "host",
        nesting: false,
        accept_gaps: [],
        grace_seconds: 10,
        privileged: false,
        mount_dev_fuse: true,
        selinux_label_mode: "disable_for_container",
        containers: "none",
        read_only_root: false,
        limits: "best-effort",
        ulimits: [],
        pool: 0,
      },
      network: { mode: "allowlist", presets: [], domains: [], rules: [], reach: {}, upstream_proxy: "environment" },
      filesystem: { presets: [], ro: [], rw: [], exclude: [] },
      commands: { git: "@git" },
      environment: { pass: [], set: {} },
      secrets: {},
    });
  });

  test("has defaults that its own rules accept", () => {
    const { problems } = validateLayer({ ...defaultLayer().value }, { source: "built in" });
    expect(problems).toEqual([]);
  });

  test.each(keys.map((key) => [key.name, key] as const))("explains %s in sentences", (_, { about, step, widens }) => {
    expect(about).toMatch(/^\S.*\.$/s);
    expect(step).toBeGreaterThan(0);
    if (typeof widens === "object") expect(widens.why).toMatch(/^[a-z].*[^.]$/);
  });

  test("leaves paths to the plan, and lets only the grace pass unjudged", () => {
    const kept = (kind: string) => keys.filter(({ widens }) => widens === kind).map(({ name }) => name);
    expect(kept("by-path")).toEqual(["filesystem.ro", "filesystem.rw", "filesystem.exclude"]);
    expect(kept("never")).toEqual(["sandbox.grace_seconds"]);
  });
});
