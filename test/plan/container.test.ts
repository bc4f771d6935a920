import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { containerWarnings, homeInside, planContainer, unenforced } from "../../src/plan/container.ts";
import type { Operation, Plan } from "../../src/plan/plan.ts";
import { failure } from "../failure.ts";
import { accessInside } from "./mount-table.ts";
import {
  type ContainerChange,
  cwd,
  engineFacts,
  imageRules,
  openNetwork,
  ordinaryRequest,
  plainWishes,
  planFor,
  planInImage,
  presetRules,
  said,
  unlimited,
} from "./ordinary.ts";
import { identityOf, repositoryAt } from "./tree.ts";

const caller = { uid: 1000, gid: 100 };
const docker = { ...engineFacts, flavour: "docker", rootless: false } as const;
const contain = (engine: Partial<typeof engineFacts> = {}, wishes: Partial<typeof plainWishes> = {}, who = caller) =>
  planContainer({ ...engineFacts, ...engine }, { ...plainWishes, ...wishes }, who, []);

describe("a container's profile", () => {
  test("is minimal: what work as root needs, and no device", () => {
    expect(contain()).toEqual({
      engine: engineFacts,
      profile: "minimal",
      capabilities: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"],
      devices: [],
      keepSelinuxLabels: false,
      readOnlyRoot: false,
      runtime: null,
      user: { uid: 0, gid: 0 },
      reclaims: true,
      credentials: [],
      ulimits: [],
    });
  });

  test("is wider for containers inside: their device, and the two capabilities for mounts and devices", () => {
    const minimal = contain();
    expect(contain({}, { inner: true })).toEqual({
      ...minimal,
      profile: "inner",
      capabilities: [...(minimal.capabilities ?? []), "MKNOD", "SETPCAP", "SYS_ADMIN", "SYS_CHROOT"],
      devices: ["/dev/fuse"],
    });
  });

  test("is none at all for a privileged one, whatever else is wished", () => {
    const privileged = contain({}, { privileged: true, inner: true });
    expect(privileged).toMatchObject({ profile: "privileged", capabilities: null, devices: [] });
    expect(privileged.keepSelinuxLabels).toBe(true);
  });

  test.each([
    ["Docker's", docker, {}],
    ["a rootful Podman's", { rootless: false }, {}],
    ["one that holds containers", { rootless: false }, { inner: true }],
  ])("gives no capability to anybody but root: %s", (_, engine, wishes) => {
    expect(contain(engine, wishes)).toMatchObject({ user: caller, capabilities: [] });
    expect(contain(engine, wishes, { uid: 0, gid: 0 }).capabilities).toContain("CHOWN");
    expect(contain(engine, { ...wishes, privileged: true }).capabilities).toBeNull();
  });

  test("takes over what the owner wishes", () => {
    const wishes = {
      keepSelinuxLabels: true,
      readOnlyRoot: true,
      runtime: "runsc",
      credentials: [".claude", ".codex"],
    };
    expect(contain({}, wishes)).toMatchObject(wishes);
  });
});

describe("who runs inside", () => {
  test.each([
    ["root, whom a rootless engine maps to the caller", engineFacts, caller, { uid: 0, gid: 0 }, "/root"],
    ["root, if the caller is", docker, { uid: 0, gid: 0 }, { uid: 0, gid: 0 }, "/root"],
    ["the caller himself on any other", docker, caller, caller, "/home/podbot"],
  ])("is %s", (_, engine, who, user, home) => {
    const container = contain(engine, {}, who);
    expect(container.user).toEqual(user);
    expect(homeInside(container)).toBe(home);
  });

  test.each([
    ["a rootless engine, whose other users are nobody's outside", { rootless: true }, caller, true],
    ["not one that root itself runs without a namespace", { rootless: true }, { uid: 0, gid: 0 }, false],
    ["not one where the caller is himself", docker, caller, false],
    ["not one where everybody is root", { rootless: false }, { uid: 0, gid: 0 }, false],
  ])("leaves files to be taken back behind %s", (_, engine, who, expected) => {
    expect(contain(engine, {}, who).reclaims).toBe(expected);
  });
});

