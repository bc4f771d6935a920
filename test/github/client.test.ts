import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { GitHubError } from "../../src/errors.ts";
import type { GitHubApp, GitHubClient, TokenScope } from "../../src/github/app.ts";
import { openGitHubApp } from "../../src/github/open.ts";
import { isClockSteady } from "../faults/thorough.ts";
import { hasty } from "./clocks.ts";
import { Town, type TownOptions, type Trouble } from "./town.ts";

const scope: TokenScope = { repository: "example/name", permissions: { contents: "write", metadata: "read" } };

async function open(options: TownOptions & { readonly aheadOfUsMs?: number } = {}, change: Partial<GitHubApp> = {}) {
  const town = await Town.open(options);
  onTestFinished(() => town[Symbol.asyncDispose]());
  const clock = hasty();
  const client = await openGitHubApp({ ...town.app, ...change }, { clock });
  return { town, clock, client };
}

async function refusal(work: Promise<unknown>): Promise<GitHubError> {
  const error = await work.then(
    () => new Error("It was not refused."),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof GitHubError)) throw error;
  return error;
}

const acquire = (client: GitHubClient, wanted = scope) => client.tokenSource(wanted).acquire();

describe("an App", () => {
  test("is opened without asking anybody", async () => {
    const { town, client } = await open();
    expect(client.key).toMatchObject({ file: "app.pem", bits: 2_048 });
    expect([client.warnings, client.clockAheadSeconds, town.asked]).toEqual([[], null, []]);
  });

  test("is checked by what GitHub says of it and of its installation", async () => {
    const { town, client } = await open();
    expect(await client.check()).toEqual({
      app: { id: 4711, slug: "town-app", name: "Town App", owner: "example" },
      installation: {
        id: 42,
        account: "example",
        repositories: "selected",
        suspended: false,
        permissions: { contents: "write", metadata: "read", pull_requests: "write" },
      },
      clockAheadSeconds: expect.closeTo(0, -1),
    });
    expect(town.asked).toEqual(["GET /app", "GET /app/installations/42"]);
    expect(await client.findInstallation("example", "name")).toBe(42);
  });

  test("gets tokens for one repository and what it was asked for, each a new one, with GitHub's own end", async () => {
    const { town, client } = await open();
    const first = await acquire(client);
    const second = await acquire(client);
    expect(town.minted.map(({ value }) => value)).toEqual([first.value, second.value]);
    expect(second.value).not.toBe(first.value);
    expect(first.expiresAt.getTime()).toBe(town.minted[0]?.expires);
    expect(town.minted[0]).toMatchObject({
      repository: "name",
      permissions: { contents: "write", metadata: "read" },
    });
    await acquire(client, { repository: "Example/other", permissions: { contents: "read" } });
    expect(town.minted[2]).toMatchObject({ repository: "other", permissions: { contents: "read" } });
  });

  test("gets none for a repository of another owner that has the name of one of its own", async () => {
    const { town, client } = await open();
    const error = await refusal(acquire(client, { ...scope, repository: "evil/name" }));
    expect(error).toMatchObject({
      code: "GITHUB_UNEXPECTED",
      message: "GitHub gave a token for something else than evil/name.",
    });
    // GitHub would have given it: it was asked for the name alone.
    expect(town.minted).toMatchObject([{ repository: "name" }]);
    expect((await acquire(client)).value).toBe(town.minted[1]?.value);
  });

  test("gets none that may do everything, where nothing was asked for", async () => {
    const { town, client } = await open();
    expect(await refusal(acquire(client, { ...scope, permissions: {} }))).toMatchObject({
      code: "GITHUB_UNEXPECTED",
      message: "GitHub gave a token that may do more than was asked for.",
    });
    expect(town.minted[0]?.permissions).toEqual(town.permissions);
  });

  test("signs each request anew, for ten minutes at most", async () => {
    const { town, client } = await open();
    await client.check();
    const [payload = ""] = town.signatures.map((jwt) => jwt.split(".")[1]);
    const { iat, exp, iss } = JSON.parse(Buffer.from(payload, "base64url").toString());
    expect(iss).toBe(4711);
    expect(exp - iat).toBe(600);
    expect(iat * 1_000).toBeLessThan(Date.now());
  });

  test("has no secret in what it shows of itself", async () => {
    const { client } = await open();
    await acquire(client);
    const { inspect } = await import("node:util");
    const shown = inspect(client, { depth: 9, showHidden: true });
    expect(shown).toContain("SHA256:");
    expect(shown).not.toMatch(/PRIVATE KEY|ghs_/);
  });
});

