import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { request as ask } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knownAgent } from "../../../src/agents/table.ts";
import { eventually } from "../../eventually.ts";
import { readEntries, Town } from "../../gateway/stage.ts";
import { type ModelServer, serveModel } from "../../model/server.ts";
import { program, World } from "../../world.ts";
import { EngineWorld } from "../engine-box.ts";
import { agentImage, type TestEngine } from "../engines/engine.ts";
import { claude, codex, type Part } from "./cast.ts";
import { agentsShown, pathWithAgents } from "./installation.ts";
import { farHost, openLoopback } from "./loopback.ts";
import { serveIn } from "./private-engine.ts";
import { runWords } from "./turn.ts";

/** An agent at its provider's own name, with a key that it does not have. */
interface Masked {
  readonly part: Part;
  readonly host: string;
  /** The variable that it takes its key from. */
  readonly variable: string;
  readonly key: string;
  /** The key in a request as the provider gets it. */
  given(headers: Readonly<Record<string, string | readonly string[] | undefined>>): unknown;
}

const masked: readonly Masked[] = [
  {
    part: claude,
    host: "api.anthropic.com",
    variable: "ANTHROPIC_API_KEY",
    key: `sk-ant-api03-${randomBytes(24).toString("hex")}`,
    given: (headers) => headers["x-api-key"],
  },
  {
    part: codex,
    host: "api.openai.com",
    variable: "LOOPBACK_KEY",
    key: `sk-proj-${randomBytes(24).toString("hex")}`,
    given: (headers) => String(headers["authorization"]).replace(/^Bearer /, ""),
  },
];

/** Real agents that reach their provider by its name over TLS, and know a surrogate of the key alone. */
export function maskedTurns(title: string, engine: TestEngine | null): void {
  let own: (TestEngine & AsyncDisposable) | null = null;
  let place: readonly string[] = [];
  // The engine's own network has nobody: what the box reaches, it reaches by its doors.
  if (engine !== null) {
    beforeAll(async () => {
      const image = await agentImage(engine);
      const net = await openLoopback(farHost);
      own = await serveIn(net, engine, [image.store]);
      place = ["--image", image.name, "--engine-socket", own.socket];
      return async () => {
        await own?.[Symbol.asyncDispose]();
        await net[Symbol.asyncDispose]();
      };
      // Whoever comes first has the image built.
    }, 600_000);
  }

  describe.concurrent.each(masked)(`$part.name on ${title}, with a masked key,`, (one) => {
    const { part, host, variable, key, given } = one;
    const town = new Town();
    let model: ModelServer;
    beforeAll(async () => {
      model = await serveModel();
      await town.https(host, (request, response) => {
        const { method, url, headers } = request;
        // Of HTTP/2, only what HTTP/1.1 has too.
        const plain = Object.entries(headers).filter(([name]) => !name.startsWith(":"));
        // Without an agent, so that no connection is used again while the model closes it.
        const options = { method, headers: Object.fromEntries(plain), agent: false } as const;
        const asking = ask(`${model.url}${url}`, options, (answer) => {
          const { connection: _, "transfer-encoding": __, "keep-alive": ___, ...rest } = answer.headers;
          response.writeHead(answer.statusCode ?? 500, rest);
          answer.pipe(response);
        });
        asking.on("error", () => response.destroy());
        request.pipe(asking);
      });
    });
    afterAll(async () => {
      await model?.[Symbol.asyncDispose]();
      await town[Symbol.asyncDispose]();
    });

    test("takes a turn: the provider gets the key, and the box has never seen it", async () => {
      const world = own === null ? new World() : new EngineWorld(own);
      try {
        world.repository();
        for (const [file, content] of Object.entries(part.files(`https://${host}`)))
          world.file(join(world.home, file), content);
        const config = {
          network: { mode: "allowlist", reach: { ...nowhere(part.name), ...town.reach } },
          secrets: { key: { env: "OWNERS_KEY", hosts: [host] } },
          environment: { set: { [variable]: "!secret key" } },
        };
        world.file(join(world.home, ".config/podbot/config.json"), JSON.stringify(config));
        Object.assign(world.env, { SSL_CERT_FILE: town.trustFile, OWNERS_KEY: key });
        if (engine === null) world.env["PATH"] = pathWithAgents();
        const token = randomBytes(8).toString("hex");
        const prompt = `As told:\n${part.call(`printenv ${variable} >made.txt; echo told-${token}`)}`;
        const flags = ["--agent", part.name, ...place, ...(engine === null ? agentsShown : [])];
        const podbot = (words: readonly string[], input = "") =>
          runWords(asCaller(engine, [process.execPath, program, ...words]), world.env, input, world.project);
        for (const directory of [world.directory, town.directory]) give(engine, directory);
        const words = ["run", "--quiet", ...flags, "--", ...part.words(prompt)];
        const { status, stdout, stderr } = await podbot(words, part.input(prompt));
        const seen = { status, told: stdout.includes(`told-${token}`), stderr: status === 0 ? "" : stderr };
        expect(seen).toEqual({ status: 0, told: true, stderr: "" });
        const told = model.requests.filter(({ results }) =>
          results?.some((result) => result.includes(`told-${token}`)),
        );
        expect(told.length).toBeGreaterThan(0);
        expect(new Set(told.map(({ headers }) => given(headers)))).toEqual(new Set([key]));
        const surrogate = readFileSync(join(world.project, "made.txt"), "utf8").trim();
        expect(surrogate).toHaveLength(key.length);
        expect([surrogate === key, stdout.includes(key), stderr.includes(key)]).toEqual([false, false, false]);
        // Nothing but its provider was reached, and there each time with the key.
        const audited = await podbot(["audit", "--json"]);
        expect(audited).toMatchObject({ status: 0, stderr: "" });
        const asked = readEntries(audited.stdout).filter(({ kind }) => kind !== "dns");
        // An agent may leave when it has read the last event, and not wait for the end of the answer.
        const reached = asked.filter(({ verdict, status }) => verdict !== "refused" && status === 200);
        expect(new Set(reached.map((entry) => entry.host)), audited.stdout).toEqual(new Set([host]));
        expect(reached.filter(({ method, masked: count }) => method === "POST" && count === 0)).toEqual([]);
      } finally {
        if (world instanceof EngineWorld) {
          await eventually(() => expect(world.containers()).toEqual([]));
          world.remove();
        } else rmSync(world.directory, { recursive: true, force: true });
      }
    });
  });
}

/** Whatever else the agent may reach by what is known of it leads to where nobody listens. */
function nowhere(name: string): Readonly<Record<string, string>> {
  return Object.fromEntries((knownAgent(name)?.hosts ?? []).map((host) => [host, "127.0.0.1:9"]));
}

/** Words by which the engine's own caller runs a command. */
function asCaller(engine: TestEngine | null, words: readonly string[]): readonly string[] {
  if (engine === null) return words;
  const { uid, gid } = engine.caller;
  return ["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", "--", ...words];
}

function give(engine: TestEngine | null, directory: string): void {
  if (engine === null) return;
  const { uid, gid } = engine.caller;
  expect(spawnSync("chown", ["-R", `${uid}:${gid}`, directory]).status).toBe(0);
}
