import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import type { BuiltImage } from "../../src/image/build.ts";
import type { Signal } from "../../src/wall/wall.ts";
import type { Outcome } from "../world.ts";
import { serveIn } from "./agents/private-engine.ts";
import { engine, firstBuild, type TestEngine } from "./engines/engine.ts";
import { imageCommand, imageWorld, tag } from "./image-command.ts";
import { openInterceptor } from "./intercept.ts";

const world = imageWorld();

/** Whether a program runs that this process has started, or in a container whose files are in a directory. */
function isRunning(program: RegExp, directory: string): boolean {
  return readdirSync("/proc").some((pid) => {
    const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, "utf8");
    try {
      if (!/^\d+$/.test(pid) || !program.test(read("cmdline").replaceAll("\0", " "))) return false;
      return read("status").includes(`\nPPid:\t${process.pid}\n`) || read("mountinfo").includes(`${directory}/graph/`);
    } catch {
      return false;
    }
  });
}

async function until(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + 240_000; !isSo(); await sleep(100))
    if (performance.now() > end) throw new Error("waited in vain");
}

function stepsOf({ stderr }: Outcome): readonly string[] {
  return stderr.match(/(?<=^podbot: \d+\/\d+ ).*$/gm) ?? [];
}

const versionOf = (name: string) => agents.find((agent) => agent.name === name)?.package.version;
const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

