import type { World } from "../world.ts";

/** Where the stub lies in a world's project. */
export const stubPath = "stub.mjs";

/** Words that start it. */
export const stubWords = [process.execPath, stubPath] as const;

/**
 * An agent of the Agent Client Protocol that does what each prompt says, one word and its arguments in JSON: `ask METHOD
 * {…}` asks its client, `tell METHOD {…}` notifies it, `raw TEXT` prints a line, `stderr`, `exit`, `where`, `hold`.
 */
const program = String.raw`
import { createInterface } from "node:readline";
import { closeSync, writeFileSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
const flags = new Set(process.argv.slice(2));
if (flags.has("--deaf")) process.on("SIGTERM", () => {});
if (flags.has("--polite")) process.on("SIGTERM", () => process.exit(9));
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const waiting = new Map();
let next = 100, seen = null, sessions = [];
const ask = (method, params) => new Promise((resolve) => {
  waiting.set(next, resolve);
  send({ id: next++, method, params });
});
const say = (sessionId, text) =>
  send({ method: "session/update", params: { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } } });
const turns = {
  ask: async (method, params) => JSON.stringify(await ask(method, params)),
  tell: async (method, params) => (send({ method, params }), "told"),
  raw: async (line) => (process.stdout.write(line + "\n"), "printed"),
  stderr: async (text) => (process.stderr.write(text), "complained"),
  exit: async (code) => process.exit(code),
  where: async () => JSON.stringify({ seen, sessions, cwd: process.cwd(), pid: process.pid, host: hostname(), mode: process.env.MODE ?? null }),
  write: async (path, text) => (writeFileSync(path, text), "written"),
  read: async (path) => readFileSync(path, "utf8"),
  try: async (...tries) =>
    JSON.stringify(await Promise.all(tries.map(([word, ...rest]) => turns[word](...rest).catch((error) => error.code)))),
  big: async (count) => "x".repeat(count),
  hold: async () => new Promise(() => {}),
};
const handlers = {
  initialize: (params) => ((seen = params.clientCapabilities ?? null), { protocolVersion: 1, agentCapabilities: {}, authMethods: [] }),
  "session/new": (params) => (sessions.push(params), { sessionId: "s" + sessions.length }),
  "session/prompt": async ({ sessionId, prompt }) => {
    const [word, ...rest] = JSON.parse(prompt[0].text);
    say(sessionId, await turns[word](...rest));
    return { stopReason: "end_turn" };
  },
};
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)?.({ result, error });
  if (handlers[method] === undefined) return;
  send({ id, result: await handlers[method](params) });
});
process.stdin.on("end", () => {
  if (!flags.has("--stays")) process.exit(flags.has("--fails") ? 3 : 0);
});
if (flags.has("--stays")) setInterval(() => {}, 1000);
if (flags.has("--chats")) setInterval(() => send({ method: "chat/more", params: {} }), 20);
if (flags.has("--leaves")) process.exit(7);
if (flags.has("--unreading")) process.stdin.pause();
if (flags.has("--mute")) closeSync(1);
if (flags.has("--floods")) {
  const flood = (to, text) => { while (to.write(text)); to.once("drain", () => flood(to, text)); };
  flood(process.stdout, JSON.stringify({ jsonrpc: "2.0", method: "chat/more", params: { text: "x".repeat(1000) } }) + "\\n");
}
`;

/** Puts it where the agent works. */
export function writeStub(world: World): void {
  world.file(`home/project/${stubPath}`, program);
}
