// @module-tag security
import { execFileSync } from "node:child_process";
import { createPrivateKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { GitHubError } from "../../src/errors.ts";
import { readKey } from "../../src/github/key.ts";
import { parseKey } from "../../src/github/key-form.ts";
import { failure } from "../failure.ts";
import { appKey } from "./town.ts";

const directory = mkdtempSync(join(tmpdir(), "key-"));
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, content: string | Uint8Array, mode = 0o600): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function openssl(...words: readonly string[]): string {
  return execFileSync("openssl", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

const plain = file("plain.pem", appKey);
const pkcs8 = createPrivateKey(appKey).export({ type: "pkcs8", format: "pem" }).toString();

describe("a key signs for an App", () => {
  test.each([
    ["as GitHub hands it out", appKey],
    ["in PKCS#8", pkcs8],
    ["with the line ends of Windows", appKey.replaceAll("\n", "\r\n")],
    ["without the last line end", appKey.trimEnd()],
    ["with blank lines around it", `\n\n${appKey}\n\n`],
    ["as openssl makes it today", openssl("genrsa", "2048")],
    ["as openssl made it", openssl("genrsa", "-traditional", "2048")],
  ])("%s", (_, text) => {
    const { pem, bits, warnings, file: name } = readKey(file("a.pem", text));
    expect([bits, warnings, name]).toEqual([2_048, [], "a.pem"]);
    const words = Buffer.from("words");
    expect(verify("RSA-SHA256", words, text.trim(), sign("RSA-SHA256", words, pem))).toBe(true);
  });

  test("and is known by the fingerprint that GitHub shows", () => {
    const der = join(directory, "public.der");
    openssl("rsa", "-in", plain, "-pubout", "-outform", "DER", "-out", der);
    const digest = execFileSync("openssl", ["dgst", "-sha256", "-binary", der]);
    expect(readKey(plain).fingerprint).toBe(`SHA256:${digest.toString("base64")}`);
  });

  test.each([0o644, 0o640, 0o604, 0o620])("with a warning where others get at it: mode %o", (mode) => {
    const { warnings } = readKey(file("open.pem", appKey, mode));
    expect(warnings).toEqual([expect.stringContaining("open.pem can be read or changed by other users")]);
  });
});

const encrypted = { cipher: "aes-256-cbc", passphrase: "x" } as const;
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed25519 = generateKeyPairSync("ed25519");
const dsa = generateKeyPairSync("dsa", { modulusLength: 1_024, divisorLength: 160 });
const pss = generateKeyPairSync("rsa-pss", { modulusLength: 2_048 });
const short = generateKeyPairSync("rsa", { modulusLength: 1_024 });
const own = createPrivateKey(appKey);
const pem = { type: "pkcs8", format: "pem" } as const;

function openssh(): string {
  const path = file("openssh", appKey);
  execFileSync("ssh-keygen", ["-p", "-q", "-N", "", "-f", path], { stdio: "ignore" });
  return readFileSync(path, "utf8");
}

describe("what is no such key is told by what it is:", () => {
  test.each<[string, string | Uint8Array, string, RegExp]>([
    ["nothing", "", "is empty", /private key in the App's settings/],
    ["blanks", " \n\t\n", "is empty", /private key in the App's settings/],
    ["a public key", openssl("rsa", "-in", plain, "-pubout"), "is a public key", /App's settings/],
    ["a public key of PKCS#1", openssl("rsa", "-in", plain, "-RSAPublicKey_out"), "is a public key", /App's settings/],
    ["a public key of ssh", "ssh-rsa AAAAB3NzaC1yc2E me@here\n", "is a public key", /App's settings/],
    [
      "a certificate",
      openssl("req", "-x509", "-new", "-key", plain, "-subj", "/CN=x"),
      "is a certificate",
      /App's settings/,
    ],
    [
      "a request for one",
      openssl("req", "-new", "-key", plain, "-subj", "/CN=x"),
      "is a request for a certificate",
      /App's settings/,
    ],
    ["an EC key", ec.privateKey.export({ type: "sec1", format: "pem" }), "is an EC key", /App's settings/],
    ["an EC key of PKCS#8", ec.privateKey.export(pem), "is a key of the type EC", /RSA keys alone/],
    ["an Ed25519 key", ed25519.privateKey.export(pem), "is a key of the type Ed25519", /RSA keys alone/],
    ["a DSA key of PKCS#8", dsa.privateKey.export(pem), "is a key of the type DSA", /RSA keys alone/],
    ["an RSA-PSS key", pss.privateKey.export(pem), "is a key of the type RSA-PSS", /RSA keys alone/],
    [
      "an X25519 key",
      generateKeyPairSync("x25519").privateKey.export(pem),
      "is a key of the type x25519",
      /RSA keys alone/,
    ],
    [
      "a DSA key",
      openssl("pkey", "-in", file("dsa", dsa.privateKey.export(pem)), "-traditional"),
      "is a DSA key",
      /App's settings/,
    ],
    ["a key of OpenSSH's", openssh(), "is in OpenSSH's own form", /`ssh-keygen -p -m pem -f wrong.pem`/],
    ["an encrypted key", own.export({ ...pem, ...encrypted }), "is encrypted with a passphrase", /openssl pkey/],
    [
      "an encrypted key of old",
      own.export({ type: "pkcs1", format: "pem", ...encrypted }),
      "is encrypted with a passphrase",
      /openssl pkey/,
    ],
    ["a key of PuTTY's", "PuTTY-User-Key-File-3: ssh-rsa\n", "is in PuTTY's own form", /puttygen wrong.pem/],
    [
      "a key in DER",
      own.export({ type: "pkcs1", format: "der" }),
      "is in binary form (DER)",
      /-inform DER -in wrong.pem/,
    ],
    [
      "a key in one line",
      appKey.replaceAll("\n", "\\n"),
      "has \\n where its lines should end",
      /copied out of a variable/,
    ],
    ["too short a key", short.privateKey.export(pem), "is an RSA key of 1024 bits", /2048 or more/],
    ["text", "hello\n", "is not a key in PEM", /App's settings/],
    ["other PEM", "-----BEGIN PGP MESSAGE-----\nx\n-----END PGP MESSAGE-----\n", "is not a whole PEM key", /cut off/],
    ["half a key", appKey.slice(0, 800), "is not a whole PEM key", /cut off/],
    [
      "a damaged key",
      appKey.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA"),
      "cannot be read as a key",
      /damaged. Download/,
    ],
    ["text behind the key", `${appKey}and more\n`, "holds more than the key", /Leave the one key/],
    ["text before the key", `key:\n${appKey}`, "holds more than the key", /Leave the one key/],
    ["two keys", appKey + appKey, "holds more than the key", /Leave the one key/],
  ])("%s", (_, content, what, hint) => {
    const path = file("wrong.pem", content);
    const error = failure(GitHubError, () => readKey(path));
    expect(error.message).toBe(`The GitHub App's private key wrong.pem ${what}.`);
    expect(error).toMatchObject({ code: "GITHUB_KEY_INVALID", hint: expect.stringMatching(hint) });
    // Neither where it lies, nor what is in it.
    const told = JSON.stringify([error.message, error.hint, error.details]);
    expect(told).not.toContain(dirname(path));
    expect(told).not.toMatch(/[A-Za-z0-9+/]{40}/);
  });

  test("each of them in words of its own", () => {
    const texts = ["", "ssh-rsa A", "hello", "PuTTY-User-Key-File-3: x", appKey.slice(0, 800)];
    const messages = texts.map((text) => failure(GitHubError, () => parseKey(text, "k")).message);
    expect(new Set(messages).size).toBe(texts.length);
  });
});

describe("a key that cannot be read", () => {
  test("because there is none", () => {
    expect(failure(GitHubError, () => readKey(join(directory, "no.pem"))).message).toMatch(/no\.pem does not exist\.$/);
    expect(failure(GitHubError, () => readKey(join(plain, "no.pem"))).message).toMatch(/no\.pem does not exist\.$/);
  });

  test("because it is somebody else's", () => {
    const path = file("closed.pem", appKey, 0o000);
    const isRoot = process.geteuid?.() === 0;
    // The directory above is root's own, too.
    if (isRoot) {
      chmodSync(directory, 0o755);
      process.seteuid?.(65_534);
    }
    try {
      expect(failure(GitHubError, () => readKey(path)).message).toMatch(/closed\.pem may not be read by you\.$/);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
    chmodSync(path, 0o600);
    expect(readKey(path).bits).toBe(2_048);
  });

  test("because it is no file, or far too large for one", () => {
    mkdirSync(join(directory, "dir.pem"));
    execFileSync("mkfifo", [join(directory, "pipe.pem")]);
    const large = file("large.pem", "x".repeat(65_537));
    for (const name of ["dir.pem", "pipe.pem"]) {
      expect(failure(GitHubError, () => readKey(join(directory, name))).message).toContain(`${name} is not a file`);
    }
    expect(failure(GitHubError, () => readKey(large)).message).toContain("is too large for a key");
    const looped = `${directory}/${"l".repeat(300)}`;
    expect(failure(GitHubError, () => readKey(looped)).message).toContain("cannot be read (ENAMETOOLONG)");
  });
});
