import type { Agent } from "../agents/agent.ts";
import { knownAgent } from "../agents/table.ts";
import type { Config } from "../config/types.ts";
import { type MaskedFile, tokenHeaders } from "../credentials/masked-files.ts";
import { providerOf } from "../credentials/providers.ts";
import { ConfigError } from "../errors.ts";
import type { SecretBinding } from "../policy/network.ts";
import type { SecretPool } from "./secrets.ts";

/** Gives the surrogate of a token in a file with credentials; null where there can be none. */
export type MaskTokens = (real: string, file: MaskedFile, way: readonly string[]) => string | null;

/**
 * How tokens in files with credentials are masked, each for the hosts of the provider whose they are; null where the files
 * are handed in as they are.
 */
export function maskTokens({ creds }: Pick<Config, "creds">, secrets: SecretPool): MaskTokens | null {
  if (creds.mode !== "masked") return null;
  return (real, { agent, path }, way) => {
    try {
      return secrets.mask(real, bindingOf(`~/${path}`, knownAgent(agent) as Agent, way));
    } catch (error) {
      // Too short to be a token: the field is left out.
      if (error instanceof ConfigError && error.code === "SECRET_UNMASKABLE") return null;
      throw error;
    }
  };
}

/** What a variable of the caller's holds inside that the agent takes its key from; null where it is none of those. */
export function maskKey(
  { agent, creds }: Pick<Config, "agent" | "creds">,
  secrets: SecretPool,
  name: string,
  value: string,
): string | null {
  const known = knownAgent(agent.kind);
  if (creds.mode !== "masked" || known === undefined || !known.keys.includes(name)) return null;
  return /(?:KEY|TOKEN)$/.test(name) && value !== "" ? secrets.mask(value, bindingOf(name, known, [name])) : null;
}

/** What belongs to one provider is not for another, though one agent knows them both. */
function bindingOf(name: string, { name: agent, hosts }: Agent, way: readonly string[]): SecretBinding {
  const headers = tokenHeaders[agent] ?? [];
  const provider = providerOf(agent, way);
  if (provider === null) return { name, hosts, headers, paths: null };
  return { name: `${name} (${provider.name})`, hosts: provider.hosts, headers, paths: null };
}
