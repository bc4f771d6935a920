import type { HttpRequest, Verdict } from "../policy/network.ts";

export type Denial = Extract<Verdict, { kind: "deny" }>;

/** What is sent instead of what was asked for. Written for a model, which can act on it or tell its owner. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

export type Asked = Pick<HttpRequest, "host" | "port" | "method" | "path">;

export function answerDenial(denial: Denial, asked: Asked): Answer {
  const { code: reason, message, remedy, rule } = denial;
  return answer(403, { code: "NETWORK_DENIED", reason, ...asked, message, rule: rule?.origin ?? null, remedy });
}

/** The world outside has failed, not the policy. */
export function answerFailure(message: string, asked: Asked): Answer {
  return answer(502, {
    code: "NETWORK_FAILED",
    ...asked,
    message,
    remedy: "This is no matter of policy: the request was allowed. Try again later, or tell the owner.",
  });
}

/** Something that is no proper request. */
export function answerBad(message: string): Answer {
  return answer(400, {
    code: "REQUEST_REFUSED",
    message,
    remedy: "Send one proper HTTP request: one Host, one length, no odd spellings.",
  });
}

/** For every version of HTTP, and for the parser that sees it first. */
export function answerLong(): Answer {
  return answer(431, {
    code: "REQUEST_REFUSED",
    message: "The head of the request is too long.",
    remedy: "Send fewer and shorter headers, and what is long in the body.",
  });
}

/** More at once than anybody needs. */
export function answerBusy(): Answer {
  return answer(503, {
    code: "NETWORK_BUSY",
    message: "Too many requests are under way.",
    remedy: "Wait until some of them are answered.",
  });
}

/** Nothing passes that nobody would ever know of. */
export function answerBlind(): Answer {
  return answer(503, {
    code: "AUDIT_FAILED",
    message: "What is asked for cannot be written down, so nothing is let through.",
    remedy: "Tell the owner: the disk that holds the audit may be full. It is tried again with every request.",
  });
}

/** Outside of the door where proxies are asked. */
export function answerConnect(): Answer {
  return answer(405, {
    code: "REQUEST_REFUSED",
    message: "The request was refused: CONNECT is for a proxy, and this is the host itself.",
    remedy: "Send requests of other methods, or ask the proxy that the environment names.",
  });
}

/** To a client that has asked for a tunnel, and gets none. */
export function answerTunnel(status: 400 | 403, { body }: Answer): string {
  const text = status === 400 ? "Bad Request" : "Forbidden";
  return `HTTP/1.1 ${status} ${text}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}

function answer(status: number, content: object): Answer {
  return { status, body: Buffer.from(`${JSON.stringify(content, null, 2)}\n`) };
}

/** Of an answer, with the length that its body has. */
export function answerHeaders({ body }: Answer): readonly string[] {
  return [
    "content-type",
    "application/json; charset=utf-8",
    "content-length",
    `${body.length}`,
    "cache-control",
    "no-store",
  ];
}

/** A fatal alert of TLS, in the clear as it is before the handshake: 49 access_denied, 112 unrecognized_name. */
export function tlsAlert(description: 49 | 112): Buffer {
  return Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, description]);
}
