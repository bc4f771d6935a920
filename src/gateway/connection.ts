import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { deniedHosts, judgeConnection, type Verdict } from "../policy/network.ts";
import { answerBad, answerDenial, answerTunnel, type Denial, tlsAlert } from "./answer.ts";
import { Budget } from "./budget.ts";
import { type Context, looksInto, mayBeLocal, secretsFor } from "./context.ts";
import { DialFailure, dial, messageOf } from "./dial.ts";
import { type ConnectRequest, openHttp1Door } from "./inbound-http1.ts";
import { openHttp2Door } from "./inbound-http2.ts";
import { leafContexts } from "./leaf-contexts.ts";
import { type Line, refused } from "./ledger.ts";
import { openRequests } from "./requests.ts";
import { type Speech, sniff } from "./sniff.ts";
import { type Place, readConnect } from "./target.ts";
import { breakOff, closeWith, greetSsh, hear, splice } from "./tunnel.ts";

/** The door at which requests for others are made, as of a proxy. */
export const proxyPort = 3128;

/** Where the client of a protocol speaks first. */
const webPorts: readonly number[] = [80, 443, proxyPort];

export interface Connections {
  /** One connection, from its first byte to its end. Never fails. */
  take(socket: Socket, address: string, port: number): void;
  /** How many there are. */
  count(): number;
  /** Requests no longer go by connections outside that there are. */
  retire(): void;
  close(): void;
}

/** Where a connection was meant to lead. */
interface Dialled {
  /** A name, or the address where nobody has said more. */
  readonly host: string;
  readonly port: number;
  readonly isNamed: boolean;
}

type Allowed = Extract<Verdict, { kind: "allow" }>;
type Other = Extract<Speech, { kind: "other" }>;

