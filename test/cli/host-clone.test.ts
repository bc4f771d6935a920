import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { methods } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { openEditor } from "../host/editor.ts";
import { stubPath, writeStub } from "../host/stub.ts";
import { leftovers, repository, settle } from "../keeper/github-world.ts";

test("a hosted agent works on a clone, and its client goes on speaking of its own directory", async () => {
  const { world, town } = await settle();
  writeStub(world);
  // It lies where the caller stands, which is seen inside, but is not what is worked on.
  const words = ["host", ...repository, "--agent", "custom", "--", process.execPath, `${world.project}/${stubPath}`];
  const child = world.spawn(words, { stdio: "pipe" });
  const ended = once(child, "close");
  const said = text(child.stderr as Readable);
  const editor = openEditor();
  const wire = { readable: child.stdout as Readable, writable: child.stdin as Writable };
  await editor.speak(wire, async (context) => {
    await editor.initialize(context);
    const { sessionId } = await context.request(methods.agent.session.new, { cwd: world.project, mcpServers: [] });
    const turn = (...command: readonly string[]) => editor.turn(context, sessionId, JSON.stringify(command));
    const where: unknown = JSON.parse(await turn("where"));
    expect(where).toMatchObject({ cwd: "/work", sessions: [{ cwd: "/work" }] });
    expect(await turn("read", "/work/.git/HEAD")).toBe("ref: refs/heads/main\n");
  });
  expect(await ended).toEqual([0, null]);
  expect(await said).toContain("cloning example/name, main");
  expect(town.minted.length).toBe(1);
  expect(leftovers(world)).toEqual([]);
});