describe("a limit that an engine does not enforce", () => {
  const limits = { ...unlimited, memoryMb: 512, cpus: 2, pids: 100 };
  const none = { memory: false, cpus: false, pids: false };

  test("is known by its key, if it was set", () => {
    expect(unenforced(limits, { ...engineFacts, enforces: none })).toEqual([
      "sandbox.memory_mb",
      "sandbox.cpus",
      "sandbox.pids",
    ]);
    expect(unenforced(limits, engineFacts)).toEqual([]);
    expect(unenforced(unlimited, { ...engineFacts, enforces: none })).toEqual([]);
    expect(unenforced(limits, { ...engineFacts, enforces: { ...none, memory: true } })).toEqual([
      "sandbox.cpus",
      "sandbox.pids",
    ]);
  });

  test("is a warning that says why, unless it is required: then it is a gap", () => {
    const weak = contain({ enforces: { memory: false, cpus: true, pids: true } });
    expect(containerWarnings(weak, limits)).toEqual([
      'sandbox.memory_mb is not enforced: a rootless podman has no control groups of its own on this machine. sandbox.limits = "require" would start nothing.',
    ]);
    const old = contain({ ...docker, enforces: { memory: true, cpus: true, pids: false } });
    expect(containerWarnings(old, limits)).toEqual([
      'sandbox.pids is not enforced: this docker cannot. sandbox.limits = "require" would start nothing.',
    ]);
    expect(containerWarnings(weak, { ...limits, mode: "require" })).toEqual([]);
    expect(containerWarnings(contain(), limits)).toEqual([]);
  });

  test("is no reason to be silent of a privileged container", () => {
    expect(containerWarnings(contain({}, { privileged: true }), unlimited)).toEqual([
      expect.stringContaining("whoever is root inside can become root outside"),
    ]);
  });
});

const targets = (operations: readonly Operation[]) => operations.map(({ kind, target }) => `${kind} ${target}`);
const at = (operations: readonly Operation[], target: string) => operations.filter((one) => one.target === target);

