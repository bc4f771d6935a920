import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Terminal } from "../../terminal.ts";
import type { World } from "../../world.ts";
import { claude, codex, type Part } from "./cast.ts";
import type { Loopback } from "./loopback.ts";

/** An agent that is used on a terminal, and what it shows there. */
export interface Speaker {
  readonly part: Part;
  /** Files of the home besides: who has used it before is asked less. */
  files(world: World): Readonly<Record<string, string>>;
  /** Answers what it asks at first, until it waits for a prompt. */
  begin(screen: Terminal): Promise<void>;
  /** Its screen, drawn for this width. */
  drawn(columns: number): RegExp;
  /** Makes it leave. */
  leave(screen: Terminal): Promise<void>;
  /** Whom it asks for all the same. */
  readonly names: readonly string[];
}

/** Of a line: programs that draw fill it up. */
const end = "[ \u00a0]*$";

export const speakers: readonly Speaker[] = [
  {
    part: claude,
    files: ({ project }) => ({
      ".claude.json": JSON.stringify({
        hasCompletedOnboarding: true,
        fullscreenUpsellSeenCount: 99,
        customApiKeyResponses: { approved: ["sk-ant-loopback"], rejected: [] },
        projects: { [project]: { hasTrustDialogAccepted: true } },
      }),
    }),
    begin: (screen) => screen.sees(/bypass permissions on/),
    drawn: (columns) => new RegExp(`^─{${columns}}${end}`, "m"),
    async leave(screen) {
      screen.press("C-c");
      await screen.sees(/Press Ctrl-C again to exit/);
      screen.press("C-c");
    },
    names: [],
  },
  {
    part: codex,
    files: () => ({}),
    async begin(screen) {
      await answer(screen, /› 1\. Trust and continue/, "Enter");
      await answer(screen, /› 1\. Try new model/, "Down");
      await answer(screen, /› 2\. Use existing model/, "Enter");
      await screen.sees(/^› (?!\d\.)/m);
    },
    // A line of which one end is at the left and the other at the right.
    drawn: (columns) => new RegExp(`^ +\\? for .{${columns - 20},${columns - 12}}view${end}`, "m"),
    async leave(screen) {
      await say(screen, "/quit");
    },
    // An announcement, which no setting of its own switches off.
    names: ["raw.githubusercontent.com"],
  },
];

/** Presses a key when a question has been read: what comes at the moment in which it is drawn is thrown away. */
async function answer(screen: Terminal, question: RegExp, key: string): Promise<void> {
  await screen.sees(question);
  await sleep(300);
  screen.press(key);
}

/** Types a line and sends it. What comes as fast as if it were pasted does not count as sent. */
async function say(screen: Terminal, line: string): Promise<void> {
  screen.write(line);
  await screen.sees(new RegExp(`^[❯›]\\s${line.replaceAll(/[^\w ]/g, "\\$&")}${end}`, "m"));
  await sleep(300);
  screen.press("Enter");
}

/** Starts the agent by this line of the shell and does with it what a person does, from its first screen to its last. */
export async function converse(
  { part, begin, drawn, leave }: Speaker,
  screen: Terminal,
  world: World,
  line: string,
): Promise<{ readonly token: string }> {
  screen.type("stty -a >before; clear");
  await screen.sees(/^\$ $/m);
  screen.type(line);
  await begin(screen);
  await say(screen, "hello there");
  await screen.sees(new RegExp(`^[●•] The model heard: hello there${end}`, "m"));
  const token = randomBytes(4).toString("hex");
  await say(screen, part.call(`echo ${token} >made.txt; echo told-${token}`));
  await screen.sees(new RegExp(`^[●•] The tool said: (.*\\n)*.*told-${token}`, "m"));
  expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe(`${token}\n`);
  for (const [columns, rows] of [
    [140, 45],
    [100, 30],
  ] as const) {
    screen.resize(columns, rows);
    await screen.sees(drawn(columns));
  }
  await leave(screen);
  await screen.sees(/^\$ $/m);
  screen.type("status=$?; stty -a >after; echo status=$status");
  await screen.sees(/^status=0$/m);
  // The shell has its terminal back, as it was but for its size.
  const settings = (name: string) => readFileSync(join(world.project, name), "utf8").replace(/rows.*;/, "");
  expect(settings("after")).toBe(settings("before"));
  expect(screen.modes()).toBe("cursor=1 mouse=0");
  return { token };
}

/** The model has seen what the tool said, and nobody was asked for any name but those that are known. */
export async function expectNames({ names: known }: Speaker, net: Loopback, token: string): Promise<void> {
  const { requests, names } = await net.heard();
  expect(requests.some(({ results }) => results?.some((result) => result.includes(`told-${token}`)))).toBe(true);
  expect([...new Set(names)]).toEqual(known);
}
