import { createHash } from "node:crypto";

const block = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/** The certificates of a PEM file, whatever stands between them. What is cut off or is something else is left out. */
export function readBundle(pem: string): readonly Uint8Array[] {
  return [...pem.matchAll(block)].map(([, body]) => Buffer.from(body as string, "base64")).filter(isWhole);
}

/** One sequence of DER, and nothing after it: Java takes no store in which a single certificate is damaged. */
function isWhole(der: Buffer): boolean {
  const [tag, form, first = 0, second = 0] = der;
  if (tag !== 0x30) return false;
  return form === 0x81 ? der.length === 3 + first : form === 0x82 && der.length === 4 + ((first << 8) | second);
}

/**
 * Every Java program opens its trust store with this word; it is a checksum's seasoning, and no secret. What lies in
 * such a store is public.
 */
const password = "changeit";
const seasoning = "Mighty Aphrodite";
const magic = 0xfeedfeed;
const version = 2;
const trustedCertificate = 2;
const certificateType = "X.509";
const digestSize = 20;

/**
 * A trust store as Java reads it, in the oldest of its formats, JKS: all versions do, and it needs no ciphers. Written
 * in one piece, since it is on the way of every start.
 */
export function writeKeystore(certificates: readonly Uint8Array[]): Uint8Array {
  const aliases = certificates.map((_, index) => `podbot-${index}`);
  const sizes = certificates.map((certificate, index) => entrySize(aliases[index] as string, certificate));
  const length = sizes.reduce((sum, size) => sum + size, 12);
  const store = Buffer.alloc(length + digestSize);
  let at = 0;
  const number = (value: number) => {
    at = store.writeUInt32BE(value, at);
  };
  const text = (value: string) => {
    at = store.writeUInt16BE(value.length, at);
    at += store.write(value, at, "latin1");
  };
  for (const value of [magic, version, certificates.length]) number(value);
  for (const [index, certificate] of certificates.entries()) {
    number(trustedCertificate);
    text(aliases[index] as string);
    // The time at which it was put in stays zero: the same store should always be the same bytes.
    at += 8;
    text(certificateType);
    number(certificate.length);
    store.set(certificate, at);
    at += certificate.length;
  }
  const seasoned = createHash("sha1").update(Buffer.from(password, "utf16le").swap16()).update(seasoning);
  store.set(seasoned.update(store.subarray(0, length)).digest(), length);
  return store;
}

function entrySize(alias: string, certificate: Uint8Array): number {
  return 4 + 2 + alias.length + 8 + 2 + certificateType.length + 4 + certificate.length;
}
