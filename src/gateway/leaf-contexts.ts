import { createSecureContext, DEFAULT_CIPHERS, type SecureContext } from "node:tls";
import type { Authority } from "./authority.ts";
import { bounds } from "./limits.ts";

/** Within one machine the quickest of those that are good is the best. */
const ciphers = [
  "TLS_AES_128_GCM_SHA256",
  ...DEFAULT_CIPHERS.split(":").filter((name) => name !== "TLS_AES_128_GCM_SHA256"),
].join(":");

/** What a TLS server shows for a host, made once. */
export function leafContexts(authority: Authority): (host: string) => SecureContext {
  const known = new Map<string, SecureContext>();
  return (host) => {
    const found = known.get(host);
    if (found !== undefined) return found;
    const { certificatePem: cert, keyPem: key } = authority.leafFor(host);
    const context = createSecureContext({ cert, key, ciphers, honorCipherOrder: true });
    if (known.size >= bounds.contexts) known.delete(known.keys().next().value as string);
    known.set(host, context);
    return context;
  };
}
