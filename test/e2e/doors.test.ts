import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../wall/conformance.ts";
import { doors, openGuardedContainer } from "./doors.ts";
import { engine, newEngine } from "./engines/engine.ts";

doors("rootful Podman", async () => engine("podman"));
doors("Docker", async () => engine("docker"), { hasIpv6: false });

let gvisor: Awaited<ReturnType<typeof newEngine>>;
beforeAll(async () => {
  gvisor = await newEngine("podman-gvisor-host");
});
afterAll(async () => {
  await gvisor?.[Symbol.asyncDispose]();
});
doors("gVisor, where it leaves the network to the kernel", async () => gvisor);

describe("the doors of gVisor, where it has a network of its own making,", () => {
  test("cannot be opened, and nothing is started", async () => {
    const id = newId();
    await expect(openGuardedContainer(engine("podman-gvisor"), id)).rejects.toMatchObject({
      code: "DOORS_FAILED",
      message: expect.stringContaining("--network=host"),
    });
    const names = engine("podman-gvisor").cli("ps", "--all", "--format", "{{.Names}}").stdout;
    expect(names).not.toContain(id);
  });
});
