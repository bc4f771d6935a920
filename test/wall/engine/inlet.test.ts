import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FilesystemError } from "../../../src/errors.ts";
import type { ContainerPlan } from "../../../src/plan/container.ts";
import type { Plan } from "../../../src/plan/plan.ts";
import { laySeccompProfile, layTrust, makeInlet, writeBirth } from "../../../src/wall/engine/inlet.ts";
import { failure } from "../../failure.ts";
import { allowlist, type ContainerChange, planInImage } from "../../plan/ordinary.ts";

function scratch(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-inlet-")));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const modeOf = (path: string) => statSync(path).mode & 0o7777;
const plan = planInImage([]);
const make = (of: Plan, directory: string) => makeInlet(of, of.container as ContainerPlan, directory);

/** A birth with a token alone. */
const nothing = { filter: new Uint8Array(), expected: [], bounds: [], env: {} };

describe("the inlet of a container", () => {
  test("has a place for each mount, the sign, and a directory for the socket", () => {
    const { inlet } = make(plan, scratch());
    expect(readdirSync(inlet).sort()).toEqual(["in", "reclaim", "sandbox.json", "warden"]);
    expect(JSON.parse(readFileSync(join(inlet, "sandbox.json"), "utf8"))).toMatchObject({
      inside: true,
      wall: "engine",
    });
    expect(readFileSync(join(inlet, "warden"), "utf8")).toBe("");
  });

  test("can be reached by any user of the box, whatever the caller's mask", () => {
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    const { inlet } = make(plan, scratch());
    expect(modeOf(inlet)).toBe(0o755);
    expect(modeOf(join(inlet, "in"))).toBe(0o755);
    expect(modeOf(join(inlet, "sandbox.json"))).toBe(0o444);
  });

  test("comes with an empty directory and an empty file, for what is hidden", () => {
    const { inlet, hiddenDirectory, hiddenFile } = make(plan, scratch());
    expect(readdirSync(hiddenDirectory)).toEqual([]);
    expect(statSync(hiddenFile).size).toBe(0);
    expect(modeOf(hiddenDirectory) & 0o222).toBe(0);
    expect(modeOf(hiddenFile)).toBe(0);
    expect([hiddenDirectory, hiddenFile].filter((path) => path.startsWith(`${inlet}/`))).toEqual([]);
  });

  test("comes with files that lie over the image's", () => {
    const directory = scratch();
    const guarded = planInImage([], {}, { request: { network: allowlist } });
    for (let times = 0; times < 2; times++) {
      const { files, inlet } = make(guarded, directory);
      expect(Object.keys(files)).toEqual(["/etc/resolv.conf", "/etc/hosts"]);
      const path = files["/etc/resolv.conf"] as string;
      expect(readFileSync(path, "utf8")).toMatch(/^nameserver \d/);
      expect(modeOf(path)).toBe(0o444);
      expect(path.startsWith(`${inlet}/`)).toBe(false);
    }
    expect(Object.keys(make(plan, scratch()).files)).toEqual(["/etc/hosts"]);
  });

  test("has what is to be trusted, as far as it lies in the corner", () => {
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    const trust = ["/run/podbot/trust/one", "/run/podbot/trust/two", "/run/podbot/three", "/etc/ca"].map((target) => ({
      target,
      bytes: Buffer.from(target),
    }));
    const directory = scratch();
    const { inlet } = makeInlet(plan, plan.container as ContainerPlan, directory);
    layTrust(inlet, trust);
    expect(readFileSync(join(inlet, "trust/two"), "utf8")).toBe("/run/podbot/trust/two");
    expect(modeOf(join(inlet, "trust"))).toBe(0o755);
    expect(["trust/one", "trust/two", "three"].map((name) => modeOf(join(inlet, name)))).toEqual([0o444, 0o444, 0o444]);
    expect(readdirSync(directory).sort()).toEqual(["corner", "file-0", "hidden", "mask"]);
  });

  test("comes with directories of the session's own, where the root is read-only and not root's", () => {
    const of = (more: ContainerChange) => planInImage([], {}, { wishes: { readOnlyRoot: true }, ...more });
    const docker = { flavour: "docker", rootless: false } as const;
    expect(make(of({}), scratch()).own).toEqual({});
    expect(make(planInImage([], {}, { engine: docker }), scratch()).own).toEqual({});
    const empty = { readOnlyRoot: true, workspace: "/work" };
    const directory = scratch();
    const { own, inlet } = make(of({ engine: docker, wishes: empty, request: { workspace: "empty" } }), directory);
    expect(Object.keys(own)).toEqual(["/home/podbot", "/work"]);
    for (const path of Object.values(own)) {
      expect(readdirSync(path)).toEqual([]);
      expect(modeOf(path)).toBe(0o700);
      expect(path.startsWith(`${inlet}/`)).toBe(false);
    }
    expect(new Set(Object.values(own)).size).toBe(2);
  });

  test("is made again where a first try has failed", () => {
    const directory = scratch();
    const { inlet } = make(plan, directory);
    writeBirth(inlet, Buffer.alloc(32), nothing);
    expect(make(plan, directory).inlet).toBe(inlet);
    expect(readdirSync(inlet).sort()).toEqual(["in", "reclaim", "sandbox.json", "warden"]);
  });

  test("cannot be made where there is no directory, and it is said what to do", () => {
    const error = failure(FilesystemError, () => make(plan, join(scratch(), "missing")));
    expect(error.code).toBe("FILESYSTEM");
    expect(error.hint).toContain("XDG_RUNTIME_DIR");
  });
});

describe("the birth", () => {
  const token = Buffer.alloc(32, 7);

  test("holds the token, the filter, the mounts and the environment, byte by byte", () => {
    const directory = scratch();
    using _birth = writeBirth(directory, token, {
      filter: Uint8Array.of(1, 2, 3),
      expected: [
        ["/a", "1:2", "ro"],
        ["/b,c\n", "3:4", "rw"],
      ],
      bounds: ["/dev/fuse", "!5:6"],
      env: { A: "b=c", É: "" },
    });
    expect(readFileSync(join(directory, "birth"))).toEqual(
      Buffer.concat([
        token,
        Buffer.from([3, 0, 0, 0, 1, 2, 3]),
        Buffer.from([23, 0, 0, 0]),
        Buffer.from("/a\x001:2\0ro\0/b,c\n\x003:4\0rw\0"),
        Buffer.from([15, 0, 0, 0]),
        Buffer.from("/dev/fuse\0!5:6\0"),
        Buffer.from("A=b=c\0É=\0"),
      ]),
    );
  });

  test("can be read by nobody else, and is gone when it is no longer needed", () => {
    const directory = scratch();
    const birth = writeBirth(directory, token, nothing);
    expect(modeOf(join(directory, "birth"))).toBe(0o600);
    birth[Symbol.dispose]();
    expect(existsSync(join(directory, "birth"))).toBe(false);
    birth[Symbol.dispose]();
  });

  test("is never written over what stands there", () => {
    const directory = scratch();
    using _birth = writeBirth(directory, token, nothing);
    chmodSync(join(directory, "birth"), 0o666);
    const error = failure(FilesystemError, () =>
      writeBirth(directory, token, { ...nothing, filter: Uint8Array.of(1) }),
    );
    expect(error).toMatchObject({ code: "FILESYSTEM", cause: { code: "EEXIST" } });
    expect(readFileSync(join(directory, "birth"))).toHaveLength(44);
  });
});

describe("the filter of a container", () => {
  const layIn = (change: ContainerChange, profile: string | null) => {
    const directory = scratch();
    return {
      directory,
      path: laySeccompProfile(planInImage([], {}, change).container as ContainerPlan, profile, directory),
    };
  };
  const own = () => {
    const path = join(scratch(), "own.json");
    writeFileSync(path, JSON.stringify({ archMap: [{ architecture: "A", subArchitectures: ["B"] }], syscalls: [] }));
    return path;
  };

  test("is the engine's own, made shorter, in the session's own directory", () => {
    const { directory, path } = layIn({}, own());
    expect(path).toBe(join(directory, "seccomp.json"));
    expect(JSON.parse(readFileSync(path as string, "utf8"))).toEqual({
      archMap: [{ architecture: "A", subArchitectures: [] }],
      syscalls: [],
    });
    expect(modeOf(path as string)).toBe(0o600);
  });

  test("is left to the engine where nobody knows it, nobody can read it, or there is none", () => {
    expect(layIn({}, null).path).toBeNull();
    expect(layIn({}, join(scratch(), "missing.json")).path).toBeNull();
    expect(layIn({ wishes: { privileged: true } }, own()).path).toBeNull();
    expect(layIn({ engine: { runtime: "runsc" } }, own()).path).toBeNull();
  });

  test("that cannot be laid stops the start", () => {
    const container = plan.container as ContainerPlan;
    const error = failure(FilesystemError, () => laySeccompProfile(container, own(), join(scratch(), "missing")));
    expect(error.code).toBe("FILESYSTEM");
  });
});
