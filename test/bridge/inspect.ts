import type { BridgeEvent, Direction } from "../../src/bridge/event.ts";
import { Inspector } from "../../src/bridge/inspector.ts";
import { type BridgePolicy, defaultMaxFrameBytes } from "../../src/bridge/policy.ts";

export const acpPolicy: BridgePolicy = {
  protocol: "acp",
  delegation: "disabled",
  maxFrameBytes: defaultMaxFrameBytes,
  paths: null,
};

export const codexPolicy: BridgePolicy = { ...acpPolicy, protocol: "codex_app_server" };

/** What became of some lines, all at once. */
export function inspect(direction: Direction, policy: BridgePolicy, input: string | Buffer) {
  const events: BridgeEvent[] = [];
  const inspector = new Inspector(direction, policy, (event) => events.push(event));
  const { pieces, answers, asked, cancelled } = inspector.push(Buffer.from(input as string));
  const out = Buffer.concat(pieces).toString();
  return { out, answers: answers.map((line) => JSON.parse(line)), asked, cancelled, events };
}

/** What became of one message. */
export function pass(direction: Direction, policy: BridgePolicy, message: unknown) {
  const found = inspect(direction, policy, `${JSON.stringify(message)}\n`);
  return { ...found, message: found.out === "" ? null : JSON.parse(found.out) };
}
