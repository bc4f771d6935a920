import { agentImageName } from "./engines/agent-archive.ts";
import { agentArchive, type TestEngine } from "./engines/engine.ts";

/**
 * The image for agents, as `podbot image build` makes it, with Claude Code, Codex, OpenCode and Goose. Where the engine
 * does not have it yet it is loaded, in some twenty seconds; where nobody has built it, it is built first.
 */
export async function agentImage(engine: TestEngine): Promise<string> {
  if (engine.cli("image", "inspect", agentImageName).status !== 0) {
    const { status, stderr } = engine.cli("load", "--quiet", "--input", await agentArchive());
    if (status !== 0) throw new Error(stderr);
  }
  return agentImageName;
}
