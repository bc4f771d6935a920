import { describe, expect, test } from "vitest";
import { GitHubError } from "../../src/errors.ts";
import { hostsOf } from "../../src/github/hosts.ts";
import { appOf, permissionsOf } from "../../src/github/settings.ts";
import { failure } from "../failure.ts";

describe("an API's address says where repositories are cloned from", () => {
  test.each([
    ["https://api.github.com", "https://github.com", "github.com", "api.github.com"],
    ["https://api.github.com/", "https://github.com", "github.com", "api.github.com"],
    ["https://api.example.ghe.com", "https://example.ghe.com", "example.ghe.com", "api.example.ghe.com"],
    ["https://ghe.example/api/v3", "https://ghe.example", "ghe.example", "ghe.example"],
    ["https://ghe.example:8443/api/v3//", "https://ghe.example:8443", "ghe.example:8443", "ghe.example:8443"],
    ["https://GHE.example:443/api/v3", "https://ghe.example", "ghe.example", "ghe.example"],
    ["http://127.0.0.1:8080/api/v3", "http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080"],
    ["http://[::1]:8080/api/v3", "http://[::1]:8080", "[::1]:8080", "[::1]:8080"],
    ["http://localhost/api/v3", "http://localhost", "localhost", "localhost"],
  ])("%s: %s", (apiUrl, cloneUrl, cloneHost, apiHost) => {
    const hosts = hostsOf(apiUrl);
    expect(hosts).toMatchObject({ cloneUrl, cloneHost, apiHost });
    expect(hosts.apiUrl).not.toMatch(/\/$/);
    expect(hostsOf(hosts.apiUrl)).toEqual(hosts);
  });

  test.each([
    ["api.github.com", "github.api_url is not an address."],
    ["", "github.api_url is not an address."],
    ["http://api.github.com", "github.api_url is not https."],
    ["http://127.0.0.1.evil.example/api/v3", "github.api_url is not https."],
    ["http://localhost.evil.example/api/v3", "github.api_url is not https."],
    ["ftp://localhost/api/v3", "github.api_url is not https."],
    ["https://me:secret@ghe.example/api/v3", "github.api_url holds a name or a password."],
    ["https://me@ghe.example/api/v3", "github.api_url holds a name or a password."],
    ["https://ghe.example/api/v3?x", "github.api_url has something behind its path."],
    ["https://ghe.example/api/v3#x", "github.api_url has something behind its path."],
    ["https://ghe.example", "github.api_url is not the address of an API."],
    ["https://github.com/api", "github.api_url is not the address of an API."],
  ])("but not %s", (apiUrl, message) => {
    const error = failure(GitHubError, () => hostsOf(apiUrl));
    expect(error).toMatchObject({ code: "GITHUB_CONFIG", message });
    expect(`${error.hint}`).toContain("https://");
    expect(JSON.stringify({ ...error })).not.toContain("secret");
  });
});

describe("the configuration names an App", () => {
  const settings = {
    app_id: 1,
    installation_id: 2,
    private_key_path: "/k.pem",
    api_url: "https://api.github.com/",
  };

  test("with a key anywhere", () => {
    const app = { appId: 1, installationId: 2, privateKeyPath: "/k.pem", apiUrl: "https://api.github.com" };
    expect(appOf(settings, "/home/me")).toEqual(app);
    expect(appOf({ ...settings, private_key_path: "~/a/k.pem" }, "/home/me").privateKeyPath).toBe("/home/me/a/k.pem");
  });

  test("and all that it lacks is told at once", () => {
    const { api_url } = settings;
    expect(failure(GitHubError, () => appOf({ api_url }, "/"))).toMatchObject({
      code: "GITHUB_CONFIG",
      message: "The configuration lacks github.app_id, github.installation_id, github.private_key_path.",
      details: { keys: ["github.app_id", "github.installation_id", "github.private_key_path"] },
    });
    expect(failure(GitHubError, () => appOf({ api_url, app_id: 1, private_key_path: "/k" }, "/")).message).toBe(
      "The configuration lacks github.installation_id.",
    );
    expect(failure(GitHubError, () => appOf({ api_url, app_id: 1, installation_id: 1 }, "/")).message).toBe(
      "The configuration lacks github.private_key_path.",
    );
  });

  test("but not with a key that lies now here, now there", () => {
    expect(failure(GitHubError, () => appOf({ ...settings, private_key_path: "k.pem" }, "/home/me"))).toMatchObject({
      code: "GITHUB_CONFIG",
      message: "github.private_key_path is not an absolute path.",
    });
  });

  test("and permissions, without those that were taken away", () => {
    expect(permissionsOf({ contents: "write", metadata: "read", issues: "none" })).toEqual({
      contents: "write",
      metadata: "read",
    });
  });

  test("of which one must be left: to ask GitHub for none is to ask for all", () => {
    expect(failure(GitHubError, () => permissionsOf({ contents: "none", metadata: "none" }))).toMatchObject({
      code: "GITHUB_CONFIG",
      details: { keys: ["github.permissions"] },
    });
    expect(permissionsOf({ contents: "none", metadata: "read" })).toEqual({ metadata: "read" });
  });
});
