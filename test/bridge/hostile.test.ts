// @module-tag security
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { bridge } from "../../src/bridge/bridge.ts";
import type { BridgeEvent } from "../../src/bridge/event.ts";
import { bypasses, farewell, login } from "./bypasses.ts";
import { acpPolicy, inspect } from "./inspect.ts";

const policy = { ...acpPolicy, maxFrameBytes: 1 << 20 };

/** What must not be in anything that reaches a client, however it reads. */
function expectHarmless(out: string): void {
  expect(out).not.toMatch(/terminal[\\/]+create/i);
  expect(out).not.toMatch(/reached|fs\/|mcp\/|proxy\/|elicitation/);
}

describe("a hostile agent", () => {
  test.each(Object.entries(bypasses))("gets nowhere with %s", (_what, bypass) => {
    const input = Buffer.concat([Buffer.from(bypass as string), Buffer.from(farewell)]);
    const { out, answers, events } = inspect("to-client", policy, input);
    expect(out.endsWith(farewell)).toBe(true);
    expectHarmless(out);
    expect(events.length).toBeGreaterThan(0);
    for (const { error } of answers) expect([-32001, -32600]).toContain(error.code);
  });

  test("would get somewhere where the owner lets it: the attempts are real", () => {
    const open = { ...policy, delegation: "allow_all" } as const;
    for (const what of ["a plain request", "the id null", "members in another order", "blanks everywhere", "a page"]) {
      expect(inspect("to-client", open, bypasses[what] as string).out).toBe(bypasses[what]);
    }
  });

  test("gets no further as a process of its own, and hears why", async () => {
    const directory = await mkdtemp(join(tmpdir(), "podbot-hostile-"));
    const program = join(directory, "agent.mjs");
    const entry = fileURLToPath(new URL("./hostile-agent.ts", import.meta.url));
    await build({
      entryPoints: [entry],
      outfile: program,
      bundle: true,
      format: "esm",
      platform: "node",
      logLevel: "error",
    });
    const agent = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "pipe"] });
    const told = text(agent.stderr);
    const client = { input: new PassThrough(), output: new PassThrough() };
    const out = text(client.output);
    const events: BridgeEvent[] = [];
    await bridge({ client, agent: { stdin: agent.stdin, stdout: agent.stdout } }, policy, (event) =>
      events.push(event),
    );
    client.output.end();
    agent.stdin.end();
    const lines = (await out).split("\n");
    expectHarmless(lines.join("\n"));
    expect(JSON.parse(lines[0] as string).result.authMethods).toEqual([{ id: "agent", name: "z" }]);
    expect(lines.slice(-2)).toEqual([farewell.trim(), ""]);
    const whole = inspect(
      "to-client",
      policy,
      Buffer.concat([login, ...Object.values(bypasses), farewell].map((one) => Buffer.from(one as string))),
    );
    expect(lines.join("\n")).toBe(whole.out);
    const sort = (answers: unknown[]) => answers.map((answer) => JSON.stringify(answer)).sort();
    const heard = (await told)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(sort(heard)).toEqual(sort(whole.answers));
    expect(events.filter(({ kind }) => kind === "request-denied").length).toBeGreaterThan(5);
    await rm(directory, { recursive: true });
  });
});
