// @module-tag security
import { describe, expect, test } from "vitest";
import { codexRequests } from "../../src/bridge/codex.ts";
import { acpPolicy, codexPolicy, inspect, pass } from "./inspect.ts";

const request = (method: string, params: unknown = {}) => ({ id: 7, method, params });

describe("what the client offers to Codex", () => {
  test("has no tools that it would run itself", () => {
    const start = request("thread/start", { cwd: "/w", dynamicTools: [{ name: "x", inputSchema: {} }], model: null });
    const { message, events } = pass("to-agent", codexPolicy, start);
    expect(message).toEqual(request("thread/start", { cwd: "/w", model: null }));
    expect(events).toEqual([{ kind: "capabilities-masked", direction: "to-agent", names: ["dynamicTools"] }]);
    expect(pass("to-agent", { ...codexPolicy, delegation: "allow_all" }, start).message).toEqual(start);
  });

  test("does not vouch for its machine, but says whether it would", () => {
    const initialize = (requestAttestation: unknown) =>
      request("initialize", { clientInfo: {}, capabilities: { experimentalApi: true, requestAttestation } });
    expect(pass("to-agent", codexPolicy, initialize(true))).toMatchObject({
      message: initialize(false),
      events: [{ names: ["capabilities.requestAttestation"] }],
    });
    expect(pass("to-agent", codexPolicy, initialize(false))).toMatchObject({ message: initialize(false), events: [] });
  });

  test("does not verify its user for the agent", () => {
    const initialize = (extensions: unknown) => request("initialize", { clientInfo: {}, capabilities: { extensions } });
    const offered = initialize({ "openai/userVerification": {}, "openai/form": {} });
    expect(pass("to-agent", codexPolicy, offered)).toMatchObject({
      message: initialize({ "openai/form": {} }),
      events: [{ names: ["capabilities.extensions.openai/userVerification"] }],
    });
    expect(pass("to-agent", { ...codexPolicy, delegation: "allow_all" }, offered).message).toEqual(offered);
  });

  test.each([
    "command/exec",
    "process/spawn",
    "fs/writeFile",
    "config/value/write",
    "thread/shellCommand",
    "environment/add",
    "initialized",
  ])("stays where it is about the inside: %s", (method) => {
    const line = `${JSON.stringify(request(method, { command: ["ls"], path: "/w" }))}\n`;
    expect(inspect("to-agent", codexPolicy, line)).toMatchObject({ out: line, events: [] });
  });
});

describe("what Codex asks for", () => {
  test.each(codexRequests)("%s passes", (method) => {
    expect(pass("to-client", codexPolicy, request(method)).message).toEqual(request(method));
  });

  test.each([
    "account/chatgptAuthTokens/refresh",
    "item/tool/call",
    "attestation/generate",
    "Item/Tool/Call",
    "fs/readFile",
    "something/new",
  ])("%s is denied", (method) => {
    const { out, answers, events } = pass("to-client", codexPolicy, request(method));
    const data = { method, reason: "podbot_capability_policy" };
    expect(out).toBe("");
    expect(answers).toEqual([
      { id: 7, error: { code: -32001, message: "Method blocked by Podbot capability policy", data } },
    ]);
    expect(events).toEqual([{ kind: "request-denied", method, id: 7 }]);
    expect(pass("to-client", { ...codexPolicy, delegation: "allow_all" }, request(method)).message).not.toBeNull();
  });

  test.each(["authUrl", "auth_url", "verificationUrl", "authorizationUrl"])(
    "has its client open pages alone: %s",
    (name) => {
      const messages = (url: unknown) => [
        { id: 3, result: { type: "chatgpt", [name]: url, loginId: "x" } },
        { method: "gateway/oauth/changed", params: { providerId: "x", [name]: url } },
      ];
      for (const url of [
        "vscode://evil/run",
        "file:///etc/passwd",
        "http://example.com/",
        "javascript:alert(1)",
        " vscode://x",
        "https:evil",
        "https://",
        "https://example.com/\nvscode://x",
        "ŨŴŴŰų://x",
        ["https://example.com/"],
        { href: "vscode://x" },
        1,
      ]) {
        for (const message of messages(url)) {
          const found = pass("to-client", codexPolicy, message);
          expect(JSON.stringify(found.message)).not.toContain(name);
          expect(found.events).toMatchObject([{ kind: "capabilities-masked", direction: "to-client" }]);
          const open = { ...codexPolicy, delegation: "allow_all" } as const;
          expect(pass("to-client", open, message).message).toEqual(message);
        }
      }
      for (const url of ["https://auth.openai.com/x?y=z#w", "HTTPS://example.com", null]) {
        for (const message of messages(url)) {
          expect(pass("to-client", codexPolicy, message)).toMatchObject({ message, events: [] });
        }
      }
    },
  );

  test("in a notification passes unless it would act", () => {
    for (const method of ["fs/changed", "turn/started", "something/new"]) {
      expect(pass("to-client", codexPolicy, { method, params: {} }).message).not.toBeNull();
    }
    expect(pass("to-client", codexPolicy, { method: "item/tool/call", params: {} })).toMatchObject({
      message: null,
      events: [{ kind: "notification-dropped" }],
    });
  });

  test("is a form, but no page and no verification of the user", () => {
    const method = "mcpServer/elicitation/request";
    for (const mode of ["form", "openai/form", "openaiForm"]) {
      expect(pass("to-client", codexPolicy, request(method, { mode, message: "?" })).message).not.toBeNull();
    }
    for (const params of [
      { mode: "url", url: "x" },
      { mode: "openai/userVerification" },
      { mode: "form", url: "x" },
      [],
    ]) {
      expect(pass("to-client", codexPolicy, request(method, params)).message).toBeNull();
    }
  });

  test("passes with the version of JSON-RPC as well, and its answers have none", () => {
    const line = '{"jsonrpc":"2.0","id":1,"method":"currentTime/read","params":{}}\n';
    expect(inspect("to-client", codexPolicy, line).out).toBe(line);
    expect(inspect("to-client", acpPolicy, '{"id":1,"method":"currentTime/read"}\n').out).toBe("");
  });
});

