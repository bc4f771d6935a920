// @module-tag security
import { execFile } from "node:child_process";
import { createPublicKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createSecureContext, createServer, type Server } from "node:tls";
import { inspect, promisify } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { type Leaf, makeAuthority } from "../../src/gateway/authority.ts";

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), "podbot-authority-"));
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true });
});

let count = 0;
function write(text: string): string {
  const path = join(directory, `${count++}.pem`);
  writeFileSync(path, text);
  return path;
}

const now = new Date();
const authority = makeAuthority(now);
const stranger = makeAuthority(now);
const trusted = write(authority.certificatePem);
const untrusted = write(stranger.certificatePem);
const long = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;

/** What OpenSSL says of a leaf, at its strictest. */
async function verify(leaf: Leaf, options: readonly string[], by = trusted): Promise<string> {
  const args = ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", by, ...options];
  const result = await run("openssl", [...args, write(leaf.certificatePem)]).catch((error) => error);
  return `${result.stdout}${result.stderr}`;
}

describe("OpenSSL, at its strictest,", () => {
  test("finds nothing wrong with the authority", async () => {
    const { stdout } = await run("openssl", ["verify", "-x509_strict", "-CAfile", trusted, trusted]);
    expect(stdout).toContain("OK");
  });

  test.each([
    ["api.example.com", "-verify_hostname"],
    ["localhost", "-verify_hostname"],
    [long, "-verify_hostname"],
    ["127.0.0.1", "-verify_ip"],
    ["::1", "-verify_ip"],
    ["2001:db8::ffff", "-verify_ip"],
  ])("takes a leaf for %s, and for nothing else", async (host, option) => {
    const leaf = authority.leafFor(host);
    expect(await verify(leaf, [option, host])).toMatch(/OK$/m);
    expect(await verify(leaf, ["-verify_hostname", "example.net"])).toContain("hostname mismatch");
    expect(await verify(leaf, ["-verify_ip", "127.0.0.2"])).toContain("IP address mismatch");
    expect(await verify(leaf, [option, host], untrusted)).not.toMatch(/OK$/m);
  });

  test("reads the extensions as they were meant", async () => {
    const read = async (pem: string) => {
      const { stdout } = await run("openssl", ["x509", "-noout", "-text", "-in", write(pem)]);
      return stdout.replace(/\s+/g, " ");
    };
    const root = await read(authority.certificatePem);
    expect(root).toContain("Version: 3");
    expect(root).toMatch(/Subject: CN ?= ?Podbot session authority/);
    expect(root).toContain("X509v3 Basic Constraints: critical CA:TRUE, pathlen:0");
    expect(root).toContain("X509v3 Key Usage: critical Certificate Sign, CRL Sign");
    const [, identifier] = /Subject Key Identifier: ([0-9A-F:]{59})/.exec(root) ?? [];
    expect(identifier).toBeDefined();
    const leaf = await read(authority.leafFor("api.example.com").certificatePem);
    expect(leaf.replace("keyid:", "")).toContain(`Authority Key Identifier: ${identifier}`);
    expect(leaf).toContain("X509v3 Key Usage: critical Digital Signature");
    expect(leaf).toContain("X509v3 Extended Key Usage: TLS Web Server Authentication");
    expect(leaf).toContain("X509v3 Subject Alternative Name: DNS:api.example.com");
    expect(leaf).not.toContain("CA:TRUE");
  });

  test("takes nothing that is signed with a leaf's key", async () => {
    const leaf = authority.leafFor("api.example.com");
    const [key, certificate] = [write(leaf.keyPem), write(leaf.certificatePem)];
    const request = join(directory, "request.pem");
    await run("openssl", ["req", "-new", "-key", key, "-subj", "/CN=forged.example.com", "-out", request]);
    const signing = ["-CA", certificate, "-CAkey", key, "-set_serial", "1", "-days", "1"];
    const { stdout } = await run("openssl", ["x509", "-req", "-in", request, ...signing]);
    const said = await verify({ ...leaf, certificatePem: stdout }, ["-untrusted", certificate]);
    expect(said).toContain("invalid CA certificate");
  });

  test.each([
    [-2 * 3600, "not yet valid"],
    [-3000, "OK"],
    [7 * 24 * 3600 - 3700, "OK"],
    [7 * 24 * 3600, "expired"],
  ])("asked %d seconds from now, says that it is %s", async (seconds, verdict) => {
    const at = Math.floor(now.getTime() / 1000) + seconds;
    expect(await verify(authority.leafFor("localhost"), ["-attime", `${at}`])).toContain(verdict);
  });
});