describe("GitHub's refusals are told apart:", () => {
  const limit = { "x-ratelimit-remaining": "0" };
  test.each<[string, Trouble, string, RegExp]>([
    [
      "a signature",
      { status: 401, body: { message: "Bad credentials" } },
      "GITHUB_AUTHENTICATION",
      /^GitHub does not accept the App's signature \(HTTP 401, "Bad credentials"\)\.$/,
    ],
    [
      "a permission",
      { status: 403, body: { message: "Resource not accessible by integration" } },
      "GITHUB_FORBIDDEN",
      /^GitHub does not grant what was asked for \(HTTP 403, "Resource not accessible by integration"\)\.$/,
    ],
    [
      "an App",
      { status: 404, body: { message: "Integration not found" } },
      "GITHUB_NOT_FOUND",
      /does not know the App/,
    ],
    ["a page of somebody's", { status: 418, body: "<html>tea</html>" }, "GITHUB_UNEXPECTED", /\(HTTP 418\)\.$/],
    [
      "words that act",
      { status: 418, body: { message: `a\u001b[31m\u202e\n${"b".repeat(300)}` } },
      "GITHUB_UNEXPECTED",
      /"a \[31m b{190,200}…"/,
    ],
    ["an answer of another kind", { status: 200, body: "[]" }, "GITHUB_UNEXPECTED", /for the App makes no sense/],
    ["half an answer", { status: 200, body: '{"id":' }, "GITHUB_UNEXPECTED", /for the App makes no sense/],
    [
      "a way elsewhere",
      { status: 307, headers: { location: "https://other.test/" } },
      "GITHUB_UNEXPECTED",
      /^localhost:\d+ sends Podbot to "https:\/\/other\.test\/" \(HTTP 307\), and Podbot does not follow\.$/,
    ],
    ["a way to nowhere", { status: 302 }, "GITHUB_UNEXPECTED", /sends Podbot elsewhere \(HTTP 302\)/],
    ["that nothing has changed", { status: 304 }, "GITHUB_UNEXPECTED", /\(HTTP 304\)/],
  ])("%s", async (_, trouble, code, message) => {
    const { town, clock, client } = await open();
    town.troubles.push(trouble);
    const error = await refusal(client.check());
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(error.hint).not.toBe(undefined);
    expect([town.asked.length, clock.naps]).toEqual([1, []]);
    // The control: the next answer is as good as ever.
    expect((await client.check()).app.id).toBe(4711);
  });

  test("too many requests, after three more", async () => {
    for (const trouble of [
      { status: 403, body: { message: "You have exceeded a secondary Rate Limit." } },
      { status: 403, headers: { "retry-after": "0" } },
      { status: 429 },
      { status: 403, headers: limit },
    ]) {
      const { town, clock, client } = await open();
      town.troubles.push(trouble, trouble, trouble, trouble);
      expect(await refusal(acquire(client))).toMatchObject({
        code: "GITHUB_RATE_LIMITED",
        hint: "Try again in 1 s. Whoever else uses this App has a part in it.",
      });
      expect(town.asked).toHaveLength(4);
      expect(clock.naps).toEqual([1_000, 2_000, 4_000]);
      expect((await acquire(client)).value).toBe(town.minted[0]?.value);
    }
  });

  test("too many requests for now: it waits as it is told, within bounds", async () => {
    const { town, clock, client } = await open();
    const reset = Math.floor(Date.now() / 1_000) + 40;
    town.troubles.push(
      { status: 429, headers: { "retry-after": "7" } },
      { status: 403, headers: { ...limit, "x-ratelimit-reset": `${reset}` } },
    );
    await acquire(client);
    expect(clock.naps[0]).toBe(7_000);
    if (isClockSteady) {
      expect(clock.naps[1]).toBeGreaterThan(35_000);
      expect(clock.naps[1]).toBeLessThan(45_000);
    }
    town.troubles.push({ status: 429, headers: { "retry-after": "1800" } });
    expect(await refusal(acquire(client))).toMatchObject({
      code: "GITHUB_RATE_LIMITED",
      details: { retryAfterMs: 1_800_000 },
      hint: expect.stringContaining("in 30 min"),
    });
    expect(clock.naps).toHaveLength(2);
  });

  test("disorder, which may pass", async () => {
    const { town, clock, client } = await open();
    town.troubles.push({ status: 502, body: "<html>" }, { status: 503 }, { status: 500 });
    expect((await acquire(client)).value).toBe(town.minted[0]?.value);
    expect(clock.naps).toEqual([1_000, 2_000, 4_000]);
    town.troubles.push(...Array.from({ length: 4 }, () => ({ status: 503, body: { message: "Down" } })));
    expect(await refusal(acquire(client))).toMatchObject({
      code: "GITHUB_UNAVAILABLE",
      message: 'GitHub is out of order (HTTP 503, "Down").',
    });
  });

  test("another App's key, another App's number, another's installation", async () => {
    const { town } = await open();
    const other = join(town.directory, "other.pem");
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    writeFileSync(other, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
    const clientOf = (change: Partial<GitHubApp>) => openGitHubApp({ ...town.app, ...change }, { clock: hasty() });
    expect(await refusal((await clientOf({ privateKeyPath: other })).check())).toMatchObject({
      code: "GITHUB_AUTHENTICATION",
      message: expect.stringContaining("A JSON web token could not be decoded"),
    });
    expect((await refusal((await clientOf({ appId: 1 })).check())).code).toBe("GITHUB_AUTHENTICATION");
    const astray = await clientOf({ installationId: 43 });
    for (const work of [() => astray.check(), () => acquire(astray)]) {
      expect(await refusal(work())).toMatchObject({
        code: "GITHUB_NOT_FOUND",
        hint: expect.stringContaining("github.installation_id"),
      });
    }
    expect((await refusal(astray.findInstallation("example", "none"))).message).toContain(
      "does not show example/none to the App",
    );
  });

  test("a repository and a permission that the installation does not have", async () => {
    const { client } = await open();
    expect(await refusal(acquire(client, { ...scope, repository: "example/secret" }))).toMatchObject({
      code: "GITHUB_NOT_FOUND",
      message: expect.stringContaining("does not have the repository"),
    });
    expect(await refusal(acquire(client, { ...scope, permissions: { administration: "write" } }))).toMatchObject({
      code: "GITHUB_FORBIDDEN",
      hint: expect.stringContaining("github.permissions"),
    });
  });

  test("an installation that somebody has suspended", async () => {
    const { town, client } = await open();
    town.suspended = true;
    expect((await client.readInstallation()).suspended).toBe(true);
    expect(await refusal(acquire(client))).toMatchObject({
      code: "GITHUB_FORBIDDEN",
      message: expect.stringContaining("installation is suspended"),
      hint: expect.stringContaining("Lift the suspension"),
    });
    town.suspended = false;
    expect((await acquire(client)).value).toBe(town.minted[0]?.value);
  });

  test.each<[string, unknown, string]>([
    [
      "for more than it was asked for",
      { repositories: [{ full_name: "example/name" }, { full_name: "example/other" }] },
      "GITHUB_UNEXPECTED",
    ],
    ["for another repository", { repositories: [{ full_name: "example/other" }] }, "GITHUB_UNEXPECTED"],
    ["for another's of that name", { repositories: [{ full_name: "other/name" }] }, "GITHUB_UNEXPECTED"],
    ["for a repository of nobody's", { repositories: [{ name: "name" }] }, "GITHUB_UNEXPECTED"],
    ["for all, as far as anybody says", { repositories: undefined }, "GITHUB_UNEXPECTED"],
    ["with another permission", { permissions: { contents: "write", issues: "read" } }, "GITHUB_UNEXPECTED"],
    ["with a higher one", { permissions: { contents: "admin" } }, "GITHUB_UNEXPECTED"],
    ["with more than to read what all may know", { permissions: { metadata: "write" } }, "GITHUB_UNEXPECTED"],
    ["with nobody knows what permissions", { permissions: undefined }, "GITHUB_UNEXPECTED"],
    ["that lives for days", { expires_at: new Date(Date.now() + 25 * 3_600_000).toISOString() }, "GITHUB_UNEXPECTED"],
    ["that lives for ever", { expires_at: "+275760-09-13T00:00:00.000Z" }, "GITHUB_UNEXPECTED"],
    ["for nobody knows what", { repositories: "all" }, "GITHUB_UNEXPECTED"],
    ["for something", { repositories: [null] }, "GITHUB_UNEXPECTED"],
    ["that has two lines", { token: "a\nb" }, "GITHUB_UNEXPECTED"],
    ["that is empty", { token: "" }, "GITHUB_UNEXPECTED"],
    ["that is none", { token: 5 }, "GITHUB_UNEXPECTED"],
    ["that never ends", { expires_at: "never" }, "GITHUB_UNEXPECTED"],
    ["that has ended", { expires_at: "2020-01-01T00:00:00Z" }, "GITHUB_TOKEN_EXPIRED"],
  ])("a token %s is not used", async (_, change, code) => {
    const { town, client } = await open();
    const good = {
      token: "ghs_x",
      expires_at: new Date(Date.now() + 23 * 3_600_000).toISOString(),
      // Less than was asked for is not too much.
      permissions: { contents: "read", metadata: "read" },
      repositories: [{ full_name: "Example/Name" }],
    };
    town.troubles.push({ status: 201, body: { ...good, ...(change as object) } }, { status: 201, body: good });
    const error = await refusal(acquire(client));
    expect(error.code).toBe(code);
    expect(JSON.stringify([error.message, error.hint, error.details])).not.toContain("ghs_");
    expect((await acquire(client)).value).toBe("ghs_x");
  });

  test("an answer without end, which nobody reads", async () => {
    const { town, client } = await open();
    const app = { id: 4711, slug: "s", name: "n", owner: {} };
    const long = (length: number) => ({ status: 200, body: { ...app, more: "x".repeat(length) } });
    town.troubles.push(long(1_100_000), { status: 204 }, { ...long(1_100_000), status: 404 }, long(900_000));
    expect((await refusal(client.readApp())).code).toBe("GITHUB_UNEXPECTED");
    expect((await refusal(client.readApp())).code).toBe("GITHUB_UNEXPECTED");
    expect((await refusal(client.readApp())).code).toBe("GITHUB_NOT_FOUND");
    // The control: one that is long, but not that long.
    expect((await client.readApp()).id).toBe(4711);
  });

  test("an App or an installation that lacks something", async () => {
    const { town, client } = await open();
    const app = { id: 1, slug: "s", name: "n", owner: {} };
    for (const body of [{ ...app, id: "1" }, { ...app, slug: null }, null]) {
      town.troubles.push({ status: 200, body });
      expect((await refusal(client.readApp())).code).toBe("GITHUB_UNEXPECTED");
    }
    for (const owner of [{}, null, { slug: "firm" }]) {
      town.troubles.push({ status: 200, body: { ...app, owner } });
      expect((await client.readApp()).owner).toBe(owner && "slug" in owner ? "firm" : "?");
    }
    town.troubles.push({ status: 200, body: { id: 1, permissions: 5 } });
    expect((await refusal(client.readInstallation())).code).toBe("GITHUB_UNEXPECTED");
    const body = { id: 1, permissions: {}, repository_selection: "all", suspended_at: "2026-01-01T00:00:00Z" };
    town.troubles.push({ status: 200, body });
    expect(await client.readInstallation()).toMatchObject({ repositories: "all", suspended: true, account: "?" });
    town.troubles.push({ status: 200, body: { id: 1, permissions: {} } });
    expect((await client.readInstallation()).suspended).toBe(false);
  });
});

describe("clocks that differ", () => {
  test.each([2 * 3_600_000, -2 * 3_600_000])("by %i ms are made up for: by GitHub's own", async (aheadMs) => {
    const { town, client } = await open({ aheadMs });
    const { expiresAt } = await acquire(client);
    expect(town.asked).toHaveLength(2);
    // An hour from now by ours, whatever GitHub's says.
    expect(expiresAt.getTime() - Date.now()).toBeGreaterThan(3_590_000);
    expect(expiresAt.getTime() - Date.now()).toBeLessThan(3_610_000);
    const { clockAheadSeconds } = await client.check();
    expect(clockAheadSeconds).toBeGreaterThan(-aheadMs / 1_000 - 5);
    expect(clockAheadSeconds).toBeLessThan(-aheadMs / 1_000 + 5);
    // It is remembered.
    expect(town.asked).toHaveLength(4);
  });

  test("are named where a signature is refused all the same", async () => {
    const { town, client } = await open({ aheadMs: -600_000 });
    const trouble = { status: 401, body: { message: "Bad credentials" } };
    town.troubles.push(trouble, trouble, trouble);
    const error = await refusal(client.check());
    expect(error).toMatchObject({ code: "GITHUB_AUTHENTICATION", hint: expect.stringContaining("timedatectl") });
    // By GitHub's clock once, and no more than once.
    expect(town.troubles.splice(0)).toHaveLength(1);
    expect(error.message).toMatch(/this machine's clock is 1[01] min ahead of GitHub's \(HTTP 401/);
    town.aheadMs = 90_500;
    town.troubles.push(trouble, trouble);
    expect((await refusal(client.check())).message).toMatch(/this machine's clock is (?:8|9)\d s behind GitHub's/);
  });

  test.each([25 * 3_600_000, -25 * 3_600_000])(
    "by more than a day (%i ms) are not followed, but named",
    async (aheadMs) => {
      const { town, client } = await open({ aheadMs });
      const error = await refusal(acquire(client));
      expect(error).toMatchObject({ code: "GITHUB_AUTHENTICATION", hint: expect.stringContaining("timedatectl") });
      expect(error.message).toMatch(/this machine's clock is (?:25|26) h/);
      // Nothing was signed for another day. The control, by two hours, is above.
      expect(town.signatures).toHaveLength(1);
      expect(client.clockAheadSeconds).toBeGreaterThan(-aheadMs / 1_000 - 5);
      expect(client.clockAheadSeconds).toBeLessThan(-aheadMs / 1_000 + 5);
    },
  );

  test("are nobody's business where GitHub does not say the time", async () => {
    const { town, client } = await open();
    town.troubles.push({ status: 401, headers: { date: "tomorrow" }, body: { message: "Bad credentials" } });
    expect((await refusal(client.check())).message).not.toContain("clock");
    expect(client.clockAheadSeconds).toBeNull();
  });
});

describe("where GitHub cannot be reached", () => {
  const app = { appId: 1, installationId: 2, apiUrl: "" };

  test("that is told, with the reason, at once", async () => {
    const { town } = await open();
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const clock = hasty();
    const apiUrl = `http://127.0.0.1:${port}/api/v3`;
    const client = await openGitHubApp({ ...town.app, apiUrl }, { clock });
    expect(await refusal(client.check())).toMatchObject({
      code: "GITHUB_UNAVAILABLE",
      message: `127.0.0.1:${port} cannot be reached (ECONNREFUSED).`,
      details: { host: `127.0.0.1:${port}`, reason: "ECONNREFUSED" },
    });
    expect(clock.naps).toEqual([]);
    const nowhere = { ...town.app, apiUrl: "https://api.podbot.invalid" };
    expect((await refusal((await openGitHubApp(nowhere)).check())).message).toMatch(
      /^api\.podbot\.invalid (?:is a name that nobody knows \(ENOTFOUND\)|cannot be looked up \(EAI_AGAIN\))\.$/,
    );
  });

  test("because its certificate is not trusted, that is told, too", async () => {
    const { client } = await open({ tls: true });
    expect(await refusal(client.check())).toMatchObject({
      code: "GITHUB_UNAVAILABLE",
      message: expect.stringMatching(/^localhost:\d+ has a certificate that is not trusted here \([A-Z_]+\)\.$/),
      hint: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
    });
  });

  test("a signal ends the wait, and is what is thrown", async () => {
    const { town, client } = await open();
    const over = new AbortController();
    over.abort(new Error("over"));
    await expect(client.check(over.signal)).rejects.toThrow("over");
    expect(town.asked).toEqual([]);
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const apiUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/api/v3`;
    const late = new AbortController();
    const waiting = (await openGitHubApp({ ...town.app, ...app, apiUrl })).check(late.signal);
    late.abort(new Error("late"));
    await expect(waiting).rejects.toThrow("late");
  });
});
