// @module-tag security
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { acpReaches, acpRequests } from "../../src/bridge/acp.ts";
import type { Delegation } from "../../src/bridge/policy.ts";
import { wordsOf } from "../../src/bridge/rules.ts";
import { acpPolicy, inspect, pass } from "./inspect.ts";

const delegations: readonly Delegation[] = ["disabled", "allow_fs", "allow_terminal", "allow_all"];

const offers = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  auth: { terminal: true, _meta: { gateway: true } },
  _meta: { "terminal-auth": true, terminal_output: true },
  elicitation: { form: {}, url: {} },
  session: { configOptions: { boolean: {} } },
};

const initialize = (params: unknown) => ({ jsonrpc: "2.0", id: 0, method: "initialize", params });
const request = (method: string, params: unknown = {}) => ({ jsonrpc: "2.0", id: 7, method, params });
const result = (value: unknown) => ({ jsonrpc: "2.0", id: 0, result: value });

describe("what the client offers", () => {
  test.each(["clientCapabilities", "capabilities"])("loses what would act on its machine, in %s", (name) => {
    const { message, events } = pass("to-agent", acpPolicy, initialize({ protocolVersion: 1, [name]: offers }));
    expect(message).toEqual(
      initialize({
        protocolVersion: 1,
        [name]: {
          auth: { _meta: { gateway: true } },
          _meta: { terminal_output: true },
          elicitation: { form: {} },
          session: { configOptions: { boolean: {} } },
        },
      }),
    );
    const names = ["fs", "terminal", "auth.terminal", "_meta.terminal-auth", "elicitation.url"];
    const masked = { kind: "capabilities-masked", direction: "to-agent", names: names.map((one) => `${name}.${one}`) };
    expect(events).toEqual([masked]);
  });

  test.each([
    ["disabled", []],
    ["allow_fs", ["fs"]],
    ["allow_terminal", ["terminal", "auth.terminal", "_meta.terminal-auth"]],
    ["allow_all", ["fs", "terminal", "auth.terminal", "_meta.terminal-auth", "elicitation.url"]],
  ] as const)("keeps with %s: %j", (delegation, kept) => {
    const { events } = pass("to-agent", { ...acpPolicy, delegation }, initialize({ clientCapabilities: offers }));
    const names = events.flatMap((event) => (event.kind === "capabilities-masked" ? event.names : []));
    const all = ["fs", "terminal", "auth.terminal", "_meta.terminal-auth", "elicitation.url"];
    expect(names).toEqual(
      all.filter((name) => !kept.some((one) => one === name)).map((name) => `clientCapabilities.${name}`),
    );
  });

  test("stays byte for byte where nothing in it promises anything", () => {
    const line =
      '{"jsonrpc": "2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"fs":false,"terminal":null}}}\r\n';
    expect(inspect("to-agent", acpPolicy, line)).toMatchObject({ out: line, events: [] });
  });

  test("loses it each time, in any spelling, and however much is said before", () => {
    const padding = "x".repeat(200_000);
    const line = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"_meta":{"p":"${padding}"},"client\\u0043apabilities":{"FS":{},"Terminal":true}}}\r\n`;
    const { out } = inspect("to-agent", acpPolicy, line + line);
    const masked = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"_meta":{"p":"${padding}"},"client\\u0043apabilities":{}}}\r\n`;
    expect(out).toBe(masked + masked);
  });

  test("is masked for an agent in a chain as well, and only where it is an offer", () => {
    const params = { clientCapabilities: { terminal: true } };
    expect(pass("to-agent", acpPolicy, request("proxy/initialize", params)).message.params).toEqual({
      clientCapabilities: {},
    });
    expect(pass("to-agent", acpPolicy, request("_x/describe", params)).message.params).toEqual(params);
  });

  test("has no such servers in disguise", () => {
    const stdio = { name: "ĢĊ", command: "/bin/a", args: [], env: [] };
    for (const type of ["acp", "ACP", "a_c-p ", { toString: 1 }, ["acp"], null, 1]) {
      const servers = (mcpServers: unknown) => request("session/new", { mcpServers });
      expect(pass("to-agent", acpPolicy, servers([{ type }, stdio])).message).toEqual(servers([stdio]));
      expect(pass("to-agent", acpPolicy, servers({ a: { type }, b: stdio })).message).toEqual(servers({ b: stdio }));
    }
  });

  test("has no servers that would be reached through itself", () => {
    const stdio = { name: "a", command: "/bin/a", args: [], env: [] };
    const http = { type: "http", name: "b", url: "http://127.0.0.1/", headers: [] };
    const tunnel = { type: "acp", name: "c", serverId: "1" };
    for (const method of ["session/new", "session/load", "session/resume", "session/fork"]) {
      const servers = (mcpServers: unknown[]) => request(method, { cwd: "/w", mcpServers });
      const { message, events } = pass("to-agent", acpPolicy, servers([tunnel, stdio, tunnel, http]));
      expect(message).toEqual(servers([stdio, http]));
      expect(events).toMatchObject([{ names: ["mcpServers"] }]);
      expect(pass("to-agent", { ...acpPolicy, delegation: "allow_all" }, servers([tunnel])).message).toEqual(
        servers([tunnel]),
      );
    }
  });
});

