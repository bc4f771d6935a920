// @module-tag security
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { packMaskedCredentials } from "../../src/credentials/masked.ts";
import { maskContent } from "../../src/credentials/masked-content.ts";
import { maskedFiles } from "../../src/credentials/masked-files.ts";
import { FilesystemError } from "../../src/errors.ts";
import { failure } from "../failure.ts";
import { Home } from "./home.ts";

const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

/** Tokens in capitals, so that a test sees what was masked; what is called short has no surrogate. */
const mask = (real: string) => (real === "short" ? null : real.toUpperCase());

function pack(home: Home, names: readonly string[]) {
  return packMaskedCredentials({ home: home.path, names, target: "/root", owner, mask });
}

/** What is in a home after an agent's files were masked. */
async function unpacked(home: Home, names: readonly string[]) {
  const { paths, archive, warnings } = pack(home, names);
  const target = await home.unpack(archive as Readable);
  return { paths, warnings, read: (name: string) => readFileSync(join(target, name), "utf8"), target };
}

function credentialsOf(name: string): readonly string[] {
  return agents.find((agent) => agent.name === name)?.credentials ?? [];
}

/** What a known file becomes. */
function masked(path: string, content: string): string | null {
  const file = maskedFiles.find((one) => one.path === path);
  if (file === undefined) throw new Error(`${path} is not known.`);
  return maskContent(file, content, mask);
}

describe("of an agent's login", () => {
  test("Claude Code gets surrogates of its tokens, what it reads beside them, and nothing of other servers", async () => {
    const home = new Home();
    const login = { accessToken: "sk-a", refreshToken: "sk-r", expiresAt: 1, scopes: ["x"], subscriptionType: "max" };
    home.file(
      ".claude/.credentials.json",
      JSON.stringify({ claudeAiOauth: login, mcpOAuth: { s: { accessToken: "t" } } }),
    );
    home.file(".claude/settings.json", JSON.stringify({ env: { KEY: "secret" } }));
    home.file(
      ".claude.json",
      JSON.stringify({
        ...{ hasCompletedOnboarding: true, numStartups: 3, userID: "u", oauthAccount: { emailAddress: "a@b" } },
        ...{ primaryApiKey: "sk-p", mcpServers: { x: { type: "stdio", env: { KEY: "secret" } } } },
        ...{ customApiKeyResponses: { approved: ["secret"], rejected: [] }, tips: {} },
      }),
    );
    const { paths, warnings, read, target } = await unpacked(home, credentialsOf("claude"));
    const all = ["/root/.claude/.credentials.json", "/root/.claude/settings.json", "/root/.claude.json"];
    expect(paths).toEqual(all);
    expect(JSON.parse(read(".claude/.credentials.json"))).toEqual({
      claudeAiOauth: { ...login, accessToken: "SK-A", refreshToken: "SK-R" },
    });
    expect(JSON.parse(read(".claude.json"))).toEqual({
      ...{ hasCompletedOnboarding: true, numStartups: 3, userID: "u", oauthAccount: { emailAddress: "a@b" } },
      ...{ primaryApiKey: "SK-P", customApiKeyResponses: { rejected: [] }, tips: {} },
    });
    expect(readdirSync(join(target, ".claude"))).toEqual([".credentials.json", "settings.json"]);
    expect(read(".claude/settings.json")).toBe("{}\n");
    expect(statSync(join(target, ".claude/.credentials.json")).mode & 0o777).toBe(0o600);
    expect(warnings).toEqual([expect.stringContaining(".claude is copied only in part (.claude/.credentials.json,")]);
  });

  test.each([".claude/settings.json", ".claude/settings.local.json"])(
    "Claude Code gets %s without keys, and what else it is told to do",
    (path) => {
      const env = { ANTHROPIC_API_KEY: "sk-a", AWS_SECRET_ACCESS_KEY: "s", GH_TOKEN: "t", DB_PASSWORD: "p", LANG: "C" };
      const content = {
        ...{ env: { ...env, HTTPS_PROXY: "http://u:p@proxy/", OTEL_EXPORTER_OTLP_HEADERS: "authorization=x" } },
        ...{ apiKeyHelper: "echo sk-b", model: "opus", permissions: { deny: ["Read(./x)"] }, unknown: "secret" },
        ...{ hooks: { Stop: [{ hooks: [{ type: "command", command: "true" }] }] } },
      };
      expect(JSON.parse(masked(path, JSON.stringify(content)) as string)).toEqual({
        ...{ env: { ANTHROPIC_API_KEY: "SK-A", LANG: "C" }, model: "opus", permissions: { deny: ["Read(./x)"] } },
        hooks: content.hooks,
      });
    },
  );

  test("Codex gets surrogates of its key and its three tokens", () => {
    const tokens = { access_token: "a", refresh_token: "r", id_token: "i", account_id: "acc", other: "secret" };
    const content = JSON.stringify({ OPENAI_API_KEY: null, tokens, last_refresh: "2026", agent_identity: "secret" });
    expect(JSON.parse(masked(".codex/auth.json", content) as string)).toEqual({
      OPENAI_API_KEY: null,
      tokens: { access_token: "A", refresh_token: "R", id_token: "I", account_id: "acc" },
      last_refresh: "2026",
    });
    expect(JSON.parse(masked(".codex/auth.json", '{"OPENAI_API_KEY":"sk"}') as string)).toEqual({
      OPENAI_API_KEY: "SK",
    });
  });

  test("OpenCode gets those of all its providers", () => {
    const content = {
      anthropic: { type: "oauth", access: "a", refresh: "r", expires: 1 },
      x: { type: "api", key: "k" },
    };
    expect(JSON.parse(masked(".local/share/opencode/auth.json", JSON.stringify(content)) as string)).toEqual({
      anthropic: { type: "oauth", access: "A", refresh: "R", expires: 1 },
      x: { type: "api", key: "K" },
    });
  });

  test.each([".gemini/oauth_creds.json", ".qwen/oauth_creds.json"])("what is in %s is masked", (path) => {
    const content = { access_token: "a", refresh_token: "r", token_type: "Bearer", expiry_date: 5 };
    expect(JSON.parse(masked(path, JSON.stringify(content)) as string)).toEqual({
      ...{ access_token: "A", refresh_token: "R", token_type: "Bearer", expiry_date: 5 },
    });
  });

  test("variables in files are masked, kept or left out, line by line", () => {
    const content = [
      ...["# a comment", "GEMINI_API_KEY=abc", 'export GOOGLE_API_KEY = "d e f"', "GOOGLE_CLOUD_PROJECT='mine'"],
      ...["OTHER=secret", "GEMINI_API_KEY=two words", 'GOOGLE_CLOUD_PROJECT="a\\"b"', "", "nonsense"],
    ];
    expect(masked(".gemini/.env", content.join("\r\n"))).toBe(
      'GEMINI_API_KEY=ABC\nGOOGLE_API_KEY = "D E F"\nGOOGLE_CLOUD_PROJECT="mine"\n',
    );
    expect(masked(".config/goose/secrets.yaml", "OPENAI_API_KEY: abc\nOTHER: secret\nx:\n  y: z\n")).toBe(
      "OPENAI_API_KEY: ABC\n",
    );
    expect(masked(".config/goose/config.yaml", "GOOSE_MODEL: m\nextensions:\n  a:\n    env: s\n")).toBe(
      "GOOSE_MODEL: m\n",
    );
  });

  test("a field is left out that no surrogate can stand in for, and an empty one stays", () => {
    expect(JSON.parse(masked(".codex/auth.json", '{"OPENAI_API_KEY":"short","auth_mode":"x"}') as string)).toEqual({
      auth_mode: "x",
    });
    expect(JSON.parse(masked(".codex/auth.json", '{"OPENAI_API_KEY":"","x":[]}') as string)).toEqual({
      ...{ OPENAI_API_KEY: "", x: [] },
    });
    expect(masked(".codex/auth.json", '{"x":"secret"}')).toBe("{}\n");
  });

  test.each(["", "nonsense", "null", '"text"', "7"])(
    "nothing is copied of a file that is not what it should be: %j",
    (text) => {
      expect(masked(".codex/auth.json", text)).toBeNull();
      const home = new Home();
      home.file(".codex/auth.json", text);
      const { paths, archive, warnings } = pack(home, [".codex"]);
      expect({ paths, archive }).toEqual({ paths: [], archive: null });
      expect(warnings).toEqual([
        expect.stringContaining("in part"),
        expect.stringContaining(".codex/auth.json is not"),
      ]);
    },
  );

  test("what is not known is not copied, and that is said; what is not there is not spoken of", () => {
    const home = new Home();
    home.file(".config/opencode/opencode.json", '{"provider":{"x":{"options":{"apiKey":"secret"}}}}');
    const { paths, archive, warnings } = pack(home, credentialsOf("opencode"));
    expect({ paths, archive }).toEqual({ paths: [], archive: null });
    expect(warnings).toEqual([expect.stringContaining(".config/opencode/opencode.json is not copied")]);
  });
});