async function serve(leaf: Leaf): Promise<number> {
  const context = { cert: leaf.certificatePem, key: leaf.keyPem };
  // The way that the gateway goes, too.
  const server = createServer({ SNICallback: (_, done) => done(null, createSecureContext(context)), ...context });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
    socket.resume();
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

const python = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.verify_flags |= ssl.VERIFY_X509_STRICT
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as plain:
    with context.wrap_socket(plain, server_hostname=sys.argv[3]) as secure:
        print(secure.recv(100).decode())
`;

/** What a client of each kind gets from the server, or the words with which it refuses. */
const clients: Readonly<Record<string, (ca: string, port: number, host: string) => Promise<string>>> = {
  node: (ca, port, host) =>
    new Promise((resolve) => {
      const pem = ca === trusted ? authority.certificatePem : stranger.certificatePem;
      const name = host === "127.0.0.1" ? {} : { servername: host };
      const socket = connect({ host: "127.0.0.1", port, ca: pem, ...name });
      let text = "";
      socket.on("data", (bytes) => {
        text += bytes;
      });
      socket.on("end", () => resolve(text));
      socket.on("error", (error) => resolve(`refused: ${error.message}`));
    }),
  curl: (ca, port, host) =>
    words(
      "curl",
      ["-sS", "--noproxy", "*", "--cacert", ca, "--resolve", `${host}:${port}:127.0.0.1`],
      [`https://${host}:${port}/`],
    ),
  // On Debian by way of GnuTLS. It finds no repository, but looks for one only where it trusts.
  git: async (ca, port, host) => {
    const settings = ["-c", "http.proxy=", "-c", `http.curloptResolve=${host}:${port}:127.0.0.1`];
    const said = await words("git", [...settings, "ls-remote"], [`https://${host}:${port}/`], {
      ...{ GIT_SSL_CAINFO: ca, GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" },
    });
    return said.replace(/^.*fatal: .* not valid: is this a git repository\?$/m, "hello");
  },
  python: (ca, port, host) => words("python3", ["-c", python], [ca, `${port}`, host]),
  openssl: (ca, port, host) => {
    const name = host === "127.0.0.1" ? ["-verify_ip", host] : ["-servername", host, "-verify_hostname", host];
    const strict = ["-verify_return_error", "-x509_strict", "-CAfile", ca, ...name];
    return words("openssl", ["s_client", "-quiet", "-connect", `127.0.0.1:${port}`], strict);
  },
};

async function words(
  program: string,
  args: readonly string[],
  more: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const pending = run(program, [...args, ...more], { env: { ...process.env, ...env } });
  pending.child.stdin?.end();
  const result = await pending.catch((error) => ({ stdout: `refused: ${error.stdout}`, stderr: error.stderr }));
  return `${result.stdout}${result.stderr}`;
}

describe.each(Object.entries(clients))("%s", (_, client) => {
  test.each(["api.example.com", "127.0.0.1", long])("takes the leaf for %s from a server", async (host) => {
    const port = await serve(authority.leafFor(host));
    expect(await client(trusted, port, host)).toContain("hello");
    const refusal = await client(untrusted, port, host);
    expect(refusal).toContain("refused");
    expect(refusal).not.toContain("hello");
  });

  test("refuses a leaf for another name", async () => {
    const port = await serve(authority.leafFor("api.example.com"));
    expect(await client(trusted, port, "www.example.com")).not.toContain("hello");
  });
});

describe("leaves", () => {
  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/);
  const name = fc.array(label, { minLength: 2, maxLength: 7 }).map((labels) => [...labels, "example"].join("."));

  test("are for their host, whatever its name, and signed by their authority", () => {
    const root = new X509Certificate(authority.certificatePem);
    expect(root.verify(root.publicKey)).toBe(true);
    fc.assert(
      fc.property(name, (host) => {
        const leaf = new X509Certificate(authority.leafFor(host).certificatePem);
        expect(leaf.subjectAltName).toBe(`DNS:${host}`);
        expect(leaf.checkHost(host)).toBe(host);
        expect(leaf.checkIssued(root)).toBe(true);
        expect(leaf.verify(root.publicKey)).toBe(true);
        expect(leaf.validTo).toBe(root.validTo);
      }),
      { numRuns: 50 },
    );
  });

  test("have serial numbers that nobody can guess, all positive", () => {
    const serials = Array.from({ length: 50 }, (_, index) => {
      return new X509Certificate(authority.leafFor(`s${index}.example`).certificatePem).serialNumber;
    });
    expect(new Set(serials).size).toBe(50);
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9A-F]{31}$/);
  });

  test("are remembered, as many as were asked for of late", () => {
    const small = makeAuthority(now);
    const [first, second] = [small.leafFor("first"), small.leafFor("second")];
    for (let index = 0; index < 511; index += 1) {
      small.leafFor(`other${index}`);
      expect(small.leafFor("first")).toBe(first);
    }
    expect(small.leafFor("second").certificatePem).not.toBe(second.certificatePem);
  });

  test("share one key, which is not the authority's", () => {
    const keys = ["one.example", "two.example"].map((host) => authority.leafFor(host).keyPem);
    expect(keys[0]).toBe(keys[1]);
    const der = (key: ReturnType<typeof createPublicKey>) =>
      key.export({ type: "spki", format: "der" }).toString("hex");
    const leafKey = der(createPublicKey(keys[0] as string));
    const certified = new X509Certificate(authority.leafFor("one.example").certificatePem).publicKey;
    expect(leafKey).toBe(der(certified));
    expect(leafKey).not.toBe(der(new X509Certificate(authority.certificatePem).publicKey));
    expect(stranger.leafFor("one.example").keyPem).not.toBe(keys[0]);
  });
});

test("The authority's certificate has two spellings, and its key none", () => {
  expect(new X509Certificate(authority.certificateDer).toString()).toBe(authority.certificatePem);
  expect(Object.keys(authority)).toEqual(["certificatePem", "certificateDer", "leafFor"]);
  expect(inspect(authority, { showHidden: true, depth: null })).not.toMatch(/private/i);
});
