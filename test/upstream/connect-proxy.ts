import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";

export interface ConnectProxyOptions {
  /** Where its places are: `host:port`, or `host` at any port, and the port on loopback that it leads to. */
  readonly places?: Readonly<Record<string, number>>;
  /** `name:password`; whoever says anything else gets a 407. */
  readonly login?: string;
  /** Speaks TLS with this certificate. */
  readonly identity?: { readonly cert: string; readonly key: string };
  /** What it does instead of its work. */
  readonly misbehave?: (socket: Socket) => void;
}

/** A proxy as companies have them, on loopback: leads to where it was told, by CONNECT alone, and counts. */
export class ConnectProxy implements AsyncDisposable {
  /** `host:port` of every tunnel that was asked for. */
  readonly asked: string[] = [];
  /** Whole heads, as they came. */
  readonly heads: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #options: ConnectProxyOptions;

  private constructor(options: ConnectProxyOptions) {
    this.#options = options;
    const serve = (socket: Socket) => this.#serve(socket);
    const { identity } = options;
    this.#server =
      identity === undefined
        ? createServer({ allowHalfOpen: true }, serve)
        : createSecureServer({ ...identity, allowHalfOpen: true } as object, serve);
    // Also those that never come to speak.
    this.#server.on("connection", (socket) => this.#keep(socket));
  }

  static async open(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** As a variable names it, for whoever says that he is this one. */
  address(login = this.#options.login ?? null): string {
    const who = login === null ? "" : `${login.split(":").map(encodeURIComponent).join(":")}@`;
    return `${this.#options.identity === undefined ? "http" : "https"}://${who}127.0.0.1:${this.port}`;
  }

  #serve(socket: Socket): void {
    socket.on("error", () => {});
    let head = "";
    const onData = (bytes: Buffer) => {
      head += bytes.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", onData).pause();
      this.#answer(socket, head);
    };
    socket.on("data", onData);
  }

  #answer(socket: Socket, head: string): void {
    const { places = {}, login, misbehave } = this.#options;
    const [, place = ""] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? [];
    this.heads.push(head);
    this.asked.push(place);
    if (misbehave !== undefined) {
      misbehave(socket.resume());
      return;
    }
    const expected = login === undefined ? null : `Basic ${Buffer.from(login).toString("base64")}`;
    const [, said = ""] = /^proxy-authorization: (.*)\r$/im.exec(head) ?? [];
    if (expected !== null && said !== expected) {
      const wanted = 'Proxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\nConnection: close';
      socket.resume().end(`HTTP/1.1 407 Proxy Authentication Required\r\n${wanted}\r\n\r\n`);
      return;
    }
    const port = places[place] ?? places[place.replace(/:\d+$/, "")];
    if (port === undefined) {
      socket.resume().end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    const far = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    this.#keep(far);
    far.once("connect", () => {
      // Whoever speaks first over there is heard in one breath with the answer.
      const timer = setTimeout(() => begin(Buffer.alloc(0)), 20);
      const begin = (first: Buffer) => {
        clearTimeout(timer);
        far.off("data", begin);
        const told = Buffer.from("HTTP/1.1 200 Connection established\r\nVia: 1.1 corp\r\n\r\n");
        socket.write(Buffer.concat([told, first]));
        socket.pipe(far);
        far.pipe(socket);
      };
      far.once("data", begin);
    });
    far.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    far.on("close", () => socket.destroySoon());
    socket.on("close", () => far.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
