import { execFile, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createWebServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createSecureServer } from "node:tls";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { sessionsOf } from "../cli/terminal/remains.ts";
import { eventually } from "../eventually.ts";
import { openssl } from "../openssl.ts";
import { openTerminal } from "../terminal.ts";
import { program } from "../world.ts";
import { EngineWorld } from "./engine-box.ts";
import { engine, engineNames, type TestEngine } from "./engines/engine.ts";
import { openProxy } from "./proxy.ts";
import { podbot, start } from "./shipped.ts";

/** What the contract says of delivery, configuration, engines, credentials, mounts and exec, on real engines. */
const names = engineNames().filter((name) => name === "podman" || name === "docker");

describe.each(names)("the contract on %s", (name) => {
  /** What Podbot says and decides by itself is shown with one engine; with the other, what is asked of it or left to it. */
  const isWhole = name === "podman";
  let it: TestEngine;
  let world: EngineWorld;
  beforeAll(() => {
    it = engine(name);
    world = new EngineWorld(it);
  });
  afterAll(async () => {
    await podbot(world, ["stop", "--all", "--time", "0"]);
    await expectNothing();
    world.remove();
  });

  const on = () => ["--engine-socket", it.socket, "--image", it.image];
  const run = (...words: string[]) => podbot(world, ["run", "--agent", "custom", ...words]);
  const configure = (text: string) => world.file("home/.config/podbot/config.toml", text);
  const forget = () => rmSync(join(world.home, ".config"), { recursive: true, force: true });
  async function expectNothing(): Promise<void> {
    await eventually(() => {
      expect(world.containers()).toEqual([]);
      expect(sessionsOf(world).filter((each) => each !== "engines")).toEqual([]);
    });
  }

  if (isWhole)
    describe("the library", () => {
      test("does all without a word, a way out of the process or a type of the command line", async () => {
        world.file("elsewhere/file");
        const result = join(world.directory, "result.json");
        const config = { image: it.image, engine_socket: it.socket };
        const mount = { workspace: { source: "host_mount", host_path: join(world.directory, "elsewhere") } };
        const errors = {
          image: { config: { ...config, image: "localhost/podbot-no-such-image:1" } },
          blank: { config: { ...config, image: "  " } },
          socket: { config: { ...config, engine_socket: join(world.directory, "nowhere.sock") } },
          mount: { config: { ...config, ...mount } },
          agent: { config, agent: "no-such-agent" },
        };
        const input = { library: pathToFileURL(join(program, "../index.js")).href, cwd: world.project, config, errors };
        const script = world.file("embedding.mjs", embedding);
        const child = await promisify(execFile)(process.execPath, [script, JSON.stringify(input), result], {
          cwd: "/",
          env: world.env as NodeJS.ProcessEnv,
        });
        expect(child).toEqual({ stdout: "", stderr: "" });
        expect(JSON.parse(readFileSync(result, "utf8"))).toEqual({
          errors: {
            image: ["EngineError", "IMAGE_NOT_FOUND"],
            blank: ["ConfigError", expect.stringMatching(/^(IMAGE_REQUIRED|CONFIG_INVALID)$/)],
            socket: ["EngineError", "ENGINE_SOCKET_NOT_FOUND"],
            mount: ["PolicyError", "MOUNT_REFUSED"],
            agent: ["ConfigError", "AGENT_UNKNOWN"],
          },
          plan: { command: ["sh", "-c", expect.any(String)], cwd: world.project },
          furnished: [expect.objectContaining({ kind: "warning" }), expect.objectContaining({ kind: "warning" })],
          listed: 1,
          stdout: "out\n",
          stderr: "err\n",
          code: 7,
          exec: 9,
          left: 0,
          // Nobody has ended the process: it had nothing left to do.
          end: "by itself",
        });
        // The command line, which stands on the same library, does speak.
        const spoken = await run(...on(), "--", "sh", "-c", "echo out; exit 7");
        expect(spoken).toMatchObject({ status: 7, stdout: "out\n", stderr: expect.stringContaining("is mounted at") });
        await expectNothing();
      });
    });

  describe("the engine's socket", () => {
    test("cannot be reached from a workspace that it lies in, while others on the host reach it there", async () => {
      await using proxy = await openProxy({ directory: world.project }, it.socket);
      const ask = `import socket
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("${proxy.path}")
s.send(b"GET /_ping HTTP/1.0\\r\\n\\r\\n"); print(s.recv(100).split(b"\\r\\n")[0].decode())`;
      const words = ["--quiet", "--engine-socket", proxy.path, "--image", it.image];
      const inside = await run(...words, "--", "python3", "-c", ask);
      expect(inside).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(/refused|denied/i) });
      const outside = await promisify(execFile)("python3", ["-c", ask]);
      expect(outside.stdout).toMatch(/^HTTP\/1\.. 200/);
    });

    test("is not shown with a directory around it, wherever it lies, nor by its name", async () => {
      for (const parent of ["/tmp", "/var/tmp"]) {
        const directory = mkdtempSync(`${parent}/podbot-contract-`);
        try {
          await using proxy = await openProxy({ directory }, it.socket);
          const look = `test -S ${proxy.path} && echo socket; ls ${directory}`;
          const [name] = readdirSync(directory);
          expect(spawnSync("sh", ["-c", look], { encoding: "utf8" }).stdout).toBe(`socket\n${name}\n`);
          const words = ["--quiet", "--engine-socket", proxy.path, "--image", it.image];
          for (const path of [directory, proxy.path]) {
            for (const flag of ["--ro", "--rw"]) {
              const { stdout } = await run(...words, flag, path, "--", "sh", "-c", look);
              expect({ path, flag, stdout }).toEqual({ path, flag, stdout: path === directory ? `${name}\n` : "" });
            }
          }
        } finally {
          rmSync(directory, { recursive: true });
        }
      }
    });

    test("is not handed in by a flag, nor named by a variable of the caller's", async () => {
      const refused = await run("--docker", ...on(), "--", "true");
      expect(refused).toMatchObject({ status: 125, stdout: "", stderr: expect.stringContaining("GAP") });
      await expectNothing();
      for (const variable of ["DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST"]) {
        world.env[variable] = `unix://${it.socket}`;
        // By these it is found, and they stay outside.
        const seen = await run("--quiet", "--wall", "engine", "--image", it.image, "--", "env");
        delete world.env[variable];
        expect({ variable, status: seen.status }).toEqual({ variable, status: 0 });
        expect(seen.stdout).toContain("HOME=/root\n");
        expect(seen.stdout).not.toMatch(/_HOST=|sock/);
      }
    });
  });

  if (isWhole)
    describe("the configuration", () => {
      test("is the default's, the file's, the environment's or the flag's, each before the one before", async () => {
        const socket = ["--engine-socket", it.socket];
        try {
          expect((await run(...socket, "--", "true")).stderr).toContain("IMAGE_REQUIRED");
          configure('image = "localhost/podbot-of-file:1"\n');
          expect((await run(...socket, "--", "true")).stderr).toContain("localhost/podbot-of-file:1");
          world.env["PODBOT_IMAGE"] = "localhost/podbot-of-environment:1";
          const second = await run(...socket, "--", "true");
          expect(second.stderr).toContain("localhost/podbot-of-environment:1");
          expect(second.stderr).not.toContain("of-file");
          expect(await run("--quiet", ...on(), "--", "echo", "flag")).toEqual({
            status: 0,
            stdout: "flag\n",
            stderr: "",
          });
          // The same with the engine: what is named there is that one or an error.
          world.env["PODBOT_IMAGE"] = it.image;
          configure(`engine_socket = "${world.directory}/of-file.sock"\n`);
          expect((await run("--", "true")).stderr).toContain("of-file.sock");
          world.env["PODBOT_ENGINE_SOCKET"] = `${world.directory}/of-environment.sock`;
          expect((await run("--", "true")).stderr).toContain("of-environment.sock");
          expect((await run("--quiet", ...socket, "--", "echo", "flag")).stdout).toBe("flag\n");
        } finally {
          for (const variable of ["PODBOT_IMAGE", "PODBOT_ENGINE_SOCKET"]) delete world.env[variable];
          forget();
        }
      });

      test("of earlier times works as it is, with nothing but base_dir and the mode", async () => {
        const engineKeys = `engine_socket = "unix://${it.socket}"\nimage = "${it.image}"\n`;
        configure(`${engineKeys}[workspace]\nbase_dir = "/work"\n[agent]\nmode = "podbot"\n`);
        try {
          expect(await run("--quiet", "--", "echo", "legacy")).toEqual({ status: 0, stdout: "legacy\n", stderr: "" });
          const agent = `kind = "custom"\ncommand = "sh"\nargs = ["-c", "echo $0; exit 4", "configured"]\n`;
          configure(`${engineKeys}[workspace]\nbase_dir = "/work"\n[agent]\nmode = "podbot"\n${agent}`);
          expect(await podbot(world, ["run", "--quiet"])).toMatchObject({ status: 4, stdout: "configured\n" });
        } finally {
          forget();
        }
      });
    });

  describe("an engine's address", () => {
    test("may be a path or have any scheme of the contract, and a session runs behind each", async () => {
      await using plain = await relay(createServer({ allowHalfOpen: true }), it.socket);
      const certificates = makeCertificates(world.directory);
      const file = (each: string) => readFileSync(join(certificates, each));
      const identity = { ca: file("ca.pem"), cert: file("cert.pem"), key: file("key.pem") };
      const server = createSecureServer({ ...identity, requestCert: true, rejectUnauthorized: true });
      await using secure = await relay(server, it.socket, "secureConnection");
      const addresses = [
        it.socket,
        `unix://${it.socket}`,
        `tcp://127.0.0.1:${plain.port}`,
        `http://127.0.0.1:${plain.port}`,
        `https://127.0.0.1:${secure.port}`,
      ];
      try {
        for (const address of addresses) {
          // Of Docker's variables this one alone makes tcp:// mean TLS.
          if (address.startsWith("https:")) world.env["DOCKER_CERT_PATH"] = certificates;
          const words = ["--quiet", "--engine-socket", address, "--image", it.image, "--"];
          const { status, stdout, stderr } = await run(...words, "sh", "-c", "cat; echo through; exit 3");
          expect({ address, status, stdout, stderr }).toEqual({ address, status: 3, stdout: "through\n", stderr: "" });
        }
      } finally {
        delete world.env["DOCKER_CERT_PATH"];
      }
      expect([plain.connections() > 0, secure.connections() > 0]).toEqual([true, true]);
      // Whom the authority has not signed for is not let in.
      const stranger = await run(
        "--engine-socket",
        `https://127.0.0.1:${secure.port}`,
        "--image",
        it.image,
        "--",
        "id",
      );
      expect(stranger).toMatchObject({ status: 125, stdout: "", stderr: expect.stringContaining("CONNECTION_FAILED") });
    });

    if (isWhole)
      test("is blamed for its path if it has one, and over TCP never", async () => {
        const failed = async (address: string) => {
          const { status, stdout, stderr } = await run("--engine-socket", address, "--image", it.image, "--", "true");
          expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
          expect(stderr).toContain("way out:");
          return /\((ENGINE_\w+);/.exec(stderr)?.[1];
        };
        const closed = await relay(createServer(), it.socket);
        await closed[Symbol.asyncDispose]();
        const web = createWebServer((_request, response) => response.end("hello")).listen(0, "127.0.0.1");
        await once(web, "listening");
        try {
          expect(await failed(`unix://${world.directory}/nowhere.sock`)).toBe("ENGINE_SOCKET_NOT_FOUND");
          expect(await failed(`tcp://127.0.0.1:${closed.port}`)).toBe("ENGINE_CONNECTION_FAILED");
          expect(await failed(`http://127.0.0.1:${closed.port}`)).toBe("ENGINE_CONNECTION_FAILED");
          expect(await failed(`tcp://127.0.0.1:${portOf(web)}`)).toBe("ENGINE_HEALTH_CHECK_FAILED");
          expect(await failed("//./pipe/docker_engine")).toBe("ENGINE_CONNECTION_FAILED");
        } finally {
          web.close();
        }
      });
  });

  describe("a container is asked for", () => {
    /** What the engine was asked, whether or not this machine can give it. */
    async function asked(sandbox: object): Promise<Powers> {
      await using proxy = await openProxy(world, it.socket);
      const planned = await world.plan({ engine_socket: proxy.path, sandbox });
      const session = await startSession(planned).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "CONTAINER_START_FAILED" });
        return null;
      });
      // The engine may still be at work at removing the one before.
      if (session !== null) {
        await eventually(() => expect(world.containers()).toEqual([`podbot-${session.id}`]));
        await session[Symbol.asyncDispose]();
      }
      return powersOf(proxy.said());
    }
    const fuse = ["/dev/fuse"];

    test("as privileged and with nothing else, whatever is said of the device and of labels", async () => {
      const nothing = { privileged: true, add: undefined, drop: undefined, devices: undefined, labels: undefined };
      for (const more of [
        {},
        { mount_dev_fuse: true, selinux_label_mode: "keep_default" },
        { mount_dev_fuse: false, selinux_label_mode: "disable_for_container" },
      ]) {
        expect(await asked({ privileged: true, ...more })).toEqual(nothing);
      }
    });

    test("without privileges; with the device and SYS_ADMIN together, or with neither; without labels, or as they are", async () => {
      const accept_gaps = ["inner-capabilities", "inner-protection"];
      const without = await asked({ mount_dev_fuse: false });
      expect(without).toMatchObject({ privileged: false, drop: ["ALL"], devices: [], labels: "off" });
      expect(without.add).not.toContain("SYS_ADMIN");
      expect(await asked({})).toEqual(without);
      const withFuse = await asked({ mount_dev_fuse: true, accept_gaps });
      expect(withFuse).toMatchObject({ privileged: false, drop: ["ALL"], devices: fuse, labels: "off" });
      expect(withFuse.add).toContain("SYS_ADMIN");
      const kept = await asked({ mount_dev_fuse: true, selinux_label_mode: "keep_default", accept_gaps });
      expect(kept).toEqual({ ...withFuse, labels: "kept" });
    });
  });

  describe("credentials", () => {
    beforeAll(() => {
      world.file("home/.claude/.credentials.json", "secret of claude\n", 0o600);
      world.file("home/.codex/auth.json", "secret of codex\n", 0o600);
    });
    afterAll(() => {
      for (const each of [".claude", ".codex"]) rmSync(join(world.home, each), { recursive: true, force: true });
      forget();
    });

    if (isWhole)
      test.each([
        [true, true, "/root/.claude, /root/.codex"],
        [true, false, "/root/.claude"],
        [false, true, "/root/.codex"],
        [false, false, null],
      ])("are those that are wanted (claude %j, codex %j), told in order", async (claude, codex, told) => {
        configure(`[creds]\ncopy_claude = ${claude}\ncopy_codex = ${codex}\n`);
        const { status, stdout, stderr } = await run(
          ...on(),
          "--",
          "sh",
          "-c",
          "cd; ls -d .claude .codex 2>/dev/null; :",
        );
        const expected = [...(claude ? [".claude\n"] : []), ...(codex ? [".codex\n"] : [])].join("");
        expect({ status, stdout }).toEqual({ status: 0, stdout: expected });
        expect(/copied to the container: (.*)/.exec(stderr)?.[1] ?? null).toBe(told);
      });

    test("are in the container before it starts, which comes after it was made", async () => {
      configure("");
      await using proxy = await openProxy(world, it.socket);
      const { status } = await run("--engine-socket", proxy.path, "--image", it.image, "--", "true");
      expect(status).toBe(0);
      const at = (pattern: RegExp) => proxy.requests.findIndex((line) => pattern.test(line));
      const order = [at(/^POST .*\/containers\/create/), at(/^PUT .*\/archive\?.*path=%2Froot/), at(/^POST .*\/start/)];
      expect(order).not.toContain(-1);
      expect(order).toEqual(order.toSorted((one, other) => one - other));
    });

    test("that the engine does not take are an error with the container's name, and nothing starts", async () => {
      configure("");
      let taken = "";
      await using proxy = await openProxy(world, it.socket, (line) => {
        const [, container = ""] = /^PUT \S+\/containers\/([^/?]+)\/archive/.exec(line) ?? [];
        if (container === "" || taken !== "") return;
        taken = container;
        it.cli("rm", "--force", container);
      });
      const words = ["run", "--json", "--agent", "custom", "--engine-socket", proxy.path, "--image", it.image];
      const { status, stdout, stderr } = await podbot(world, [...words, "--", "echo", "started"]);
      expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
      const { error } = JSON.parse(stderr.split("\n").findLast((line) => line.startsWith("{")) ?? "{}");
      expect(error).toMatchObject({ code: "UPLOAD_FAILED", details: { container: expect.stringMatching(/^podbot-/) } });
      // It is asked for by its id, and called by its name.
      expect(taken).toMatch(/^[0-9a-f]{64}$/);
      expect(stderr).not.toContain("secret of");
      expect(proxy.requests.filter((line) => /\/start/.test(line))).toEqual([]);
      await expectNothing();
    });
  });

  if (isWhole)
    describe("an allowed value of the caller's", () => {
      test("is in the agent's environment, and in nothing that Podbot says or writes, whatever goes wrong", async () => {
        const secret = randomBytes(16).toString("hex");
        const allowed = '[agent]\nenv_allowlist = ["TOKEN_OF_OWNER", "NOT_SET"]\n';
        world.env["TOKEN_OF_OWNER"] = secret;
        const heard: string[] = [];
        const listen = async (...words: string[]) => {
          const { status, stdout, stderr } = await podbot(world, words);
          heard.push(stdout, stderr);
          return { status, stdout };
        };
        try {
          configure(allowed);
          const agent = ["run", "--agent", "custom", ...on()];
          const length = 'echo "${#TOKEN_OF_OWNER} ${NOT_SET-none}"';
          expect(await listen(...agent, "--", "sh", "-c", length)).toEqual({ status: 0, stdout: "32 none\n" });
          expect((await listen(...agent, "--debug", "--", "no-such-program")).status).toBe(127);
          expect((await listen(...agent, "--json", "--", "no-such-program")).status).toBe(127);
          expect(
            (await listen("run", "--agent", "custom", "--image", "x", "--engine-socket", "/no", "--", "id")).status,
          ).toBe(125);
          expect((await listen(...agent, "--dry-run", "--", "true")).stdout).toContain("TOKEN_OF_OWNER");
          expect((await listen(...agent, "--dry-run", "--json", "--debug", "--", "true")).status).toBe(0);
          expect((await listen("config", "show", "--json")).stdout).toContain("TOKEN_OF_OWNER");
          const kept = await listen(...agent, "--detach", "--", "sh", "-c", `${length}; sleep 300`);
          const id = kept.stdout.trim();
          await eventually(async () => expect((await listen("logs", id)).stdout).toBe("32 none\n"));
          expect((await listen("ps", "--json")).stdout).toContain(id);
          // More processes of the session have it, too.
          expect((await listen("exec", id, "--", "sh", "-c", length)).stdout).toBe("32 none\n");
          expect((await listen("logs", "--json", id)).status).toBe(0);
          const files = ["-r", "--text", "--files-with-matches", "--devices=skip"];
          const grep = (word: string) =>
            spawnSync("grep", [...files, word, world.directory], { encoding: "utf8" }).stdout;
          expect(grep(secret)).toBe("");
          expect(grep("TOKEN_OF_OWNER")).toContain(".config/podbot/config.toml");
          expect((await listen("stop", "--time", "0", id)).status).toBe(0);
          expect(heard.join("\n")).not.toContain(secret);
          // Whoever asks for it gets it: only then it is heard.
          expect((await listen(...agent, "--", "sh", "-c", "echo $TOKEN_OF_OWNER")).stdout).toBe(`${secret}\n`);
          configure("");
          expect(await podbot(world, [...agent, "--quiet", "--", "sh", "-c", length])).toEqual({
            status: 0,
            stdout: "0 none\n",
            stderr: "",
          });
        } finally {
          delete world.env["TOKEN_OF_OWNER"];
          forget();
        }
      });
    });

  if (isWhole)
    describe("a directory of the host's", () => {
      test("is judged and told with every link resolved, those of the roots, too", async () => {
        const real = world.file("real/roots/repo/file", "allowed\n");
        world.file("real/other/file", "other\n");
        symlinkSync("real/roots", join(world.directory, "roots"));
        const source = (path: string) =>
          `[workspace]\nsource = "host_mount"\nhost_path = "${world.directory}/${path}"\n`;
        const roots = `mounts.allowed_roots = ["${world.directory}/roots"]\n`;
        const at = 'container_path = "/workspace/here"\n';
        const script = ["--", "sh", "-c", "pwd; cat file"];
        try {
          configure(`${roots}${source("roots/repo")}${at}`);
          const mounted = await run(...on(), ...script);
          expect(mounted).toMatchObject({ status: 0, stdout: "/workspace/here\nallowed\n" });
          const told = `podbot: ${join(real, "..")} is mounted at /workspace/here, read-write\n`;
          expect(mounted.stderr).toContain(told);
          // The link of the root is not the place where it leads to: beside that, nothing is allowed.
          for (const path of ["real/other", "roots/../other", "real"]) {
            configure(`${roots}${source(path)}${at}`);
            const refused = await run(...on(), ...script);
            expect(refused).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("MOUNT_REFUSED") });
          }
        } finally {
          forget();
        }
      });
    });

  describe("a process in a session", () => {
    let id = "";
    beforeAll(async () => {
      const { stdout } = await run("--detach", "--quiet", ...on(), "--", "sleep", "300");
      id = stdout.trim();
    });
    const exec = (...words: string[]) => podbot(world, ["exec", ...words]);

    if (isWhole)
      test("has its own status, whichever it is", async () => {
        for (const status of [0, 1, 2, 77, 124, 125, 126, 127, 128, 254, 255]) {
          expect(await exec(id, "--", "sh", "-c", `exit ${status}`)).toEqual({ status, stdout: "", stderr: "" });
          expect((await exec("--detach", id, "--", "sh", "-c", `exit ${status}`)).status).toBe(status);
        }
        // A status is a byte for the kernel, too: none is negative or greater.
        for (const [given, status] of [
          ["256", 0],
          ["-1", 255],
          ["300", 44],
        ] as const) {
          expect((await exec(id, "--", "python3", "-c", `import os; os._exit(${given})`)).status).toBe(status);
        }
      });

    if (isWhole)
      test("has a terminal only where it is attached and both input and output are one", async () => {
        const screen = openTerminal(world);
        const which = `sh -c 'for n in 0 1 2; do test -t $n && printf "$n "; done; echo are terminals'`;
        screen.type(`podbot exec ${id} -- ${which}; echo over $((8 + 1))`);
        await screen.sees(/^0 1 2 are terminals\s+over 9$/m);
        for (const [at, line] of [
          `echo | podbot exec ${id} -- ${which}`,
          `podbot exec ${id} -- ${which} </dev/null`,
          `podbot exec ${id} -- ${which} | cat`,
          `podbot exec --detach ${id} -- sh -c '${which.slice(7, -1)} >detached'; cat detached`,
        ].entries()) {
          screen.type(`clear; ${line}; echo over $((${at} + 10))`);
          await screen.sees(new RegExp(`^over ${at + 10}$`, "m"));
          expect(screen.screen(), line).toMatch(/^are terminals$/m);
        }
      });

    if (isWhole)
      test("does not fail for a size that the terminal does not say", async () => {
        const screen = openTerminal(world);
        screen.type(`stty rows 0 cols 0; podbot exec ${id} -- sh -c 'test -t 0 && stty size && echo fine'`);
        await screen.sees(/^24 80\s+fine$/m);
      });

    test("that nobody can say the end of has failed", async () => {
      const running = start(world, ["exec", id, "--", "sh", "-c", "echo go; sleep 300"]);
      await eventually(() => expect(running.said()).toBe("go\n"));
      const detached = start(world, ["exec", "--detach", id, "--", "sleep", "300"]);
      await eventually(async () => {
        const seen = await exec(id, "--", "sh", "-c", "grep -lx sleep /proc/[0-9]*/comm | wc -l");
        expect(Number(seen.stdout)).toBeGreaterThanOrEqual(3);
      });
      // The warden itself is killed: its kernel sends no last words.
      expect(it.cli("kill", "--signal", "KILL", `podbot-${id}`).status).toBe(0);
      expect(await running.ended).toMatchObject({
        status: 125,
        stderr: expect.stringMatching(/\((BOX_LOST|EXEC_FAILED);/),
      });
      expect(await detached.ended).toMatchObject({ status: 125, stdout: "" });
      await podbot(world, ["stop", id]);
      await expectNothing();
    });
  });

  if (isWhole)
    describe("the standard output of podbot run", () => {
      const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, each) => each)), Buffer.from("\r\n\n")]);

      test("is the agent's, byte by byte, while Podbot's own words go elsewhere", () => {
        const input = Buffer.concat([bytes, randomBytes(3_000_000), bytes]);
        // With progress and warnings, and with as much on the other stream.
        const words = [program, "run", "--debug", "--agent", "custom", ...on(), "--", "tee", "/dev/stderr"];
        const ended = spawnSync(process.execPath, words, {
          cwd: world.project,
          env: world.env as NodeJS.ProcessEnv,
          input,
          maxBuffer: 64_000_000,
        });
        expect(ended.status).toBe(0);
        expect(digest(ended.stdout)).toBe(digest(input));
        expect(ended.stderr.includes("is mounted at")).toBe(true);
        expect(ended.stderr.includes(input)).toBe(true);
      });

      test.each([
        ["the command line", ["--no-such-flag"], 2],
        ["the configuration", ["--network", "no-such-mode"], 2],
        ["the engine", ["--engine-socket", "/nowhere.sock"], 125],
        ["the image", ["--image", "localhost/podbot-no-such-image:1"], 125],
        ["the program", ["no-such-program"], 127],
      ])("is empty where %s is wrong", async (_what, wrong, status) => {
        const flags = wrong[0]?.startsWith("--") ? wrong : [];
        const command = flags.length > 0 ? ["echo", "started"] : wrong;
        for (const json of [[], ["--json"]]) {
          const failed = await run(...on(), ...flags, ...json, "--", ...command);
          expect(failed).toMatchObject({ status, stdout: "", stderr: expect.stringMatching(/./) });
        }
        await expectNothing();
      });
    });

  if (isWhole)
    describe("a known agent", () => {
      test.each([
        ["claude", ["--dangerously-skip-permissions"]],
        ["codex", ["--dangerously-bypass-approvals-and-sandbox"]],
      ])("is started so that it asks nothing: %s", async (agent, flags) => {
        world.file(`home/project/bin/${agent}`, `#!/bin/sh\nprintf '%s\\n' "$@"\n`, 0o755);
        configure(`[environment.set]\nPATH = "${world.project}/bin:/usr/local/bin:/usr/bin:/bin"\n`);
        try {
          const { status, stdout, stderr } = await podbot(world, ["run", "--quiet", "--agent", agent, ...on()]);
          expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
          expect(stdout.split("\n")).toEqual(expect.arrayContaining(flags));
        } finally {
          rmSync(join(world.project, "bin"), { recursive: true });
          forget();
        }
      });
    });
});

