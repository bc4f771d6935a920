// @module-tag security
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { patience } from "../faults/thorough.ts";
import { buildPrograms, makeRandom, makeScratch, sanitized } from "./programs.ts";
import { Conversation, childrenOf, frame, type Keeper, number32, order, startWardenIn } from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

const { SIGCONT, SIGWINCH } = constants.signals;

/** Commands that do no harm, whatever becomes of their words. */
const sound = [
  Buffer.concat([
    order(["cat", "-", "-"], { env: ["A=1", "B=", "HOME"], cwd: "/" }),
    frame("I", "some input\n"),
    frame("K", [1, ...number32(65_536)]),
    frame("S", [SIGCONT]),
    frame("I", Buffer.alloc(300, 7)),
    frame("E"),
  ]),
  Buffer.concat([
    order(["cat", "-"], { terminal: [24, 80], user: [65_534, 65_534] }),
    frame("I", "typed\n"),
    frame("W", [40, 0, 100, 0]),
    frame("S", [SIGWINCH]),
    frame("K", [2, ...number32(1)]),
    frame("I", "\x04"),
  ]),
  Buffer.concat([order(["/nonexistent"]), frame("I", "for nobody"), frame("E")]),
  frame("Q"),
];

function mutate(original: Buffer, random: (below: number) => number): Buffer {
  let bytes = Buffer.from(original);
  for (let changes = 1 + random(4); changes > 0 && bytes.length > 0; changes--) {
    const at = random(bytes.length);
    const kind = random(6);
    if (kind === 0) bytes[at] = random(256);
    else if (kind === 1) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
    else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(6))]);
    else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(random(bytes.length))]);
    else if (kind === 4) bytes[at] = [0, 1, 127, 255][random(4)] ?? 0;
    else bytes = bytes.subarray(0, at);
  }
  return bytes;
}

function garbage(random: (below: number) => number): Buffer {
  return Buffer.from(Array.from({ length: 1 + random(200) }, () => random(256)));
}

/** Sends it, gives the warden a moment to answer, and goes; the moment decides nothing. */
async function converse(keeper: Keeper, bytes: Buffer, patience: number): Promise<string> {
  const conversation = new Conversation(await keeper.connection());
  if (bytes.length > 0) conversation.socket.write(bytes);
  await Promise.race([conversation.outcome().catch(() => {}), sleep(patience)]);
  conversation.socket.end();
  await conversation.until(() => conversation.isClosed);
  expect(conversation.wrong).toEqual([]);
  return conversation.told;
}

it("podbot-warden, sanitized build, survives thousands of damaged conversations", async () => {
  const { keeper, warden } = await startWardenIn(scratch, sanitized.warden);
  const random = makeRandom(1);
  const conversations = Array.from({ length: 2400 }, (_, i) => {
    if (i % 6 === 5) return garbage(random);
    return mutate(sound[random(sound.length)] ?? Buffer.alloc(0), random);
  });

  // The control: an undamaged conversation starts a command and is never refused.
  expect(await converse(keeper, sound[0] ?? Buffer.alloc(0), 60_000)).toMatch(/^P[^B]*X$/);

  const told: string[] = [];
  const inParallel = Array.from({ length: 24 }, async (_, first) => {
    for (let i = first; i < conversations.length; i += 24) {
      told[i] = await converse(keeper, conversations[i] ?? Buffer.alloc(0), patience * random(40));
    }
  });
  await Promise.all(inParallel);

  // How many are answered before their client goes depends on the machine.
  expect(told.filter((types) => types.includes("B")).length).toBeGreaterThan(0);
  expect(told.filter((types) => types.includes("P")).length).toBeGreaterThan(0);
  expect(await keeper.run(["echo", "sound"])).toMatchObject({ end: [0, 0], output: Buffer.from("sound\n") });
  await expect.poll(() => childrenOf(warden.pid)).toEqual([]);
  // An attendant that a sanitizer ends would have said why.
  expect(await warden.end()).toEqual({ status: 143, signal: null, complaints: "" });
  await keeper.close();
});
