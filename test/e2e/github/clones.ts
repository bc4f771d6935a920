import { describe, expect, onTestFinished, test } from "vitest";
import type { PartialConfig } from "../../../src/config/types.ts";
import { type AgentRequest, planAgent } from "../../../src/keeper/agent.ts";
import type { Furnishing } from "../../../src/keeper/furnish.ts";
import { startSession } from "../../../src/keeper/kept-session.ts";
import type { Session } from "../../../src/keeper/session.ts";
import { eventually } from "../../eventually.ts";
import { isClockSteady } from "../../faults/thorough.ts";
import { Town, type TownOptions } from "../../github/town.ts";
import { cloneOf, configOf, findValues, leftovers, repository, say } from "../../keeper/github-world.ts";
import { EngineWorld } from "../engine-box.ts";
import type { TestEngine } from "../engines/engine.ts";
import { podbot } from "../shipped.ts";

/** A world on an engine whose owner has a GitHub App, and the town that it is known in. */
async function settle(engine: TestEngine, options: TownOptions, more: readonly string[] = []) {
  const town = await Town.open(options);
  const world = new EngineWorld(engine);
  world.file("home/.config/podbot/config.toml", configOf(town, more));
  onTestFinished(async () => {
    await town[Symbol.asyncDispose]();
    await eventually(() => expect(world.containers()).toEqual([]));
    world.remove();
  });
  return { town, world };
}

const named = { repository: "example/name", branch: "main" } as const;

async function start(
  world: EngineWorld,
  request: Partial<AgentRequest> & { readonly config?: PartialConfig },
  onFurnished: (done: Furnishing) => void = () => {},
): Promise<Session> {
  const { image, socket } = world.engine;
  const planned = await planAgent({
    cwd: world.project,
    env: world.env,
    agent: "custom",
    args: ["sleep", "1000"],
    ...request,
    config: { image, engine_socket: socket, ...request.config },
  });
  const session = await startSession(planned, { onFurnished });
  onTestFinished(() => session[Symbol.asyncDispose]());
  return session;
}

/** What every engine must do with a token: show it to whoever runs inside, and each new one, and nobody else. */
export function tokensOn(title: string, engine: TestEngine): void {
  test.runIf(isClockSteady)(
    `a token is read inside ${title}, and each that takes its place; nobody there changes it`,
    async () => {
      const { town, world } = await settle(engine, { tokenMs: 4_000 });
      cloneOf(world, `${town.origin}/example/name.git`);
      for (const read_only_root of [false, true]) {
        const before = town.minted.length;
        const session = await start(world, { githubToken: true, config: { sandbox: { read_only_root } } });
        const read = () => say(session.sandbox, "cat /run/secrets/ghapp_token").then(({ stdout }) => stdout);
        await eventually(async () => expect(await read()).toBe(town.minted.at(-1)?.value));
        await eventually(() => expect(town.minted.length).toBeGreaterThan(before + 1));
        await eventually(async () => expect(await read()).toBe(town.minted.at(-1)?.value));
        const asked = await say(
          session.sandbox,
          `$GIT_ASKPASS "Password for '${town.origin.replace("//", "//x-access-token@")}': "`,
        );
        expect(asked).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ghs_/) });
        const changed = "for f in ghapp_token new; do (echo x >/run/secrets/$f) 2>/dev/null && echo $f; done; true";
        expect(await say(session.sandbox, changed)).toEqual({ status: 0, stdout: "", stderr: "" });
        const { text } = world.inspect(`podbot-${session.id}`);
        expect(text).toContain("/run/secrets");
        expect(town.minted.filter(({ value }) => text.includes(value))).toEqual([]);
        await session.stop();
        expect(leftovers(world)).toEqual([]);
      }
    },
  );
}

/**
 * And with a clone, where a box has doors by which it reaches the town. That git goes on with each new token is the
 * same on every engine, once that is read inside: one of them waits for several.
 */