describe("what the agent offers", () => {
  const agents = [
    { id: "a", name: "A", description: null },
    { methodId: "b", type: "agent", name: "B", _meta: { "api-key": { provider: "x" } } },
  ];

  test.each([
    ["a terminal", { id: "t", name: "T", type: "terminal", args: ["--login"], env: { LD_PRELOAD: "/w/x.so" } }],
    ["a terminal in another case", { id: "t", name: "T", Type: "Terminal" }],
    ["both types", { id: "t", name: "T", type: "agent", TYPE: "terminal" }],
    ["an unknown type", { id: "t", name: "T", type: "env_var", vars: [] }],
    [
      "a command beside the protocol",
      { id: "t", name: "T", _meta: { "terminal-auth": { command: "/bin/sh", args: [] } } },
    ],
    ["the same in another spelling", { id: "t", name: "T", _META: { terminal_auth: { command: "/bin/sh" } } }],
    ["an unknown hint", { id: "t", name: "T", _meta: { "run-this": "/bin/sh" } }],
    ["arguments without a type", { id: "t", name: "T", args: ["x"] }],
  ])("is no login by %s", (_what, login) => {
    for (const version of ["agentCapabilities", "capabilities"]) {
      const { message, events } = pass(
        "to-client",
        acpPolicy,
        result({ [version]: {}, authMethods: [login, ...agents, login] }),
      );
      expect(message).toEqual(result({ [version]: {}, authMethods: agents }));
      expect(events).toMatchObject([{ kind: "capabilities-masked", direction: "to-client" }]);
    }
    const error = { code: -32000, message: "log in", data: { authMethods: [login] } };
    const failed = pass("to-client", acpPolicy, { jsonrpc: "2.0", id: 1, error });
    expect(failed.message.error.data).toEqual({ authMethods: [] });
    const control = pass("to-client", { ...acpPolicy, delegation: "allow_terminal" }, result({ authMethods: [login] }));
    expect(control).toMatchObject({ message: result({ authMethods: [login] }), events: [] });
  });

  const terminal = { id: "t", name: "T", type: "terminal" };

  test("is no login that other letters hide: of each, the lower half is a quote, a colon, a brace …", () => {
    const command = { command: "sh", args: ["-c", "true"] };
    const metas = [
      { gatewayĢĺŻĢx: 1, "terminal-auth": command, y: "zĢŽĬĢapikeyĢĺĢ" },
      { gateway: "Ģ,Ģterminal-authĢ", "terminal-auth": command },
      { Ģ: 1 },
      { "ｔerminal-auth": command },
    ];
    for (const _meta of metas) {
      const hidden = pass("to-client", acpPolicy, result({ authMethods: [{ id: "x", name: "x", _meta }, ...agents] }));
      expect(hidden.message).toEqual(result({ authMethods: agents }));
      expect(hidden.events).toMatchObject([{ kind: "capabilities-masked", names: ["authMethods"] }]);
    }
    // What is harmless in any script stays, and none of it is taken for something else.
    for (const text of ["Ċ", "ĢŽĬ", "登录", "😀", "\u{2028}"]) {
      const honest = { id: text, name: text, description: text, _meta: { gateway: text } };
      const line = `${JSON.stringify(result({ authMethods: [honest] }))}\n`;
      expect(inspect("to-client", acpPolicy, line)).toMatchObject({ out: line, events: [] });
    }
  });

  test("is no login in a list within the list, in an object, or beyond what is looked at", () => {
    for (const authMethods of [[[terminal]], { 0: terminal }, { a: [terminal] }, [{ id: "x".repeat(1 << 20) }]]) {
      const { message } = pass("to-client", acpPolicy, result({ authMethods }));
      expect(Object.keys(message.result.authMethods)).toEqual([]);
      const control = pass("to-client", { ...acpPolicy, delegation: "allow_terminal" }, result({ authMethods }));
      expect(control.message).toEqual(result({ authMethods }));
    }
  });

  test("is no login that it tells of later", () => {
    const told = (authMethods: unknown) => ({ jsonrpc: "2.0", method: "auth/status_update", params: { authMethods } });
    expect(pass("to-client", acpPolicy, told([terminal, ...agents])).message).toEqual(told(agents));
    const open = { ...acpPolicy, delegation: "allow_terminal" } as const;
    expect(pass("to-client", open, told([terminal])).message).toEqual(told([terminal]));
  });

  test("is told of in few words, whatever it is called and however much there is of it", () => {
    const many = result({ [`auth${"_".repeat(1_000_000)}Methods`]: Array(100_000).fill(terminal) });
    const { events, message } = pass("to-client", acpPolicy, many);
    expect(Object.values(message.result)).toEqual([[]]);
    expect(events).toEqual([{ kind: "capabilities-masked", direction: "to-client", names: ["authMethods"] }]);
  });

  test("is what it is where it acts by itself", () => {
    const line = `${JSON.stringify(result({ authMethods: [...agents, 1, null] }))}\n`;
    expect(inspect("to-client", acpPolicy, line)).toMatchObject({ out: line, events: [] });
  });

  test("is no tunnel", () => {
    const first = result({ agentCapabilities: { mcpCapabilities: { acp: true, http: true } } });
    expect(pass("to-client", acpPolicy, first).message.result.agentCapabilities.mcpCapabilities).toEqual({
      http: true,
    });
    const second = result({ capabilities: { session: { mcp: { acp: {}, stdio: {} } } } });
    expect(pass("to-client", acpPolicy, second).message.result.capabilities.session.mcp).toEqual({ stdio: {} });
    expect(pass("to-client", { ...acpPolicy, delegation: "allow_all" }, second).message).toEqual(second);
  });
});

