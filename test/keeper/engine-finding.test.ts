import { describe, expect, test } from "vitest";
import { engineFindings } from "../../src/keeper/engine-finding.ts";
import { type Route, say, startEngine } from "../engine/engine-server.ts";

const info = { ServerVersion: "4.3.1", DefaultRuntime: "runc", CgroupVersion: "2" };

/** What is found of an engine that answers in this way. */
async function found(version: string, components: readonly object[] | null, ping?: Record<string, string>) {
  const answer: Route = (_request, response) => say(response, 200, { ...info, ServerVersion: version });
  const { path } = await startEngine({
    ...(ping && { "GET /_ping": (_request, response) => response.writeHead(200, ping).end("OK") }),
    "GET /v1.40/info": answer,
    "GET /v4.0.0/libpod/info": (_request, response) => say(response, 200, {}),
    ...(components && { "GET /v1.40/version": (_request, response) => say(response, 200, { Components: components }) }),
  });
  return engineFindings({ DOCKER_HOST: `unix://${path}`, HOME: "/nonexistent", PATH: "/usr/bin" });
}

const docker = { "api-version": "1.41", server: "Docker/29 (linux)" };

describe("podbot doctor knows of an engine", () => {
  test("its known holes, and those of the program that makes its containers", async () => {
    const printed = "runc version 1.1.5+ds1\ncommit: 1.1.5\nspec: 1.0.2";
    const findings = await found("4.3.1", [
      { Name: "Podman Engine" },
      { Name: "OCI Runtime (runc)", Version: printed },
    ]);
    expect(findings).toMatchObject([
      {
        name: "engine",
        state: "weak",
        found: expect.stringMatching(/^podman 4\.3\.1, at unix:\S+; CVE-2024-9341/),
        holes: [{ cves: expect.arrayContaining(["CVE-2024-9341"]), fixedIn: ["5.2.5"] }],
      },
      {
        name: "runtime",
        state: "weak",
        found: expect.stringMatching(/^runc 1\.1\.5\+ds1; CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 /),
        holes: [{ fixedIn: ["1.2.8", "1.3.3", "1.4.0-rc.3"] }],
      },
    ]);
  });

  test("that there are none", async () => {
    const findings = await found("29.7.1", [{ Name: "Engine" }, { Name: "runc", Version: "1.3.4" }], docker);
    expect(findings).toEqual([
      { name: "engine", state: "ok", found: expect.stringMatching(/^docker 29\.7\.1, at unix:/), remedy: null },
      { name: "runtime", state: "ok", found: "runc 1.3.4", remedy: null },
    ]);
    const crun = await found("5.8.5", [{ Name: "OCI Runtime (crun)", Version: "crun version 1.8.1" }]);
    expect(crun.map(({ found }) => found)).toEqual([expect.stringContaining("podman 5.8.5"), "crun 1.8.1"]);
  });

  test("no more than it says", async () => {
    expect(await found("28.5.2", null, docker)).toMatchObject([{ name: "engine", state: "weak" }]);
    expect(await found("29.7.1", [{ Name: "containerd", Version: "1" }], docker)).toHaveLength(1);
    expect(await found("1.0", [], { "api-version": "1.41" })).toMatchObject([
      { state: "ok", found: expect.stringContaining("unknown 1.0") },
    ]);
  });
});
