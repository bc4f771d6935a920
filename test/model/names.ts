import { createSocket } from "node:dgram";
import { once } from "node:events";

export interface NameServer extends AsyncDisposable {
  readonly port: number;
  /** Every name that was asked for, in small letters, oldest first. */
  readonly names: readonly string[];
}

export interface NameOptions {
  readonly host?: string;
  /** Default: one that is free. */
  readonly port?: number;
  readonly onName?: (name: string) => void;
}

/** A name server that knows no name, and remembers who was asked for. */
export async function serveNames({ host = "127.0.0.1", port = 0, onName }: NameOptions = {}): Promise<NameServer> {
  const names: string[] = [];
  const socket = createSocket("udp4", (query, from) => {
    const name = nameIn(query);
    names.push(name);
    onName?.(name);
    socket.send(denial(query), from.port, from.address);
  });
  socket.bind(port, host);
  await once(socket, "listening");
  return {
    port: socket.address().port,
    names,
    async [Symbol.asyncDispose]() {
      socket.close();
    },
  };
}

const headerLength = 12;

function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = headerLength; (query[at] ?? 0) > 0; at += (query[at] ?? 0) + 1) {
    labels.push(query.toString("latin1", at + 1, at + 1 + (query[at] ?? 0)));
  }
  return labels.join(".").toLowerCase();
}

/** The question again, and that there is no such name (NXDOMAIN). */
function denial(query: Buffer): Buffer {
  let end = headerLength;
  while ((query[end] ?? 0) > 0) end += (query[end] ?? 0) + 1;
  // The name's end, its type and its class; what the question has besides is not repeated.
  const answer = Buffer.from(query.subarray(0, end + 5));
  answer.writeUInt16BE(0x8183, 2);
  answer.fill(0, 6, headerLength);
  return answer;
}
