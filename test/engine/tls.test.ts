import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connectEngine } from "../../src/engine/client.ts";
import { ping } from "../../src/engine/ping.ts";
import { openssl } from "../openssl.ts";
import { failureOf, freshPath, startSecureEngine } from "./engine-server.ts";

/** A directory as DOCKER_CERT_PATH names it, signed by an authority of its own unless one is given. */
function makeCertificates(authority?: string): string {
  const directory = freshPath("certs");
  mkdirSync(directory);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const ca = authority ?? directory;
  if (authority === undefined)
    openssl(directory, "req", "-x509", ...key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=test CA");
  else writeFileSync(join(directory, "ca.pem"), readFileSync(join(authority, "ca.pem")));
  openssl(directory, "req", ...key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=127.0.0.1");
  writeFileSync(join(directory, "extensions"), "subjectAltName=IP:127.0.0.1\n");
  const signed = ["-CA", join(ca, "ca.pem"), "-CAkey", join(ca, "ca-key.pem"), "-CAcreateserial"];
  openssl(directory, "x509", "-req", "-in", "request.pem", "-out", "cert.pem", ...signed, "-extfile", "extensions");
  return directory;
}

const file = (directory: string, name: string) => readFileSync(join(directory, name));
const server = makeCertificates();
const client = makeCertificates(server);
const stranger = makeCertificates();
const port = await startSecureEngine({
  ca: file(server, "ca.pem"),
  cert: file(server, "cert.pem"),
  key: file(server, "key.pem"),
});

async function pingWith(certificates: string | null, host = "127.0.0.1"): Promise<void> {
  using engine = connectEngine({ kind: "https", host, port }, { certificates });
  await ping(engine);
}

describe("an engine behind TLS", () => {
  test("answers a client that it knows", async () => {
    await pingWith(client);
  });

  test("is refused by a client that does not know its authority", async () => {
    const mixed = freshPath("mixed");
    mkdirSync(mixed);
    for (const name of ["cert.pem", "key.pem"]) writeFileSync(join(mixed, name), file(client, name));
    writeFileSync(join(mixed, "ca.pem"), file(stranger, "ca.pem"));
    const error = await failureOf(pingWith(mixed));
    expect(error).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
    expect(error.message).toMatch(/certificate/);
    expect(error.hint).toContain("DOCKER_CERT_PATH");
  });

  test("is refused where only the system's authorities are known", async () => {
    expect(await failureOf(pingWith(null))).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });

  test("refuses a client whose certificate is another's", async () => {
    const mixed = freshPath("mixed");
    mkdirSync(mixed);
    for (const name of ["cert.pem", "key.pem"]) writeFileSync(join(mixed, name), file(stranger, name));
    writeFileSync(join(mixed, "ca.pem"), file(server, "ca.pem"));
    expect(await failureOf(pingWith(mixed))).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });

  test("is refused under a name that its certificate does not have", async () => {
    const error = await failureOf(pingWith(client, "localhost"));
    expect(error).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });

  test("is not dialled without the three files, and the error names the one that is missing", async () => {
    const partial = makeCertificates(server);
    rmSync(join(partial, "cert.pem"));
    const error = await failureOf(pingWith(partial));
    expect(error).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
    expect(error.message).toContain(join(partial, "cert.pem"));
    writeFileSync(join(partial, "cert.pem"), "garbage");
    expect(await failureOf(pingWith(partial))).toMatchObject({ code: "ENGINE_CONNECTION_FAILED" });
  });
});
