import { once } from "node:events";
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { call } from "./api.ts";
import { engine, engineNames, newEngine, type TestEngine } from "./engine.ts";

describe.each(engineNames())("%s", (name) => {
  test("runs programs of the image", () => {
    const it = engine(name);
    const script = "id -u && python3 -c 'print(6 * 7)' && git --version && tar --version && ls -ld /";
    const { status, stdout, stderr } = run(it, "sh", "-c", script);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^0\n42\ngit version .*\ntar \(GNU tar\)/);
    expect(run(it, "false").status).toBe(1);
  });

  test("makes containers by its API, with the kernel that it is named for", async () => {
    const it = engine(name);
    const id = await create(it, ["sleep", "300"]);
    onTestFinished(() => remove(it, id));
    expect(await call(it.socket, "POST", `/v1.40/containers/${id}/start`)).toEqual({ status: 204, body: "" });
    expect(it.cli("ps", "--quiet", "--no-trunc", "--filter", "label=podbot.e2e=engines").stdout).toContain(id);
    const kernel = it.cli("exec", id, "sh", "-c", "cat /proc/version").stdout;
    expect(kernel === readFileSync("/proc/version", "utf8")).toBe(name !== "podman-gvisor");
  });

  test("lets a socket of a bound directory be dialled from inside", async () => {
    const it = engine(name);
    const directory = mkdtempSync(join(tmpdir(), "t-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    chownSync(directory, it.caller.uid, it.caller.gid);
    const server = createServer((socket) => socket.end("reached"));
    onTestFinished(() => void server.close());
    server.listen(join(directory, "socket"));
    await once(server, "listening");
    chmodSync(join(directory, "socket"), 0o666);
    const dial = `import socket; s = socket.socket(socket.AF_UNIX); s.connect("/in/socket"); print(s.recv(9))`;
    const id = await create(it, ["python3", "-c", dial], [`${directory}:/in:ro`]);
    onTestFinished(() => remove(it, id));
    await call(it.socket, "POST", `/v1.40/containers/${id}/start`);
    expect((await call(it.socket, "POST", `/v1.40/containers/${id}/wait`)).body).toContain('"StatusCode":0');
    expect(it.cli("logs", id).stdout).toBe("b'reached'\n");
  });
});

/** Those that root starts, one of each make: an ordinary user's is killed in `caller.test.ts`, as that user. */
const services = engineNames().filter((name) => name === "podman" || name === "docker");

describe.concurrent.each(services)("a %s of one's own", (name) => {
  test("is killed, started again on what it had, paused and continued", async () => {
    await using it = await newEngine(name);
    expect(it.socket).not.toBe(engine(name).socket);
    const id = await create(it, ["sleep", "300"]);
    await call(it.socket, "POST", `/v1.40/containers/${id}/start`);
    const all = async () => (await call(it.socket, "GET", "/v1.40/containers/json?all=true")).body;
    expect(await all()).toContain(id);

    await it.kill();
    await expect(all()).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await it.start();
    expect(await all()).toContain(id);

    it.pause();
    await expect(call(it.socket, "GET", "/_ping", undefined, 500)).rejects.toThrow(/abort/i);
    it.resume();
    expect((await call(it.socket, "GET", "/_ping")).status).toBe(200);
    expect((await call(engine(name).socket, "GET", "/_ping")).status).toBe(200);
  });
});

function run(it: TestEngine, ...words: string[]) {
  const limits = ["nofile", "nproc"].flatMap((name) => ["--ulimit", `${name}=1024:1024`]);
  return it.cli("run", "--rm", "--network", "none", ...limits, it.image, ...words);
}

async function create(it: TestEngine, words: readonly string[], binds: readonly string[] = []): Promise<string> {
  const { status, body } = await call(it.socket, "POST", "/v1.40/containers/create", {
    Image: it.image,
    Cmd: words,
    Labels: { "podbot.e2e": "engines" },
    StopTimeout: 1,
    HostConfig: {
      NetworkMode: "none",
      Binds: binds,
      Ulimits: ["nofile", "nproc"].map((Name) => ({ Name, Soft: 1024, Hard: 1024 })),
    },
  });
  expect({ status, body }).toMatchObject({ status: 201 });
  return (JSON.parse(body) as { readonly Id: string }).Id;
}

async function remove(it: TestEngine, id: string): Promise<void> {
  await call(it.socket, "DELETE", `/v1.40/containers/${id}?force=true`);
}
