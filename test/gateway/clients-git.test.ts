import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";
import { makeRepositories, serveGit, serveGitDaemon } from "./git-server.ts";
import { allow, auditOf, expectAsked, Town } from "./stage.ts";

const town = new Town();
const repositories = mkdtempSync(join(tmpdir(), "git-"));
beforeAll(async () => {
  makeRepositories(repositories, "project.git", "other.git");
  await town.https("git.example.com", serveGit(repositories));
  await town.https("whole.example.com", serveGit(repositories));
  const backend = serveGit(repositories);
  await town.https1("silent.example.com", (incoming, response) => {
    if (incoming.headers.connection === "close") {
      response.shouldKeepAlive = true;
      response.once("finish", () => setTimeout(() => incoming.socket.destroy(), 3));
    }
    response.removeHeader("connection");
    backend(incoming, response);
  });
  await town.tcp("daemon.example.com", serveGitDaemon(repositories));
});
afterAll(async () => {
  await town[Symbol.asyncDispose]();
  rmSync(repositories, { recursive: true, force: true });
});

function openWorld(config: { readonly domains?: readonly string[]; readonly rules?: readonly object[] }): World {
  const world = newWorld();
  allow(world, town, { network: config as never, commands: { git: true } as never });
  copyFileSync(town.trustFile, join(world.project, "town.pem"));
  return world;
}

const run = (world: World, ...lines: readonly string[]) =>
  world.podbot(["sandbox", "--", "sh", "-c", lines.join("\n")]);
const head = (name: string) =>
  spawnSync("git", ["-C", join(repositories, name), "-c", "safe.directory=*", "log", "-1", "--format=%s", "main"], {
    encoding: "utf8",
  }).stdout.trim();

describe("git over HTTPS", () => {
  test("clones and pushes where its repository is allowed; another is refused, and so is a push by a rule", async () => {
    const world = openWorld({
      rules: [
        { host: "git.example.com", path: "/project.git/**" },
        { host: "git.example.com", path: "/other.git/**", methods: ["GET"] },
      ],
    });
    const { stdout, stderr } = await run(
      world,
      "git clone -q https://git.example.com/project.git && cd project",
      "git commit -q --allow-empty -m second && git push -q origin main && echo pushed",
      "git ls-remote https://git.example.com/third.git || echo no third",
      "git push -q https://git.example.com/other.git main:another || echo no push",
    );
    expect(stdout, stderr).toBe("pushed\nno third\nno push\n");
    expect(stderr).toContain("The requested URL returned error: 403");
    expect(head("project.git")).toBe("second");
    const lines = await auditOf(world);
    const at = (name: string) => lines.filter((line) => line.includes(`/${name}.git/`));
    expect(lines).toHaveLength(at("project").length + at("other").length + at("third").length);
    expect(at("project").every((line) => line.startsWith("allowed"))).toBe(true);
    expect(at("project")).toContain("allowed POST https://git.example.com/project.git/git-receive-pack 200");
    expect(at("third")).toEqual(["refused GET https://git.example.com/third.git/info/refs 403 (path)"]);
    expect(at("other")).toEqual([
      "allowed GET https://git.example.com/other.git/info/refs 200",
      "refused POST https://git.example.com/other.git/git-receive-pack 403 (method)",
    ]);
  });

  test("pushes to a server of HTTP/1.1 that ends connections without saying so", async () => {
    const world = openWorld({ rules: [{ host: "silent.example.com", path: "/**" }] });
    const { stdout, stderr } = await run(
      world,
      "git clone -q https://silent.example.com/other.git && cd other",
      // Beyond its buffer, git asks once without a body before it sends the pack.
      "for n in 1 2 3 4; do",
      "  head -c 150000 /dev/urandom > big && git add . && git commit -qm $n",
      "  timeout 10 git -c http.postBuffer=65536 push -q origin HEAD:b$n && echo pushed",
      "done",
    );
    expect(stdout, stderr).toBe("pushed\n".repeat(4));
  });

  test("sees the server itself where the whole host is allowed, in one connection", async () => {
    const world = openWorld({ domains: ["whole.example.com"] });
    const { stdout, stderr } = await run(
      world,
      "GIT_SSL_CAINFO=town.pem git ls-remote https://whole.example.com/project.git HEAD | cut -f 2",
      "git ls-remote https://nobody.example.com/project.git HEAD || echo refused",
    );
    expect(stdout, stderr).toBe("HEAD\nrefused\n");
    await expectAsked(
      world,
      "allowed tls whole.example.com:443",
      "refused GET https://nobody.example.com/project.git/info/refs 403 (host)",
    );
  });
});

