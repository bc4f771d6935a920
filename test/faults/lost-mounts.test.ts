import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../eventually.ts";
import { kill, Machine, namesIn } from "./machine.ts";

/** Mounts and unmounts without end, as an engine does whose containers begin and end. */
const churn = `import ctypes, os, sys
libc = ctypes.CDLL(None)
while True:
    for at in range(20):
        place = f"{sys.argv[1]}/{at}".encode()
        os.makedirs(place, exist_ok=True)
        libc.mount(b"none", place, b"tmpfs", 0, None)
    for at in range(20):
        place = f"{sys.argv[1]}/{at}".encode()
        libc.umount2(place, 0)
        os.rmdir(place)
`;

test("mounts of other programs that vanish while a box is built do not keep it from being built", async () => {
  const machine = await Machine.boot();
  const place = join(machine.world.directory, "mounts");
  mkdirSync(place);
  const churning = [1, 2].map((at) => machine.spawn(["python3", "-c", churn, join(place, `${at}`)]));
  await until("they are at work", () => [1, 2].every((at) => namesIn(join(place, `${at}`)).length > 0));
  for (let start = 0; start < 8; start++) {
    const outcome = await machine.podbot("sandbox", "--", "echo", "built");
    expect(outcome).toMatchObject({ status: 0, stdout: "built\n", stderr: "" });
  }
  for (const { child } of churning) kill(child.pid ?? -1);
});

/** A service that is started again and again: its socket comes and goes. */
const restarting = `import os, socket, sys, time
while True:
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(sys.argv[1])
        service.listen()
        time.sleep(0.002)
    os.unlink(sys.argv[1])
    time.sleep(0.002)
`;

test("a socket of another program that vanishes and comes back while a box is built does not keep it from being built", async () => {
  const machine = await Machine.boot();
  const path = join(machine.world.directory, "service.sock");
  const { child, exited } = machine.spawn(["python3", "-c", restarting, path]);
  await until("the service is at work", () => existsSync(path));
  for (let start = 0; start < 20; start++) {
    const outcome = await machine.podbot("sandbox", "--", "echo", "built");
    expect(outcome).toMatchObject({ status: 0, stdout: "built\n", stderr: "" });
  }
  kill(child.pid ?? -1);
  await exited;
});
