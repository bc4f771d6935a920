import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knownAgent } from "../../../src/agents/table.ts";
import { codexRequests } from "../../../src/bridge/codex.ts";
import { eventually } from "../../eventually.ts";
import { openEditor, type Wire } from "../../host/editor.ts";
import { stubPath, writeStub } from "../../host/stub.ts";
import type { ModelRequest } from "../../model/server.ts";
import { program, World } from "../../world.ts";
import { EngineWorld } from "../engine-box.ts";
import { agentImage, type TestEngine } from "../engines/engine.ts";
import { cast, castOn, claude, codex, type Part } from "./cast.ts";
import { agentsShown, oldAdapterWords, pathWithAgents } from "./installation.ts";
import { farHost, type Loopback, openLoopback } from "./loopback.ts";
import { serveIn } from "./private-engine.ts";
import { envFlags } from "./turn.ts";

/** An agent as a server, and how it is started. */
interface Role {
  readonly title: string;
  readonly part: Part;
  /** Flags that name it, and what comes after `--`. */
  readonly flags: readonly string[];
  words(): readonly string[];
  /** The line of the prompt by which the model runs a command where the client's machine is out of reach. */
  call(command: string): string;
  /** The same where the client offers it its own. Null: the agent never asks for that. */
  readonly delegated: ((command: string) => string) | null;
}

const role = (part: Part, delegated: Role["delegated"] = null): Role => ({
  title: `${part.name} in mode acp`,
  part,
  flags: ["--agent", part.name],
  words: () => [],
  call: part.call,
  delegated,
});

const quiet = knownAgent("claude")?.quiet.environment;

const oldAdapter: Role = {
  title: "claude-code-acp, a custom agent",
  part: claude,
  // Of a custom agent nothing is known: neither its place for notes nor what keeps it quiet.
  flags: ["--agent", "custom", ...agentsShown, ...envFlags({ CLAUDE_CONFIG_DIR: "/tmp/claude", ...quiet })],
  words: oldAdapterWords,
  call: claude.call,
  delegated: (command) => `TOOL mcp__acp__Bash ${JSON.stringify({ command, description: "as told", timeout: 60_000 })}`,
};

function rolesOf(parts: readonly Part[]): readonly Role[] {
  return [...parts.map((part) => role(part, part.name === "goose" ? part.call : null)), oldAdapter];
}

