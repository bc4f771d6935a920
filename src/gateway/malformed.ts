import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** A box that sends more malformed requests than this loses the connection. */
const most = 100;

/**
 * Node resets a malformed request of HTTP/2 without a word, but numbers go up by two from one request to the next: where
 * some are left out, these were malformed. The last ones are noticed when the connection ends, unless it is reset.
 */
export function watchMalformed(session: ServerHttp2Session, socket: Socket, onMalformed: () => void): void {
  let last = -1;
  let told = 0;
  const tell = (count: number) => {
    for (let each = 0; each < count && told < most; each++) {
      told += 1;
      onMalformed();
    }
    if (told === most && !session.destroyed) session.destroy();
  };
  session.on("stream", ({ id = last + 2 }) => {
    tell(Math.floor((id - last) / 2) - 1);
    last = id;
  });
  const onEnd = () => {
    const processed = session.destroyed ? last : (session.state.lastProcStreamID ?? last);
    tell(Math.floor((processed - last) / 2));
    last = Math.max(last, processed);
  };
  // Before the session itself hears of it, and forgets.
  socket.prependListener("end", onEnd).prependListener("close", onEnd);
}
