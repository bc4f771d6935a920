// @module-tag security
import { describe, expect, test } from "vitest";
import { credentialStores, machineSecrets, relocatedStores } from "../../src/policy/credentials.ts";
import { isGlob } from "../../src/policy/glob.ts";
import { expandPath } from "../../src/policy/paths.ts";

describe("credential stores", () => {
  test("are plain paths below the home, each named once", () => {
    for (const store of credentialStores) {
      expect(isGlob(store), store).toBe(false);
      expect(expandPath(`~/${store}`, { home: "/h", cwd: "/c" })).toBe(`/h/${store}`);
    }
    expect(new Set(credentialStores).size).toBe(credentialStores.length);
  });

  test.each([
    [".ssh", "keys"],
    [".gnupg", "keys"],
    [".password-store", "passwords"],
    [".local/share/keyrings", "the desktop's keyring"],
    [".aws", "Amazon"],
    [".azure", "Microsoft"],
    [".config/gcloud", "Google"],
    [".kube", "clusters"],
    [".config/gh", "GitHub"],
    [".git-credentials", "git's plain store"],
    [".netrc", "curl, git and others"],
    [".npmrc", "npm"],
    [".pypirc", "PyPI"],
    [".cargo/credentials.toml", "cargo"],
    [".docker", "registries"],
    [".pgpass", "PostgreSQL"],
    [".mozilla", "a browser"],
    [".config/google-chrome", "a browser"],
    [".bash_history", "what was typed"],
    [".local/state/bash", "what was typed"],
    [".Xauthority", "the display"],
    [".config/Code/User/globalStorage", "an editor's extensions"],
    [".config/helm", "registries of charts"],
    [".bundle", "registries of gems"],
    [".qwen/oauth_creds.json", "an agent"],
  ])("count %s in: %s", (store) => {
    expect(credentialStores).toContain(store);
  });
});

describe("stores that a variable puts elsewhere", () => {
  test.each([
    ["AWS_SHARED_CREDENTIALS_FILE", [""]],
    ["KUBECONFIG", [""]],
    ["GNUPGHOME", [""]],
    ["NPM_CONFIG_USERCONFIG", [""]],
    ["CARGO_HOME", ["/credentials", "/credentials.toml"]],
  ])("are known by %s: %j", (name, places) => {
    expect(relocatedStores[name]).toEqual(places);
  });

  test.each([
    ["XDG_CONFIG_HOME", ".config/", "/gh"],
    ["XDG_DATA_HOME", ".local/share/", "/keyrings"],
    ["XDG_STATE_HOME", ".local/state/", "/nvim/shada"],
  ])("below %s are all those that lie below %s, as %s does", (name, prefix, example) => {
    const places = relocatedStores[name] ?? [];
    expect(places).toContain(example);
    expect(places.map((place) => prefix + place.slice(1))).toEqual(
      credentialStores.filter((store) => store.startsWith(prefix)),
    );
  });
});

describe("secrets of the machine", () => {
  test("are absolute paths outside any home, each named once", () => {
    for (const path of machineSecrets) expect(path).toMatch(/^\/(etc|var)\//);
    expect(new Set(machineSecrets).size).toBe(machineSecrets.length);
  });

  test.each(["/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private"])("count %s in", (path) => {
    expect(machineSecrets).toContain(path);
  });
});
