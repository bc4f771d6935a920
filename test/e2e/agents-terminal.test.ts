import { join } from "node:path";
import { expect, test } from "vitest";
import { expectNothingLeft, sessionWorld } from "../cli/terminal/remains.ts";
import { openTerminal } from "../terminal.ts";
import { converse, expectNames, speakers } from "./agents/dialogue.ts";
import { agentsShown, pathWithAgents } from "./agents/installation.ts";
import { openLoopback } from "./agents/loopback.ts";
import { treeOf } from "./agents/tree.ts";
import { envFlags } from "./agents/turn.ts";

test.each(speakers)(
  "$part.name on a terminal behind bubblewrap draws, takes keys, turns and sizes, and leaves",
  { timeout: 120_000 },
  async (speaker) => {
    await using net = await openLoopback();
    const world = sessionWorld().repository();
    const { part } = speaker;
    const files = { ...part.files(net.url), ...speaker.files(world) };
    for (const [file, content] of Object.entries(files)) world.file(join(world.home, file), content);
    const before = treeOf(world.home, ["project", ".local", ...part.state]);
    const shell = ["env", `PATH=${world.directory}/bin:${pathWithAgents()}`, "bash", "--norc", "--noprofile"];
    const screen = openTerminal(world, net.words(shell, { uid: 0, gid: 0 }, world.project).join(" "));
    const flags = ["--quiet", "--network", "open", ...agentsShown, ...envFlags(part.env(net.url))];
    const line = `podbot run --agent ${part.name} ${flags.join(" ")}`;
    const { token } = await converse(speaker, screen, world, line);
    await expectNothingLeft(world);
    await expectNames(speaker, net, token);
    expect(treeOf(world.home, ["project", ".local", ...part.state])).toEqual(before);
  },
);
