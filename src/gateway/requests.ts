import { isAddress } from "../policy/hosts.ts";
import { deniedHosts, isByRequest, judgeRequest, judgesPaths } from "../policy/network.ts";
import { disguiseOf, secondPathsOf, speaksForProxy } from "../policy/network-disguise.ts";
import type { NetworkPolicy } from "../policy/network-policy.ts";
import {
  type Answer,
  answerBad,
  answerBlind,
  answerBusy,
  answerConnect,
  answerDenial,
  answerFailure,
  answerHeaders,
  answerLong,
  type Denial,
} from "./answer.ts";
import { Budget } from "./budget.ts";
import { type Context, looksInto, mayBeLocal, secretsFor } from "./context.ts";
import { DialFailure, messageOf, type Way } from "./dial.ts";
import type { Inbound, Outbound, Reply, Sending } from "./exchange.ts";
import { type HeaderList, headBytesOf, ofTheMessage, pairs, tokensOf, valuesOf, without } from "./headers.ts";
import { type Line, refused } from "./ledger.ts";
import { foreignKeyIn, maskRequest } from "./masking.ts";
import type { Needle } from "./needle.ts";
import { openHttp1 } from "./outbound-http1.ts";
import { openHttp2 } from "./outbound-http2.ts";
import { pump, type Tally } from "./pump.ts";
import { askForIdentity, isIdentity, Scrubber, scrubHeaders, scrubText, secretNeedles } from "./scrub.ts";
import { type Place, readAuthority, readTarget, type Target } from "./target.ts";
import type { OpenedWebSocket } from "./websocket.ts";

export interface Requests {
  /** One request, from its verdict to the end of its answer. Never fails. */
  handle(inbound: Inbound, place: Place): Promise<void>;
  /** One that asks for a WebSocket. Resolves with the connection outside where it was granted. Never fails. */
  upgrade(inbound: Inbound, place: Place): Promise<OpenedWebSocket | null>;
  /** What is asked from now on goes by connections that are made from now on. */
  retire(): void;
  close(): void;
}

/** A request that may go out, as it will. */
interface Granted {
  readonly target: Target;
  readonly route: Way & { readonly secure: boolean };
  readonly outbound: Outbound;
  /** Whether a secret belongs to the host. Then answers must be such as can be searched. */
  readonly isBound: boolean;
  /** What must be turned back in the answer. */
  readonly needles: readonly Needle[];
}