describe("what the agent asks for", () => {
  const closed: Readonly<Record<string, readonly Delegation[]>> = {
    "fs/read_text_file": ["allow_fs", "allow_all"],
    "fs/write_text_file": ["allow_fs", "allow_all"],
    "fs/": ["allow_fs", "allow_all"],
    "FS/Read_Text_File": ["allow_fs", "allow_all"],
    "_fs/read_text_file": ["allow_fs", "allow_all"],
    "/fs.read": ["allow_fs", "allow_all"],
    readTextFile: ["allow_fs", "allow_all"],
    writeTextFile: ["allow_fs", "allow_all"],
    "terminal/create": ["allow_terminal", "allow_all"],
    "terminal.create": ["allow_terminal", "allow_all"],
    "_mcp/connect": ["allow_all"],
    "_proxy/successor/request": ["allow_all"],
    "terminal/anything": ["allow_terminal", "allow_all"],
    "mcp/message": ["allow_all"],
    "mcp/connect": ["allow_all"],
    "proxy/successor": ["allow_all"],
  };

  test.each(Object.entries(closed))("%s: only with %j", (method, granted) => {
    for (const delegation of delegations) {
      const policy = { ...acpPolicy, delegation };
      const asked = pass("to-client", policy, request(method));
      const told = pass("to-client", policy, { jsonrpc: "2.0", method, params: {} });
      if (granted.includes(delegation)) {
        expect(asked).toMatchObject({ message: request(method), answers: [], events: [] });
        expect(told.message).not.toBeNull();
      } else {
        const data = { method, reason: "podbot_capability_policy" };
        const error = { code: -32001, message: "Method blocked by Podbot ACP capability policy", data };
        expect(asked).toMatchObject({ out: "", events: [{ kind: "request-denied", method, id: 7 }] });
        expect(asked.answers).toEqual([{ jsonrpc: "2.0", id: 7, error }]);
        expect(told).toMatchObject({ out: "", answers: [], events: [{ kind: "notification-dropped", method }] });
      }
    }
  });

  test.each(["session/request_permission", "_x/fs", "_zed/ask", "_"])("%s passes", (method) => {
    expect(pass("to-client", acpPolicy, request(method))).toMatchObject({ message: request(method), events: [] });
  });

  test.each([
    ...["terminalCreate", "createTerminal", "x/../terminal/create", "x.fs/read", "fsx/read", "terminals/x", "craft/x"],
    ...["window/showDocument", "workspace/executeCommand", "initialize", "authenticate", "session/update", "$/x", "$/"],
    ...["Session/Request_Permission", "session/request_permission/", "-_x"],
  ])("%s passes as a notification, but as a request only with allow_all", (method) => {
    const told = { jsonrpc: "2.0", method, params: {} };
    expect(pass("to-client", acpPolicy, told).message).toEqual(told);
    for (const delegation of delegations) {
      const { message, events } = pass("to-client", { ...acpPolicy, delegation }, request(method));
      if (delegation === "allow_all") expect(message).toEqual(request(method));
      else expect({ message, events }).toMatchObject({ message: null, events: [{ kind: "request-denied", method }] });
    }
  });

  test("is judged alike after methods without end", () => {
    const made = Array.from({ length: 400 }, (_, index) => [request(`_x/${index}`), request(`fs/${index}`)]).flat();
    const lines = [...made, ...made].map((message) => `${JSON.stringify(message)}\n`);
    const { out } = inspect("to-client", acpPolicy, lines.join(""));
    expect(out).toBe(lines.filter((line) => line.includes("_x/")).join(""));
  });

  test("is a form, but no page", () => {
    const form = { mode: "form", message: "ĢĊ?", requestedSchema: { properties: { url: { type: "string" } } } };
    for (const params of [form, { message: "?" }, { ...form, toolCall: null, scope: { id: 1 } }]) {
      expect(pass("to-client", acpPolicy, request("elicitation/create", params)).message).not.toBeNull();
    }
    for (const params of [
      { mode: "url", url: "https://example.com/" },
      { mode: "URL" },
      { mode: "form", Mode: "url" },
      { ...form, url: "https://example.com/" },
      { mode: 1 },
      { ...form, request: { mode: "url", url: "https://example.com/" } },
      { ...form, requests: [{ url: "https://example.com/" }] },
      [{ mode: "url", url: "https://example.com/" }],
      "https://example.com/",
      { ...form, message: "x".repeat(1 << 20) },
    ]) {
      expect(pass("to-client", acpPolicy, request("elicitation/create", params)).message).toBeNull();
      const control = pass(
        "to-client",
        { ...acpPolicy, delegation: "allow_all" },
        request("elicitation/create", params),
      );
      expect(control.message).not.toBeNull();
    }
    expect(
      pass("to-client", acpPolicy, { jsonrpc: "2.0", id: 1, method: "elicitation/create" }).message,
    ).not.toBeNull();
  });
});