/** Real agents that real clients speak with, in a network where there is nothing but their model. */
export function hostedAgents(title: string, engine: TestEngine | null): void {
  const stage = new Stage(engine);
  const roles = rolesOf(engine === null ? cast : castOn(engine));
  // Whoever comes first has the image built.
  beforeAll(() => stage.open(), 600_000);
  afterAll(() => stage.close());

  describe.concurrent(`hosted on ${title},`, () => {
    test.each(roles)("$title takes a turn with a tool call behind the wall, with an unmodified client", async (one) => {
      const { part } = one;
      const world = stage.world(part);
      const token = randomBytes(8).toString("hex");
      const hosting = stage.host(world, [...one.flags, ...envFlags(part.env(stage.net.url))], one.words());
      const editor = openEditor();
      const told = `told-${token} inside`;
      await hosting.speak(async () => {
        await editor.speak(hosting, async (context) => {
          await editor.initialize(context);
          const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
          await editor.turn(context, sessionId, `As told:\n${one.call(commandOf(token))}`);
          await eventually(() => expect(editor.said()).toContain(told));
        });
      });
      expect(editor.asked.filter((method) => method !== "session/request_permission")).toEqual([]);
      expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe(`${token}\n`);
      const { requests } = await stage.heard();
      expect(requests.some(({ results }) => results?.some((result) => result.includes(told)))).toBe(true);
      await stage.expectNothingLeft(world);
    });

    // The control: what would happen if nobody stood in between.
    test.each(roles.filter(({ delegated }) => delegated !== null))(
      "$title has its client run the same command, outside, where the owner delegates that",
      async (one) => {
        const { part, delegated } = one;
        const world = stage.world(part);
        const token = randomBytes(8).toString("hex");
        const flags = ["--agent-mode", "acp", "--acp-delegation", "allow_all"];
        const hosting = stage.host(world, [...one.flags, ...flags, ...envFlags(part.env(stage.net.url))], one.words());
        const editor = openEditor("allow", world.project);
        await hosting.speak(async () => {
          await editor.speak(hosting, async (context) => {
            await editor.initialize(context);
            const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
            await editor.turn(context, sessionId, `As told:\n${delegated?.(commandOf(token))}`);
            await eventually(() => expect(editor.said()).toContain(`told-${token}`));
          });
        });
        expect(editor.asked).toContain("terminal/create");
        expect(editor.said()).not.toContain(`told-${token} inside`);
        expect(hosting.stderr()).toContain('podbot: trust boundary: acp.delegation = "allow_all"');
        await stage.expectNothingLeft(world);
      },
    );

    // It is asked out here, and answers the same wherever it is to run.
    if (engine === null) {
      test("Codex's own server asks for nothing that Podbot does not know", () => {
        const directory = mkdtempSync(join(tmpdir(), "podbot-codex-schema-"));
        try {
          const words = ["app-server", "generate-json-schema", "--experimental", "--out", directory];
          const env = { PATH: pathWithAgents(), HOME: directory, CODEX_HOME: directory };
          const { status, stderr } = spawnSync("codex", words, { env, encoding: "utf8" });
          expect(status, stderr).toBe(0);
          const { oneOf } = JSON.parse(readFileSync(join(directory, "ServerRequest.json"), "utf8")) as {
            oneOf: readonly { properties: { method: { enum: readonly string[] } } }[];
          };
          const asked = oneOf.flatMap(({ properties }) => properties.method.enum);
          const denied = ["item/tool/call", "attestation/generate", "account/chatgptAuthTokens/refresh"];
          expect(asked.toSorted()).toEqual([...codexRequests, ...denied].toSorted());
        } finally {
          rmSync(directory, { recursive: true });
        }
      });
    }

    test("Codex's own server starts, threads, asks for an approval, turns, and ends with its client", async () => {
      const world = stage.world(codex);
      const token = randomBytes(8).toString("hex");
      const flags = ["--agent", "codex", "--agent-mode", "codex_app_server", ...envFlags(codex.env(stage.net.url))];
      const hosting = stage.host(world, flags, []);
      const seen = await hosting.speak(() => talkToCodex(hosting, world.project, codex.call(commandOf(token))));
      expect(seen.agent).toContain("0.166.0");
      expect(seen.approvals).toEqual(["item/commandExecution/requestApproval"]);
      expect(seen.outputs.join()).toContain(`told-${token} inside`);
      expect(seen.turn).toMatchObject({ status: "completed", error: null });
      expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe(`${token}\n`);
      const { requests } = await stage.heard();
      const told = requests.filter(({ results }) => results?.some((result) => result.includes(`told-${token}`)));
      expect(told.map(({ headers }) => headers["authorization"])).toContain("Bearer key-of-codex");
      await stage.expectNothingLeft(world);
    });
  });

  if (engine !== null) {
    test(`on ${title}, paths are the client's outside and the agent's inside, where the owner has moved the workspace`, async () => {
      const world = stage.world(codex);
      writeStub(world);
      world.file("home/.config/podbot/config.toml", '[workspace]\ncontainer_path = "/workspace"\n');
      const hosting = stage.host(world, ["--agent", "custom"], ["node", stubPath]);
      const editor = openEditor();
      const update = { sessionUpdate: "tool_call", toolCallId: "1", title: "in /workspace" };
      const told = { ...update, locations: [{ path: "/workspace/made.txt" }] };
      const where = await hosting.speak(() =>
        editor.speak(hosting, async (context) => {
          await editor.initialize(context);
          const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
          const turn = (...words: readonly unknown[]) => editor.turn(context, sessionId, JSON.stringify(words));
          await turn("tell", "session/update", { sessionId, update: told });
          return JSON.parse(await turn("where"));
        }),
      );
      expect(where).toMatchObject({ cwd: "/workspace", sessions: [{ cwd: "/workspace" }] });
      expect(editor.updates).toContainEqual({ ...update, locations: [{ path: join(world.project, "made.txt") }] });
      await stage.expectNothingLeft(world);
    });

    test(`on ${title}, nothing is left of a hosted agent whose keeper is killed`, async () => {
      const world = stage.world(codex);
      writeStub(world);
      const hosting = stage.host(world, ["--agent", "custom"], ["node", stubPath, "--stays"]);
      hosting.writable.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n');
      await once(hosting.readable, "data");
      await hosting.kill();
      await world.podbot(["stop", "--all"]);
      await stage.expectNothingLeft(world);
    });
  }

  test(`those hosted on ${title} have asked for no name but those that are known`, async () => {
    const { names } = await stage.heard();
    expect(names.filter((name) => !knownNames.includes(name))).toEqual([]);
  });
}

