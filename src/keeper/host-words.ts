import type { BridgeEvent } from "../bridge/event.ts";
import type { HostedEvent } from "./host-events.ts";

/** An agent can make up methods without end; nobody reads them without end. */
const mostLines = 100;
const longestLine = 300;

/**
 * What of a hosted session is worth a line, for people: each thing once. Whoever does the same a thousand times is told
 * of once, and whoever does a thousand things until it is clear what he is up to.
 */
export function makeLines(): (event: HostedEvent) => string | null {
  const told = new Set<string>();
  return (event) => {
    const line = lineOf(event)?.slice(0, longestLine) ?? null;
    if (line === null || told.has(line) || told.size > mostLines) return null;
    told.add(line);
    return told.size > mostLines ? "there is more of this, which is not told any more" : line;
  };
}

function lineOf(event: HostedEvent): string | null {
  switch (event.kind) {
    case "request-denied":
      return `denied the agent's request ${event.method}: it would act on the client's machine`;
    case "notification-dropped":
      return `dropped the agent's notification ${event.method}: it would act on the client's machine`;
    case "capabilities-masked":
      return `hid ${event.names.join(", ")} from the ${event.direction === "to-agent" ? "agent" : "client"}`;
    case "frame-refused":
      return `refused a message of the ${senderOf(event)}: ${event.reason}`;
    case "client-gone":
      return "nobody reads what the agent writes any more";
    case "box-lost":
      return "the sandbox has ended before the agent did";
    case "agent-dismissed":
      return dismissals[event.reason];
    default:
      return null;
  }
}

function senderOf({ direction }: Extract<BridgeEvent, { kind: "frame-refused" }>): string {
  return direction === "to-agent" ? "client" : "agent";
}

const dismissals = {
  "client-closed": "the client has finished and the agent has not: it is asked to end",
  "client-gone": null,
  "agent-closed": "the agent says nothing more and has not ended: it is asked to",
} as const;
