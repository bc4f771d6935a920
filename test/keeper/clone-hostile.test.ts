// @module-tag security
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openClone, say, settle } from "./github-world.ts";

/** Everything by which a repository can have whoever uses git in it execute something. */
function trap(marker: string, origin: string): string {
  const act = `touch ${marker}`;
  const config = [
    `[core]\n\tfsmonitor = "${act}; false"\n\tsshCommand = "${act}"\n\tpager = "${act}"\n\teditor = "${act}"`,
    `\talternateRefsCommand = "${act}"\n\taskPass = "${act}"\n\tgitProxy = "${act}"`,
    `[filter "evil"]\n\tclean = "${act}; cat"\n\tsmudge = "${act}; cat"\n\tprocess = "${act}"\n\trequired = true`,
    `[diff]\n\texternal = "${act}"\n[credential]\n\thelper = "!${act}"\n[uploadpack]\n\tpackObjectsHook = "${act}"`,
    `[url "ext::sh -c ${act.replaceAll(" ", "% ")}"]\n\tinsteadOf = ${origin}\n[protocol]\n\tallow = always`,
    `[alias]\n\tstatus = "!${act}"\n\tlog = "!${act}"\n[submodule "evil"]\n\tupdate = "!${act}"\n\turl = ${origin}`,
  ].join("\n");
  const hooks = [
    "pre-commit",
    "pre-push",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
  ];
  return [
    "set -e",
    `for hook in ${hooks.join(" ")}; do printf '#!/bin/sh\\n${act}\\n' >.git/hooks/$hook; chmod +x .git/hooks/$hook; done`,
    `cat >>.git/config <<'END'\n${config}\nEND`,
    "printf '* filter=evil diff=evil\\n' >.gitattributes",
    `printf '[submodule "evil"]\\n\\tpath = evil\\n\\turl = ext::sh -c "${act}"\\n' >.gitmodules`,
    "echo changed >file",
  ].join("\n");
}

test("whatever is in a clone, Podbot executes nothing of it outside", async () => {
  const { world, town } = await settle();
  const marker = join(world.directory, "executed");
  const session = await openClone(world, {}, { detached: true });
  const clone = join(world.home, ".local/state/podbot/sessions", session.id, "clone");
  expect(await say(session.sandbox, trap(marker, town.origin))).toMatchObject({ status: 0, stderr: "" });

  // The trap does close on whoever uses git there, out here.
  spawnSync("git", ["-C", clone, "status"], { env: world.env as NodeJS.ProcessEnv });
  expect(existsSync(marker)).toBe(true);
  rmSync(marker);

  // All that Podbot does for a session that is there, from where the caller stands and from the clone itself.
  const agent = await session.run();
  for (const words of [
    ["ps"],
    ["logs", session.id],
    ["exec", session.id, "--", "git", "status", "--short"],
    ["audit", session.id],
    ["policy", "reload", session.id],
  ]) {
    await world.podbot(words);
    await world.podbot(words, { cwd: clone });
  }
  await world.podbot(["sandbox", "--", "git", "status"], { cwd: clone });
  agent.kill("SIGTERM");
  await agent.exited;
  // At its end it looks at what is left, inside.
  await session.stop();
  expect(existsSync(clone)).toBe(false);
  await world.podbot(["stop", session.id]);
  expect(existsSync(marker)).toBe(false);
});

test("a box without a clone does not see those of others, nor their tokens", async () => {
  const { world, town } = await settle();
  const session = await openClone(world);
  const state = join(world.home, ".local/state/podbot/sessions", session.id);
  const runtime = join(world.directory, "run/podbot", session.id);
  const token = town.minted[0]?.value as string;
  const script = `ls -a ${state}/clone; cat ${runtime}/secrets/ghapp_token`;
  // Whoever stands outside sees both.
  expect(world.outside(script).stdout).toMatch(new RegExp(`\\.git\n${token}`));
  for (const look of [await world.inside(script), await say(session.sandbox, script)]) {
    expect(look.stdout).toBe("");
    expect(look.status).not.toBe(0);
  }
});
