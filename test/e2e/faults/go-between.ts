import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** The requests of a start at which a test can act. */
export type Question = "ping" | "create" | "start";

/**
 * asked: the engine has not received the request. passed on: it has. answered: it has replied, and Podbot has not read
 * the reply.
 */
export type Moment = "asked" | "passed on" | "answered";

/** Runs at a moment. `hold` forwards nothing more on that connection. */
export type Act = () => "go on" | "hold";

/** A proxy between Podbot and a real engine. It forwards everything, and can act at one moment of a start. */
export class GoBetween implements Disposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #answers = new Map<Question, string>();
  #watched: { readonly question: Question; readonly moment: Moment; readonly act: Act } | null = null;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(path: string, engine: string): Promise<GoBetween> {
    const server = createServer();
    const it = new GoBetween(server);
    server.on("connection", (client) => it.#serve(client, engine));
    server.listen(path);
    await once(server, "listening");
    return it;
  }

  /** Runs `act` once, at the next such moment. */
  at(question: Question, moment: Moment, act: Act): void {
    this.#watched = { question, moment, act };
  }

  /** The beginning of the engine's latest answer to such a request. */
  answerTo(question: Question): string | null {
    return this.#answers.get(question) ?? null;
  }

  #serve(client: Socket, path: string): void {
    const engine = connect(path);
    let asked: Question | null = null;
    let bytesLeft = 0;
    let isHeld = false;
    const reach = (moment: Moment) => {
      const watched = this.#watched;
      if (watched === null || watched.question !== asked || watched.moment !== moment) return;
      this.#watched = null;
      isHeld = watched.act() === "hold";
    };
    client.on("data", (bytes) => {
      const question = questionIn(bytes);
      if (question !== null) {
        asked = question;
        bytesLeft = lengthOf(bytes);
        reach("asked");
      }
      if (isHeld) return;
      bytesLeft -= bytes.length;
      const isWhole = bytesLeft <= 0;
      engine.write(bytes, (error) => {
        if (isWhole && error == null) reach("passed on");
      });
    });
    engine.on("data", (bytes) => {
      if (asked !== null) this.#answers.set(asked, bytes.toString("latin1"));
      reach("answered");
      asked = null;
      if (client.destroyed) engine.destroy();
      else if (!isHeld) client.write(bytes);
    });
    // Docker drops a request if it notices in time that the client has gone. The proxy hides that until the answer.
    client.on("end", () => asked === null && engine.end());
    client.on("close", () => asked === null && engine.destroy());
    engine.on("end", () => client.end());
    engine.on("close", () => client.destroy());
    for (const one of [client, engine]) {
      this.#sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => this.#sockets.delete(one));
    }
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** The length of a request, of which these bytes are the beginning. Its body may come in further chunks. */
function lengthOf(bytes: Buffer): number {
  const text = bytes.toString("latin1");
  const head = text.indexOf("\r\n\r\n") + 4;
  const [, body = "0"] = /\r\ncontent-length: *(\d+)\r\n/i.exec(text.slice(0, head)) ?? [];
  return head + Number(body);
}

/** Each request begins a chunk of its own, because Podbot sends one at a time on each connection. */
function questionIn(bytes: Buffer): Question | null {
  const start = bytes.toString("latin1", 0, 200);
  if (start.startsWith("GET /_ping ")) return "ping";
  const [, what] = /^POST \S*\/containers\/(create|[^/ ]+\/start)[? ]/.exec(start) ?? [];
  return what === undefined ? null : what === "create" ? "create" : "start";
}
