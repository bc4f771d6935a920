import type { Decision, Question } from "../decision.ts";

type Members = Readonly<Record<string, unknown>>;

/** How a request becomes a question, and a decision the result that its agent waits for. */
export interface Asking {
  readonly ask: (params: Members) => Omit<Question, "method">;
  readonly reply: (params: Members, decision: Decision) => unknown;
}

export type Questions = Readonly<Record<string, Asking>>;

export const acpQuestions: Questions = {
  "session/request_permission": {
    ask: (params) => permission(params, params["sessionId"], [params["title"], members(params["toolCall"])["title"]]),
    reply: (params, decision) => {
      const optionId = chooseOption(params["options"], decision);
      return { outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId } };
    },
  },
};

/** Which kinds of option fit, the best first. What was allowed once is never remembered; a refusal may be. */
function optionKinds(decision: Decision): readonly string[] {
  if (decision.kind === "cancel") return [];
  if (decision.kind === "deny") return ["reject_once", "reject_always"];
  return decision.remember === true ? ["allow_always", "allow_once"] : ["allow_once"];
}

function chooseOption(options: unknown, decision: Decision): string | null {
  const offered = Array.isArray(options) ? options.map(members) : [];
  for (const kind of optionKinds(decision)) {
    const option = offered.find((one) => one["kind"] === kind && typeof one["optionId"] === "string");
    if (option !== undefined) return option["optionId"] as string;
  }
  return null;
}

const approval: Asking = {
  ask: (params) => permission(params, params["threadId"], [params["command"], params["reason"]]),
  reply: (params, decision) => {
    const available = params["availableDecisions"];
    const fitting = answersOf(decision).find((one) => !Array.isArray(available) || available.includes(one));
    return { decision: fitting ?? "cancel" };
  },
};

/** The best first, as with options. */
function answersOf(decision: Decision): readonly string[] {
  if (decision.kind === "cancel") return [];
  if (decision.kind === "deny") return ["decline"];
  return decision.remember === true ? ["acceptForSession", "accept"] : ["accept"];
}

/** As older clients know it. */
const review: Asking = {
  ask: (params) => permission(params, params["conversationId"], [words(params["command"]), params["reason"]]),
  reply: (_params, decision) => {
    if (decision.kind === "cancel") return { decision: "abort" };
    if (decision.kind === "deny") return { decision: { denied: { rejection: decision.reason ?? "denied" } } };
    return { decision: decision.remember === true ? "approved_for_session" : "approved" };
  },
};

export const codexQuestions: Questions = {
  "item/commandExecution/requestApproval": approval,
  "item/fileChange/requestApproval": approval,
  "item/permissions/requestApproval": {
    ask: (params) => permission(params, params["threadId"], [params["reason"]]),
    reply: (params, decision) => {
      const scope = decision.kind === "allow" && decision.remember === true ? "session" : "turn";
      return { permissions: decision.kind === "allow" ? granted(params["permissions"]) : {}, scope };
    },
  },
  execCommandApproval: review,
  applyPatchApproval: review,
};

/** What was asked for is granted; what was not asked for is null there, and must be missing here. */
function granted(permissions: unknown): Members {
  return Object.fromEntries(Object.entries(members(permissions)).filter(([, value]) => value !== null));
}

function permission(detail: Members, session: unknown, titles: readonly unknown[]): Omit<Question, "method"> {
  const title = titles.find((one) => typeof one === "string") as string | undefined;
  return { kind: "permission", session: typeof session === "string" ? session : null, title: title ?? "", detail };
}

function words(command: unknown): unknown {
  return Array.isArray(command) ? command.filter((word) => typeof word === "string").join(" ") : command;
}

export function members(value: unknown): Members {
  return typeof value === "object" && value !== null ? (value as Members) : {};
}
