// @module-tag security
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTimeOf } from "../../src/machine/process.ts";
import { buildPrograms, environment, makeScratch, ordinary, sanitized } from "./programs.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

describe.each([ordinary, sanitized])("podbot-peer, $build build", ({ build, peer: program }) => {
  it("says who is at the other end of a socket", async () => {
    const path = join(scratch, build);
    const server = createServer().listen(path);
    await once(server, "listening");
    const caller = spawn("sh", ["-c", 'exec python3 -c "$1" "$2"', "sh", dial, path], { stdio: "ignore" });
    const [socket] = (await once(server, "connection")) as [Socket];
    const child = spawn(program, { env: environment, stdio: ["ignore", "pipe", "inherit", socket] });
    const { uid, gid } = userInfo();
    const started = startTimeOf(caller.pid as number);
    expect(await text(child.stdout as NodeJS.ReadableStream)).toBe(`${caller.pid} ${uid} ${gid} ${started}\n`);

    // A number does not identify a process that has ended.
    caller.kill("SIGKILL");
    await once(caller, "exit");
    const late = spawn(program, { env: environment, stdio: ["ignore", "pipe", "inherit", socket] });
    expect(await text(late.stdout as NodeJS.ReadableStream)).toMatch(new RegExp(`^\\d+ ${uid} ${gid} 0\n$`));
    socket.destroy();
    server.close();
  });

  it("refuses a file", () => {
    const file = openSync("/etc/passwd", "r");
    const run = spawnSync(program, { encoding: "utf8", env: environment, stdio: ["ignore", "pipe", "pipe", file] });
    closeSync(file);
    expect([run.status, run.stdout]).toEqual([125, ""]);
    expect(run.stderr).toMatch(/^podbot-peer: descriptor 3: .*socket/);
  });

  it("refuses a socket without another end", () => {
    const script = `import socket, subprocess, sys
import os
connection = socket.socket(socket.AF_UNIX)
os.dup2(connection.fileno(), 3)
sys.exit(subprocess.call([sys.argv[1]], pass_fds=[3]))`;
    const run = spawnSync("python3", ["-c", script, program], { encoding: "utf8", env: environment });
    expect([run.status, run.stdout]).toEqual([125, ""]);
    expect(run.stderr).toBe("podbot-peer: descriptor 3: no process is connected\n");
  });
});

const dial = `import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.recv(1)`;
