import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContainerPlan } from "../../../src/plan/container.ts";
import type { Limits } from "../../../src/plan/limits.ts";
import type { Plan } from "../../../src/plan/plan.ts";
import { type Bind, ownPlaces } from "../../../src/wall/engine/parts.ts";
import { bindsOf, containerName, expectations, renderContainer, runtimeOf } from "../../../src/wall/engine/render.ts";
import {
  allowlist,
  type ContainerChange,
  cwd,
  imageRules,
  openNetwork,
  planInImage,
  said,
  unlimited,
} from "../../plan/ordinary.ts";

const birth = {
  id: "abcdefgh23",
  inlet: "/run/user/1000/podbot/abcdefgh23/corner",
  hiddenDirectory: "/run/user/1000/podbot/abcdefgh23/hidden",
  hiddenFile: "/run/user/1000/podbot/abcdefgh23/mask",
  own: {},
  files: {},
  labels: { "podbot.session": "abcdefgh23", "podbot.owner": "me" },
};
const docker = { flavour: "docker", rootless: false } as const;
const base = imageRules("!@all", "@base");

/** Of Docker's API, what is asked for besides the programs. */
interface HostConfig extends Readonly<Record<string, unknown>> {
  readonly Mounts: readonly (Readonly<Record<string, unknown>> & { readonly Target: string })[];
}

const render = (plan: Plan, binds: readonly Bind[] = bindsOf(plan, birth)) =>
  renderContainer(plan, plan.container as ContainerPlan, birth, binds);

function dockerBody(plan: Plan, binds?: readonly Bind[]) {
  const { api, body } = render(plan, binds);
  expect(api).toBe("docker");
  return { ...body, HostConfig: body["HostConfig"] as HostConfig };
}

/** Of Podman's own API, which has everything on one level. */
interface PodmanBody extends Readonly<Record<string, unknown>> {
  readonly mounts: readonly { readonly source: string; readonly destination: string; readonly options: string[] }[];
}

function podmanBody(plan: Plan, binds?: readonly Bind[]): PodmanBody {
  const { api, body } = render(plan, binds);
  expect(api).toBe("libpod");
  return body as unknown as PodmanBody;
}

/** A rootless Docker, so that whoever runs inside is root there. */
const ownDocker = { flavour: "docker" } as const;
const inDocker = ({ engine, ...more }: ContainerChange): ContainerChange => ({
  engine: { ...ownDocker, ...engine },
  ...more,
});
const hostConfig = (more: ContainerChange = {}) => dockerBody(planInImage(base, {}, inDocker(more))).HostConfig;
const spec = (more: ContainerChange = {}) => podmanBody(planInImage(base, {}, more));
const pick = (from: Readonly<Record<string, unknown>>, keys: readonly string[]) =>
  Object.fromEntries(keys.flatMap((key) => (key in from ? [[key, from[key]]] : [])));
/** Of a user's powers, everything that an engine can be asked for. */
const dockerPowers = [
  ...["Privileged", "CapAdd", "CapDrop", "SecurityOpt", "Devices", "DeviceRequests", "DeviceCgroupRules"],
  ...["UsernsMode", "PidMode", "IpcMode", "UTSMode", "CgroupnsMode", "GroupAdd", "Sysctls", "Binds", "VolumesFrom"],
];
const podmanPowers = [
  ...["privileged", "cap_add", "cap_drop", "no_new_privileges", "selinux_opts", "devices", "device_cgroup_rule"],
  ...["userns", "pidns", "ipcns", "utsns", "cgroupns", "groups", "sysctl", "volumes_from", "unmask", "env_host"],
  ...["seccomp_policy", "seccomp_profile_path", "apparmor_profile", "secrets", "overlay_volumes", "image_volumes"],
];

/** No containers.conf is asked which namespaces a container shares. */
const own = { nsmode: "private" };
const apart = { pidns: own, ipcns: own, utsns: own, cgroupns: own, userns: { nsmode: "host" } };

const five = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];
const fuse = [{ PathOnHost: "/dev/fuse", PathInContainer: "/dev/fuse", CgroupPermissions: "rwm" }];