/** Codex's adapter looks for plugins when it starts, and an elder Claude Code at home; no variable keeps them from it. */
const knownNames = ["api.anthropic.com", "api.github.com", "chatgpt.com", "github.com"];

/** Leaves a file where it works, and tells where it ran. */
function commandOf(token: string): string {
  return `echo ${token} >made.txt; echo told-${token} $(test -e /run/podbot/warden && echo inside)`;
}

interface Hosting extends Wire {
  readonly stderr: () => string;
  /** SIGKILL for Podbot. */
  kill(): Promise<void>;
  /** Does the work, and expects that all ends well with it. */
  speak<T>(work: () => Promise<T>): Promise<T>;
}

/** The network, the engine in it and the worlds of all tests of a file. */
class Stage {
  readonly #engine: TestEngine | null;
  readonly #made: (() => unknown)[] = [];
  readonly #worlds: World[] = [];
  #place: readonly string[] = [];
  #own: TestEngine | null = null;
  #net: Loopback | null = null;
  readonly #requests: ModelRequest[] = [];
  readonly #names: string[] = [];

  constructor(engine: TestEngine | null) {
    this.#engine = engine;
  }

  get net(): Loopback {
    return this.#net as Loopback;
  }

  async open(): Promise<void> {
    const engine = this.#engine;
    const net = engine === null ? await openLoopback() : await openLoopback(farHost);
    this.#net = net;
    this.#made.push(() => net[Symbol.asyncDispose]());
    if (engine === null) return;
    const image = await agentImage(engine);
    const own = await serveIn(net, engine, [image.store]);
    this.#made.push(() => own[Symbol.asyncDispose]());
    this.#own = own;
    this.#place = ["--image", image.name, "--engine-socket", own.socket];
  }

