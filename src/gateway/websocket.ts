import type { Socket } from "node:net";
import { type HeaderList, ofTheMessage } from "./headers.ts";
import type { Line } from "./ledger.ts";
import type { Sieve } from "./pump.ts";
import { splice } from "./tunnel.ts";

/** A WebSocket that was granted outside. */
export interface OpenedWebSocket {
  readonly headers: HeaderList;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly line: Line;
  /** What comes back passes through it. */
  readonly sieve: Sieve | undefined;
}

/** Tells the box so, and joins both ends. */
export async function joinWebSocket(opened: OpenedWebSocket, inner: Socket, head: Buffer): Promise<void> {
  const { headers, socket: outer, line, sieve } = opened;
  const said = ofTheMessage(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  inner.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${said.join("")}\r\n`,
    "latin1",
  );
  if (opened.head.length > 0) outer.unshift(opened.head);
  if (head.length > 0) inner.unshift(head);
  const traffic = { sent: { bytes: 0 }, received: { bytes: 0 } };
  line.note({ status: 101, verdict: "allowed" });
  line.measure(() => ({ sent: traffic.sent.bytes, received: traffic.received.bytes }));
  await splice(inner, outer, traffic, sieve);
  line.write({ verdict: "allowed" });
}