describe("a page", () => {
  const page = { mode: "url", url: "https://example.com/", elicitationId: "1" };

  test.each([
    "elicitation/create",
    "session/elicitation",
    "session/elicitation/create",
    "elicitation/request",
    "_elicitation/create",
    "Session.Elicitation",
  ])("is asked for in vain by %s", (method) => {
    expect(pass("to-client", acpPolicy, request(method, page)).message).toBeNull();
    const form = { mode: "form", message: "?", requestedSchema: {} };
    const mayAsk = method.startsWith("_") || acpRequests.includes(method);
    expect(pass("to-client", acpPolicy, request(method, form)).message !== null).toBe(mayAsk);
    expect(pass("to-client", { ...acpPolicy, delegation: "allow_all" }, request(method, page)).message).not.toBeNull();
  });

  test("is not asked for by a failure either", () => {
    const failure = (data: unknown) => ({ jsonrpc: "2.0", id: 1, error: { code: -32042, message: "?", data } });
    const asked = failure({ elicitations: [page], kept: 1 });
    expect(pass("to-client", acpPolicy, asked).message).toEqual(failure({ kept: 1 }));
    expect(pass("to-client", { ...acpPolicy, delegation: "allow_all" }, asked).message).toEqual(asked);
  });

  test("may be told of when it is done", () => {
    const told = { jsonrpc: "2.0", method: "elicitation/complete", params: { elicitationId: "1" } };
    expect(pass("to-client", acpPolicy, told).message).toEqual(told);
  });
});

