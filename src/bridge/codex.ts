import { codexQuestions } from "./question.ts";
import { cutPromise, isForm, type Protocol, type Reach, type Uses } from "./rules.ts";
import { decodeString } from "./scanner.ts";
import { cut, type Leaf, type Shape } from "./shape.ts";

/** This member must be there. */
const setFalse: Leaf = (json) => (json === "true" ? "false" : undefined);

/** All that the app server may ask of its client without the client acting for it: somebody is asked, or told the time. */
export const codexRequests: readonly string[] = [
  "item/commandExecution/requestApproval",
  "item/fileChange/requestApproval",
  "item/permissions/requestApproval",
  "item/tool/requestUserInput",
  "mcpServer/elicitation/request",
  "execCommandApproval",
  "applyPatchApproval",
  "currentTime/read",
];

const formModes: ReadonlySet<unknown> = new Set(["form", "openai/form", "openaiForm"]);

/** A client opens these by itself, and its machine has programs for many schemes; a browser is one that expects harm. */
const cutUnlessWeb: Leaf = (json) => {
  if (json === "null" || (json.startsWith('"') && /^https:\/\/[!-~]+$/i.test(decodeString(json)))) return undefined;
  return cut;
};

const pages: Shape = { authUrl: cutUnlessWeb, verificationUrl: cutUnlessWeb, authorizationUrl: cutUnlessWeb };

const asks =
  (method: string): Uses =>
  (words) =>
    words.join("/") === method;

/**
 * What the app server could do on the client's machine, by the schema that Codex 0.166 writes about itself. What the
 * client asks the server to run or to write (`command/exec`, `process/*`, `fs/*`, `environment/add`) happens
 * inside, and passes.
 */
const codexReaches: readonly Reach[] = [
  {
    name: "dynamic tools",
    why: "the client runs its own tools with arguments of the agent's choice",
    grantedBy: ["allow_all"],
    uses: asks("item/tool/call"),
    params: { dynamicTools: cutPromise },
  },
  {
    name: "attestation",
    why: "the client vouches for its own machine, and the agent is not there",
    grantedBy: ["allow_all"],
    uses: asks("attestation/generate"),
    initialize: { capabilities: { requestAttestation: setFalse } },
  },
  {
    name: "tokens",
    why: "the client hands out an access token that its machine has, and asks nobody",
    grantedBy: ["allow_all"],
    uses: asks("account/chatgptauthtokens/refresh"),
  },
  {
    name: "pages",
    why: "the client opens an address of the agent's choice, or has the user verified by its machine",
    grantedBy: ["allow_all"],
    uses: (words) => words.includes("elicitation"),
    excuses: (params) => isForm(params, formModes),
    initialize: { capabilities: { extensions: { "openai/userVerification": cutPromise } } },
    told: pages,
    result: pages,
  },
];

export const codex: Protocol = {
  reaches: codexReaches,
  requests: codexRequests,
  extensionPrefix: null,
  questions: codexQuestions,
  cancel: { method: "turn/interrupt", session: "threadId" },
  paths: ({ path }, direction) => {
    const paths = { "*": path };
    const place = { cwd: { "": path, ...paths }, runtimeWorkspaceRoots: paths };
    const root = { "*": { "": path, path } };
    if (direction === "to-agent") {
      return {
        params: {
          ...place,
          ...{ path, sourcePath: path, destinationPath: path, savePath: path },
          ...{ cwds: paths, extraRoots: paths, roots: root },
          input: { "*": { path } },
          environments: { "*": place },
          sandboxPolicy: { writableRoots: paths },
        },
        result: {},
      };
    }
    const item = {
      ...{ cwd: path, path, savedPath: path },
      content: { "*": { path } },
      changes: { "*": { path, kind: { move_path: path } } },
      commandActions: { "*": { path } },
    };
    const turn = { items: { "*": item } };
    const thread = { ...place, path, turns: { "*": turn }, environments: { "*": place } };
    return {
      params: {
        ...{ cwd: path, grantRoot: path, changedPaths: paths, path },
        ...{ item, turn, thread, threadSettings: place },
        changes: item.changes,
        commandActions: item.commandActions,
        files: { "*": { root: path } },
      },
      result: {
        ...place,
        ...{ path, savedPath: path, thread, turn },
        sandbox: { writableRoots: paths },
        data: { "*": { ...thread, items: turn.items } },
        files: { "*": { root: path } },
      },
    };
  },
};
