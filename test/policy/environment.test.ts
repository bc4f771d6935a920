import { describe, expect, test } from "vitest";
import { passedByDefault, passedIntoImages, passes } from "../../src/policy/environment.ts";

describe("the variables that pass by default", () => {
  test("are these", () => {
    expect(passedByDefault).toEqual([
      ...passedIntoImages,
      ...["HOME", "USER", "LOGNAME", "SHELL", "PATH"],
      ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"],
      ...["GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE"],
      ...["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"],
      ...["CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "GOFLAGS", "JAVA_HOME", "NVM_DIR", "PNPM_HOME"],
      ...["BUN_INSTALL", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX"],
    ]);
  });

  test("are fewer in an image, which has a home, programs and certificates of its own", () => {
    expect(passedIntoImages).toEqual([
      ...["LANG", "LANGUAGE", "LC_*", "TZ"],
      ...["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "COLUMNS", "LINES"],
      ...["NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "EDITOR", "VISUAL", "PAGER", "CI", "NODE_ENV"],
      ...["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"],
    ]);
  });

  test.each([
    "AWS_SECRET_ACCESS_KEY",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "NPM_TOKEN",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "TMUX",
    "DOCKER_HOST",
    "KUBECONFIG",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "BASH_ENV",
    "HTTPS_PROXY",
  ])("do not include %s", (name) => {
    expect(passes(name, passedByDefault)).toBe(false);
  });
});

describe("a list of names and patterns", () => {
  test.each([
    ["LANG", ["LANG"], true],
    ["LANGUAGE", ["LANG"], false],
    ["lang", ["LANG"], false],
    ["LC_ALL", ["LC_*"], true],
    ["LC_", ["LC_*"], true],
    ["LC", ["LC_*"], false],
    ["XLC_ALL", ["LC_*"], false],
    ["ANY", ["*"], true],
    ["AxB", ["A*B"], false],
    ["B", ["A", "B"], true],
    ["A", [], false],
  ])("says of %s and %j: %s", (name, patterns, expected) => {
    expect(passes(name, patterns)).toBe(expected);
  });
});