/** A program that embeds the library, and tells what became of it in a file alone. */
const embedding = `
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
const [input, result] = [JSON.parse(process.argv[2]), process.argv[3]];
const { PodbotError, listSessions, planAgent, startSession, ...families } = await import(input.library);
const request = { agent: "custom", args: ["sh", "-c", "echo out; echo err >&2; exit 7"], cwd: input.cwd, env: process.env };
const found = { errors: {} };
for (const [name, more] of Object.entries(input.errors)) {
  const plan = async () => planAgent({ ...request, ...more });
  const error = await plan().then(() => null, (reason) => reason);
  const family = Object.entries(families).find(([, family]) => family === error?.constructor)?.[0];
  found.errors[name] = error instanceof PodbotError ? [family, error.code] : String(error);
}
const planned = await planAgent({ ...request, config: input.config });
found.plan = { command: planned.plan.command, cwd: planned.plan.cwd };
found.furnished = [];
const session = await startSession(planned, { onFurnished: (done) => found.furnished.push(done) });
try {
  found.listed = (await listSessions(process.env)).length;
  const agent = await session.run();
  agent.stdin.end();
  const [stdout, stderr, { code }] = await Promise.all([text(agent.stdout), text(agent.stderr), agent.exited]);
  Object.assign(found, { stdout, stderr, code });
  const more = await session.sandbox.exec({ argv: ["sh", "-c", "exit 9"] });
  more.stdin.end();
  more.stdout.resume();
  more.stderr.resume();
  found.exec = (await more.exited).code;
} finally {
  await session[Symbol.asyncDispose]();
}
found.left = (await listSessions(process.env)).length;
process.once("beforeExit", () => writeFileSync(result, JSON.stringify({ ...found, end: "by itself" })));
`;

