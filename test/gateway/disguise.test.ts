// @module-tag security
import { afterAll, describe, expect, test } from "vitest";
import type { MaskedSecret } from "../../src/gateway/masking.ts";
import type { NetworkRule } from "../../src/policy/network.ts";
import { ended, Inside, Outside, policyOf, readAll, readUntil, rule } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
const secret: MaskedSecret = {
  name: "KEY",
  real: "sk-real-0123456789abcdef",
  surrogate: "sk-fake-fedcba9876543210",
  hosts: [host],
  headers: ["authorization"],
  paths: null,
};
const foreign = "Bearer sk-somebody-elses";

/** All that has come out, as it was written. */
let heard = "";
const lenient = outside.tcp((socket) => {
  socket.on("data", (bytes) => {
    heard += bytes.toString("latin1");
    socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
  });
});
const sshServer = outside.tcp((socket) => {
  socket.once("data", () => {
    socket.write("SSH-2.0-server\r\n");
    socket.once("data", (bytes) => socket.end(bytes));
  });
});
const secure = outside.tls(host, (socket) => socket.pipe(socket));

async function leading(port: Promise<number>, isBound: boolean, more: Partial<NetworkRule> = {}): Promise<Inside> {
  const secrets = isBound ? [secret] : [];
  const rules = [rule(host, { ports: [22, 443, 8080], ...more })];
  const inside = new Inside(outside, policyOf(rules, { secrets, reach: { [host]: `127.0.0.1:${await port}` } }), {
    secrets,
    limits: { listenMs: 30, lingerMs: 100 },
  });
  inside.believed = [outside.authority.certificatePem];
  heard = "";
  return inside;
}

/** What is answered to whoever says so in a tunnel, at once or after a while. */
async function tell(inside: Inside, text: string, { port = 8080, late = false } = {}): Promise<string> {
  const { socket } = await inside.connect(`${host}:${port}`);
  if (late) await new Promise((resolve) => setTimeout(resolve, 100));
  const answer = readAll(socket);
  socket.write(text, "latin1");
  const all = await answer;
  socket.destroy();
  return all;
}

const rest = ` /q HTTP/1.1\r\nHost: ${host}:8080\r\nAuthorization: ${foreign}\r\nConnection: close\r\n\r\n`;

describe.each(["foo", "http/1.0"])("TLS that says it is %s", (name) => {
  test("is not let through unseen where a secret is bound", async () => {
    for (const port of [443, 8080]) {
      await using inside = await leading(secure, true);
      await expect(inside.secure(host, { port, alpn: [name] })).rejects.toMatchObject({
        code: "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED",
      });
      expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused", reason: "protocol", host, port }]);
    }
  });

  test("is not where paths are denied", async () => {
    await using inside = await leading(secure, false, { paths: ["/ok"] });
    await expect(inside.secure(host, { alpn: [name] })).rejects.toThrow();
    expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused", reason: "protocol" }]);
  });

  test("is let through where nothing needs to be seen", async () => {
    await using inside = await leading(secure, false);
    const socket = await inside.secure(host, { alpn: [name] });
    socket.write("hello");
    expect(await readUntil(socket, "hello")).toBe("hello");
    socket.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host }]);
  });
});

describe.each([false, true])("a request in disguise (after a while: %s)", (late) => {
  test.each(["GET ", "M-SEARCH", "\r\nGET ", "\r\n\r\nM-SEARCH", "\rGET", "get", "G\tET", "GET\t", "X", "\nX-Y"])(
    "is seen where a secret is bound: %j",
    async (start) => {
      await using inside = await leading(lenient, true);
      const answer = await tell(inside, start + rest, { late });
      expect(heard).not.toContain("sk-somebody-elses");
      expect(answer).toMatch(heard === "" ? /^HTTP\/1.1 400 / : /^HTTP\/1.1 200 /);
      expect(inside.audit).toHaveLength(1);
      expect(inside.audit).toMatchObject([
        { kind: "http", ...(heard === "" ? { verdict: "refused" } : { stripped: 1 }) },
      ]);
    },
  );

  test("is nothing else where a secret is bound, but for SSH", async () => {
    await using inside = await leading(lenient, true);
    expect(await tell(inside, "\u0000\u0001\u0002", { late })).toBe("");
    expect(heard).toBe("");
    expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "protocol", port: 8080 }]);
  });

  test("is SSH only if the server says so as well: until then, it hears the line alone", async () => {
    await using inside = await leading(lenient, true);
    const steal = `GET /steal${rest.slice(" /q".length)}`;
    expect(await tell(inside, `SSH-2.0-x\r\n${steal}`, { late })).toBe("");
    expect(heard).toBe("SSH-2.0-x\r\n");
    await using honest = await leading(sshServer, true);
    expect(await tell(honest, "SSH-2.0-x y\r\nkeys", { late, port: 22 })).toBe("SSH-2.0-server\r\nkeys");
    await expect
      .poll(() => [...inside.audit, ...honest.audit])
      .toMatchObject([
        { kind: "tcp", verdict: "refused", reason: "protocol", port: 8080, sent: 11 },
        { kind: "tcp", verdict: "allowed", port: 22, sent: 17, received: 20 },
      ]);
  });

  test.each(["SSH-GET", "SSH-2.0-GET", "SSH-2.0-x\n", "SSH-2.0-\u00e9\r\n", `SSH-2.0-${"x".repeat(250)}\r\n`])(
    "is not SSH because it begins so: %j",
    async (start) => {
      await using inside = await leading(lenient, true);
      expect(await tell(inside, start + rest, { late })).toMatch(/^HTTP\/1.1 400 /);
      expect(heard).toBe("");
      expect(inside.audit).toMatchObject([{ kind: "http", verdict: "refused", reason: "spelling" }]);
    },
  );

  test("is none where nothing is bound: it is let through as it is", async () => {
    await using inside = await leading(lenient, false);
    await tell(inside, `M-SEARCH${rest}`, { late });
    expect(heard).toBe(`M-SEARCH${rest}`);
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tcp", verdict: "allowed" }]);
  });
});

test("a request in disguise is seen where paths decide", async () => {
  await using inside = await leading(lenient, false, { paths: ["/ok"] });
  expect(await tell(inside, `GET ${rest}`)).toMatch(/^HTTP\/1.1 403 /);
  expect(await tell(inside, `GET ${rest.replace("/q", "/ok")}`)).toMatch(/^HTTP\/1.1 200 /);
  const { socket } = await inside.connect(`${host}:8080`);
  socket.write("\u0000\u0001");
  await ended(socket);
  expect(inside.audit).toMatchObject([
    { verdict: "refused", reason: "path" },
    { verdict: "allowed", path: "/ok" },
    { verdict: "refused", reason: "protocol" },
  ]);
});