export function openRequests(context: Context): Requests {
  const { limits, outside, ledger } = context;
  const http1 = openHttp1(outside, limits);
  const http2 = openHttp2(outside, limits);
  const hide = hiding(context);
  const heads = new Budget(limits.headsBytes);
  let open = 0;

  /** Judges a request; null where it has been answered already. */
  const grant = (inbound: Inbound, place: Place, line: Line): Granted | null => {
    const { method, written, authority, headers } = inbound;
    // In whatever case: on the way out it would be written in capitals.
    if (method.toUpperCase() === "CONNECT") {
      line.write({ verdict: "refused", reason: "method", status: 405 });
      give(inbound, answerConnect());
      return null;
    }
    const reading = readTarget(place, method, written, authority, headers);
    if (reading.kind === "bad") {
      line.write({ verdict: "refused", reason: "spelling", status: 400 });
      give(inbound, answerBad(`The request was refused: ${reading.why}.`));
      return null;
    }
    const { target } = reading;
    const { host, port, path } = target;
    line.note({ host, port, path });
    const verdict = judgeRequest(context.policy(), target);
    if (verdict.kind === "deny") {
      line.write({ ...refused(verdict), status: 403 });
      give(inbound, answerDenial(verdict, { host, port, method, path }));
      return null;
    }
    const isJudged = isByRequest(context.policy(), target) || secretsFor(context, host).length > 0;
    const denial = isJudged ? denialOf(target, headers, context) : null;
    if (denial !== null) {
      line.write({ ...refused(denial), status: 403 });
      give(inbound, answerDenial(denial, { host, port, method, path }));
      return null;
    }
    const said = ofTheMessage(headers).filter(([name]) => !(isJudged && speaksForProxy(name)));
    const masked = maskRequest(context.secrets(), { host, port, path, secure: place.secure }, said);
    const bound = [...secretsFor(context, host), ...masked.echoes];
    line.note({ rule: verdict.rule?.origin ?? null, masked: masked.masked, stripped: masked.stripped });
    return {
      target,
      isBound: bound.length > 0,
      needles: bound.length === 0 ? [] : secretNeedles(bound),
      route: { host, port, local: mayBeLocal(verdict, host), secure: place.secure, denied: deniedFor(target) },
      outbound: {
        method,
        path: path + target.query,
        host,
        port,
        authority: authority ?? (valuesOf(headers, "host")[0] as string),
        // In a part of an answer, a part of a secret would not be known for one.
        headers:
          bound.length === 0
            ? masked.headers
            : without(askForIdentity(masked.headers), "range", "x-ms-range", "request-range", "if-range"),
        body: inbound.body,
        framing: inbound.framing,
        isGuarded: looksInto(context, { host, port }),
      },
    };
  };

  /** Nothing is looked up, dialled or sent before it is written down. */
  const mayLeave = (inbound: Inbound, line: Line): boolean => {
    if (line.open()) return true;
    refuseBlind(inbound, line);
    return false;
  };
  /** A request names its host; where that is an address, it may be one of a host that is denied. */
  const deniedFor = ({ host, port }: Target) => (isAddress(host) ? deniedHosts(context.policy(), port) : []);

  const send = async ({ outbound, route }: Granted, version: 1 | 2): Promise<Sending> => {
    // In HTTP/2 a body ends where it ends. In HTTP/1.1 it costs the connection, see `Outbound.isGuarded`.
    const wantsHttp2 = version === 2 || (outbound.isGuarded && outbound.framing !== "none");
    const sending = wantsHttp2 && route.secure ? await http2.send(outbound, route) : null;
    return sending ?? http1.send(outbound, route);
  };

  /** Counts what is under way, and sees to it that one request fails alone. */
  const attend = async <T>(inbound: Inbound, place: Place, work: (line: Line) => Promise<T>): Promise<T | null> => {
    const { host, port, secure } = place;
    const line = ledger.begin({ kind: "http", host, port, scheme: secure ? "https" : "http", method: inbound.method });
    if (context.isBlind()) {
      refuseBlind(inbound, line);
      return null;
    }
    const headBytes = headBytesOf(inbound.method, inbound.written, inbound.headers);
    if (headBytes > limits.headBytes || inbound.headers.length > limits.headFields) {
      line.write({ verdict: "refused", reason: "spelling", status: 431 });
      inbound.hangUp();
      give(inbound, answerLong());
      return null;
    }
    if (open >= limits.requests || !heads.take(headBytes)) {
      line.write({ verdict: "refused", reason: "limit", status: 503 });
      give(inbound, answerBusy());
      return null;
    }
    open += 1;
    try {
      return await work(line);
    } catch (error) {
      line.write({ verdict: "failed", reason: hide(messageOf(error)) });
      inbound.abort();
      return null;
    } finally {
      open -= 1;
      heads.give(headBytes);
    }
  };

  const fail = (inbound: Inbound, { target, route }: Granted, error: unknown, line: Line): void => {
    const { host, port, method, path } = target;
    const asked = `${method} ${addressOf(route)}${path}`;
    const message = hide(messageOf(error));
    if (error instanceof DialFailure && error.isRefusal) {
      const isDenied = error.reason === "denied";
      const denial: Denial = {
        kind: "deny",
        code: isDenied ? "denied" : "address",
        rule: null,
        message: `${asked} is not allowed: ${message}.`,
        remedy: isDenied
          ? "Only the owner can change that rule. Do without, or ask the owner."
          : `The owner can allow it with a rule that says so: [[network.rules]] host = "${host}", local = true.`,
      };
      line.write({ ...refused(denial), status: 403 });
      give(inbound, answerDenial(denial, { host, port, method, path }));
      return;
    }
    const said = `${asked} was allowed, but failed: ${message}.`;
    const isGiven = give(inbound, answerFailure(said, { host, port, method, path }));
    line.write({ verdict: "failed", reason: message, ...(isGiven && { status: 502 }) });
  };

  return {
    async handle(inbound, place) {
      await attend(inbound, place, async (line) => {
        const granted = grant(inbound, place, line);
        if (granted === null || !mayLeave(inbound, line)) return;
        const received = { bytes: 0 };
        let sending: Sending | null = null;
        let isGone = false;
        let isAnswered = false;
        line.measure(() => ({ sent: sending?.sent.bytes ?? 0, received: received.bytes }));
        inbound.onGone(() => {
          isGone = true;
          sending?.abort();
          if (!isAnswered) line.write({ verdict: "failed", reason: "the box has broken it off" });
        });
        try {
          inbound.proceed();
          sending = await send(granted, inbound.version);
          if (isGone) return sending.abort();
          await carryBack(inbound, await sending.reply, granted, received, line);
          isAnswered = true;
          await finish(sending, limits.lingerMs);
          line.write({ verdict: "allowed" });
          inbound.forsake();
        } catch (error) {
          sending?.abort();
          if (!isGone) fail(inbound, granted, error, line);
        }
      });
    },
    upgrade(inbound, place) {
      return attend(inbound, place, async (line) => {
        const granted = grant(inbound, place, line);
        if (granted === null || !mayLeave(inbound, line)) return null;
        const { isBound, needles, outbound, route } = granted;
        // In what is compressed nothing would be found.
        const headers = !isBound ? outbound.headers : without(outbound.headers, "sec-websocket-extensions");
        const upgrading = http1.upgrade({ ...outbound, headers }, route);
        const received = { bytes: 0 };
        let isGone = false;
        line.measure(() => ({ sent: 0, received: received.bytes }));
        inbound.onGone(() => {
          isGone = true;
          upgrading.abort();
          line.write({ verdict: "failed", reason: "the box has broken it off" });
        });
        try {
          const answered = await upgrading.answered;
          if (answered.kind === "upgraded") {
            const { reply, socket, head } = answered;
            const isOdd = isBound && valuesOf(reply.headers, "sec-websocket-extensions").length > 0;
            if (!isGone && !isOdd) {
              const said = scrubHeaders(needles, reply.headers);
              return { headers: said, socket, head, line, sieve: sieveFor(needles) };
            }
            socket.destroy();
            if (isOdd) throw new Error("the WebSocket was granted in a way that was not asked for");
            return null;
          }
          await carryBack(inbound, answered.reply, granted, received, line);
          line.write({ verdict: "allowed" });
        } catch (error) {
          upgrading.abort();
          if (!isGone) fail(inbound, granted, error, line);
        }
        return null;
      });
    },
    retire() {
      http1.retire();
      http2.retire();
    },
    close() {
      http1.close();
      http2.close();
    },
  };
}

