import { connect } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";

/** One way to the server: straight through a relay, or by asking a proxy for a tunnel. */
export interface Via {
  readonly port: number;
  readonly isProxy: boolean;
  /** The server's name on this way, and the port that a proxy is asked for. */
  readonly host: string;
  readonly hostPort: number;
  /** The authority that the client trusts. */
  readonly ca: string;
}

export type Job =
  /** Milliseconds that it takes. */
  | { readonly kind: "download" | "upload"; readonly via: Via; readonly bytes: number }
  /** Requests each second, on several connections that are kept. */
  | { readonly kind: "requests"; readonly via: Via; readonly connections: number; readonly forMs: number }
  /** Median milliseconds of a request on a connection that is kept: one figure for each way. */
  | { readonly kind: "latency"; readonly ways: readonly Via[]; readonly blocks: number; readonly each: number }
  /** Opens tunnels and leaves them open. */
  | { readonly kind: "tunnels"; readonly via: Via; readonly count: number };

const piece = Buffer.alloc(65_536, "podbot ");

export async function work(job: Job, kept: TLSSocket[]): Promise<readonly number[]> {
  switch (job.kind) {
    case "download":
      return [await timed(job.via, (socket) => download(socket, job.via, job.bytes))];
    case "upload":
      return [await timed(job.via, (socket) => upload(socket, job.via, job.bytes))];
    case "requests":
      return [await countRequests(job)];
    case "latency":
      return measureLatency(job);
    case "tunnels":
      await openTunnels(job, kept);
      return [kept.length];
  }
}

async function timed(via: Via, transfer: (socket: TLSSocket) => Promise<unknown>): Promise<number> {
  const socket = await open(via);
  const began = performance.now();
  await transfer(socket);
  const taken = performance.now() - began;
  socket.destroy();
  return taken;
}

async function open({ port, isProxy, host, hostPort, ca }: Via): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  if (isProxy) {
    socket.write(`CONNECT ${host}:${hostPort} HTTP/1.1\r\nHost: ${host}:${hostPort}\r\n\r\n`);
    const answer = await new Promise<Buffer>((resolve, reject) => socket.once("data", resolve).once("error", reject));
    if (!/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/.test(answer.toString("latin1"))) throw new Error(`no tunnel: ${answer}`);
  }
  const options: ConnectionOptions = { socket, servername: host, ca, ALPNProtocols: ["http/1.1"] };
  const secure = connectTls(options);
  await new Promise((resolve, reject) => secure.once("secureConnect", resolve).once("error", reject));
  return secure;
}

function head(method: string, path: string, { host, hostPort }: Via, more = ""): string {
  return `${method} ${path} HTTP/1.1\r\nHost: ${hostPort === 443 ? host : `${host}:${hostPort}`}\r\n${more}\r\n`;
}

function download(socket: TLSSocket, via: Via, bytes: number): Promise<number> {
  const answered = readAnswer(socket, bytes);
  socket.write(head("GET", `/bytes/${bytes}`, via));
  return answered;
}

async function upload(socket: TLSSocket, via: Via, bytes: number): Promise<void> {
  const answered = readAnswer(socket);
  socket.write(head("PUT", "/sink", via, `Content-Length: ${bytes}\r\n`));
  for (let left = bytes; left > 0; left -= piece.length) {
    if (socket.write(left < piece.length ? piece.subarray(0, left) : piece)) continue;
    await new Promise((resolve) => socket.once("drain", resolve));
  }
  await answered;
}

function ask(socket: TLSSocket, request: string): Promise<number> {
  const answered = readAnswer(socket);
  socket.write(request);
  return answered;
}

/** Reads one answer to its end, and gives the length of its body. */
function readAnswer(socket: TLSSocket, expected?: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let seen = "";
    let left = -1;
    let length = 0;
    const settle = (error?: Error) => {
      socket.off("data", onData).off("close", onClose).off("error", settle);
      if (error === undefined) resolve(length);
      else reject(error);
    };
    const onClose = () => settle(new Error(`the connection ended early, after ${JSON.stringify(seen.slice(0, 300))}`));
    const onData = (bytes: Buffer) => {
      if (left >= 0) left -= bytes.length;
      else {
        seen += bytes.toString("latin1");
        const end = seen.indexOf("\r\n\r\n");
        if (end < 0) return;
        if (!seen.startsWith("HTTP/1.1 200 ")) return settle(new Error(`it was answered: ${seen.slice(0, 1000)}`));
        length = Number(/^content-length: (\d+)\r$/im.exec(seen.slice(0, end + 2))?.[1]);
        if (!(length === (expected ?? length))) return settle(new Error(`the length is odd: ${seen.slice(0, end)}`));
        left = length - (seen.length - end - 4);
      }
      if (left === 0) settle();
    };
    socket.on("data", onData).on("close", onClose).on("error", settle);
  });
}

async function countRequests({ via, connections, forMs }: Extract<Job, { kind: "requests" }>): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(via)));
  const request = head("GET", "/small", via);
  const began = performance.now();
  let count = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() - began < forMs) {
        await ask(socket, request);
        count += 1;
      }
    }),
  );
  const seconds = (performance.now() - began) / 1_000;
  for (const socket of sockets) socket.destroy();
  return count / seconds;
}

/** In blocks, one way after the other, so that noise meets all alike. */
async function measureLatency({ ways, blocks, each }: Extract<Job, { kind: "latency" }>): Promise<readonly number[]> {
  const lanes = await Promise.all(
    ways.map(async (via) => ({
      socket: await open(via),
      request: head("GET", "/small", via),
      samples: [] as number[],
    })),
  );
  for (let block = -1; block < blocks; block++) {
    for (const { socket, request, samples } of lanes) {
      for (let at = 0; at < each; at++) {
        const began = performance.now();
        await ask(socket, request);
        if (block >= 0) samples.push(performance.now() - began);
      }
    }
  }
  for (const { socket } of lanes) socket.destroy();
  return lanes.map(({ samples }) => samples.sort((a, b) => a - b)[samples.length >> 1] as number);
}

async function openTunnels({ via, count }: Extract<Job, { kind: "tunnels" }>, kept: TLSSocket[]): Promise<void> {
  const atOnce = 32;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (kept.length < count) {
        // Reserved before it is open, so that the loops together do not open too many.
        const at = kept.push(undefined as unknown as TLSSocket) - 1;
        kept[at] = await open(via);
      }
    }),
  );
}