describe("an image that Podman builds without a registry", () => {
  let podman: TestEngine & AsyncDisposable;
  let command: ReturnType<typeof imageCommand>;

  /** What a script says in a container of the image. */
  const inside = (script: string, ...flags: string[]) => {
    const words = ["run", "--rm", "--network", "none", ...limits, ...flags, tag, "sh", "-c", script];
    const { status, stdout, stderr } = podman.cli(...words);
    return { status, stdout: stdout.trim(), stderr };
  };

  let first: Awaited<ReturnType<typeof firstBuild>>;
  let interrupted: Outcome;
  let left: string;
  let built: Outcome;

  beforeAll(async () => {
    await interruptedRoot();
    first = await firstBuild();
    // What that has built is read here as what an earlier build of the same engine has left, and is not built again.
    podman = await serveIn(null, first.engine);
    command = imageCommand(podman);
    interrupted = await interruptedBuild(podman, "gemini,qwen", /npm install .*@qwen-code\/qwen-code@/);
    left = podman.cli("images", "--quiet", tag).stdout;
    built = await world.podbot(command("build", "--agents", "gemini", "--base", "debian"));
    expect({ status: built.status, stderr: built.status === 0 ? "" : built.stderr }).toEqual({ status: 0, stderr: "" });
    return async () => podman[Symbol.asyncDispose]();
    // Where nobody has built it yet, the first is waited for.
  }, 600_000);

  /** What Podman makes of an archive that broke off must not be taken for a root of Debian. */
  async function interruptedRoot(): Promise<void> {
    const shared = engine("podman");
    const { status, stderr } = await interruptedBuild(shared, "none", /mmdebstrap .*--format=tar/);
    expect({ status, stderr }).toEqual({ status: 130, stderr: "podbot: making a root of Debian\n" });
    expect(shared.cli("images", "--quiet", "localhost/podbot-base").stdout).toBe("");
  }

  /** Interrupts a build when a program runs that it needs. */
  async function interruptedBuild(on: TestEngine, agents: string, program: RegExp): Promise<Outcome> {
    let interrupt: (signal: Signal) => void = () => {};
    const outcome = world.podbot(imageCommand(on)("build", "--agents", agents, "--base", "debian"), {
      onSignal: (listener) => {
        interrupt = listener;
        return () => {};
      },
    });
    const directory = dirname(on.env["CONTAINERS_STORAGE_CONF"] ?? "");
    await Promise.race([until(() => isRunning(program, directory)), outcome]);
    interrupt("SIGINT");
    return await outcome;
  }

  const linesOf = (stderr: string) => stderr.split("\n").map((line) => line.replace(/\d+\/\d+ /, ""));
  const onRoot = expect.stringMatching(/^podbot: building .* on localhost\/podbot-base:trixie-[0-9a-f]{12}$/);

  test("begins with a root of Debian, packages and npm", () => {
    expect(linesOf(first.stderr)).toEqual([
      "podbot: making a root of Debian",
      onRoot,
      "podbot: Debian packages",
      "podbot: npm",
      "",
    ]);
    expect(first.stdout).toMatch(/^built \S+, \d+ MB, with no agents \(\d+ s\)\n$/);
  });

  test("is not there when its build was interrupted, and the next one goes on from the last layer", () => {
    const { status, stdout, stderr } = interrupted;
    expect({ status, stdout, failure: status === 130 ? "" : stderr }).toEqual({ status: 130, stdout: "", failure: "" });
    expect(left).toBe("");
    expect(linesOf(interrupted.stderr)).toEqual([
      onRoot,
      "podbot: Debian packages, as before",
      "podbot: npm, as before",
      `podbot: Gemini CLI ${versionOf("gemini")}`,
      expect.stringMatching(/^$|Qwen/),
      ...(interrupted.stderr.includes("Qwen") ? [""] : []),
    ]);
    expect(stepsOf(built)).toEqual([
      "Debian packages, as before",
      "npm, as before",
      `Gemini CLI ${versionOf("gemini")}, as before`,
    ]);
    expect(built.stdout).toMatch(
      new RegExp(`^built ${tag}, \\d+ MB, with gemini ${versionOf("gemini")} \\(\\d+ s\\)\n$`),
    );
  });

  test("has what agents need, for whoever runs in it", () => {
    const programs = "bwrap crun curl fuse-overlayfs gemini gh git node npm podman python3 rg slirp4netns newuidmap";
    const script = `for each in ${programs}; do command -v $each >/dev/null || echo no $each; done
      gemini --version; python3 -c 'import sys; print(sys.version_info >= (3, 10))'; npm --version >/dev/null || echo no npm
      getent passwd podbot; grep podbot /etc/subuid; env | grep -E '^(NODE_EXTRA_CA_CERTS|GIT_ASKPASS)='`;
    for (const flags of [[], ["--user", "1000:1000", "--env", "HOME=/tmp", "--read-only", "--cap-drop", "all"]]) {
      expect(inside(script, ...flags)).toMatchObject({
        status: 0,
        stdout: [
          versionOf("gemini"),
          "True",
          "podbot:x:1000:1000::/home/podbot:/bin/bash",
          "podbot:1:999",
          "podbot:1001:64535",
          "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt",
          "GIT_ASKPASS=/usr/local/bin/git-askpass",
        ].join("\n"),
      });
    }
  });

  test("has nothing of ours that is root's alone, and nothing of the build", () => {
    const own = "/usr/local /etc/containers /etc/ssl/certs";
    expect(inside(`find ${own} ! -type l ! -perm -o+r; find ${own} -type d ! -perm -o+x`).stdout).toBe("");
    expect(inside("ls -A /tmp /var/lib/apt/lists /var/cache/apt/archives/*.deb /root/.npm 2>/dev/null").stdout).toBe(
      "/tmp:\n\n/var/lib/apt/lists:",
    );
  });

  test("says in its labels what is in it", async () => {
    const { stdout } = await world.podbot(command("show", "--json"));
    const { software, agents: found, inputs, base, size } = JSON.parse(stdout) as BuiltImage;
    expect(found).toEqual({ gemini: versionOf("gemini") });
    expect(inputs).toMatch(/^[0-9a-f]{64}$/);
    expect(base).toMatch(/^localhost\/podbot-base:/);
    expect(size).toBeGreaterThan(5e8);
    const listed = inside(`dpkg-query -W -f '\${Package} \${Version}\n' ${Object.keys(software).join(" ")}`).stdout;
    expect(Object.entries(software).map((pair) => pair.join(" "))).toEqual(listed.split("\n"));
    expect(Object.keys(software)).toEqual(expect.arrayContaining(["podman", "git", "gh", "nodejs", "bubblewrap"]));
    expect((await world.podbot(command("show"))).stdout).toContain(`agents    gemini ${versionOf("gemini")}\n`);
  });

  test("answers git with a token, for one host only", () => {
    const token = world.file("ghapp_token", "the-token\n");
    const secret = ["--volume", `${token}:/run/secrets/ghapp_token:ro`];
    /** What is answered to each, with its status. */
    const ask = (prompts: readonly string[], ...flags: string[]) => {
      const script = `printf '%s\\n' "$PROMPTS" | while IFS= read -r prompt; do
        said=$(git-askpass "$prompt"); echo "$?\${said:+ $said}"; done`;
      return inside(script, "--env", `PROMPTS=${prompts.join("\n")}`, ...flags).stdout.split("\n");
    };
    const own = "Password for 'https://x-access-token@github.com': ";
    const answered = [
      "Username for 'https://github.com': ",
      own,
      "Password for 'https://x-access-token@github.com/a/b': ",
    ];
    const refused = [
      "Password for 'https://x-access-token@github.com.evil.test': ",
      "Password for 'https://x-access-token@evil.test/github.com': ",
      "Password for 'https://x-access-token@github.com/@evil.test': ",
      "Password for 'http://x-access-token@github.com': ",
      "Password for 'https://somebody@github.com': ",
      "Enter passphrase for key: ",
    ];
    const answers = ["0 x-access-token", "0 the-token", "0 the-token", ...refused.map(() => "1")];
    expect(ask([...answered, ...refused], ...secret)).toEqual(answers);
    expect(ask([own])).toEqual(["1"]);
    const other = ["--env", "PODBOT_GIT_HOST=git.test"];
    const prompts = ["Password for 'https://x-access-token@git.test': ", own];
    expect(ask(prompts, ...secret, ...other)).toEqual(["0 the-token", "1"]);
  });

  test("runs containers of its own, as Podbot has it run", async () => {
    const parts = "bin lib lib64 usr/bin/sh usr/bin/dash usr/lib64 usr/lib/$(uname -m)-linux-gnu/libc.so.6";
    const loader = "usr/lib/$(uname -m)-linux-gnu/ld-linux*";
    const script = `cd / && tar -cf - ${parts} ${loader} 2>/dev/null | podman import --quiet - inner >/dev/null &&
      podman run --rm inner sh -c 'echo in a box in a box'`;
    const words = ["run", "--quiet", "--engine-socket", podman.socket, "--image", tag, "--agent", "custom", "--"];
    const run = () => world.podbot([...words, "sh", "-c", script]);
    expect((await run()).status).not.toBe(0);
    const gaps = '["inner-capabilities", "inner-protection"]';
    world.file("home/.config/podbot/config.toml", `[sandbox]\ncontainers = "inner"\naccept_gaps = ${gaps}\n`);
    const nested = await run();
    world.file("home/.config/podbot/config.toml", "");
    expect(nested).toEqual({ status: 0, stdout: "in a box in a box\n", stderr: "" });
  });

  test("is up to date at once where nothing has changed", async () => {
    const { status, stdout, stderr } = await world.podbot(command("build", "--agents", "gemini", "--base", "auto"));
    expect({ status, stdout: stdout.slice(0, 11), stderr }).toEqual({ status: 0, stdout: "up to date:", stderr: "" });
  });

  test("gets one agent more, and only that one is installed", async () => {
    const before = podman.cli("image", "inspect", "--format", "{{.Id}}", tag).stdout.trim();
    const more = await world.podbot(command("build", "--agents", "qwen,gemini", "--base", "debian"));
    expect(more.status).toBe(0);
    expect(stepsOf(more)).toEqual([
      "Debian packages, as before",
      "npm, as before",
      `Gemini CLI ${versionOf("gemini")}, as before`,
      `Qwen Code ${versionOf("qwen")}`,
    ]);
    expect(inside("qwen --version").stdout).toBe(versionOf("qwen"));
    // The one of before is gone, but for what both have.
    expect(podman.cli("image", "inspect", before).status).not.toBe(0);
  });

  test("is built behind a proxy that reads all TLS, of which it keeps nothing but whom to trust", async () => {
    await using interceptor = await openInterceptor(join(world.directory, "interceptor"));
    const env = {
      ...world.env,
      HTTP_PROXY: interceptor.url,
      HTTPS_PROXY: interceptor.url,
      SSL_CERT_FILE: interceptor.authorities,
    };
    const words = command("build", "--agents", "gemini", "--base", "debian");
    const { status, stderr } = await world.podbot(
      words.filter((word) => word !== "--host-network"),
      { env },
    );
    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
    expect(stderr).not.toContain(`Gemini CLI ${versionOf("gemini")}, as before`);
    expect(interceptor.hosts.size).toBeGreaterThan(0);
    const extra = "awk '/BEGIN/ { n += 1 } END { print n }' /usr/local/share/ca-certificates/podbot/*.crt";
    expect(Number(inside(extra).stdout)).toBeGreaterThan(0);
    const told = [podman.cli("image", "inspect", tag), podman.cli("history", "--no-trunc", tag)];
    const { port } = new URL(interceptor.url);
    for (const secret of ["hush-hush", `:${port}`])
      expect(told.map(({ stdout }) => stdout).join()).not.toContain(secret);
  });

  test("is not built of agents or on a base that nobody knows", async () => {
    const unknown = await world.podbot(command("build", "--agents", "gemini,jemini"));
    expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining("AGENT_UNKNOWN")]);
    const nowhere = await world.podbot(command("build", "--base", "127.0.0.1:9/nothing:1"));
    expect([nowhere.status, nowhere.stderr]).toEqual([125, expect.stringContaining("(IMAGE_BASE_MISSING;")]);
    const none = await world.podbot([...command("show"), "--tag", "localhost/none:1"]);
    expect([none.status, none.stderr]).toEqual([125, expect.stringContaining("(IMAGE_NOT_FOUND;")]);
  });

  test("leaves nothing of what it was built in, also where that was interrupted", async () => {
    // Podman ends a step that it has begun, and then removes that.
    await until(() => podman.cli("ps", "--all", "--external", "--quiet").stdout === "");
  });
});