interface Relay extends AsyncDisposable {
  readonly port: number;
  connections(): number;
}

/** Lets an engine be reached over TCP, as a daemon that listens there would. */
async function relay(server: Server, socket: string, event = "connection"): Promise<Relay> {
  const open = new Set<Socket>();
  let count = 0;
  server.on(event, (near: Socket) => {
    count += 1;
    const far = connect({ path: socket, allowHalfOpen: true });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on("error", () => {}).on("close", () => other.destroy());
      one.pipe(other);
    }
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: portOf(server),
    connections: () => count,
    async [Symbol.asyncDispose]() {
      for (const each of open) each.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function portOf(server: { address(): AddressInfo | string | null }): number {
  return (server.address() as AddressInfo).port;
}

/** A directory as DOCKER_CERT_PATH names it. */
function makeCertificates(directory: string): string {
  const place = join(directory, "certificates");
  mkdirSync(place);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl(place, "req", "-x509", ...key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=test CA");
  openssl(place, "req", ...key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=127.0.0.1");
  writeFileSync(join(place, "extensions"), "subjectAltName=IP:127.0.0.1\n");
  const signed = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "extensions"];
  openssl(place, "x509", "-req", "-in", "request.pem", "-out", "cert.pem", ...signed);
  return place;
}

/** What a container may do, in words that are neither Docker's nor Podman's. */
interface Powers {
  readonly privileged: unknown;
  readonly add: unknown;
  readonly drop: unknown;
  readonly devices: readonly string[] | undefined;
  readonly labels: "off" | "kept" | undefined;
}

function powersOf(said: string): Powers {
  const head = /POST \S+\/containers\/create\S* HTTP\/1\.1\r\n[\s\S]*?\r\n\r\n/.exec(said);
  const length = Number(/content-length: (\d+)/i.exec(head?.[0] ?? "")?.[1]);
  const begin = (head?.index ?? 0) + (head?.[0].length ?? 0);
  const body = JSON.parse(said.slice(begin, begin + length)) as Record<string, unknown>;
  const docker = body["HostConfig"] as Record<string, unknown> | undefined;
  if (docker !== undefined) {
    const options = docker["SecurityOpt"] as readonly string[] | undefined;
    const devices = docker["Devices"] as readonly { PathInContainer: string; CgroupPermissions: string }[] | undefined;
    return {
      privileged: docker["Privileged"],
      add: docker["CapAdd"],
      drop: docker["CapDrop"],
      devices: devices?.map((each) => (each.CgroupPermissions === "rwm" ? each.PathInContainer : "not whole")),
      labels: options && (options.includes("label=disable") ? "off" : "kept"),
    };
  }
  const options = body["selinux_opts"] as readonly string[] | undefined;
  return {
    privileged: body["privileged"],
    add: body["cap_add"],
    drop: body["cap_drop"],
    // Podman gives a device with all permissions where none are named.
    devices: (body["devices"] as readonly { path: string }[] | undefined)?.map(({ path }) => path),
    labels: options && (options.includes("disable") ? "off" : "kept"),
  };
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
