/** Where each provider of models takes its own keys. Names as agents that know several of them write them down. */
const hostsOf: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["api.anthropic.com", "platform.claude.com"],
  openai: ["api.openai.com", "auth.openai.com", "chatgpt.com"],
  google: ["generativelanguage.googleapis.com"],
  openrouter: ["openrouter.ai"],
  opencode: ["opencode.ai"],
  // Not its API for everything else, where other tokens of the owner's may belong.
  "github-copilot": ["api.githubcopilot.com"],
  dashscope: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
};

/** Names of variables begin otherwise than those of providers. */
const variables: Readonly<Record<string, string>> = {
  ANTHROPIC_API_KEY: "anthropic",
  DASHSCOPE_API_KEY: "dashscope",
  GEMINI_API_KEY: "google",
  GOOGLE_API_KEY: "google",
  OPENAI_API_KEY: "openai",
  OPENCODE_API_KEY: "opencode",
  OPENROUTER_API_KEY: "openrouter",
};

/** Agents that hold keys of several providers: which one's a key is, the first step of the way to it says. */
const several: readonly string[] = ["goose", "opencode"];

export interface Provider {
  readonly name: string;
  /** None, where nobody knows whose it is. */
  readonly hosts: readonly string[];
}

/** Whose token stands at the end of a way through a file, or in a variable; null where the agent has one provider. */
export function providerOf(agent: string, way: readonly string[]): Provider | null {
  const [name = ""] = way;
  // Beside its own provider's, it takes a key for what speaks as OpenAI does.
  const isOther = agent === "qwen" && name === "OPENAI_API_KEY";
  if (!several.includes(agent) && !isOther) return null;
  const provider = Object.hasOwn(variables, name) ? (variables[name] as string) : name;
  return { name: provider, hosts: Object.hasOwn(hostsOf, provider) ? (hostsOf[provider] as readonly string[]) : [] };
}
