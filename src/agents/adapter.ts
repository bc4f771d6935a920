import type { Agent, AgentPackage } from "./agent.ts";

/** A program of its own that makes an agent a server. */
export interface Adapter {
  /** Its executable's name on PATH, and what images call it. */
  readonly name: string;
  readonly title: string;
  readonly program: string;
  readonly version: readonly string[];
  readonly package: AgentPackage;
  /** The agent's own program, which need not come a second time, and the variable that says where it lies. */
  readonly uses: { readonly variable: string; readonly program: string } | null;
}

/** What must be installed beside an agent so that it speaks the Agent Client Protocol; null where it does by itself. */
export function adapterOf({ title, program, acp }: Agent): Adapter | null {
  if (acp.package === null) return null;
  const { agentVariable: variable } = acp;
  return {
    name: acp.program,
    title: `${title} for editors`,
    program: acp.program,
    version: ["--version"],
    package: acp.package,
    uses: variable === null ? null : { variable, program },
  };
}
