// @module-tag security
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import type { Session } from "../../src/keeper/session.ts";
import { newWorld } from "../world.ts";

const world = newWorld();
let session: Session;

beforeAll(async () => {
  const { project: cwd, env } = world;
  session = await startSession(await planSandbox({ command: ["true"], cwd, env, session: true }));
});
afterAll(() => session.stop());

const talker = `import errno, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(10)
connection.connect(sys.argv[1])
answer = b""
try:
    connection.sendall(sys.argv[2].encode("latin1"))
    connection.shutdown(socket.SHUT_WR)
    while (piece := connection.recv(65536)): answer += piece
except OSError as error:
    # Whoever hangs up may do so before all is said.
    if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN): raise
sys.stdout.buffer.write(answer)`;

/** Says something on the keeper's socket, perhaps from elsewhere, and gives back what is answered until it hangs up. */
async function talk(words: string, through: readonly string[] = []): Promise<string> {
  const socket = join(world.env["XDG_RUNTIME_DIR"] as string, "podbot", session.id, "keeper.sock");
  const [program = "", ...args] = [...through, "python3", "-c", talker, socket, words];
  return (await promisify(execFile)(program, args, { encoding: "latin1" })).stdout;
}

const asked = (method: string, id = 1) => `${JSON.stringify({ jsonrpc: "2.0", id, method })}\n`;
const answers = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

describe("a keeper", () => {
  test("says whose it is", async () => {
    const state = join(world.home, ".local/state/podbot");
    const result = { id: session.id, state, phase: "running", pid: process.pid };
    expect(answers(await talk(asked("describe")))).toEqual([{ jsonrpc: "2.0", id: 1, result }]);
  });

  test("hangs up on a process in a box, which is the same user", async () => {
    const box = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-user", "--unshare-pid", "--"];
    expect(await talk(asked("describe"), box)).toBe("");
    // The same without a pid namespace of its own is nobody's box.
    const none = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--"];
    expect(await talk(asked("describe"), none)).toContain(session.id);
  });

  test("answers each request in turn", async () => {
    const found = answers(await talk(asked("describe", 1) + asked("describe", 2) + asked("describe", 3)));
    expect(found.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test("knows no other methods", async () => {
    expect(answers(await talk(asked("destroy")))).toMatchObject([{ id: 1, error: { code: -32601 } }]);
  });

  test.each([
    ["what is not JSON", "nonsense\n"],
    ["a batch", `[${asked("describe").trim()}]\n`],
    ["bytes that are no text", "\xff\xfe\n"],
    ["a line without end", "x".repeat(70_000)],
  ])("hangs up after %s, with an error, and serves the next", async (_, words) => {
    expect(answers(await talk(words))).toMatchObject([{ id: null, error: { data: { code: "PROTOCOL" } } }]);
    expect(await talk(asked("describe"))).toContain(session.id);
  });

  test("lets its session be seen by nobody inside", async () => {
    const run = world.env["XDG_RUNTIME_DIR"] as string;
    const { stdout, exited } = await session.sandbox.exec({ argv: ["sh", "-c", `ls -A ${run}/podbot | wc -l`] });
    const said = (await stdout.toArray()).join("");
    expect({ said, ...(await exited) }).toEqual({ said: "0\n", code: 0, killed: false });
  });
});
