import type { HostedProtocol } from "./policy.ts";

const denied = -32001;
const refused = -32600;

/** `id` is as the agent spelled it, so that the answer is to the request and to no other. */
export function encodeDenial(protocol: HostedProtocol, id: string, method: string): string {
  const what = protocol === "acp" ? "ACP capability policy" : "capability policy";
  const message = `Method blocked by Podbot ${what}`;
  return encode(protocol, id, {
    error: { code: denied, message, data: { method, reason: "podbot_capability_policy" } },
  });
}

export function encodeRefusal(protocol: HostedProtocol, id: string, reason: string): string {
  const message = `Message refused by Podbot: ${reason}`;
  return encode(protocol, id, { error: { code: refused, message, data: { reason: "podbot_frame_policy" } } });
}

export function encodeReply(protocol: HostedProtocol, id: string, result: unknown): string {
  return encode(protocol, id, { result });
}

function encode(protocol: HostedProtocol, id: string, outcome: Readonly<Record<string, unknown>>): string {
  const version = protocol === "acp" ? '"jsonrpc":"2.0",' : "";
  return `{${version}"id":${id},${JSON.stringify(outcome).slice(1)}\n`;
}