test("ids come back as they were spelled", () => {
  for (const id of ["0", "-3", '"x"', '"\\u0061\\""', '"ü😀"', "null"]) {
    const events: string[] = [];
    const line = `{"jsonrpc":"2.0","id":${id},"method":"fs/read_text_file"}\n`;
    const { answers } = inspect("to-client", acpPolicy, line);
    events.push(JSON.stringify(answers[0].id));
    expect(events).toEqual([JSON.stringify(JSON.parse(id))]);
  }
});

describe("every method by which an agent speaks to a client, in the schema of the protocol,", () => {
  /** Whatever is not here and not closed is new, and has to be looked at. */
  const harmless = [
    "$/cancel_request",
    "auth/status_update",
    "elicitation/complete",
    "elicitation/create",
    "session/request_permission",
    "session/update",
  ];

  test.each(["v1/schema.json", "v1/schema.unstable.json", "v2/schema.json", "v2/schema.unstable.json"])(
    "is either closed or known to be harmless: %s",
    async (file) => {
      const url = new URL(`../../node_modules/@agentclientprotocol/sdk/schema/${file}`, import.meta.url);
      const { $defs } = JSON.parse(await readFile(url, "utf8")) as {
        $defs: Record<string, { "x-side"?: string; "x-method"?: string }>;
      };
      const methods = new Set<string>();
      for (const { "x-side": side, "x-method": method } of Object.values($defs)) {
        if (method !== undefined && side !== "agent") methods.add(method);
      }
      const unclosed = [...methods].filter((method) => !acpReaches.some(({ uses }) => uses(wordsOf(method))));
      expect(methods.size).toBeGreaterThan(4);
      expect(unclosed.filter((method) => !harmless.includes(method))).toEqual([]);
    },
  );

  test("and every capability and login that one of the versions has, is known", async () => {
    const members = async (file: string, name: string) => {
      const url = new URL(`../../node_modules/@agentclientprotocol/sdk/schema/${file}`, import.meta.url);
      const { $defs } = JSON.parse(await readFile(url, "utf8"));
      return Object.keys($defs[name].properties).sort();
    };
    expect(await members("v1/schema.unstable.json", "ClientCapabilities")).toEqual([
      "_meta",
      "auth",
      "elicitation",
      "fs",
      "plan",
      "session",
      "subagents",
      "terminal",
    ]);
    expect(await members("v2/schema.unstable.json", "ClientCapabilities")).toEqual(["_meta", "auth", "elicitation"]);
    expect(await members("v1/schema.unstable.json", "AuthMethodAgent")).toEqual(["_meta", "description", "id", "name"]);
    expect(await members("v2/schema.unstable.json", "AuthMethodAgent")).toEqual([
      "_meta",
      "description",
      "methodId",
      "name",
    ]);
    expect(await members("v1/schema.unstable.json", "McpCapabilities")).toEqual(["_meta", "acp", "http", "sse"]);
    expect(await members("v2/schema.unstable.json", "McpCapabilities")).toEqual(["_meta", "acp", "http", "stdio"]);
  });
});

