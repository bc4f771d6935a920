import { execFile, execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../src/gateway/authority.ts";
import { readBundle, writeKeystore } from "../../src/gateway/truststore.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-truststore-"));
afterAll(() => rmSync(directory, { recursive: true }));

const authority = makeAuthority(new Date());
const fingerprint = (der: Uint8Array) => createHash("sha256").update(der).digest("hex");

/** The fingerprints of what a reader finds in a store; it fails where the store is damaged. */
type Reader = (store: Uint8Array) => Promise<readonly string[]>;

/** By the description of the format, to the last byte. */
const readByHand: Reader = async (bytes) => {
  const store = Buffer.from(bytes);
  let at = 0;
  const take = (length: number) => {
    expect(at + length).toBeLessThanOrEqual(store.length);
    at += length;
    return store.subarray(at - length, at);
  };
  const text = () => take(take(2).readUInt16BE()).toString();
  expect(take(4).toString("hex")).toBe("feedfeed");
  expect(take(4).readUInt32BE()).toBe(2);
  const aliases = new Set<string>();
  const found = Array.from({ length: take(4).readUInt32BE() }, () => {
    expect(take(4).readUInt32BE()).toBe(2);
    aliases.add(text());
    take(8);
    expect(text()).toBe("X.509");
    return fingerprint(take(take(4).readUInt32BE()));
  });
  expect(aliases.size).toBe(found.length);
  const seasoning = Buffer.concat([Buffer.from("\0c\0h\0a\0n\0g\0e\0i\0t"), Buffer.from("Mighty Aphrodite")]);
  const sum = createHash("sha1").update(seasoning).update(store.subarray(0, at)).digest("hex");
  if (take(20).toString("hex") !== sum) throw new Error("the sum is wrong");
  expect(at).toBe(store.length);
  return found;
};

const readByKeytool: Reader = async (store) => {
  const file = join(directory, "store.jks");
  writeFileSync(file, store);
  const { stdout } = await promisify(execFile)("keytool", [
    ...["-J-Duser.language=en", "-J-XX:-UsePerfData", "-list", "-keystore", file, "-storepass", "changeit"],
  ]);
  const lines = stdout.matchAll(/fingerprint \(SHA-256\): ([0-9A-F:]+)/g);
  return [...lines].map(([, hex]) => (hex as string).replaceAll(":", "").toLowerCase());
};

/** Java is too large a thing to ask for. */
function hasKeytool(): boolean {
  try {
    execFileSync("keytool", ["-J-XX:-UsePerfData", "-help"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const readers: readonly (readonly [string, Reader])[] = [
  ["one who knows the format", readByHand],
  ...(hasKeytool() ? [["keytool", readByKeytool] as const] : []),
];

describe.each(readers)("a store, as %s reads it,", (_, read) => {
  test("holds what was put in", async () => {
    const bundle = [authority.certificateDer, ...readBundle(rootCertificates.slice(0, 40).join("\n"))];
    const found = await read(writeKeystore(bundle));
    expect([...found].sort()).toEqual(bundle.map(fingerprint).sort());
  });

  test("may be empty", async () => {
    expect(await read(writeKeystore([]))).toEqual([]);
  });

  test("shows any damage", async () => {
    const store = Buffer.from(writeKeystore([authority.certificateDer]));
    store.writeUInt8(store.readUInt8(100) ^ 1, 100);
    await expect(read(store)).rejects.toThrow();
  });
});

test("A store holds any bytes whatever, the same ones always in the same way", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 70_000 }), { maxLength: 5 }), async (certificates) => {
      const store = writeKeystore(certificates);
      expect(await readByHand(store)).toEqual(certificates.map(fingerprint));
      expect(Buffer.from(writeKeystore(certificates)).equals(store)).toBe(true);
    }),
  );
});

describe("a bundle", () => {
  const ders = (pem: string) => readBundle(pem).map((der) => Buffer.from(der).toString("hex"));
  const own = Buffer.from(authority.certificateDer).toString("hex");

  test("is read as Node reads each of its certificates", () => {
    const expected = rootCertificates.map((pem) => new X509Certificate(pem).raw.toString("hex"));
    expect(ders(rootCertificates.join("\n"))).toEqual(expected);
  });

  test.each([
    ["comments", `# Some authority\n\n${authority.certificatePem}\n# The end`],
    ["lines that end as on other systems", authority.certificatePem.replaceAll("\n", "\r\n")],
    ["one long line", authority.certificatePem.replace(/(?<=[A-Za-z0-9+/])\n(?=[A-Za-z0-9+/])/g, "")],
    ["a key", `${authority.leafFor("x").keyPem}${authority.certificatePem}`],
    [
      "one that is damaged",
      `-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n${authority.certificatePem}`,
    ],
    [
      "one that is none",
      `-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n${authority.certificatePem}`,
    ],
    ["one without an end", `${authority.certificatePem}-----BEGIN CERTIFICATE-----\nMIIB\n`],
    ["one without letters", `-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n${authority.certificatePem}`],
  ])("may have %s", (_, pem) => {
    expect(ders(pem)).toEqual([own]);
  });

  test("may have small ones, if they are whole", () => {
    const small = (bytes: Buffer) =>
      `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`;
    const whole = Buffer.concat([Buffer.of(0x30, 0x81, 200), Buffer.alloc(200)]);
    expect(ders(small(whole))).toEqual([whole.toString("hex")]);
    expect(ders(small(whole.subarray(0, -1)))).toEqual([]);
    expect(ders(small(Buffer.concat([whole, Buffer.of(0)])))).toEqual([]);
  });

  test("may be anything", () => {
    fc.assert(
      fc.property(fc.string(), fc.base64String(), (text, body) => {
        expect(ders(text)).toEqual([]);
        const block = `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
        expect(ders(`${text}\n${block}${authority.certificatePem}`).at(-1)).toBe(own);
      }),
    );
  });
});
