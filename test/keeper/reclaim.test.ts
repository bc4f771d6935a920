import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { reclaim } from "../../src/keeper/reclaim.ts";
import type { Command, Sandbox } from "../../src/sandbox/sandbox.ts";
import { type ContainerChange, cwd, planFor, planInImage } from "../plan/ordinary.ts";

/** A sandbox in which everything ends with a status, and what was asked of it. */
function sandboxWith(code: number) {
  const commands: Command[] = [];
  const exec = async (command: Command) => {
    commands.push(command);
    const stdin = new PassThrough();
    return {
      stdin,
      stdout: new PassThrough().end("noise"),
      stderr: new PassThrough().end("noise"),
      exited: new Promise((resolve) => stdin.once("finish", () => resolve({ code, signal: null }))),
    };
  };
  return { commands, sandbox: { exec } as unknown as Sandbox };
}

describe("files that others inside have left", () => {
  test("are taken back by Podbot's own program, as root, where the workspace lies inside", async () => {
    const { commands, sandbox } = sandboxWith(0);
    expect(await reclaim(sandbox, planInImage([], {}, { wishes: { workspace: "/workspace" } }))).toEqual([]);
    expect(commands).toEqual([
      { argv: ["/run/podbot/reclaim", "/workspace"], cwd: "/", user: { uid: 0, gid: 0 }, timeoutMs: 60_000 },
    ]);
  });

  test.each([1, 124, 125, 137])("are spoken of where that ends with status %i, with what helps", async (code) => {
    const { sandbox } = sandboxWith(code);
    const [text = "", ...more] = await reclaim(sandbox, planInImage([]));
    expect(more).toEqual([]);
    expect(text).toContain(`status ${code}`);
    expect(text).toContain(`podman unshare find ${cwd} ! -uid 0 -exec chown -h 0:0 {} +`);
  });

  const root = { uid: 0, gid: 0 };
  test.each<readonly [string, ContainerChange]>([
    [
      "in an empty workspace, which goes with the container",
      { wishes: { workspace: "/w" }, request: { workspace: "empty" } },
    ],
    ["where everybody is himself", { engine: { rootless: false } }],
    ["where root runs the engine", { caller: root }],
  ])("are none %s", async (_, change) => {
    const { commands, sandbox } = sandboxWith(1);
    expect(await reclaim(sandbox, planInImage([], {}, change))).toEqual([]);
    expect(commands).toEqual([]);
  });

  test("are none behind bubblewrap", async () => {
    const { commands, sandbox } = sandboxWith(1);
    expect(await reclaim(sandbox, planFor([]))).toEqual([]);
    expect(commands).toEqual([]);
  });
});
