import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../eventually.ts";
import { openTerminal } from "../../terminal.ts";
import { program } from "../../world.ts";
import { EngineWorld } from "../engine-box.ts";
import type { AgentImage } from "../engines/builder.ts";
import { agentImage, type TestEngine } from "../engines/engine.ts";
import { castOn } from "./cast.ts";
import { converse, expectNames, speakers } from "./dialogue.ts";
import { farHost, type Loopback, openLoopback } from "./loopback.ts";
import { serveIn } from "./private-engine.ts";
import { envFlags, runWords } from "./turn.ts";

/** Real agents in containers of one engine, in a network where there is nothing but their model. */
export function agentsIn(title: string, engine: TestEngine): void {
  let image: AgentImage;
  beforeAll(async () => {
    image = await agentImage(engine);
    // Whoever comes first has it built.
  }, 600_000);

  describe.concurrent.each(castOn(engine))(`$name on ${title}`, (part) => {
    test("takes a turn with a tool call that works on the host's directory, and asks for no name", async () => {
      await using stage = await openStage(engine, image, part.files);
      const { net, world } = stage;
      const token = randomBytes(8).toString("hex");
      const command = `echo ${token} >made.txt; echo told-${token} $(test -e /run/podbot/warden && echo inside)`;
      const prompt = `As told:\n${part.call(command)}`;
      const words = ["run", "--agent", part.name, ...stage.flags, ...envFlags(part.env(net.url))];
      const { status, stdout, stderr } = await runWords(
        stage.asCaller([process.execPath, program, ...words, "--", ...part.words(prompt)]),
        world.env,
        part.input(prompt),
        world.project,
      );
      const seen = { status, told: stdout.includes(`told-${token} inside`), stderr: status === 0 ? "" : stderr };
      expect(seen).toEqual({ status: 0, told: true, stderr: "" });
      expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe(`${token}\n`);
      const { requests, names } = await net.heard();
      const told = requests.filter(({ results }) => results?.some((result) => result.includes(`told-${token} inside`)));
      expect(told.length).toBeGreaterThan(0);
      expect(names).toEqual([]);
      await eventually(() => expect(world.containers()).toEqual([]));
    });
  });

  // A terminal of another user's is not ours to open.
  if (engine.caller.uid !== 0) return;

  test.each(speakers)(`$part.name on a terminal, on ${title}, draws, takes keys, turns and sizes`, async (speaker) => {
    const { part } = speaker;
    await using stage = await openStage(engine, image, part.files);
    const { net, world } = stage;
    for (const [file, content] of Object.entries(speaker.files(world))) world.file(join(world.home, file), content);
    const flags = [...stage.flags, "--quiet", ...envFlags(part.env(net.url))];
    const line = `podbot run --agent ${part.name} ${flags.join(" ")}`;
    const { token } = await converse(speaker, openTerminal(world), world, line);
    await expectNames(speaker, net, token);
    await eventually(() => expect(world.containers()).toEqual([]));
  });
}

interface Stage extends AsyncDisposable {
  readonly net: Loopback;
  readonly world: EngineWorld;
  readonly flags: readonly string[];
  asCaller(words: readonly string[]): readonly string[];
}

/** A network, an engine in it, and a world with what its user has set up for an agent. */
async function openStage(
  engine: TestEngine,
  image: AgentImage,
  files: (url: string) => Readonly<Record<string, string>>,
): Promise<Stage> {
  const { uid, gid } = engine.caller;
  const made: (() => unknown)[] = [];
  const dispose = async () => {
    for (const end of made.splice(0).toReversed()) await end();
  };
  try {
    const net = await openLoopback(farHost);
    made.push(() => net[Symbol.asyncDispose]());
    const own = await serveIn(net, engine, [image.store]);
    made.push(() => own[Symbol.asyncDispose]());
    const world = new EngineWorld(own);
    made.push(() => world.remove());
    world.repository();
    for (const [file, content] of Object.entries(files(net.url))) world.file(join(world.home, file), content);
    spawnSync("chown", ["-R", `${uid}:${gid}`, world.directory]);
    return {
      net,
      world,
      flags: ["--image", image.name, "--engine-socket", own.socket, "--network", "open"],
      asCaller: (words) => [
        ...["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", "--"],
        ...words,
      ],
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}