export function clonesOn(title: string, engine: TestEngine, tokens = 1): void {
  const meanwhile = tokens > 1 ? ", while the token is replaced" : "";
  describe(`a clone in a container of ${title}`, () => {
    test.runIf(tokens === 1 || isClockSteady)(
      `is worked on and pushed${meanwhile}; no token is seen anywhere but in its place`,
      async () => {
        // A token that is not to be replaced outlives every stall.
        const { town, world } = await settle(engine, { tokenMs: tokens > 1 ? 15_000 : 600_000 });
        const session = await start(world, named);
        const where = await say(
          session.sandbox,
          "pwd; git symbolic-ref --short HEAD; stat -c %u . /run/secrets/ghapp_token",
        );
        const uid = engine.name === "docker-group" ? engine.caller.uid : 0;
        expect(where).toMatchObject({ status: 0, stdout: `/work\nmain\n${uid}\n${uid}\n` });
        const name = `podbot-${session.id}`;
        const places = [`${world.home}/.local/state`, `${world.directory}/run`];
        const seen = () => {
          const values = town.minted.map(({ value }) => value);
          // Also while it is being written, beside the one before.
          const files = findValues(values, places).filter((file) => !/\/secrets\/ghapp_token[^/]*$/.test(file));
          const { text } = world.inspect(name);
          return [...files, ...values.filter((value) => text.includes(value))];
        };
        for (let token = 1; token <= tokens; token++) {
          // From the moment on at which there is another.
          await eventually(() => expect(town.minted.length).toBeGreaterThanOrEqual(token));
          for (let pushes = 0; pushes < 2; pushes++) {
            const push = await say(session.sandbox, "git commit -q --allow-empty -m x && git push -q");
            expect(push).toEqual({ status: 0, stdout: "", stderr: "" });
            expect(seen()).toEqual([]);
          }
        }
        expect(town.git.refused).toBe(0);
        // It is found where it is: the scan sees the file itself.
        await eventually(() => expect(findValues([town.minted.at(-1)?.value as string], places)).toHaveLength(1));
        const others = await say(session.sandbox, `git ls-remote ${town.origin}/example/other.git`);
        expect(others.stderr).toContain("403");
        await session.stop();
        expect(leftovers(world)).toEqual([]);
      },
    );

    test("that fails says what git says, and leaves no container", async () => {
      const { world } = await settle(engine, {});
      const place = ["--image", engine.image, "--engine-socket", engine.socket];
      const flags = ["--repo", "example/name", "--branch", "absent", ...place, "--quiet", "--agent", "custom"];
      const { status, stdout, stderr } = await podbot(world, ["run", ...flags, "--", "echo", "ran"]);
      expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
      expect(stderr).toContain("Remote branch absent not found in upstream origin");
      // The engine removes it by itself, a little later.
      await eventually(() => expect(world.containers()).toEqual([]));
      expect(leftovers(world)).toEqual([]);
    });

    test("is pushed with a token that is masked, also where the root is read-only, and what is lost is told", async () => {
      const more = ['token = "masked"', "[sandbox]", "read_only_root = true"];
      const { town, world } = await settle(engine, { tls: true }, more);
      world.env["NODE_EXTRA_CA_CERTS"] = town.trustFile;
      const script = "git commit -q --allow-empty -m x && git push -q && cat /run/secrets/ghapp_token && touch lost";
      const place = ["--image", engine.image, "--engine-socket", engine.socket];
      const words = ["run", ...repository, ...place, "--agent", "custom", "--", "sh", "-c", script];
      const { status, stdout, stderr } = await podbot(world, words);
      expect({ status, stderr }).toMatchObject({ status: 0 });
      expect(stderr).toContain(
        "The clone of example/name is gone, and with it changes in a file that were not committed",
      );
      expect(stdout).toMatch(/^ghs_/);
      expect(town.minted.map(({ value }) => value)).not.toContain(stdout);
      expect(town.git.refused).toBe(0);
    });
  });
}
