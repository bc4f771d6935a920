import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { parseAddress } from "./address-bytes.ts";
import {
  derBits,
  derField,
  derIdentifier,
  derInteger,
  derOctets,
  derSequence,
  derSet,
  derText,
  derTime,
  derTrue,
} from "./der.ts";
import { bounds } from "./limits.ts";

/** What a server needs in order to be a host for those who trust the authority. */
export interface Leaf {
  readonly certificatePem: string;
  /** One key serves all hosts of an authority. */
  readonly keyPem: string;
}

/** Signs for one session. Nothing here gives out its own key, and nothing writes it anywhere. */
export interface Authority {
  readonly certificatePem: string;
  readonly certificateDer: Uint8Array;
  /** `host` is a canonical name or address. */
  leafFor(host: string): Leaf;
}

const hourMs = 3_600_000;
/** Clocks inside and outside may differ, and a session may last. */
const earlierMs = hourMs;
const lifeMs = 7 * 24 * hourMs;

const ecdsaWithSha256 = derSequence(derIdentifier("1.2.840.10045.4.3.2"));
const version3 = derField(0, true, derInteger(Buffer.of(2)));
const issuer = nameOf("Podbot session authority");
/** The same for all, since a common name ends at 64 characters and a host need not. */
const subjectOfLeaves = nameOf("Podbot session host");

const signsCertificates = derBits(Buffer.of(0x06), 1);
const signsHandshakes = derBits(Buffer.of(0x80), 7);
const serverAuth = derSequence(derIdentifier("1.3.6.1.5.5.7.3.1"));
const lastAuthority = derSequence(derTrue, derInteger(Buffer.of(0)));

/** On the way of every start: everything that can wait does, such as the leaves' key. */
export function makeAuthority(now: Date): Authority {
  const { publicKey, privateKey } = makeKeys();
  const start = now.getTime() - earlierMs;
  const validity = derSequence(derTime(new Date(start)), derTime(new Date(start + lifeMs)));
  // By chance, and not a digest of the key: it need only be unique.
  const keyIdentifier = randomBytes(20);

  const certify = (subject: Buffer, spki: Buffer, extensions: readonly Buffer[]) =>
    signed(
      privateKey,
      derSequence(
        ...[version3, derInteger(serial()), ecdsaWithSha256, issuer, validity, subject, spki],
        derField(3, true, derSequence(...extensions)),
      ),
    );
  const certificateDer = certify(issuer, publicKey, [
    extension("2.5.29.19", true, lastAuthority),
    extension("2.5.29.15", true, signsCertificates),
    extension("2.5.29.14", false, derOctets(keyIdentifier)),
  ]);

  let leafKeys: { readonly publicKey: Buffer; readonly pem: string } | null = null;
  const leaves = new Map<string, Leaf>();
  const makeLeaf = (host: string): Leaf => {
    leafKeys ??= makeLeafKeys();
    const der = certify(subjectOfLeaves, leafKeys.publicKey, [
      extension("2.5.29.35", false, derSequence(derField(0, false, keyIdentifier))),
      extension("2.5.29.15", true, signsHandshakes),
      extension("2.5.29.37", false, serverAuth),
      extension("2.5.29.17", false, derSequence(alternativeName(host))),
    ]);
    return { certificatePem: pemOf(der), keyPem: leafKeys.pem };
  };

  return {
    certificatePem: pemOf(certificateDer),
    certificateDer,
    leafFor(host) {
      const leaf = leaves.get(host) ?? makeLeaf(host);
      // What was asked for last stands last, and the first is the one to forget.
      leaves.delete(host);
      leaves.set(host, leaf);
      if (leaves.size > bounds.certificates) leaves.delete(leaves.keys().next().value as string);
      return leaf;
    },
  };
}

interface Keys {
  /** As a certificate holds it. */
  readonly publicKey: Buffer;
  readonly privateKey: KeyObject;
}

/** Only the public key as bytes: an object of it, and its export, would cost as much again as making both. */
function makeKeys(): Keys {
  // Node takes one encoding without the other; its types know only both or none.
  const generate = generateKeyPairSync as unknown as (type: "ec", options: object) => Keys;
  return generate("ec", { namedCurve: "P-256", publicKeyEncoding: { type: "spki", format: "der" } });
}

function makeLeafKeys(): { readonly publicKey: Buffer; readonly pem: string } {
  const { publicKey, privateKey } = makeKeys();
  return { publicKey, pem: privateKey.export({ type: "pkcs8", format: "pem" }) as string };
}

function signed(key: KeyObject, content: Buffer): Buffer {
  return derSequence(content, ecdsaWithSha256, derBits(sign("sha256", content, key)));
}

/** Positive, and always of sixteen bytes. */
function serial(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = 0x40 | ((bytes[0] as number) & 0x3f);
  return bytes;
}

function nameOf(commonName: string): Buffer {
  return derSequence(derSet(derSequence(derIdentifier("2.5.4.3"), derText(commonName))));
}

function extension(identifier: string, critical: boolean, value: Buffer): Buffer {
  return derSequence(derIdentifier(identifier), ...(critical ? [derTrue] : []), derOctets(value));
}

/** A dNSName, or an iPAddress. */
function alternativeName(host: string): Buffer {
  const address = parseAddress(host);
  return address === null ? derField(2, false, Buffer.from(host)) : derField(7, false, address);
}

function pemOf(der: Buffer): string {
  const text = der.toString("base64");
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += 64) lines.push(text.slice(at, at + 64));
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