/** Why a request that the rules allow is refused all the same, by what its headers and its query say. */
function denialOf(target: Target, headers: HeaderList, { secrets, policy }: Context): Denial | null {
  const { host, method, path, query } = target;
  const disguise = disguiseOf({ method, path, query }, headers);
  if (disguise !== null)
    return {
      kind: "deny",
      code: "spelling",
      rule: null,
      message: `${method} ${host}${path} is not allowed with ${disguise}: by that, a server may read another method or path.`,
      remedy: "Send the request with the method and the path that are meant.",
    };
  const second = deniedSecondPath(policy(), target, headers);
  if (second !== null) return second;
  const key = foreignKeyIn(secrets(), host, query);
  if (key === null) return null;
  return {
    kind: "deny",
    code: "key",
    rule: null,
    message: `${method} ${host}${path} is not allowed with the parameter ${key}: at this host, only the owner's own keys may be used.`,
    remedy: "Leave the key out. The owner's is put in on the way, in a header, where a surrogate of it stands.",
  };
}

/** A copy from or to a path that the rules would not allow itself. What another host has cannot be judged by these rules. */
function deniedSecondPath(policy: NetworkPolicy, target: Target, headers: HeaderList): Denial | null {
  if (!judgesPaths(policy, target)) return null;
  for (const { header, host, path } of secondPathsOf(headers)) {
    const named = host === null ? target : readAuthority(host);
    const isHere = named?.host === target.host && (named.port ?? target.port) === target.port;
    const verdict = isHere ? judgeRequest(policy, { ...target, path }) : null;
    if (verdict?.kind === "allow") continue;
    return {
      kind: "deny",
      code: verdict?.code ?? "path",
      rule: verdict?.rule ?? null,
      message: `${target.method} ${target.host}${target.path} is not allowed with ${header}: the path that it names is not, either.`,
      remedy: "Name a path of this host that the rules allow for this method.",
    };
  }
  return null;
}

/** An answer may be over before the request is. What is sent after it counts as well, and does not go on for ever. */
async function finish(sending: Sending, lingerMs: number): Promise<void> {
  const timer = setTimeout(() => sending.abort(), lingerMs);
  await sending.finished;
  clearTimeout(timer);
}

function addressOf({ host, port, secure }: Granted["route"]): string {
  const [scheme, usual] = secure ? ["https", 443] : ["http", 80];
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}${port === usual ? "" : `:${port}`}`;
}

async function carryBack(
  inbound: Inbound,
  reply: Reply,
  { isBound, needles }: Granted,
  received: Tally,
  line: Line,
): Promise<void> {
  const headers = ofTheMessage(reply.headers);
  const isPlain = tokensOf(reply.headers, "transfer-encoding").every((coding) => coding === "chunked");
  if (!isPlain) throw new Error("the answer is encoded on its way in a manner that was not asked for");
  if (isBound && !isIdentity(headers)) {
    throw new Error("the answer is encoded although it was asked for as it is, so it cannot be searched for secrets");
  }
  const out = inbound.respond(reply.status, scrubHeaders(needles, headers));
  line.note({ status: reply.status });
  await pump(reply.body, out, received, sieveFor(needles));
  inbound.finish(scrubHeaders(needles, ofTheMessage(reply.trailers())));
}

function refuseBlind(inbound: Inbound, line: Line): void {
  line.write({ verdict: "refused", reason: "audit", status: 503 });
  give(inbound, answerBlind());
}

function sieveFor(needles: readonly Needle[]): Scrubber | undefined {
  return needles.length === 0 ? undefined : new Scrubber(needles);
}

/** An answer of our own; where one has begun already, there is nothing left but to break it off. */
function give(inbound: Inbound, answer: Answer): boolean {
  try {
    inbound.respond(answer.status, pairs(answerHeaders(answer))).write(answer.body);
    inbound.finish([]);
    inbound.forsake();
    return true;
  } catch {
    inbound.abort();
    return false;
  }
}

/** For words of ours, which may name what the box has asked for. Made anew when the secrets are others. */
function hiding({ secrets }: Context): (text: string) => string {
  let known = secrets();
  let needles = secretNeedles(known);
  return (text) => {
    if (secrets() !== known) {
      known = secrets();
      needles = secretNeedles(known);
    }
    return scrubText(needles, text);
  };
}
