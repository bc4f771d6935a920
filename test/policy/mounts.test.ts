// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { checkMount, type Mount, reservedTargets } from "../../src/policy/mounts.ts";
import { failure } from "../failure.ts";

const origin = "--workspace";

function mount(part: Partial<Mount>): Mount {
  const source = part.source ?? "/srv/work/project";
  return { asked: source, source, target: "/workspace", roots: ["/srv/work"], origin, ...part };
}

function refusal(part: Partial<Mount>): PolicyError {
  const error = failure(PolicyError, () => checkMount(mount(part)));
  expect(error.code).toBe("MOUNT_REFUSED");
  expect(error.hint).toBeTruthy();
  return error;
}

describe("a source", () => {
  test.each([
    ["/srv/work/project", ["/srv/work"]],
    ["/srv/work", ["/srv/work"]],
    ["/srv/work/a/b", ["/home/u", "/srv/work"]],
    ["/srv/work/..a/...", ["/srv/work"]],
    ["/srv/work/a b\nc", ["/srv/work"]],
    ["/etc", ["/"]],
  ])("%j may be mounted where %j are allowed", (source, roots) => {
    expect(() => checkMount(mount({ source, roots }))).not.toThrow();
  });

  test.each([
    ["/srv/work-evil", ["/srv/work"]],
    ["/srv", ["/srv/work"]],
    ["/srv/wor", ["/srv/work"]],
    ["/srv/work/../../etc", ["/srv/work"]],
    ["/srv/work/./a", ["/srv/work"]],
    ["/srv/work//a", ["/srv/work"]],
    ["/srv/work/a/", ["/srv/work"]],
    ["srv/work", ["/srv/work", "srv/work"]],
    ["", ["/"]],
    // A root that is not canonical holds nothing; an empty one would hold everything.
    ["/srv/work/a", [""]],
    ["/srv/work/a", ["/srv/work/"]],
    ["/srv/work/a", ["/srv/x/../work"]],
  ])("%j may not be mounted where %j are allowed", (source, roots) => {
    refusal({ source, roots });
  });

  test("the whole filesystem may never be mounted, not even where it is a root", () => {
    expect(refusal({ source: "/", roots: ["/"] }).message).toContain("whole filesystem");
    expect(refusal({ source: "/", asked: "/srv/work/link", roots: ["/srv/work"] }).message).toContain("whole");
  });

  test("without roots nothing may be mounted, and the hint says how to change that", () => {
    const error = refusal({ roots: [] });
    expect(error.message).toBe(
      '"/srv/work/project" (--workspace) may not be mounted: no directory of the host may be mounted.',
    );
    expect(error.hint).toContain("`mounts.allowed_roots`");
    expect(error.hint).toContain("`--workspace`");
  });

  test("outside the roots, the message names the source once and the roots", () => {
    for (const asked of ["/etc", "/etc/", "/etc/.", "/usr/../etc"]) {
      expect(refusal({ asked, source: "/etc", roots: ["/srv/work", "/home/u"] }).message).toBe(
        `${JSON.stringify(asked)} (--workspace) may not be mounted: it lies in none of the allowed roots ("/srv/work", "/home/u").`,
      );
    }
  });

  test("a link that leads out of the roots is refused with both paths, and one that stays inside is not", () => {
    const asked = "/srv/work/link";
    expect(refusal({ asked, source: "/etc" }).message).toBe(
      '"/srv/work/link" (--workspace) may not be mounted: it resolves to "/etc", which lies in none of the allowed roots ("/srv/work").',
    );
    expect(() => checkMount(mount({ asked, source: "/srv/work/elsewhere" }))).not.toThrow();
    expect(() => checkMount(mount({ asked: "/home/u/link", source: "/srv/work/elsewhere" }))).not.toThrow();
  });

  test("a refusal carries all of the mount", () => {
    const asked = mount({ source: "/etc" });
    expect(failure(PolicyError, () => checkMount(asked)).details).toEqual(asked);
  });
});