describe("a container is asked for", () => {
  const first = ["/run/podbot/warden", "/run/podbot/in/abcdefgh23.sock", "/run/podbot/birth"];

  test("with the image by its digest, the warden as its first program, and nothing of the image's own start", () => {
    const { HostConfig: _, ...body } = dockerBody(planInImage(base, {}, { engine: ownDocker }));
    expect(body).toEqual({
      Image: `sha256:${"ab".repeat(32)}`,
      Entrypoint: first,
      Cmd: [],
      Labels: birth.labels,
      WorkingDir: cwd,
      User: "0:0",
      Hostname: "podbot",
      StopSignal: "SIGTERM",
      Healthcheck: { Test: ["NONE"] },
    });
    // A daemon.json could put a program before the first one.
    expect(hostConfig()["Init"]).toBe(false);
    expect(containerName("abcdefgh23")).toBe("podbot-abcdefgh23");
  });

  test("in Podman's own words, where it is Podman: nothing but these", () => {
    const { mounts, ...body } = spec();
    expect(body).toEqual({
      name: "podbot-abcdefgh23",
      image: `sha256:${"ab".repeat(32)}`,
      entrypoint: first,
      command: [],
      labels: birth.labels,
      work_dir: cwd,
      user: "0:0",
      hostname: "podbot",
      stop_signal: 15,
      healthconfig: { Test: ["NONE"] },
      remove: true,
      ...apart,
      init: false,
      netns: { nsmode: "none" },
      image_volume_mode: "ignore",
      volumes: [],
      read_only_filesystem: false,
      privileged: false,
      cap_drop: ["ALL"],
      cap_add: five,
      no_new_privileges: true,
      selinux_opts: ["disable"],
      devices: [],
      r_limits: [{ type: "nofile", soft: 4096, hard: 4096 }],
      resource_limits: {},
    });
    expect(mounts).toHaveLength(5);
  });

  test("with a filter of the session's own, where there is one", () => {
    const plan = planInImage([]);
    const place = { ...birth, seccompProfile: "/run/user/1000/podbot/abcdefgh23/seccomp.json" };
    const { body } = renderContainer(plan, plan.container as ContainerPlan, place, []);
    expect(body["seccomp_profile_path"]).toBe(place.seccompProfile);
  });

  test("that the engine removes by itself", () => {
    expect(hostConfig()["AutoRemove"]).toBe(true);
    expect(spec()["remove"]).toBe(true);
  });

  test("in the workspace as it is seen inside, and as the caller where the engine is everybody's", () => {
    const wishes = { workspace: "/workspace" };
    const expected = { WorkingDir: "/workspace", User: "1000:1000" };
    expect(dockerBody(planInImage(base, {}, { engine: docker, wishes }))).toMatchObject(expected);
    const podman = podmanBody(planInImage(base, {}, { engine: { rootless: false }, wishes }));
    expect(podman).toMatchObject({ work_dir: "/workspace", user: "1000:1000" });
  });
});

describe("of powers, a container has", () => {
  const powers = (more: ContainerChange = {}) => ({
    docker: pick(hostConfig(more), dockerPowers),
    podman: pick(spec(more), podmanPowers),
  });

  test("the five that work as root needs, in the minimal profile", () => {
    expect(powers()).toEqual({
      docker: {
        Privileged: false,
        CapDrop: ["ALL"],
        CapAdd: five,
        SecurityOpt: ["no-new-privileges", "label=disable"],
        Devices: [],
        IpcMode: "private",
      },
      podman: {
        ...apart,
        privileged: false,
        cap_drop: ["ALL"],
        cap_add: five,
        no_new_privileges: true,
        selinux_opts: ["disable"],
        devices: [],
      },
    });
  });

  test("none, where it does not run as root", () => {
    const rootful = { engine: { rootless: false } };
    expect(powers(rootful).docker).toMatchObject({ CapDrop: ["ALL"], CapAdd: [] });
    expect(powers(rootful).podman).toMatchObject({ cap_drop: ["ALL"], cap_add: [] });
  });

  test("its SELinux label, where the owner keeps it", () => {
    const kept = powers({ wishes: { keepSelinuxLabels: true } });
    expect(kept.docker["SecurityOpt"]).toEqual(["no-new-privileges"]);
    expect(kept.podman).toMatchObject({ no_new_privileges: true, selinux_opts: [] });
  });

  test("two more and a device, where it holds containers", () => {
    const nine = [...five, "MKNOD", "SETPCAP", "SYS_ADMIN", "SYS_CHROOT"];
    const minimal = powers();
    expect(powers({ wishes: { inner: true } })).toEqual({
      docker: { ...minimal.docker, CapAdd: nine, Devices: fuse },
      podman: { ...minimal.podman, cap_add: nine, devices: [{ path: "/dev/fuse" }] },
    });
  });

  test.each([
    ["alone", {}],
    ["and containers inside", { inner: true }],
    ["and labels kept", { keepSelinuxLabels: true }],
  ])("all of them, and no word on single ones, where it is privileged %s", (_, wishes) => {
    expect(powers({ wishes: { privileged: true, ...wishes } })).toEqual({
      docker: { Privileged: true, IpcMode: "private" },
      podman: { ...apart, privileged: true },
    });
  });
});