describe("paths of Codex", () => {
  const policy = { ...codexPolicy, paths: { outside: "/srv/work", inside: "/w" } };

  const toAgent = (root: string) =>
    request("turn/start", {
      cwd: root,
      path: `${root}/f`,
      sourcePath: `${root}/f`,
      destinationPath: `${root}/g`,
      runtimeWorkspaceRoots: [root, "/other"],
      cwds: [root],
      roots: [root, { path: root }],
      input: [
        { type: "localImage", path: `${root}/i.png` },
        { type: "text", text: "about /srv/work and /w" },
      ],
      environments: [{ environmentId: "e", cwd: root, runtimeWorkspaceRoots: [root] }],
      sandboxPolicy: { type: "workspaceWrite", writableRoots: [root] },
    });

  const item = (root: string) => ({
    type: "commandExecution",
    command: "ls /w",
    cwd: root,
    path: `${root}/i.png`,
    content: [{ type: "mention", path: `${root}/a` }],
    changes: [{ path: `${root}/a`, kind: { type: "update", move_path: `${root}/b` }, diff: "--- /w/a" }],
    commandActions: [{ type: "read", path: `${root}/a` }],
    aggregatedOutput: "/w/a",
  });
  const thread = (root: string) => ({ id: "t", cwd: root, path: "/home/x", turns: [{ items: [item(root)] }] });

  test("to the agent are its own", () => {
    expect(pass("to-agent", policy, toAgent("/srv/work")).message).toEqual(toAgent("/w"));
    const list = request("thread/list", { cwd: ["/srv/work"] });
    expect(pass("to-agent", policy, list).message.params).toEqual({ cwd: ["/w"] });
  });

  test("to the client are its own", () => {
    const params = (root: string) => ({
      cwd: root,
      grantRoot: root,
      changedPaths: [`${root}/a`],
      item: item(root),
      turn: { items: [item(root)] },
      thread: thread(root),
      threadSettings: { cwd: root },
      changes: item(root).changes,
      files: [{ root, path: "a" }],
      delta: "/w/a",
    });
    const started = (root: string) => ({ method: "item/started", params: params(root) });
    expect(pass("to-client", policy, started("/w")).message).toEqual(started("/srv/work"));
    const result = (root: string) => ({
      id: 1,
      result: {
        cwd: root,
        runtimeWorkspaceRoots: [root],
        thread: thread(root),
        data: [thread(root)],
        files: [{ root }],
      },
    });
    expect(pass("to-client", policy, result("/w")).message).toEqual(result("/srv/work"));
  });
});