describe("a plan for an image", () => {
  const corner = [
    "file /etc/hosts",
    "tmpfs /run/secrets",
    "inlet /run/podbot",
    "bind /run/podbot/warden",
    "bind /run/podbot/reclaim",
    "file /run/podbot/sandbox.json",
  ];

  test("has names of its own, and nothing where an engine would put secrets", () => {
    const file = (plan: Plan) => plan.operations.find(({ target }) => target === "/etc/hosts");
    const secrets = (plan: Plan) => plan.operations.filter(({ target }) => target === "/run/secrets");
    expect(file(planInImage([]))).toMatchObject({ content: expect.stringMatching(/^127\.0\.0\.1 localhost podbot$/m) });
    // The engine's resolver is asked as well there.
    expect(file(planInImage([], {}, { request: { network: openNetwork } }))).toBeUndefined();
    const chosen = planInImage([said("flag", "ro /etc/hosts")], { "/etc/hosts": "file" });
    expect(chosen.operations.filter(({ target }) => target === "/etc/hosts")).toMatchObject([{ kind: "bind" }]);
    expect(secrets(planInImage([], {}, { engine: { flavour: "docker" } }))).toEqual([]);
    expect(secrets(planInImage([], {}, { request: { token: true } }))).toMatchObject([{ kind: "own" }]);
  });

  test.each([
    ["below the workspace", { workspace: "/workspace" }, ["/data", "/workspace/build/"], "/workspace/build"],
    ["said in another way", { workspace: "/workspace" }, ["/workspace/../workspace/a//b"], "/workspace/a/b"],
    ["in Podbot's corner", {}, ["/run/podbot/in"], "/run/podbot/in"],
  ])("is refused with a volume of the image that hides what is mounted: %s", (_, wishes, volumes, path) => {
    const image = { name: "localhost/dev", id: "sha256:1", volumes, variables: [] };
    const error = failure(PolicyError, () => planInImage(imageRules(), {}, { wishes, engine: { image } }));
    expect(error).toMatchObject({ code: "MOUNT_REFUSED", details: { path } });
    expect(error.message).toContain(`a volume at ${path}`);
  });

  test("takes volumes of the image elsewhere, around the workspace, and where a mount of its own lies on them", () => {
    const volumes = ["/data", "/", "/work", "/work/space", "/work/space/docs", "/workspaces/a", "/run/podbot"];
    const image = { name: "localhost/dev", id: "sha256:1", volumes, variables: [] };
    const rules = [...imageRules(), said("flag", "ro docs")];
    const change = { wishes: { workspace: "/work/space" }, engine: { image } };
    expect(() => planInImage(rules, { [`${cwd}/docs`]: "directory" }, change)).not.toThrow();
  });

  test("mounts the workspace for writing and Podbot's corner, and nothing else of the host's", () => {
    const plan = planInImage(imageRules("!@all", "@base"), { "/home/u/.ssh/id": "file" });
    expect(targets(plan.operations)).toEqual([`bind ${cwd}`, ...corner]);
    expect(plan.operations[0]).toMatchObject({ source: cwd, access: "rw", identity: identityOf(cwd) });
    expect(plan).toMatchObject({
      wall: "engine",
      root: "image",
      workspace: "mounted",
      cwd,
      directory: cwd,
      home: "/root",
      container: { profile: "minimal", ulimits: [{ name: "nofile", soft: 4096, hard: 4096 }] },
    });
  });

  test("has the warden in its corner, pinned, and a sign to be known by", () => {
    const { operations } = planInImage([]);
    expect(at(operations, "/run/podbot/warden")).toMatchObject([
      { source: "/opt/podbot/warden", access: "ro", identity: identityOf("/opt/podbot/warden") },
    ]);
    const [sign] = at(operations, "/run/podbot/sandbox.json");
    expect(sign?.kind === "file" && JSON.parse(sign.content)).toEqual({
      inside: true,
      wall: "engine",
      root: "image",
      network: "none",
    });
  });

  test("has what takes files back in its corner, where others inside are nobody's outside", () => {
    const root = { uid: 0, gid: 0 };
    const docker = { flavour: "docker", rootless: false } as const;
    const reclaim = (more: ContainerChange) => at(planInImage([], {}, more).operations, "/run/podbot/reclaim");
    expect(reclaim({})).toMatchObject([{ source: "/opt/podbot/reclaim", access: "ro" }]);
    expect(reclaim({ caller: root })).toEqual([]);
    expect(reclaim({ engine: docker })).toEqual([]);
  });

  test("has a warden without an identity where the survey did not see it", () => {
    const request = ordinaryRequest().native;
    const { operations } = planInImage([], {}, { request: { native: { ...request, warden: "/elsewhere/warden" } } });
    expect(at(operations, "/run/podbot/warden")).toMatchObject([{ identity: null }]);
  });

  test("lays guards read-only, and holds what must not come into being", () => {
    const plan = planInImage(
      imageRules(),
      { [`${cwd}/.git/config`]: "file" },
      {
        survey: { git: repositoryAt(cwd) },
      },
    );
    expect(at(plan.operations, `${cwd}/.git/config`)).toMatchObject([
      { kind: "bind", access: "ro", source: `${cwd}/.git/config` },
    ]);
    const held = plan.held.map(({ path }) => path);
    expect(held).toContain(`${cwd}/.git/hooks`);
    for (const path of held) expect(at(plan.operations, path)).toMatchObject([{ access: "ro", source: path }]);
  });

  test("hides directories and files in the workspace", () => {
    const rules = [...imageRules("!@all", "@base"), said("flag", "exclude .env"), said("flag", "exclude keys")];
    const { operations } = planInImage(rules, { [`${cwd}/.env`]: "file", [`${cwd}/keys/a`]: "file" });
    expect(at(operations, `${cwd}/.env`)).toMatchObject([{ kind: "mask" }]);
    expect(at(operations, `${cwd}/keys`)).toMatchObject([{ kind: "tmpfs" }, { kind: "seal" }]);
  });

  test("needs to hide nothing that the image does not show, while the host's root does", () => {
    const rules = [...imageRules("!@all", "@base"), said("flag", "exclude ~/notes")];
    const tree = { "/home/u/notes/a": "file" } as const;
    expect(at(planInImage(rules, tree).operations, "/home/u/notes")).toEqual([]);
    const shown = [...rules, said("flag", "ro ~")];
    expect(at(planInImage(shown, tree).operations, "/home/u/notes")).toMatchObject([
      { kind: "tmpfs" },
      { kind: "seal" },
    ]);
  });

  test.each(["ro", "rw"])("never shows the engine's own socket, not even to %s", (access) => {
    const tree = { [`${cwd}/engine.sock`]: "socket", [`${cwd}/other.sock`]: "socket" } as const;
    const rules = ["engine", "other"].map((name) => said("flag", `${access} ./${name}.sock`));
    const plan = planInImage(rules, tree, { engineSocket: `${cwd}/engine.sock` });
    expect(accessInside(plan, `${cwd}/engine.sock`)).toBe("exclude");
    expect(accessInside(plan, `${cwd}/other.sock`)).toBe(access);
  });

  test("does not depend on sockets of the host that it does not show, while the host's root does", () => {
    const tree = { "/var/lib/some/x.sock": "socket", [`${cwd}/y.sock`]: "socket" } as const;
    const decided = ({ paths }: Plan) => paths.map(({ path }) => path);
    const image = planInImage(imageRules("!@all", "@base"), tree);
    expect(decided(image)).not.toContain("/var/lib/some/x.sock");
    expect(decided(planFor(presetRules("!@all", "@base"), tree))).toContain("/var/lib/some/x.sock");
    expect(at(image.operations, `${cwd}/y.sock`)).toMatchObject([{ kind: "mask", fleeting: true }]);
    const asked = planInImage([...imageRules(), said("flag", "exclude /var/lib/some/x.sock")], tree);
    expect(decided(asked)).toContain("/var/lib/some/x.sock");
  });

  test("moves every target of the workspace to another place, and no source", () => {
    const rules = [
      ...imageRules("!@all", "@base"),
      said("flag", "ro docs"),
      said("flag", "exclude .env"),
      said("flag", "exclude s.sock"),
      said("flag", "exclude keys"),
      said("flag", "rw /data"),
      said("flag", "rw ~/project-2"),
    ];
    const tree = {
      [`${cwd}/docs`]: "directory",
      [`${cwd}/.env`]: "file",
      [`${cwd}/s.sock`]: "socket",
      [`${cwd}/keys`]: "directory",
      "/data": "directory",
      [`${cwd}-2`]: "directory",
    } as const;
    const stay = planInImage(rules, tree);
    const move = planInImage(rules, tree, { wishes: { workspace: "/workspace" } });
    expect(move).toMatchObject({ cwd, directory: "/workspace" });
    const inWorkspace = (target: string) => target === cwd || target.startsWith(`${cwd}/`);
    expect(move.operations.filter(({ target }) => inWorkspace(target))).toEqual([]);
    expect(targets(move.operations)).toEqual(
      targets(stay.operations).map((line) => line.replace(/ \/home\/u\/project(?=\/|$)/, " /workspace")),
    );
    const sources = (operations: readonly Operation[]) =>
      operations.flatMap((one) => (one.kind === "bind" ? [one.source] : []));
    expect(sources(move.operations)).toEqual(sources(stay.operations));
    expect(at(move.operations, "/workspace/docs")).toMatchObject([{ source: `${cwd}/docs`, access: "ro" }]);
    expect(at(move.operations, "/workspace/.env")).toEqual([
      { kind: "mask", target: "/workspace/.env", source: `${cwd}/.env`, why: expect.any(String) },
    ]);
    expect(at(move.operations, "/workspace/s.sock")).toMatchObject([{ fleeting: true, source: `${cwd}/s.sock` }]);
    expect(at(stay.operations, `${cwd}/.env`)[0]).not.toHaveProperty("source");
    expect(at(move.operations, "/data")).toMatchObject([{ source: "/data" }]);
    expect(at(move.operations, `${cwd}-2`)).toMatchObject([{ source: `${cwd}-2` }]);
  });

  describe("that moves the workspace", () => {
    const tree = { [`${cwd}/docs`]: "directory", "/home/u/other": "directory" } as const;
    const rules = (line: string) => [...imageRules("!@all", "@base"), said("flag", line), said("flag", "exclude docs")];
    const elsewhere = { wishes: { workspace: "/workspace" } } as const;

    test.each(["ro ~", "rw ~", "ro /home"])("refuses to show it once more, unprotected, by %s", (line) => {
      const path = line.endsWith("~") ? "/home/u" : "/home";
      const error = failure(PolicyError, () => planInImage(rules(line), tree, elsewhere));
      expect(error).toMatchObject({ code: "MOUNT_REFUSED", details: { path } });
      expect(error.hint).toContain("workspace.container_path");
    });

    test("does not refuse what lies beside it or in it, nor anything where it stays or is empty", () => {
      for (const line of ["ro ~/other", "ro docs", "rw ."]) {
        expect(planInImage(rules(line), tree, elsewhere).directory).toBe("/workspace");
      }
      expect(planInImage(rules("ro ~"), tree).directory).toBe(cwd);
      expect(planInImage(rules("ro ~"), tree, { wishes: { workspace: cwd } }).directory).toBe(cwd);
      const empty = { ...elsewhere, request: { workspace: "empty" } } as const;
      expect(planInImage([said("flag", "ro ~")], tree, empty).directory).toBe("/workspace");
    });
  });

  describe("that copies credentials", () => {
    const credentials = [".claude", ".codex"];
    const tree = { "/root/.codex/sessions": "directory", "/root/notes": "directory" } as const;
    const refused = (line: string, more: ContainerChange = {}) =>
      failure(PolicyError, () =>
        planInImage([...imageRules("!@all", "@base"), said("flag", line)], tree, { wishes: { credentials }, ...more }),
      );

    test.each([
      ["around both", "ro /root", "/root/.claude"],
      ["in its place", "rw /root/.codex", "/root/.codex"],
      ["in it", "ro /root/.codex/sessions", "/root/.codex"],
    ])("refuses a mount %s", (_, line, path) => {
      const error = refused(line);
      expect(error).toMatchObject({ code: "MOUNT_REFUSED", details: { path } });
      expect(error.hint).toContain("creds.copy_claude");
    });

    test("refuses it by where it lies inside, in the home of whoever runs there", () => {
      const wishes = { credentials, workspace: "/root/.claude/work" };
      expect(refused("ro docs", { wishes }).details).toMatchObject({ path: "/root/.claude" });
      const podbot = { wishes: { credentials, workspace: "/home/podbot/.claude" }, engine: docker };
      expect(refused("ro docs", podbot).details).toMatchObject({ path: "/home/podbot/.claude" });
      expect(planInImage(imageRules(), tree, { wishes: podbot.wishes }).directory).toBe("/home/podbot/.claude");
    });

    test("takes those that do not meet, and any where nothing is copied", () => {
      const plan = (line: string, wishes: ContainerChange["wishes"] = { credentials }) =>
        planInImage([...imageRules("!@all", "@base"), said("flag", line)], tree, { wishes });
      expect(plan("ro /root/notes").container?.credentials).toEqual(credentials);
      expect(at(plan("ro /root", {}).operations, "/root")).toMatchObject([{ kind: "bind" }]);
      expect(at(plan("ro /root/.codex", { credentials: [".claude"] }).operations, "/root/.codex")).toHaveLength(1);
    });
  });

  test("mounts nothing for an empty workspace, which lies where the owner says", () => {
    const plan = planInImage([], {}, { wishes: { workspace: "/work" }, request: { workspace: "empty" } });
    expect(plan).toMatchObject({ workspace: "empty", directory: "/work" });
    expect(targets(plan.operations)).toEqual(corner);
  });

  test("does not ask whether an empty workspace can be worked in, as it does of a mounted one", () => {
    const rules = [said("flag", "exclude .")];
    const request = { workspace: "empty" } as const;
    expect(() => planInImage(rules)).toThrow();
    expect(planInImage(rules, {}, { wishes: { workspace: "/work" }, request }).directory).toBe("/work");
  });

  test("leaves what was asked for outside of an empty workspace where it is", () => {
    const rules = [said("flag", "rw .")];
    const plan = planInImage(rules, {}, { wishes: { workspace: "/work" }, request: { workspace: "empty" } });
    expect(targets(plan.operations)).toEqual([`bind ${cwd}`, ...corner]);
  });

  test("names rules for commands, which find no programs of an image", () => {
    const commands = [{ kind: "deny", name: "curl" }] as const;
    const { commands: decided, operations } = planInImage([], {}, { request: { commands } });
    expect(decided).toMatchObject([{ command: "curl", targets: [] }]);
    expect(targets(operations)).toEqual(corner);
  });

  test("joins the warnings of the container to the others", () => {
    const wishes = { privileged: true };
    const { warnings } = planInImage([], {}, { wishes, request: { nesting: true } });
    expect(warnings).toEqual([
      expect.stringContaining("sandbox.nesting"),
      expect.stringContaining("sandbox.privileged"),
    ]);
  });

  test("does not warn of limits as bubblewrap does", () => {
    const limits = { ...unlimited, pids: 64 };
    expect(planInImage([], {}, { request: { limits } })).toMatchObject({ limits, warnings: [] });
  });

  test("puts the owner's limits of processes before the machine's", () => {
    const limits = { ...unlimited, ulimits: [{ name: "nofile", soft: 9, hard: 9 }] };
    expect(planInImage([], {}, { request: { limits } }).container?.ulimits).toEqual(limits.ulimits);
  });

  test("survives as JSON, and cannot be changed", () => {
    const plan = planInImage(imageRules());
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
    expect(Object.isFrozen(plan.container?.engine.image)).toBe(true);
  });
});