describe("of the network, a container has", () => {
  test("none", () => {
    expect(hostConfig()["NetworkMode"]).toBe("none");
    expect(spec()["netns"]).toEqual({ nsmode: "none" });
  });

  test("the engine's own, where it is open", () => {
    const network = openNetwork;
    expect(hostConfig({ request: { network } })).not.toHaveProperty("NetworkMode");
    expect(spec({ request: { network } })).not.toHaveProperty("netns");
  });

  test("none that leads out, where it has doors", () => {
    const network = allowlist;
    expect(hostConfig({ request: { network } })["NetworkMode"]).toBe("none");
    expect(spec({ request: { network } })["netns"]).toEqual({ nsmode: "none" });
  });

  test("a file by which names are asked for at the doors", () => {
    const plan = planInImage(base, {}, { request: { network: allowlist } });
    const files = { "/etc/resolv.conf": "/run/session/file-0" };
    const found = (places: typeof birth & { readonly files: Readonly<Record<string, string>> }) =>
      bindsOf(plan, places).filter(({ target }) => target.startsWith("/etc/"));
    expect(found({ ...birth, files })).toMatchObject([
      { source: "/run/session/file-0", target: "/etc/resolv.conf", access: "ro", identity: null },
    ]);
    expect(found(birth)).toEqual([]);
  });
});

describe("limits", () => {
  const limited = (limits: Partial<Limits>): ContainerChange => ({ request: { limits: { ...unlimited, ...limits } } });
  const asked = (more?: ContainerChange) => ({
    docker: pick(hostConfig(more), ["Memory", "MemorySwap", "NanoCpus", "PidsLimit"]),
    podman: spec(more)["resource_limits"],
  });

  test("are not spoken of unless they are set", () => expect(asked()).toEqual({ docker: {}, podman: {} }));

  test("are those that are set; memory without swap", () => {
    expect(asked(limited({ memoryMb: 512, cpus: 1.5, pids: 64 }))).toEqual({
      docker: { Memory: 536_870_912, MemorySwap: 536_870_912, NanoCpus: 1_500_000_000, PidsLimit: 64 },
      podman: {
        memory: { limit: 536_870_912, swap: 536_870_912 },
        cpu: { quota: 150_000, period: 100_000 },
        pids: { limit: 64 },
      },
    });
    expect(asked(limited({ pids: 64 }))).toEqual({ docker: { PidsLimit: 64 }, podman: { pids: { limit: 64 } } });
  });

  test("of processors are whole numbers for the engine", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 4096, noNaN: true }), (cpus) => {
        const { docker, podman } = asked(limited({ cpus }));
        const { quota } = (podman as { cpu: { quota: number } }).cpu;
        for (const value of [docker["NanoCpus"] as number, quota]) {
          expect(Number.isSafeInteger(value) && value > 0).toBe(true);
        }
      }),
    );
  });

  test("of processes are the owner's and the machine's", () => {
    const more = limited({ ulimits: [{ name: "core", soft: 0, hard: 1 }] });
    expect(hostConfig(more)["Ulimits"]).toEqual([
      { Name: "core", Soft: 0, Hard: 1 },
      { Name: "nofile", Soft: 4096, Hard: 4096 },
    ]);
    expect(spec(more)["r_limits"]).toEqual([
      { type: "core", soft: 0, hard: 1 },
      { type: "nofile", soft: 4096, hard: 4096 },
    ]);
  });
});

