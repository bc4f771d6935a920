import { describe, expect, test } from "vitest";
import { type Asking, acpQuestions, codexQuestions } from "../../src/bridge/question.ts";
import type { Decision } from "../../src/decision.ts";

const once: Decision = { kind: "allow" };
const always: Decision = { kind: "allow", remember: true };
const deny: Decision = { kind: "deny", reason: "no" };
const cancel: Decision = { kind: "cancel" };

function asking(method: string): Asking {
  return (acpQuestions[method] ?? codexQuestions[method]) as Asking;
}

describe("a permission in ACP", () => {
  const { ask, reply } = asking("session/request_permission");
  const options = (...kinds: string[]) => ({ options: kinds.map((kind) => ({ optionId: `id of ${kind}`, kind })) });
  const all = options("reject_always", "reject_once", "allow_always", "allow_once");

  test("is asked for by its tool call, or by its own title", () => {
    const params = { sessionId: "s", toolCall: { title: "Run ls" }, options: [] };
    expect(ask(params)).toEqual({ kind: "permission", session: "s", title: "Run ls", detail: params });
    expect(ask({ title: "T", toolCall: { title: "Run ls" } })).toMatchObject({ session: null, title: "T" });
    expect(ask({ toolCall: null })).toMatchObject({ title: "" });
  });

  test.each([
    [all, once, "allow_once"],
    [all, always, "allow_always"],
    [all, deny, "reject_once"],
    [all, cancel, null],
    [options("allow_always"), once, null],
    [options("allow_once"), always, "allow_once"],
    [options("reject_always"), deny, "reject_always"],
    [options("allow_once"), deny, null],
    [options("other"), once, null],
    [{ options: [{ kind: "allow_once", optionId: 1 }, null, "x"] }, once, null],
    [{ options: "allow_once" }, once, null],
    [{}, once, null],
  ] as const)("with %j and %j is %s", (params, decision, kind) => {
    const outcome = kind === null ? { outcome: "cancelled" } : { outcome: "selected", optionId: `id of ${kind}` };
    expect(reply(params, decision)).toEqual({ outcome });
  });
});

describe("an approval in Codex", () => {
  test("is asked for by its command or its reason", () => {
    const { ask } = asking("item/commandExecution/requestApproval");
    expect(ask({ threadId: "t", command: "ls", reason: "r" })).toMatchObject({ session: "t", title: "ls" });
    expect(ask({ threadId: "t", command: null, reason: "r" })).toMatchObject({ title: "r" });
    const exec = asking("execCommandApproval");
    expect(exec.ask({ conversationId: "c", command: ["ls", "-l"] })).toMatchObject({ session: "c", title: "ls -l" });
    expect(exec.ask({ command: ["ls", { toString: 1 }, null, "-l"] })).toMatchObject({ title: "ls -l" });
    expect(exec.ask({ reason: "r" })).toMatchObject({ session: null, title: "r" });
    expect(asking("item/permissions/requestApproval").ask({ reason: "r" })).toMatchObject({ title: "r" });
  });

  test.each([
    ["item/commandExecution/requestApproval", once, "accept"],
    ["item/commandExecution/requestApproval", always, "acceptForSession"],
    ["item/commandExecution/requestApproval", deny, "decline"],
    ["item/fileChange/requestApproval", cancel, "cancel"],
    ["execCommandApproval", once, "approved"],
    ["execCommandApproval", always, "approved_for_session"],
    ["applyPatchApproval", deny, { denied: { rejection: "no" } }],
    ["applyPatchApproval", { kind: "deny" }, { denied: { rejection: "denied" } }],
    ["applyPatchApproval", cancel, "abort"],
  ] as const)("%s with %j is %j", (method, decision, answer) => {
    expect(asking(method).reply({}, decision)).toEqual({ decision: answer });
  });

  test("is remembered only where that may be answered", () => {
    const { reply } = asking("item/commandExecution/requestApproval");
    expect(reply({ availableDecisions: ["accept", "cancel"] }, always)).toEqual({ decision: "accept" });
    expect(reply({ availableDecisions: ["acceptForSession"] }, always)).toEqual({ decision: "acceptForSession" });
  });

  test("is answered by nothing that may not be answered", () => {
    const { reply } = asking("item/commandExecution/requestApproval");
    const only = (...availableDecisions: unknown[]) => ({ availableDecisions });
    expect(reply(only("acceptForSession", "cancel"), once)).toEqual({ decision: "cancel" });
    expect(reply(only({ acceptWithExecpolicyAmendment: {} }), always)).toEqual({ decision: "cancel" });
    expect(reply(only("accept", "cancel"), deny)).toEqual({ decision: "cancel" });
    expect(reply(only("accept", "decline"), deny)).toEqual({ decision: "decline" });
  });

  test("of permissions grants what was asked for, and nothing otherwise", () => {
    const { reply } = asking("item/permissions/requestApproval");
    const params = { permissions: { network: { enabled: true }, fileSystem: null } };
    expect(reply(params, once)).toEqual({ permissions: { network: { enabled: true } }, scope: "turn" });
    expect(reply(params, always)).toEqual({ permissions: { network: { enabled: true } }, scope: "session" });
    expect(reply(params, deny)).toEqual({ permissions: {}, scope: "turn" });
    expect(reply({ permissions: 1 }, once)).toEqual({ permissions: {}, scope: "turn" });
  });
});