  async close(): Promise<void> {
    for (const world of this.#worlds) {
      if (world instanceof EngineWorld) world.remove();
      else rmSync(world.directory, { recursive: true, force: true });
    }
    for (const end of this.#made.toReversed()) await end();
  }

  /** With what a user sets up for this agent, who does not want to wait for its end. */
  world(part: Part): World {
    const world = this.#own === null ? new World() : new EngineWorld(this.#own);
    this.#worlds.push(world);
    world.repository();
    if (this.#own === null) world.env["PATH"] = pathWithAgents();
    for (const [file, content] of Object.entries(part.files(this.net.url))) world.file(join(world.home, file), content);
    world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
    if (this.#engine !== null) {
      const { uid, gid } = this.#engine.caller;
      spawnSync("chown", ["-R", `${uid}:${gid}`, world.directory]);
    }
    return world;
  }

  host(world: World, flags: readonly string[], words: readonly string[]): Hosting {
    const shown = this.#engine === null && !flags.includes(agentsShown[0] as string) ? agentsShown : [];
    const podbot = [process.execPath, program, "host", ...this.#place, ...shown, ...flags, "--network", "open"];
    const [file = "", ...rest] = this.#asCaller([...podbot, "--", ...words], world.project);
    const child = spawn(file, rest, { cwd: world.project, env: world.env as NodeJS.ProcessEnv, stdio: "pipe" });
    return attach(child);
  }

  async heard(): ReturnType<Loopback["heard"]> {
    const { requests, names } = await this.net.heard();
    this.#requests.push(...requests);
    this.#names.push(...names);
    return { requests: this.#requests, names: this.#names };
  }

  async expectNothingLeft(world: World): Promise<void> {
    if (world instanceof EngineWorld) await eventually(() => expect(world.containers()).toEqual([]));
    expect(JSON.parse((await world.podbot(["ps", "--json"])).stdout)).toEqual([]);
  }

  #asCaller(words: readonly string[], at: string): readonly string[] {
    if (this.#engine === null) return this.net.words(words, { uid: 0, gid: 0 }, at);
    const { uid, gid } = this.#engine.caller;
    return ["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", "--", ...words];
  }
}

function attach(child: ChildProcess): Hosting {
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stdin?.on("error", () => {});
  const ended = once(child, "close").then(([status]) => ({ status, stderr: said }));
  return {
    readable: child.stdout as Readable,
    writable: child.stdin as Writable,
    stderr: () => said,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async speak(work) {
      try {
        const result = await Promise.race([
          work(),
          ended.then((end) => {
            throw new Error(`it has ended too early: ${JSON.stringify(end)}`);
          }),
        ]);
        child.stdin?.end();
        expect(await ended).toMatchObject({ status: 0 });
        return result;
      } catch (error) {
        child.kill();
        await ended;
        if (error instanceof Error) error.message += `\n${said}`;
        throw error;
      }
    },
  };
}

interface CodexTalk {
  readonly agent: string;
  readonly approvals: readonly string[];
  readonly outputs: readonly string[];
  readonly turn: unknown;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the protocol has there.
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly result?: any;
  readonly error?: unknown;
}

/** One turn in Codex's own protocol, in which every command is approved. */
async function talkToCodex({ readable, writable }: Wire, cwd: string, prompt: string): Promise<CodexTalk> {
  const answers = new Map<number, (message: Message) => void>();
  const approvals: string[] = [];
  const outputs: string[] = [];
  let finish: (turn: unknown) => void = () => {};
  const finished = new Promise<unknown>((resolve) => {
    finish = resolve;
  });
  const send = (message: Message) => writable.write(`${JSON.stringify(message)}\n`);
  createInterface({ input: readable }).on("line", (line) => {
    const message = JSON.parse(line) as Message;
    const { id, method, params } = message;
    if (id !== undefined && method === undefined) answers.get(id)?.(message);
    else if (id !== undefined && method !== undefined) {
      approvals.push(method);
      send({ id, result: { decision: "accept" } });
    } else if (method === "item/completed" && params.item.type === "commandExecution") {
      outputs.push(String(params.item.aggregatedOutput));
    } else if (method === "turn/completed") finish(params.turn);
  });
  let next = 1;
  const ask = async (method: string, params: unknown) => {
    const id = next++;
    const answered = new Promise<Message>((resolve) => answers.set(id, resolve));
    send({ id, method, params });
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  const clientInfo = { name: "client", title: "A client", version: "1.0.0" };
  const { userAgent } = await ask("initialize", { clientInfo });
  send({ method: "initialized" });
  const { thread } = await ask("thread/start", { cwd, approvalPolicy: "untrusted" });
  const input = [{ type: "text", text: `As told:\n${prompt}`, text_elements: [] }];
  await ask("turn/start", { threadId: thread.id, input });
  return { agent: userAgent, approvals, outputs, turn: await finished };
}
