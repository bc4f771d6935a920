// @module-tag security
import { describe, expect, test } from "vitest";
import { carriesKey, foreignParameter } from "../../src/gateway/foreign-keys.ts";
import { foreignKeyIn, type HeaderList, type MaskedSecret, maskRequest } from "../../src/gateway/masking.ts";

const secret: MaskedSecret = {
  name: "KEY",
  real: "ghp_RealRealRealReal0123",
  surrogate: "ghp_FakeFakeFakeFake9876",
  earlier: ["ghp_Before"],
  hosts: ["api.example.org"],
  headers: ["authorization"],
  paths: null,
};
const request = { host: "api.example.org", port: 443, path: "/user", secure: true };
const pass = (headers: HeaderList, host = request.host) => maskRequest([secret], { ...request, host }, headers);

describe("on a bound host, a header that no secret names", () => {
  test.each([
    "Authorization-Token",
    "Private-Token",
    "JOB-TOKEN",
    "X-Auth-Token",
    "X-Auth-Key",
    "X-Goog-Api-Key",
    "X-Api-Key",
    "api-key",
    "apikey",
    "X_Vault_Token",
    "DD-APPLICATION-KEY",
    "Ocp-Apim-Subscription-Key",
    "X-Client-Secret",
    "X-Amz-Security-Token",
    "X-JFrog-Art-Api",
    "X-RapidAPI-Key",
    "X-Mashape-Key",
    "X-AuthToken",
    "AccessToken",
    "X-SessionToken",
    "AuthorizationToken",
    "X-Master-Key",
    "X-Parse-Master-Key",
    "X-Session-Key",
    "Authentication",
    "X-Authentication",
    "Proxy-Authorization-X-Authorization",
  ])("is taken out if keys travel in it: %s", (name) => {
    expect(pass([[name, "another's"]])).toMatchObject({ headers: [], stripped: 1 });
    // The control: where nothing is bound, it is the agent's own affair.
    expect(pass([[name, "another's"]], "other.example.org")).toMatchObject({ headers: [[name, "another's"]] });
  });

  test("is left as it is if a surrogate stands in it, which opens nothing", () => {
    for (const value of [secret.surrogate, `Bearer ${secret.surrogate}`, "ghp_Before"]) {
      expect(pass([["Private-Token", value]])).toMatchObject({ headers: [["Private-Token", value]], masked: 0 });
    }
  });

  test.each([
    "accept",
    "idempotency-key",
    "sec-websocket-key",
    "mcp-session-id",
    "x-csrf-token",
    "x-ms-continuationtoken",
    "x-ms-continuation-token",
    "X-Atlassian-Token",
    "Lock-Token",
    "Sync-Token",
    "anthropic-beta",
    "x-goog-user-project",
  ])("is left if they do not: %s", (name) => {
    expect(pass([[name, "value"]])).toMatchObject({ headers: [[name, "value"]], stripped: 0 });
  });

  test("is left of its cookies with those that are of no account", () => {
    const passed = pass([
      ["Cookie", `session=another; __cf_bm=x; mine=${secret.surrogate}; AWSALB=y; odd; csrftoken=a; XSRF-TOKEN=b`],
    ]);
    expect(passed.headers).toEqual([
      ["Cookie", `__cf_bm=x; mine=${secret.surrogate}; AWSALB=y; csrftoken=a; XSRF-TOKEN=b`],
    ]);
    expect(passed.stripped).toBe(2);
    expect(pass([["cookie", "session=another"]])).toMatchObject({ headers: [], stripped: 1 });
  });

  test("is taken out if it is a WebSocket's protocol with a key in it", () => {
    expect(carriesKey("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-x")).toBe(true);
    expect(carriesKey("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eyJ")).toBe(true);
    expect(carriesKey("Sec-WebSocket-Protocol", "graphql-ws, v12.stomp")).toBe(false);
  });
});

describe("a key in a query", () => {
  const none = () => false;

  test.each([
    ["?access_token=x", "access_token"],
    ["?a=b&Private-Token=x", "Private-Token"],
    ["?api%5fkey=x", "api_key"],
    ["?token[]=x", "token"],
    ["?a;token=x", "token"],
    ["?X-Amz-Signature=x", "X-Amz-Signature"],
    ["?sig=x", "sig"],
    ["?apikey=x", "apikey"],
    ["?user_token=x", "user_token"],
    ["?session_key=x", "session_key"],
    ["?private_key=x", "private_key"],
    ["?access%5ftoken[%ff]=x", "access_token"],
    ["?access%5ftoken=%ff%zz", "access_token"],
  ])("is found: %s", (query, name) => {
    expect(foreignParameter(query, "api.example.org", none)).toBe(name);
  });

  test.each(["", "?", "?page_token=x", "?next_token=x", "?token=", "?key=Linux-npm", "?q=token=x", "?sort=key"])(
    "is not seen in %j",
    (query) => {
      expect(foreignParameter(query, "api.example.org", none)).toBeNull();
    },
  );

  test("is called key by Google alone", () => {
    expect(foreignParameter("?key=AIza", "generativelanguage.googleapis.com", none)).toBe("key");
    expect(foreignParameter("?key=AIza", "notgoogleapis.com", none)).toBeNull();
  });

  test("counts on bound hosts alone, and if it is no surrogate", () => {
    expect(foreignKeyIn([secret], "api.example.org", "?token=x")).toBe("token");
    expect(foreignKeyIn([secret], "api.example.org", `?token=${secret.surrogate}`)).toBeNull();
    expect(foreignKeyIn([secret], "other.example.org", "?token=x")).toBeNull();
    // Where it has no value, only the binding holds.
    expect(foreignKeyIn([{ ...secret, real: "", surrogate: "" }], "api.example.org", "?token=x")).toBe("token");
  });
});
