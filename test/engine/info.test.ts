import { describe, expect, test } from "vitest";
import { engineInfo } from "../../src/engine/info.ts";
import { say, startEngine } from "./engine-server.ts";

/** What Podman 4.3.1 says on the test machine, as far as it matters. */
const podman = {
  ServerVersion: "4.3.1",
  MemoryLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
  Architecture: "amd64",
  CgroupVersion: "1",
  Rootless: false,
  DefaultRuntime: "runc",
  Runtimes: { runc: { path: "/usr/bin/runc" }, crun: { path: "/usr/bin/crun" } },
  SecurityOptions: ["name=seccomp,profile=default"],
};
const all = { memory: true, cpu: true, pids: true };
const none = { memory: false, cpu: false, pids: false };

async function infoOf(
  info: object,
  more: { readonly headers?: Record<string, string>; readonly libpod?: object } = {},
) {
  const { client } = await startEngine({
    ...(more.headers === undefined
      ? {}
      : { "GET /_ping": (_request, response) => response.writeHead(200, more.headers).end("OK") }),
    "GET /v1.40/info": (_request, response) => say(response, 200, info),
    "GET /v4.0.0/libpod/info": (_request, response) => say(response, 200, more.libpod ?? {}),
  });
  return await engineInfo(client);
}

describe("what an engine says of itself", () => {
  test("is condensed, for Podman", async () => {
    expect(await infoOf(podman)).toEqual({
      flavour: "podman",
      version: "4.3.1",
      apiVersion: "1.41",
      rootless: false,
      runtimes: ["runc"],
      knownRuntimes: ["crun", "runc"],
      defaultRuntime: "runc",
      cgroupVersion: 1,
      cgroupLimits: all,
      selinux: false,
      usernsRemap: false,
      architecture: "amd64",
      seccompProfile: null,
    });
  });

  test("names the file with the filter of its containers, where it has one", async () => {
    const profileOf = async (seccompProfilePath: string) =>
      (await infoOf(podman, { libpod: { host: { security: { seccompProfilePath } } } })).seccompProfile;
    expect(await profileOf("/usr/share/containers/seccomp.json")).toBe("/usr/share/containers/seccomp.json");
    expect(await profileOf("unconfined")).toBeNull();
    expect(await profileOf("")).toBeNull();
  });

  test("is condensed, for Docker", async () => {
    const headers = { "api-version": "1.41", server: "Docker/20.10.24 (linux)" };
    const SecurityOptions = ["name=seccomp,profile=default", "name=userns", "name=selinux"];
    const info = { ...podman, ServerVersion: "20.10.24", CgroupVersion: "2", Rootless: undefined, SecurityOptions };
    expect(await infoOf(info, { headers })).toMatchObject({
      flavour: "docker",
      version: "20.10.24",
      runtimes: ["crun", "runc"],
      cgroupVersion: 2,
      rootless: false,
      usernsRemap: true,
      selinux: true,
    });
    const rootless = { ...info, SecurityOptions: ["name=rootless"] };
    expect(await infoOf(rootless, { headers })).toMatchObject({ rootless: true, cgroupLimits: all });
    expect(await infoOf(info, { headers: { "api-version": "1.40" } })).toMatchObject({ flavour: "unknown" });
  });

  test("does not promise limits that a user cannot have", async () => {
    expect(await infoOf({ ...podman, Rootless: true })).toMatchObject({ rootless: true, cgroupLimits: none });
    const libpod = { host: { cgroupControllers: ["memory", "pids"] } };
    expect(await infoOf({ ...podman, Rootless: true, CgroupVersion: "2" }, { libpod })).toMatchObject({
      cgroupLimits: { memory: true, cpu: false, pids: true },
    });
  });

  test("may be nothing at all", async () => {
    expect(await infoOf({})).toMatchObject({ version: "", cgroupVersion: 1, cgroupLimits: none, runtimes: [] });
  });
});