describe("a runtime", () => {
  test("is named to Docker; Podman's is that of its service", () => {
    const more = { wishes: { runtime: "runsc" } };
    expect(hostConfig(more)["Runtime"]).toBe("runsc");
    expect(hostConfig()).not.toHaveProperty("Runtime");
    expect(JSON.stringify(spec(more))).not.toContain("runsc");
  });

  test("is known by its name, wherever it lies", () => {
    const engine = { runtime: "/usr/bin/crun" } as ContainerPlan["engine"];
    expect(runtimeOf({ runtime: null, engine })).toBe("crun");
    expect(runtimeOf({ runtime: "/opt/runsc", engine })).toBe("runsc");
    expect(runtimeOf({ runtime: "runc", engine })).toBe("runc");
  });
});

describe("a read-only root", () => {
  const more = { wishes: { readOnlyRoot: true } };

  test("leaves temporary places in memory, and a home that can be written", () => {
    const config = hostConfig(more);
    expect(config).toMatchObject({
      ReadonlyRootfs: true,
      Tmpfs: { "/tmp": "mode=1777", "/var/tmp": "mode=1777", "/run": "mode=755" },
    });
    expect(config.Mounts).toContainEqual({ Type: "volume", Target: "/root" });
    expect(config.Mounts.filter(({ Target }) => Target === cwd)).toHaveLength(1);
  });

  test("does so in Podman's words", () => {
    const { mounts, volumes, read_only_filesystem } = spec(more);
    expect({ volumes, read_only_filesystem }).toEqual({
      volumes: [{ Dest: "/root", IsAnonymous: true }],
      read_only_filesystem: true,
    });
    const memory = (destination: string, mode: string) => ({
      type: "tmpfs",
      source: "tmpfs",
      destination,
      options: [mode, "nosuid", "nodev"],
    });
    expect(mounts.slice(-3)).toEqual([
      memory("/tmp", "mode=1777"),
      memory("/var/tmp", "mode=1777"),
      memory("/run", "mode=755"),
    ]);
    expect(mounts.filter(({ destination }) => destination === cwd)).toHaveLength(1);
  });

  test("brings the session's token, and fails where nobody has brought it", () => {
    const plan = planInImage([], {}, { request: { token: true } });
    const parts = { secrets: "/run/x/secrets", askpass: "/state/x/git-askpass" };
    const { mounts } = podmanBody(plan, bindsOf(plan, { ...birth, parts }));
    const options = ["bind", "ro", "rprivate", "nosuid", "nodev"];
    expect(mounts).toContainEqual({ type: "bind", source: parts.secrets, destination: "/run/secrets", options });
    expect(mounts).toContainEqual({
      type: "bind",
      source: parts.askpass,
      destination: "/run/podbot/git-askpass",
      options,
    });
    expect(() => bindsOf(plan, birth)).toThrow("/run/secrets");
  });

  test("leaves an empty workspace writable, too", () => {
    const empty = { wishes: { ...more.wishes, workspace: "/work" }, request: { workspace: "empty" } } as const;
    const { Mounts } = dockerBody(planInImage([], {}, inDocker(empty))).HostConfig;
    expect(Mounts.filter(({ Type }) => Type === "volume")).toEqual([
      { Type: "volume", Target: "/root" },
      { Type: "volume", Target: "/work" },
    ]);
    expect(podmanBody(planInImage([], {}, empty))["volumes"]).toEqual([
      { Dest: "/root", IsAnonymous: true },
      { Dest: "/work", IsAnonymous: true },
    ]);
  });

  test("gives directories of the session's own to whoever is not root, to whom volumes would not belong", () => {
    const wishes = { ...more.wishes, workspace: "/work" };
    const empty = { wishes, request: { workspace: "empty" }, engine: { rootless: false } } as const;
    const own = { "/home/podbot": "/run/own-0", "/work": "/run/own-1" };
    const plan = planInImage([], {}, empty);
    expect(ownPlaces({ plan, container: plan.container as ContainerPlan })).toEqual(Object.keys(own));
    const binds = bindsOf(plan, { ...birth, own });
    const { mounts, volumes } = podmanBody(plan, binds);
    expect(volumes).toEqual([]);
    const options = ["bind", "rw", "rprivate", "nosuid", "nodev"];
    expect(mounts).toEqual(
      expect.arrayContaining(
        Object.entries(own).map(([destination, source]) => ({ type: "bind", source, destination, options })),
      ),
    );
    const { Mounts } = dockerBody(planInImage([], {}, { ...empty, engine: docker }), binds).HostConfig;
    expect(Mounts.filter(({ Type }) => Type !== "bind")).toEqual([]);
    expect(Mounts).toContainEqual(expect.objectContaining({ Source: "/run/own-1", Target: "/work", ReadOnly: false }));
    const found = expectations(
      plan.container as ContainerPlan,
      binds,
      binds.map(() => "1:1"),
    );
    expect(found).toContainEqual(["/home/podbot", "1:1", "rw"]);
  });

  test("gives them neither to root nor where the root can be written", () => {
    for (const change of [more, {}, { engine: docker }]) {
      const plan = planInImage(base, {}, change);
      expect(ownPlaces({ plan, container: plan.container as ContainerPlan })).toEqual([]);
    }
  });

  test("is not asked for otherwise", () => {
    const config = hostConfig();
    expect(config).not.toHaveProperty("ReadonlyRootfs");
    expect(config).not.toHaveProperty("Tmpfs");
    expect(config.Mounts.filter(({ Type }) => Type === "volume")).toEqual([]);
    expect(JSON.stringify(spec())).not.toContain("tmpfs");
  });
});

