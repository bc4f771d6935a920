import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { GitHubError } from "../errors.ts";

/** A key that can sign for an App. */
export interface SigningKey {
  /** PKCS#8. */
  readonly pem: string;
  readonly bits: number;
  /** As GitHub shows it beside the key in the App's settings. */
  readonly fingerprint: string;
}

/** GitHub makes them with 2048, and nobody should have less. */
const fewestBits = 2_048;

/**
 * The key in a file's text: RSA in PEM, as GitHub hands it out (PKCS#1) or as others write it (PKCS#8). Whatever else
 * people have been seen to name here is told by what it is. Nothing of the text enters a message.
 */
export function parseKey(text: string, file: string): SigningKey {
  const refuse = (what: string, hint: string) => invalidKey(file, what, hint);
  const mistake = mistakes.find(({ sign }) => sign.test(text));
  if (mistake !== undefined) throw refuse(mistake.what, mistake.hint.replaceAll("FILE", file));
  const block = /^\s*-----BEGIN (RSA PRIVATE KEY|PRIVATE KEY)-----$[\s\S]+?^-----END \1-----[ \t]*$/m.exec(text);
  if (block === null) throw refuse("is not a whole PEM key", "It may be cut off. Download the key again.");
  if (text.slice(0, block.index).trim() !== "" || text.slice(block.index + block[0].length).trim() !== "") {
    throw refuse("holds more than the key", "Leave the one key in it, from its BEGIN line to its END line.");
  }
  const key = readPem(block[0].trim());
  if (key === null) throw refuse("cannot be read as a key", "It may be damaged. Download the key again.");
  // Of a private key, Node knows both.
  const type = key.asymmetricKeyType as string;
  if (type !== "rsa") {
    throw refuse(`is a key of the type ${typeNames[type] ?? type}`, "GitHub signs Apps in with RSA keys alone.");
  }
  const bits = key.asymmetricKeyDetails?.modulusLength as number;
  if (bits < fewestBits) {
    throw refuse(`is an RSA key of ${bits} bits`, `An App's key has ${fewestBits} or more.`);
  }
  return { pem: key.export({ type: "pkcs8", format: "pem" }).toString(), bits, fingerprint: fingerprintOf(key) };
}

/** Names the file, never its directory: messages end up in logs. */
export function invalidKey(file: string, what: string, hint: string): GitHubError {
  return new GitHubError("GITHUB_KEY_INVALID", `The GitHub App's private key ${file} ${what}.`, {
    hint,
    details: { file },
  });
}

const download = "Make a private key in the App's settings on GitHub, and name the file that is downloaded.";

/** By signs that are plain to see. The first that fits. */
const mistakes: readonly { readonly sign: RegExp; readonly what: string; readonly hint: string }[] = [
  { sign: /^\s*$/, what: "is empty", hint: download },
  {
    sign: /^0[\s\S]{0,16}\0|^0\ufffd/,
    what: "is in binary form (DER)",
    hint: "`openssl pkey -inform DER -in FILE -out FILE.pem` makes PEM of it.",
  },
  {
    sign: /-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----\\n/,
    what: "has \\n where its lines should end",
    hint: "It was copied out of a variable or of JSON. `printf '%b' \"$(cat FILE)\" >FILE.pem` makes lines of it.",
  },
  {
    sign: /-----BEGIN OPENSSH PRIVATE KEY-----/,
    what: "is in OpenSSH's own form",
    hint: "An App's key comes from GitHub. If this one does, `ssh-keygen -p -m pem -f FILE` makes PEM of it.",
  },
  {
    sign: /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED/m,
    what: "is encrypted with a passphrase",
    hint: "Podbot has nobody to ask for it. `openssl pkey -in FILE -out FILE.plain` takes it off; keep that file to yourself.",
  },
  { sign: /-----BEGIN EC (?:PRIVATE KEY|PARAMETERS)-----/, what: "is an EC key", hint: download },
  { sign: /-----BEGIN DSA (?:PRIVATE KEY|PARAMETERS)-----/, what: "is a DSA key", hint: download },
  { sign: /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/, what: "is a certificate", hint: download },
  { sign: /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----/, what: "is a request for a certificate", hint: download },
  {
    sign: /-----BEGIN (?:RSA |SSH2 )?PUBLIC KEY-----|^(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+) /,
    what: "is a public key",
    hint: download,
  },
  {
    sign: /^PuTTY-User-Key-File/,
    what: "is in PuTTY's own form",
    hint: "`puttygen FILE -O private-openssh -o FILE.pem` makes PEM of it.",
  },
  { sign: /^(?![\s\S]*-----BEGIN )/, what: "is not a key in PEM", hint: download },
];

const typeNames: Readonly<Record<string, string>> = { ec: "EC", ed25519: "Ed25519", dsa: "DSA", "rsa-pss": "RSA-PSS" };

function readPem(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    // Why is in OpenSSL's words, and of no use to anybody.
    return null;
  }
}

function fingerprintOf(key: KeyObject): string {
  const der = createPublicKey(key).export({ type: "spki", format: "der" });
  return `SHA256:${createHash("sha256").update(der).digest("base64")}`;
}
