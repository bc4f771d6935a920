import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { request as secureRequest } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { createSecureContext, rootCertificates, TLSSocket } from "node:tls";
import { openssl } from "../openssl.ts";

export interface Interceptor extends AsyncDisposable {
  /** With a name and a password, as companies have it. */
  readonly url: string;
  /** A file with the authorities of this machine and the interceptor's own. */
  readonly authorities: string;
  /** Names of all hosts that were asked for over TLS. */
  readonly hosts: ReadonlySet<string>;
}

const systemBundle = "/etc/ssl/certs/ca-certificates.crt";

/** A proxy that reads all TLS in between, with certificates of an authority of its own. */
export async function openInterceptor(directory: string): Promise<Interceptor> {
  const at = (name: string) => join(directory, name);
  mkdirSync(directory, { recursive: true });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl(
    directory,
    "req",
    "-x509",
    ...key,
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
    "-days",
    "2",
    "-subj",
    "/CN=Interceptor",
  );
  const usual = readFileSync(systemBundle, "utf8");
  writeFileSync(at("authorities.pem"), `${usual}\n${readFileSync(at("ca.pem"), "utf8")}`);

  const contexts = new Map<string, ReturnType<typeof createSecureContext>>();
  const contextFor = (host: string) => {
    const known = contexts.get(host);
    if (known !== undefined) return known;
    writeFileSync(at("names"), `subjectAltName=DNS:${host}\n`);
    openssl(directory, "req", ...key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", `/CN=${host.slice(0, 60)}`);
    const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"];
    openssl(directory, "x509", "-req", "-in", "leaf.csr", "-out", "leaf.pem", ...signing);
    const made = createSecureContext({ key: readFileSync(at("leaf.key")), cert: readFileSync(at("leaf.pem")) });
    contexts.set(host, made);
    return made;
  };

  const hosts = new Set<string>();
  const sockets = new Set<Socket>();
  const ca = [...rootCertificates, usual];
  const forward = (asked: IncomingMessage, answer: ServerResponse, secure: boolean) => {
    const url = secure ? `https://${asked.headers.host}${asked.url}` : (asked.url as string);
    const { "proxy-authorization": _, "proxy-connection": __, ...headers } = asked.headers;
    const further = (secure ? secureRequest : request)(url, { method: asked.method, headers, ca }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    further.on("error", () => answer.destroy());
    asked.pipe(further);
  };
  const inner = createServer((asked, answer) => forward(asked, answer, true));
  const outer = createServer((asked, answer) => forward(asked, answer, false));
  outer.on("connection", (socket) => sockets.add(socket));
  outer.on("connect", (asked, socket: Socket) => {
    const [host = ""] = (asked.url ?? "").split(":");
    hosts.add(host);
    socket.on("error", () => {}).write("HTTP/1.1 200 OK\r\n\r\n");
    const opened = new TLSSocket(socket, { isServer: true, secureContext: contextFor(host) });
    opened.on("error", () => {});
    inner.emit("connection", opened);
  });
  outer.listen(0, "127.0.0.1");
  await once(outer, "listening");
  return {
    url: `http://somebody:hush-hush@127.0.0.1:${(outer.address() as AddressInfo).port}`,
    authorities: at("authorities.pem"),
    hosts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      outer.close();
    },
  };
}