describe("paths", () => {
  const policy = { ...acpPolicy, paths: { outside: "/srv/work", inside: "/w" } };
  const block = (root: string) => [
    { type: "text", text: `see ${root}/a and file://${root}/b` },
    { type: "resource_link", name: "a", uri: `file://${root}/a` },
    { type: "resource", resource: { uri: `file://${root}/b`, text: `${root}/c` } },
  ];

  /** The same message with the roots of both sides; free text says the same on both. */
  const toAgent = (root: string) =>
    request("session/new", {
      cwd: root,
      additionalDirectories: [`${root}/x`, "/elsewhere"],
      prompt: block(root),
      systemPrompt: { content: block(root) },
      mcpServers: [{ name: "a", command: `${root}/server` }],
    });
  const toClient = (root: string) => ({
    jsonrpc: "2.0",
    method: "session/update",
    params: {
      sessionId: "s",
      path: `${root}/p`,
      cwd: root,
      update: {
        sessionUpdate: "tool_call",
        title: "t",
        cwd: `${root}/sub`,
        content: [
          { type: "diff", path: `${root}/a`, oldText: null, newText: "n" },
          { type: "diff", changes: [{ operation: "move", oldPath: `${root}/a`, path: `${root}/b` }] },
          { type: "content", content: block(root)[1] },
          ...block(root),
        ],
        locations: [{ path: `${root}/a`, line: 1 }, { path: "/etc/passwd" }],
        rawInput: { path: "/w/raw" },
        plan: { type: "file", uri: `file://${root}/plan` },
        summary: block(root),
        _meta: { terminal_info: { terminal_id: "1", cwd: root } },
      },
      toolCall: { content: [{ type: "diff", path: `${root}/a` }], locations: [{ path: `${root}/a` }] },
      subject: { type: "command", command: "ls /w", cwd: root, toolCall: { locations: [{ path: `${root}/a` }] } },
    },
  });
  const freed = (message: unknown, from: string, to: string) =>
    JSON.parse(
      JSON.stringify(message)
        .replaceAll(`see ${from}/a and file://${from}/b`, `see ${to}/a and file://${to}/b`)
        .replaceAll(`"text":"${from}/c"`, `"text":"${to}/c"`)
        .replaceAll(`"command":"${from}/server"`, `"command":"${to}/server"`),
    );

  test("to the agent are those that it sees, and free text stays", () => {
    const { message, events } = pass("to-agent", policy, toAgent("/srv/work"));
    expect(message).toEqual(freed(toAgent("/w"), "/w", "/srv/work"));
    expect(events).toEqual([]);
  });

  test("to the client are those that it sees, and free text stays", () => {
    const { message, events } = pass("to-client", policy, toClient("/w"));
    expect(message).toEqual(freed(toClient("/srv/work"), "/srv/work", "/w"));
    expect(events).toEqual([]);
    const chunk = { jsonrpc: "2.0", method: "session/update", params: { update: { content: block("/w")[1] } } };
    expect(pass("to-client", policy, chunk).message.params.update.content.uri).toBe("file:///srv/work/a");
    const list = result({ sessions: [{ sessionId: "s", cwd: "/w", additionalDirectories: ["/w/x"] }] });
    const seen = [{ sessionId: "s", cwd: "/srv/work", additionalDirectories: ["/srv/work/x"] }];
    expect(pass("to-client", policy, list).message.result.sessions).toEqual(seen);
  });

  test("are untouched where both see the same", () => {
    const line = `${JSON.stringify(toClient("/w"))}\n`;
    expect(inspect("to-client", acpPolicy, line).out).toBe(line);
  });

  test("are translated together with what is masked", () => {
    const both = initialize({ cwd: "/srv/work", clientCapabilities: { terminal: true } });
    const { message, events } = pass("to-agent", policy, both);
    expect(message.params).toEqual({ cwd: "/w", clientCapabilities: {} });
    expect(events).toMatchObject([{ names: ["clientCapabilities.terminal"] }]);
  });
});