describe("a file with a login", () => {
  test("may lie behind a link that the owner made for the directory", async () => {
    const home = new Home();
    home.file("dotfiles/codex/auth.json", '{"OPENAI_API_KEY":"abc"}');
    symlinkSync("dotfiles/codex", join(home.path, ".codex"));
    const { read } = await unpacked(home, [".codex"]);
    expect(JSON.parse(read(".codex/auth.json"))).toEqual({ OPENAI_API_KEY: "ABC" });
  });

  test("is no link that an agent could have made", () => {
    const home = new Home();
    home.file("other", '{"OPENAI_API_KEY":"abc"}');
    mkdirSync(join(home.path, ".codex"));
    symlinkSync("../other", join(home.path, ".codex/auth.json"));
    expect(failure(FilesystemError, () => pack(home, [".codex"])).message).toContain("it is a link");
  });

  test("is no directory, and not larger than any login", () => {
    const home = new Home();
    mkdirSync(join(home.path, ".codex/auth.json"), { recursive: true });
    expect(pack(home, [".codex"]).archive).toBeNull();
    renameSync(join(home.path, ".codex"), join(home.path, ".away"));
    home.file(".codex/auth.json", `{"auth_mode":"${"x".repeat(5 * 1024 * 1024)}"}`);
    expect(pack(home, [".codex"]).archive).toBeNull();
  });

  test("is not open any more when it was packed", () => {
    const home = new Home();
    home.file(".codex/auth.json", '{"OPENAI_API_KEY":"abc"}');
    pack(home, [".codex"]);
    expect(home.opened()).toEqual([]);
  });
});
