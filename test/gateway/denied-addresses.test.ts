// @module-tag security
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { DeniedAddresses } from "../../src/gateway/denied-addresses.ts";
import { Lookups } from "../../src/gateway/lookups.ts";
import { ended, Inside, Outside, parse, policyOf, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

/** Where names lead: to this machine, to addresses without a listener. */
const places: Readonly<Record<string, readonly string[]>> = {
  "evil.example.org": ["127.0.9.5", "127.0.9.6"],
  "alias.example.org": ["127.0.9.5"],
  "other.example.org": ["127.0.9.9"],
};
const resolve = async (host: string) => places[host] ?? [];

function learning(): Inside {
  const rules = [
    ...["evil.example.org", "127.0.9.7"].map((host) => rule(host, { deny: true, ports: [] })),
    ...["127.0.9.5", "127.0.9.6", "127.0.9.9"].map((host) => rule(host)),
    rule("*.example.org", { ports: [22, 80], local: true }),
  ];
  return new Inside(outside, policyOf([...rules, rule("*.example.net", { deny: true })], { learn: true }), {
    resolve,
    limits: { dialMs: 200, listenMs: 20 },
  });
}

async function ask(inside: Inside, host: string) {
  const text = `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  return parse(await say(await inside.knock(proxyPort), text));
}

describe("while everything is allowed, a host that is denied", () => {
  test("is not reached by its address either, in HTTP", async () => {
    await using inside = learning();
    expect((await ask(inside, "evil.example.org")).status).toBe(403);
    for (const address of ["127.0.9.5", "127.0.9.6"]) {
      const { status, body } = await ask(inside, address);
      expect([status, JSON.parse(body)]).toEqual([403, expect.objectContaining({ reason: "denied" })]);
      expect(body).toContain("evil.example.org");
    }
    // The control: nothing is there, but it was let through.
    expect((await ask(inside, "127.0.9.9")).status).toBe(502);
    // A request that names another host is that host's.
    expect((await ask(inside, "alias.example.org")).status).toBe(502);
  });

  test("is not reached by another name either, where what is spoken has no names", async () => {
    await using inside = learning();
    for (const name of ["alias.example.org", "other.example.org"]) {
      const { socket } = await inside.connect(`${name}:22`);
      socket.write("SSH-2.0-x\r\n");
      await ended(socket);
    }
    expect(inside.audit).toMatchObject([
      { kind: "tcp", host: "alias.example.org", verdict: "refused", reason: "denied" },
      { kind: "tcp", host: "other.example.org", verdict: "failed" },
    ]);
  });
});

describe("the host at an address", () => {
  test("is one of those asked for, by name or by itself", async () => {
    const denied = new DeniedAddresses(new Lookups(resolve));
    const hosts = ["gone.example.org", "evil.example.org", "127.0.9.7"];
    expect(await denied.hostAt("127.0.9.6", hosts, 100)).toBe("evil.example.org");
    expect(await denied.hostAt("127.0.9.7", hosts, 100)).toBe("127.0.9.7");
    expect(await denied.hostAt("127.0.9.8", hosts, 100)).toBeNull();
  });

  test("is asked for once", async () => {
    let asked = 0;
    const denied = new DeniedAddresses(
      new Lookups((host) => {
        asked++;
        return resolve(host);
      }),
    );
    for (let at = 0; at < 3; at++) await denied.hostAt("127.0.9.6", ["evil.example.org"], 100);
    expect(asked).toBe(1);
  });

  test("is not taken to be another where no answer comes", async () => {
    const denied = new DeniedAddresses(new Lookups(() => new Promise(() => {})));
    await expect(denied.hostAt("127.0.9.6", ["evil.example.org"], 20)).rejects.toThrow("in time");
  });
});
