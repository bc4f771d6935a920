// @module-tag security
import type { IncomingHttpHeaders } from "node:http";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import type { MaskedSecret } from "../../src/gateway/masking.ts";
import type { NetworkRule } from "../../src/policy/network.ts";
import { Inside, Outside, parse, policyOf, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
let heard: IncomingHttpHeaders | null = null;
const plain = outside.http((request, response) => {
  heard = request.headers;
  response.end("reached");
});
const secret: MaskedSecret = {
  name: "KEY",
  real: "ghp_RealRealRealReal0123",
  surrogate: "ghp_FakeFakeFakeFake9876",
  hosts: [host],
  headers: ["authorization"],
  paths: null,
};

async function leading(rules: readonly NetworkRule[], secrets: readonly MaskedSecret[] = []): Promise<Inside> {
  heard = null;
  return new Inside(outside, policyOf(rules, { secrets, reach: { [host]: `127.0.0.1:${await plain}` } }), { secrets });
}

async function ask(inside: Inside, path: string, headers: readonly string[] = []) {
  const lines = [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, "Connection: close", ...headers];
  return parse(await say(await inside.knock(proxyPort), `${lines.join("\r\n")}\r\n\r\n`));
}

describe("where a rule has methods or paths", () => {
  const rules = [rule(host), rule(host, { deny: true, paths: ["/admin/**"] })];

  test.each(["X-HTTP-Method-Override: DELETE", "X_HTTP_METHOD: DELETE", "X-Original-URL: /admin/x"])(
    "a request is refused that a server may read as another: %s",
    async (header) => {
      await using inside = await leading(rules);
      const { status, body } = await ask(inside, "/ok", [header]);
      expect(status).toBe(403);
      expect(JSON.parse(body)).toMatchObject({
        reason: "spelling",
        message: expect.stringContaining(header.split(":")[0] as string),
      });
      expect(heard).toBeNull();
      expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "spelling", status: 403 }]);
    },
  );

  test.each([
    ["Destination: /admin/x", 403],
    [`Destination: http://${host}/admin/x`, 403],
    ["Destination: http://other.example.com/x", 403],
    ["x-amz-copy-source: admin/x", 403],
    ["x-ms-copy-source: /a/../admin/x", 403],
    ["x-goog-copy-source: /ADMIN/x", 403],
    [`Destination: http://${host.toUpperCase()}/ok/y`, 200],
    ["x-amz-copy-source: ok/x?versionId=1", 200],
  ])("a second path is judged as the first is: %s", async (header, expected) => {
    await using inside = await leading(rules);
    expect((await ask(inside, "/ok", [header])).status).toBe(expected);
    expect(heard === null).toBe(expected === 403);
  });

  test("so is one whose query says so; and what a proxy would say of host and prefix is taken out", async () => {
    await using inside = await leading(rules);
    expect((await ask(inside, "/ok?_method=DELETE")).status).toBe(403);
    expect((await ask(inside, "/ok", ["X-Forwarded-Host: evil", "Forwarded: host=evil", "X-Kept: yes"])).status).toBe(
      200,
    );
    expect(heard).toMatchObject({ "x-kept": "yes" });
    expect(Object.keys(heard ?? {})).not.toContain("x-forwarded-host");
    expect(Object.keys(heard ?? {})).not.toContain("forwarded");
  });

  test("what is denied is denied in other spellings, too", async () => {
    await using inside = await leading(rules);
    for (const path of [
      "/ADMIN/x",
      "/adm%c4%b1n/x",
      "/admin%3b/x",
      "/%20admin/x",
      "/%ef%bd%81dmin/x",
      "/admin::$DATA/x",
      "/admin%e3%80%82/x",
      "/ok/%e3%80%82%e3%80%82/admin/x",
    ]) {
      expect([path, (await ask(inside, path)).status]).toEqual([path, 403]);
    }
    expect((await ask(inside, "/administration")).status).toBe(200);
  });

  test("where none has, they pass as they are", async () => {
    await using inside = await leading([rule(host)]);
    const { status } = await ask(inside, "/ok?_method=DELETE", [
      "X-HTTP-Method-Override: DELETE",
      "X-Forwarded-Host: x",
    ]);
    expect(status).toBe(200);
    expect(heard).toMatchObject({ "x-http-method-override": "DELETE", "x-forwarded-host": "x" });
  });
});

describe("on a host that a secret is bound to", () => {
  test("a key in a query is refused, in words, and one in a header is taken out", async () => {
    await using inside = await leading([rule(host)], [secret]);
    const { status, body } = await ask(inside, "/ok?access_token=another");
    expect([status, JSON.parse(body)]).toEqual([403, expect.objectContaining({ reason: "key" })]);
    expect(heard).toBeNull();
    expect((await ask(inside, `/ok?access_token=${secret.surrogate}`, ["Private-Token: another"])).status).toBe(200);
    expect(Object.keys(heard ?? {})).not.toContain("private-token");
    expect(inside.audit).toMatchObject([
      { reason: "key", status: 403 },
      { verdict: "allowed", stripped: 1 },
    ]);
  });

  test("no part of an answer is asked for: in a part, a part of a secret would not be known", async () => {
    await using inside = await leading([rule(host)], [secret]);
    const headers = ["Range: bytes=0-1", "X-Ms-Range: bytes=0-1", "Request-Range: bytes=0-1", "X-Kept: yes"];
    expect((await ask(inside, "/ok", headers)).status).toBe(200);
    expect(Object.keys(heard ?? {}).filter((name) => name.includes("range"))).toEqual([]);
    expect(heard).toMatchObject({ "x-kept": "yes" });
  });

  test("as they are on any other", async () => {
    await using inside = await leading([rule(host)]);
    expect((await ask(inside, "/ok?access_token=another", ["Private-Token: another"])).status).toBe(200);
    expect(heard).toMatchObject({ "private-token": "another" });
  });
});