test("git's own protocol goes by host and port", async () => {
  const world = openWorld({ domains: ["daemon.example.com:9418"] });
  const { stdout, stderr } = await run(
    world,
    "git ls-remote git://daemon.example.com/project.git HEAD | cut -f 2",
    "git ls-remote git://nobody.example.com/project.git HEAD || echo refused",
  );
  expect(stdout, stderr).toBe("HEAD\nrefused\n");
  await expectAsked(world, "allowed tcp daemon.example.com:9418", "refused tcp nobody.example.com:9418 (host)");
});

describe("ssh", () => {
  let server: Awaited<ReturnType<typeof serveSsh>>;
  beforeAll(async () => {
    server = await serveSsh();
  });
  afterAll(() => server?.[Symbol.dispose]());

  function openSshWorld(): World {
    town.reach["ssh.example.com"] = `127.0.0.1:${server.port}`;
    const world = openWorld({ domains: ["ssh.example.com:22"] });
    mkdirSync(join(world.project, "ssh"));
    for (const name of ["key", "known_hosts"]) {
      writeFileSync(join(world.project, "ssh", name), readFileSync(join(server.directory, name)), { mode: 0o600 });
    }
    return world;
  }
  const options =
    "-F none -i ssh/key -o UserKnownHostsFile=ssh/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes";
  const user = userInfo().username;

  test("logs in where the host is allowed; another is refused at once", async () => {
    const world = openSshWorld();
    const { stdout, stderr } = await run(
      world,
      `ssh ${options} ${user}@ssh.example.com 'echo hello from $((6 * 7))'`,
      `ssh ${options} ${user}@nobody.example.com true || echo refused`,
      `ssh ${options} -p 2200 ${user}@ssh.example.com true || echo refused`,
    );
    expect(stdout, stderr).toBe("hello from 42\nrefused\nrefused\n");
    expect(stderr).toContain("port 2200: Connection refused");
    await expectAsked(world, "allowed tcp ssh.example.com:22", "refused tcp nobody.example.com:22 (host)");
  });

  test("carries git, and what it carries is not looked at", async () => {
    const world = openSshWorld();
    const { stdout, stderr } = await run(
      world,
      `GIT_SSH_COMMAND='ssh ${options}' git ls-remote ${user}@ssh.example.com:${repositories}/project.git HEAD | cut -f 2`,
    );
    expect(stdout, stderr).toBe("HEAD\n");
    await expectAsked(world, "allowed tcp ssh.example.com:22");
  });
});

/** A real server for the user who runs the tests, and nobody else. */
async function serveSsh() {
  const directory = mkdtempSync(join(tmpdir(), "sshd-"));
  const at = (name: string) => join(directory, name);
  for (const name of ["host", "key"]) {
    const { status, stderr } = spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stderr);
  }
  const [kind, blob] = readFileSync(at("host.pub"), "utf8").split(" ");
  writeFileSync(at("known_hosts"), `ssh.example.com,nobody.example.com ${kind} ${blob}\n`);
  copyFileSync(at("key.pub"), at("authorized_keys"));
  const settings = {
    HostKey: at("host"),
    AuthorizedKeysFile: at("authorized_keys"),
    PidFile: "none",
    StrictModes: "no",
    UsePAM: "no",
    PasswordAuthentication: "no",
    PermitRootLogin: "prohibit-password",
  };
  const words = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const sshd = ["/usr/sbin/sshd", "/usr/bin/sshd"].find((path) => existsSync(path)) ?? "sshd";
  // Of root it wants a directory that only those machines have that serve: it gets one of its own.
  const own = 'mount -n -t tmpfs none /run && mkdir /run/sshd && exec "$@"';
  const [file = "", ...before] =
    process.getuid?.() === 0 ? ["unshare", "--mount", "sh", "-c", own, "sh"] : ["env", "--"];
  const children = new Set<ReturnType<typeof spawn>>();
  // A process for each connection, as inetd starts it: nothing listens but we.
  const listener = createServer((socket) => {
    const child = spawn(file, [...before, sshd, "-i", "-e", "-f", "/dev/null", ...words], {
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      stdio: ["pipe", "pipe", "ignore"],
    });
    children.add(child.once("close", () => children.delete(child)));
    socket.on("error", () => {}).pipe(child.stdin?.on("error", () => {}) as never);
    child.stdout?.pipe(socket);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as { readonly port: number };
  return {
    port,
    directory,
    [Symbol.dispose]() {
      listener.close();
      for (const child of children) child.kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
