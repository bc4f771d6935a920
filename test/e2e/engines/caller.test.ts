import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { call } from "./api.ts";
import { becomeCaller, engine, newEngine } from "./engine.ts";

describe.each(["podman-rootless", "docker-group"] as const)("a worker that has become the caller of %s", (name) => {
  beforeAll(() => becomeCaller(engine(name)));

  test("is an ordinary user, with a home", () => {
    const { caller } = engine(name);
    expect([process.getuid?.(), process.geteuid?.(), process.getgid?.()]).toEqual([caller.uid, caller.uid, caller.gid]);
    expect(process.env["HOME"]).toBe(caller.home);
    writeFileSync(join(caller.home, "file"), "");
    expect(() => readdirSync(engine("podman").caller.home)).toThrow("EACCES");
    expect(() => process.setuid?.(0)).toThrow("EPERM");
  });

  test("uses the engine, and no other's", async () => {
    const it = engine(name);
    expect((await call(it.socket, "GET", "/_ping")).status).toBe(200);
    expect(it.cli("images").stdout).toContain(it.image.replace(":latest", ""));
    await expect(call(engine("podman").socket, "GET", "/_ping")).rejects.toMatchObject({ code: "EACCES" });
  });

  test("loads modules still", async () => {
    expect(Object.keys(await import("../../../src/errors.ts"))).toContain("PodbotError");
  });
});

describe("a worker that has become a caller", () => {
  test("has an engine of its own killed, started again on what it had, paused and continued", async () => {
    // The main process controls every engine in the same way, so one engine is enough here.
    await using it = await newEngine("podman-rootless");
    const path = `/v1.40/images/${encodeURIComponent(it.image)}/json`;
    const { Id } = JSON.parse((await call(it.socket, "GET", path)).body) as { readonly Id: string };
    await it.kill();
    await expect(call(it.socket, "GET", "/_ping")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await it.start();
    expect((await call(it.socket, "GET", path)).body).toContain(Id);
    it.pause();
    await expect(call(it.socket, "GET", "/_ping", undefined, 500)).rejects.toThrow(/abort/i);
    it.resume();
    expect((await call(it.socket, "GET", "/_ping")).status).toBe(200);
    expect((await call(engine("podman-rootless").socket, "GET", "/_ping")).status).toBe(200);
  });
});
