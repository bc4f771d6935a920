import { fold } from "./message.ts";
import { acpQuestions } from "./question.ts";
import { cutPromise, everyMember, isForm, type Protocol, type Reach, readValue, type Uses } from "./rules.ts";
import { cut, type Leaf, type Shape } from "./shape.ts";

/** A login that the agent carries out by itself when it is asked to. Any other has the client run or set something. */
const loginMembers: ReadonlySet<string> = new Set(["id", "methodid", "name", "description"]);
/** What such a login may say about itself: that the client may send a key, or name a gateway. */
const loginMeta: ReadonlySet<string> = new Set(["apikey", "gateway"]);

const cutLogin: Leaf = (json) => {
  const isAgents = everyMember(readValue(json), (name, value) => {
    if (name === "type") return value === "agent";
    if (name === "meta") return everyMember(value, (key) => loginMeta.has(key));
    return loginMembers.has(name);
  });
  return isAgents ? undefined : cut;
};

const logins: Shape = { authMethods: { "**": cutLogin } };

const cutTunnel: Leaf = (json) => {
  const isReal = everyMember(readValue(json), (name, value) => {
    return name !== "type" || (typeof value === "string" && fold(value) !== "acp");
  });
  return isReal ? undefined : cut;
};

/** Version 1 of the protocol calls the members one thing, version 2 another. */
const offered = (capabilities: Shape): Shape => ({ clientCapabilities: capabilities, capabilities });

const asks =
  (first: string): Uses =>
  (words) =>
    words[0] === first;

const formModes: ReadonlySet<unknown> = new Set(["form"]);

/** All that an agent may ask of its client without the client acting for it. A draft had forms at the last place. */
export const acpRequests: readonly string[] = [
  "session/request_permission",
  "elicitation/create",
  "session/elicitation",
];

/** What an agent could do on the client's machine, by the schema of ACP 1 and 2 with all that is unstable in it. */
export const acpReaches: readonly Reach[] = [
  {
    name: "files",
    why: "the client reads and writes files of its machine for the agent",
    grantedBy: ["allow_fs", "allow_all"],
    // The first version had no prefix.
    uses: (words) => words[0] === "fs" || words.join("").endsWith("textfile"),
    initialize: offered({ fs: cutPromise }),
  },
  {
    name: "terminals",
    why: "the client runs commands on its machine for the agent",
    grantedBy: ["allow_terminal", "allow_all"],
    uses: asks("terminal"),
    initialize: offered({ terminal: cutPromise }),
  },
  {
    name: "terminal logins",
    why: "the client runs a command with arguments and variables of the agent's choice in a terminal",
    grantedBy: ["allow_terminal", "allow_all"],
    uses: () => false,
    initialize: offered({ auth: { terminal: cutPromise }, _meta: { "terminal-auth": cutPromise } }),
    told: logins,
    result: logins,
    error: { data: logins },
  },
  {
    name: "tunnels to MCP servers",
    why: "a server that the client keeps on its machine does what the agent asks it to",
    grantedBy: ["allow_all"],
    uses: asks("mcp"),
    params: { mcpServers: { "**": cutTunnel } },
    result: {
      agentCapabilities: { mcpCapabilities: { acp: cutPromise } },
      capabilities: { session: { mcp: { acp: cutPromise } } },
    },
  },
  {
    name: "other agents",
    why: "a client that chains agents passes on what is asked of the next one, which has no wall",
    grantedBy: ["allow_all"],
    uses: asks("proxy"),
  },
  {
    name: "pages",
    why: "the client opens an address of the agent's choice, in the browser of its machine and past the network's rules",
    grantedBy: ["allow_all"],
    // Drafts had it at other places.
    uses: (words) => words.includes("elicitation"),
    excuses: (params) => isForm(params, formModes),
    initialize: offered({ elicitation: { url: cutPromise } }),
    error: { data: { elicitations: cutPromise } },
  },
];

export const acp: Protocol = {
  reaches: acpReaches,
  requests: acpRequests,
  extensionPrefix: "_",
  questions: acpQuestions,
  cancel: { method: "session/cancel", session: "sessionId" },
  paths: ({ path, uri }, direction) => {
    const block = { uri, resource: { uri } };
    const file = { path, oldPath: path };
    const toolContent = { ...block, ...file, content: block, changes: { "*": file } };
    const tool = { content: { ...block, "*": toolContent }, locations: { "*": file } };
    const place = { cwd: path, additionalDirectories: { "*": path } };
    if (direction === "to-agent") {
      const params = { ...place, prompt: { "*": block }, systemPrompt: { content: { "*": block } } };
      return { params, result: {} };
    }
    return {
      params: {
        ...place,
        ...file,
        toolCall: tool,
        subject: { cwd: path, toolCall: tool },
        update: {
          ...place,
          ...tool,
          summary: { "*": block },
          plan: { uri },
          _meta: { terminal_info: { cwd: path } },
        },
      },
      result: { sessions: { "*": place } },
    };
  },
};