describe("a target", () => {
  test.each([
    ...["/work", "/workspace", "/workspace/x", "/home/x", "/home/x/project", "/srv", "/srv/x", "/root/project"],
    ...["/home/podbot/project", "/home/podbot/.claude-work", "/home/podbot2"],
    ...["/tmp/x", "/opt/x", "/mnt", "/media/u/disk", "/data", "/var/www/x", "/usr/src/app", "/usr/local/src/app"],
    ...["/run/media/u/disk/project", "/root/.claude-work", "/root/.config/nvim", "/etcetera", "/library", "/devel"],
    ...["/..a", "/a..", "/...", "/a b", "/ä", "/a:b,c"],
  ])("%j can be mounted on", (target) => {
    expect(() => checkMount(mount({ target }))).not.toThrow();
  });

  test.each([
    ...["", "x", "./x", "//", "//x", "/x/", "/x//y", "/.", "/..", "/x/..", "/x/../y", "/x/./y", "/x/."],
    ...["/x\0", "/x\ny", "/x\ry", "/x\u007f", "~/x"],
  ])("%j is not in its shortest form", (target) => {
    expect(refusal({ target }).message).toContain("not an absolute path in its shortest form");
  });

  test.each([...reservedTargets, "/opt", "/tmp"])("%s is reserved", (target) => {
    expect(refusal({ target }).message).toContain(`mounted at "${target}", which is reserved`);
  });

  test.each([
    ["/", "/proc"],
    ["/root", "/root/.claude"],
    ["/home", "/home/podbot/.claude"],
    ["/home/podbot", "/home/podbot/.claude"],
    ["/var", "/var/run"],
    ["/var/lib", "/var/lib/containers"],
  ])("%s would cover %s", (target, covered) => {
    expect(refusal({ target }).message).toContain(`which would cover "${covered}"`);
  });

  test.each([
    ["/proc/self/attr", "/proc"],
    ["/dev/shm/x", "/dev"],
    ["/run/secrets", "/run"],
    ["/run/podbot/bin", "/run"],
    ["/run/media", "/run"],
    ["/run/mediators/x", "/run"],
    ["/var/run/secrets", "/var/run"],
    ["/usr/local", "/usr"],
    ["/usr/local/bin", "/usr"],
    ["/usr/src", "/usr"],
    ["/etc/ssl", "/etc"],
    ["/root/.claude/projects", "/root/.claude"],
    ["/root/.gitconfig/x", "/root/.gitconfig"],
    ["/home/podbot/.codex/sessions", "/home/podbot/.codex"],
  ])("%s lies in %s", (target, around) => {
    const error = refusal({ target });
    expect(error.message).toContain(`which lies in "${around}", which is reserved`);
    expect(error.hint).toContain("`workspace.container_path`");
  });
});

describe("whatever the paths are", () => {
  const part = fc.constantFrom("a", "b", "ab", "a-b", ".a", "..a", "a b", "work", "work-evil");
  const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join("/")}`);
  const accepted = (source: string, roots: readonly string[], target = "/workspace") => {
    try {
      checkMount(mount({ source, roots, target }));
      return true;
    } catch {
      return false;
    }
  };

  test("a source is accepted exactly where the components of a root begin its own", () => {
    fc.assert(
      fc.property(path, fc.array(path, { maxLength: 3 }), (source, roots) => {
        const parts = source.split("/");
        const expected = roots.some((root) => root.split("/").every((name, index) => parts[index] === name));
        expect(accepted(source, roots)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  test("what is below an accepted source is accepted, and more roots never refuse", () => {
    fc.assert(
      fc.property(path, path, fc.array(path, { maxLength: 3 }), part, (source, root, roots, name) => {
        if (!accepted(source, [root])) return;
        expect(accepted(`${source}/${name}`, [root])).toBe(true);
        expect(accepted(source, [...roots, root])).toBe(true);
      }),
    );
  });

  test("no accepted target is, covers or lies in a reserved one, but for work below the open places", () => {
    const reserved = fc.constantFrom(...reservedTargets);
    const target = fc.oneof(
      path,
      reserved,
      fc.tuple(reserved, path).map(([place, below]) => place + below),
      fc.tuple(reserved, fc.nat(40)).map(([place, length]) => place.slice(0, length)),
      fc.string({ maxLength: 6 }),
    );
    fc.assert(
      fc.property(target, (at) => {
        if (!accepted("/srv/work", ["/srv/work"], at)) return;
        for (const place of reservedTargets) {
          expect(`${at}/`.startsWith(`${place}/`)).toBe(false);
          expect(`${place}/`.startsWith(`${at}/`)).toBe(false);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