describe("mounts", () => {
  const rules = [...base, said("flag", "ro docs"), said("flag", "exclude keys"), said("flag", "exclude .env")];
  const tree = {
    [`${cwd}/docs`]: "directory",
    [`${cwd}/keys`]: "directory",
    [`${cwd}/.env`]: "file",
  } as const;
  const plan = planInImage(rules, tree);
  const inDockerToo = planInImage(rules, tree, { engine: ownDocker });
  const secrets = [birth.hiddenDirectory, "/run/secrets", "ro"] as const;
  const expected = [
    [cwd, cwd, "rw"],
    [birth.hiddenFile, `${cwd}/.env`, "ro"],
    [`${cwd}/docs`, `${cwd}/docs`, "ro"],
    [birth.hiddenDirectory, `${cwd}/keys`, "ro"],
    [birth.inlet, "/run/podbot", "ro"],
    ["/opt/podbot/reclaim", "/run/podbot/reclaim", "ro"],
    ["/opt/podbot/warden", "/run/podbot/warden", "ro"],
  ] as const;

  test("are the workspace, what is read-only in it, what is hidden in it, and the corner", () => {
    const { Mounts } = dockerBody(inDockerToo).HostConfig;
    expect([...Mounts].sort((a, b) => (a.Target < b.Target ? -1 : 1))).toEqual(
      expected.map(([Source, Target, access]) => ({
        Type: "bind",
        Source,
        Target,
        ReadOnly: access === "ro",
        BindOptions: { Propagation: "rprivate", NonRecursive: true },
      })),
    );
  });

  test("are the same for Podman, none of them recursive", () => {
    const { mounts } = podmanBody(plan);
    // Podman would put there what a mounts.conf names.
    expect([...mounts].sort((a, b) => (a.destination < b.destination ? -1 : 1))).toEqual(
      [...expected, secrets].map(([source, destination, access]) => ({
        type: "bind",
        source,
        destination,
        options: ["bind", access, "rprivate", "nosuid", "nodev"],
      })),
    );
  });

  test("come in the order of the plan: what lies on another after it", () => {
    const targets = [
      dockerBody(inDockerToo).HostConfig.Mounts.map(({ Target }) => Target),
      podmanBody(plan).mounts.map(({ destination }) => destination),
    ];
    expect(targets[0]).toEqual(targets[1]?.filter((target) => target !== "/run/secrets"));
    for (const [at, target] of targets[0]?.entries() ?? []) {
      const later = targets[0]?.slice(at + 1).filter((other) => target.startsWith(`${other}/`));
      expect(later).toEqual([]);
    }
  });

  test("never lead to a socket of an engine, nor to a home of the host's", () => {
    const more = { "/run/docker.sock": "socket", "/home/u/.ssh/id": "file" } as const;
    const sources = podmanBody(planInImage(imageRules(), { ...tree, ...more })).mounts.map(({ source }) => source);
    expect(sources.filter((source) => /docker|\.ssh|^\/home\/u$|^\/$/.test(source))).toEqual([]);
    expect(sources).toContain(cwd);
  });

  const names = [
    "a,src=/etc",
    "a,source=/etc,readonly=false",
    'a"b',
    "a'b",
    "a\nb",
    "a\\b",
    "a:b:rw",
    "a=b",
    "a b\t",
    "é",
  ];
  test.each(names)("stay one field each, whatever a path is called: %j", (name) => {
    const path = `/data/${name}`;
    const bind: Bind = { kind: "bind", source: path, target: `${path}/in`, access: "ro", identity: null, why: "" };
    // As the engine reads it: JSON, and nothing in it that is taken apart once more.
    const docker = JSON.parse(JSON.stringify(dockerBody(inDockerToo, [bind])));
    expect(docker.HostConfig.Mounts).toEqual([
      {
        Type: "bind",
        Source: path,
        Target: `${path}/in`,
        ReadOnly: true,
        BindOptions: { Propagation: "rprivate", NonRecursive: true },
      },
    ]);
    const podman = JSON.parse(JSON.stringify(podmanBody(plan, [bind])));
    expect(podman.mounts).toEqual([
      {
        type: "bind",
        source: path,
        destination: `${path}/in`,
        options: ["bind", "ro", "rprivate", "nosuid", "nodev"],
      },
    ]);
    for (const body of [docker, podman]) expect(stringsOf(body).filter((text) => text.includes(name))).toHaveLength(2);
  });

  test("stay one field each also in the workspace's own name, and where it is moved", () => {
    const odd = "/home/u/project,src=/etc";
    const options = { request: { cwd: odd }, survey: { cwd: odd } };
    const moved = { ...options, wishes: { workspace: "/w,src=/etc" } };
    const text = imageRules("!@all", "@base").map((rule) =>
      rule.pattern === cwd ? { ...rule, pattern: odd, written: odd } : rule,
    );
    const [mount] = podmanBody(planInImage(text, { [odd]: "directory" }, moved)).mounts;
    expect(mount).toMatchObject({ source: odd, destination: "/w,src=/etc" });
    const body = dockerBody(planInImage(text, { [odd]: "directory" }, inDocker(moved)));
    expect(body.HostConfig.Mounts[0]).toMatchObject({ Source: odd, Target: "/w,src=/etc" });
    expect(body).toMatchObject({ WorkingDir: "/w,src=/etc" });
  });
});

