import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** What is asked of an engine that makes a difference to what is left. */
export type Question = "create" | "start";

/** Asked: the engine has not heard of it yet. Passed on: it has, and may be at it. Answered: Podbot does not know yet. */
export type Moment = "asked" | "passed on" | "answered";

/** What is done at a moment. Who holds it lets nothing more through on that connection. */
export type Act = () => "go on" | "hold";

/** Stands between Podbot and a real engine, passes everything on, and can do something at one moment of a start. */
export class GoBetween implements Disposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
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

  /** Once, at the next such moment. */
  at(question: Question, moment: Moment, act: Act): void {
    this.#watched = { question, moment, act };
  }

  #serve(client: Socket, path: string): void {
    const engine = connect(path);
    let asked: Question | null = null;
    let isHeld = false;
    const reach = (moment: Moment) => {
      const watched = this.#watched;
      if (watched === null || watched.question !== asked || watched.moment !== moment) return;
      this.#watched = null;
      isHeld = watched.act() === "hold";
    };
    client.on("data", (bytes) => {
      const question = questionIn(bytes);
      if (question !== null) asked = question;
      if (question !== null) reach("asked");
      if (isHeld) return;
      engine.write(bytes, () => {
        if (question !== null) reach("passed on");
      });
    });
    engine.on("data", (bytes) => {
      reach("answered");
      asked = null;
      if (!isHeld) client.write(bytes);
    });
    for (const [one, other] of [
      [client, engine],
      [engine, client],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => {});
      one.on("end", () => other.end());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A request begins with its own piece: Podbot asks one thing at a time on each connection. */
function questionIn(bytes: Buffer): Question | null {
  const [, what] = /^POST \S*\/containers\/(create|[^/ ]+\/start)[? ]/.exec(bytes.toString("latin1", 0, 200)) ?? [];
  return what === undefined ? null : what === "create" ? "create" : "start";
}