export function openConnections(context: Context): Connections {
  const { limits, ledger } = context;
  const requests = openRequests(context);
  const beginLine = ({ host, port }: Place) => ledger.begin({ kind: "tcp", host, port });
  const http1 = openHttp1Door(requests, limits, beginLine, (request, line) => {
    void takeConnect(request, line);
  });
  const http2 = openHttp2Door(requests, limits, beginLine);
  const contextFor = leafContexts(context.authority);
  const open = new Set<Socket>();
  const opened = new Set<Socket>();
  const openings = new Budget(limits.openingsBytes);

  /** Whatever goes wrong in here, it is this connection alone that ends, and it is written down. */
  const route = async (socket: Socket, dialled: Dialled, isProxy: boolean): Promise<void> => {
    const { host, port } = dialled;
    const line = ledger.begin({ kind: "tcp", host, port });
    try {
      await follow(socket, dialled, isProxy, line);
    } catch (error) {
      line.write({ verdict: "failed", reason: messageOf(error) });
      breakOff(socket);
    }
  };

  const follow = async (socket: Socket, dialled: Dialled, isProxy: boolean, line: Line): Promise<void> => {
    const { host, port, isNamed } = dialled;
    const isWeb = webPorts.includes(port) || isProxy;
    // Where only requests pass, nobody waits for the other side to begin, however late he is himself.
    const isPatient = isWeb || judgeConnection(context.policy(), dialled).kind === "inspect";
    const speech = await sniff(socket, {
      silenceMs: isPatient ? limits.silenceMs : limits.listenMs,
      finishMs: limits.beginningMs,
      openings,
    });
    // Only now: there may have been another policy when it came.
    const verdict = judgeConnection(context.policy(), dialled);
    const mayTunnel = verdict.kind === "allow" && port !== 80 && !isProxy;
    const isSeen = verdict.kind === "inspect" || (mayTunnel && isBound(host));
    if (speech.kind === "http" || (isSeen && !isProxy && mayBeHttp(speech))) {
      return http1.take(socket, { host, port, named: isNamed, secure: false, proxy: isProxy }, line);
    }
    if (speech.kind === "tls" && !isProxy) return takeTls(socket, dialled, speech, line);
    if (speech.kind === "silent" && mayTunnel && !isWeb) return joinQuiet(socket, dialled, verdict, line);
    if (speech.kind === "other" && mayTunnel && mayPass(speech, host)) {
      const outer = await reach(dialled, verdict, line);
      return outer === null ? breakOff(socket) : joinOther(socket, outer, speech, host, line);
    }
    const isIdle = speech.kind === "silent" && isWeb;
    turnAway(socket, speech, verdict.kind === "deny" && !isProxy && !isIdle ? verdict : notHttp, line);
  };

  /**
   * Where secrets are bound, a request must not pass for something else: the strict parser sees whatever a lenient
   * server might take for one, and nothing else goes there but SSH.
   */
  const mayPass = (speech: Other, host: string): boolean => speech.resembles === "ssh" || !isBound(host);
  const isBound = (host: string): boolean => secretsFor(context, host).length > 0;

  const turnAway = (socket: Socket, speech: Speech, denial: Denial, line: Line): void => {
    if (speech.kind === "tls") {
      line.write(refused(denial));
      closeWith(socket, tlsAlert(49), limits.lingerMs);
      return;
    }
    if (speech.kind === "bad") line.write({ verdict: "refused", reason: speech.why });
    else if (speech.kind === "gone") line.write({ verdict: "failed", reason: "nothing was asked" });
    else if (speech.kind === "silent" && denial === notHttp)
      line.write({ verdict: "failed", reason: "nothing was asked" });
    else line.write(refused(denial));
    breakOff(socket);
  };

  const takeTls = async (
    socket: Socket,
    dialled: Dialled,
    { serverName, alpn }: Extract<Speech, { kind: "tls" }>,
    line: Line,
  ): Promise<void> => {
    const { port, isNamed } = dialled;
    line.note({ kind: "tls", ...(serverName === null ? {} : { host: serverName }) });
    if (isNamed && serverName !== null && serverName !== dialled.host) {
      line.write({ verdict: "refused", reason: `the name in TLS is not ${dialled.host}, which was dialled` });
      return closeWith(socket, tlsAlert(112), limits.lingerMs);
    }
    const host = isNamed ? dialled.host : (serverName ?? dialled.host);
    const verdict = judgeConnection(context.policy(), { host, port });
    const isHttp = alpn.some((name) => name === "h2" || name === "http/1.1");
    // Who says that it is something else, or says nothing at a port of something else, is no matter of paths.
    // But a host that secrets are bound to may speak HTTP to whoever has said so.
    const isOpaque = !isHttp && !isBound(host) && (alpn.length > 0 || !webPorts.includes(port));
    const place = { host, port, named: true, secure: true, proxy: false };
    if (verdict.kind === "allow" && (isOpaque || !looksInto(context, { host, port }))) {
      // Where nobody is reached, whoever speaks HTTP is told so in HTTP, and not by a connection that breaks.
      const explain = isOpaque ? undefined : () => terminate(socket, place, line);
      return join(socket, { host, port }, verdict, line, explain);
    }
    if (!isHttp && alpn.length > 0) {
      line.write(verdict.kind === "deny" ? refused(verdict) : { verdict: "refused", reason: "protocol" });
      return closeWith(socket, tlsAlert(49), limits.lingerMs);
    }
    // Each request gets its own line and, where nothing is allowed, an answer that says so.
    terminate(socket, place, line);
  };

  const terminate = (socket: Socket, place: Place, line: Line): void => {
    if (opened.size >= limits.opened) {
      line.write({ verdict: "refused", reason: "limit" });
      breakOff(socket);
      return;
    }
    if (!socket.closed) opened.add(socket);
    socket.once("close", () => opened.delete(socket));
    const secure = new TLSSocket(socket, {
      isServer: true,
      // Known to Node, though not to its types.
      ...({ highWaterMark: context.outside.heldBytes() } as object),
      secureContext: contextFor(place.host),
      ALPNProtocols: ["h2", "http/1.1"],
    });
    const fail = (error?: Error) => {
      clearTimeout(timer);
      line.write({ verdict: "failed", reason: `the box ended the TLS handshake: ${error?.message ?? "closed"}` });
      secure.destroy();
      socket.destroy();
    };
    const onClose = () => fail();
    const timer = setTimeout(() => fail(new Error("it took too long")), limits.beginningMs);
    secure.on("error", fail).once("close", onClose);
    secure.once("secure", () => {
      clearTimeout(timer);
      secure
        .on("error", () => {})
        .off("error", fail)
        .off("close", onClose);
      // Node's own server says so by now; HTTP/2 would wait for it.
      Object.assign(secure, { secureConnecting: false });
      (secure.alpnProtocol === "h2" ? http2 : http1).take(secure, place, line);
    });
  };

  const reach = async (
    { host, port }: Omit<Dialled, "isNamed">,
    verdict: Allowed,
    line: Line,
    explain?: () => void,
  ): Promise<Socket | null> => {
    line.note({ host, rule: verdict.rule?.origin ?? null });
    // Looking a name up, or dialling, already tells the outside something.
    if (!line.open()) {
      line.write({ verdict: "refused", reason: "audit" });
      return null;
    }
    try {
      // What is said there names no host: then a host is its addresses.
      const denied = deniedHosts(context.policy(), port);
      const way = { host, port, local: mayBeLocal(verdict, host), denied };
      return await dial(way, context.outside, { allowHalfOpen: true });
    } catch (error) {
      if (explain !== undefined) return null;
      const refusal = error instanceof DialFailure && error.isRefusal ? error.reason : null;
      line.write({ verdict: refusal === null ? "failed" : "refused", reason: refusal ?? messageOf(error) });
      return null;
    }
  };

  const joinTo = async (socket: Socket, outer: Socket, line: Line, sentBytes = 0): Promise<void> => {
    const traffic = { sent: { bytes: sentBytes }, received: { bytes: 0 } };
    // Also where the gateway is closed before they are done.
    line.note({ verdict: "allowed" });
    line.measure(() => ({ sent: traffic.sent.bytes, received: traffic.received.bytes }));
    await splice(socket, outer, traffic);
    line.write({ verdict: "allowed" });
  };

  /** A line of SSH may still be a request to a lenient server. To a bound host, no more is said until the server has said SSH. */
  const joinOther = async (socket: Socket, outer: Socket, speech: Other, host: string, line: Line): Promise<void> => {
    if (speech.resembles !== "ssh" || !isBound(host)) return joinTo(socket, outer, line);
    if (await greetSsh(socket, outer, speech.lineBytes, limits.beginningMs))
      return joinTo(socket, outer, line, speech.lineBytes);
    line.write({ verdict: "refused", reason: "protocol", sent: speech.lineBytes });
    for (const each of [socket, outer]) breakOff(each);
  };

  const join = async (
    socket: Socket,
    to: Omit<Dialled, "isNamed">,
    verdict: Allowed,
    line: Line,
    explain?: () => void,
  ): Promise<void> => {
    const outer = await reach(to, verdict, line, explain);
    if (outer !== null) return joinTo(socket, outer, line);
    if (explain === undefined) breakOff(socket);
    else explain();
  };

  /** The box may wait for the other side to begin. If it is the first after all, it is looked at what it says. */
  const joinQuiet = async (socket: Socket, dialled: Dialled, verdict: Allowed, line: Line): Promise<void> => {
    const outer = await reach(dialled, verdict, line);
    if (outer === null) return breakOff(socket);
    const speech = await hear(socket, outer, { beginningMs: limits.beginningMs, openings });
    const { host, port, isNamed } = dialled;
    if (speech.kind === "silent") return joinTo(socket, outer, line);
    if (speech.kind === "other" && mayPass(speech, host)) return joinOther(socket, outer, speech, host, line);
    breakOff(outer);
    if (speech.kind === "tls") return takeTls(socket, dialled, speech, line);
    if (speech.kind === "http" || mayBeHttp(speech))
      return http1.take(socket, { host, port, named: isNamed, secure: false, proxy: false }, line);
    turnAway(socket, speech, notHttp, line);
  };

  const takeConnect = async ({ authority, headers, socket, head }: ConnectRequest, line: Line): Promise<void> => {
    const to = readConnect(authority, headers);
    if (to.kind === "bad") {
      line.write({ kind: "http", verdict: "refused", reason: "spelling", method: "CONNECT", status: 400 });
      return closeWith(socket, answerTunnel(400, answerBad(`The request was refused: ${to.why}.`)), limits.lingerMs);
    }
    const { host, port } = to;
    line.note({ host, port });
    const verdict = judgeConnection(context.policy(), to);
    // Where TLS or HTTP is spoken, whoever asks is told in its own words.
    if (verdict.kind === "deny" && port !== 443 && port !== 80) {
      line.write({ ...refused(verdict), method: "CONNECT", status: 403 });
      const answer = answerDenial(verdict, { host, port, method: "CONNECT", path: "" });
      return closeWith(socket, answerTunnel(403, answer), limits.lingerMs);
    }
    line.drop();
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.length > 0) socket.unshift(head);
    await route(socket, { host, port, isNamed: true }, false);
  };

  return {
    take(socket, address, port) {
      socket.on("error", () => {});
      const name = context.names.nameOf(address);
      const dialled = { host: name ?? address, port, isNamed: name !== null };
      const reason = context.isBlind() ? "audit" : open.size >= limits.connections ? "limit" : null;
      if (reason !== null) {
        ledger.begin({ kind: "tcp", host: dialled.host, port }).write({ verdict: "refused", reason });
        return breakOff(socket);
      }
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      socket.setNoDelay(true);
      // Doors are not opened by us, and this is read when it matters.
      socket.allowHalfOpen = true;
      void route(socket, dialled, port === proxyPort);
    },
    count: () => open.size,
    retire: () => requests.retire(),
    close() {
      ledger.close();
      for (const socket of open) socket.destroy();
      http1.close();
      http2.close();
      requests.close();
    },
  };
}

function mayBeHttp(speech: Speech): boolean {
  return speech.kind === "other" && speech.resembles === "http";
}

const notHttp: Denial = {
  kind: "deny",
  code: "protocol",
  rule: null,
  message: "Only HTTP and TLS are spoken at this door.",
  remedy: "",
};