/** Every text in a body, wherever it stands. */
function stringsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsOf) : [];
}

describe("what the warden must find", () => {
  const rules = [...base, said("flag", "ro docs"), said("flag", "exclude keys"), said("flag", "exclude .env")];
  const tree = { [`${cwd}/docs`]: "directory", [`${cwd}/keys`]: "directory", [`${cwd}/.env`]: "file" } as const;
  const expected = (more: ContainerChange = {}) => {
    const plan = planInImage(rules, tree, more);
    const binds = bindsOf(plan, birth);
    const identities = binds.map((_, at) => `1:${at}`);
    return { binds, found: expectations(plan.container as ContainerPlan, binds, identities) };
  };

  test("is every mount, where it lies inside: what is hidden and the corner, too", () => {
    const { binds, found } = expected({ wishes: { workspace: "/workspace" } });
    expect(found).toHaveLength(binds.length);
    expect(found.map(([path, , access]) => `${access} ${path}`).sort()).toEqual([
      "ro /run/podbot",
      "ro /run/podbot/reclaim",
      "ro /run/podbot/warden",
      "ro /run/secrets",
      "ro /workspace/.env",
      "ro /workspace/docs",
      "ro /workspace/keys",
      "rw /workspace",
    ]);
  });

  test("is what was opened for it, each its own", () => {
    const { binds, found } = expected();
    expect(found).toEqual(binds.map(({ target, access }, at) => [target, `1:${at}`, access]));
  });

  test("is nothing in gVisor, which has identities and mounts of its own", () => {
    expect(expected({ engine: { runtime: "/usr/local/bin/runsc" } }).found).toEqual([]);
    expect(expected({ wishes: { runtime: "runsc-kvm" } }).found).toEqual([]);
    expect(expected({ wishes: { runtime: "crun" } }).found).not.toEqual([]);
  });
});

test.each([{}, { engine: ownDocker }])(
  "no value of a variable is told to the engine, and none of the command's words: %j",
  (more) => {
    const request = {
      command: ["agent", "--key", "hunter2"],
      variables: [
        { name: "TOKEN", from: "secret", secret: "hunter3", optional: false },
        { name: "HOME", from: "plan", value: "hunter4" },
      ],
    } as const;
    const text = JSON.stringify(render(planInImage(base, {}, { ...more, request })));
    expect(text).not.toMatch(/hunter|TOKEN|"env"/i);
    expect(text).toContain(cwd);
  },
);
