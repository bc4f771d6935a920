import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { thisHost } from "../machine/host.ts";

/** The image that `podbot image build` makes, and that known agents run in where no other is named. */
export const ownImage = "localhost/podbot:latest";

/** Notes what is in it, so that an agent that is not installed here is looked for there, and no engine asked in vain. */
export function noteOwnImage(state: string, agents: readonly string[]): void {
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const draft = `${noteIn(state)}.${thisHost().pid}`;
  writeFileSync(draft, `${JSON.stringify({ agents })}\n`, { mode: 0o600 });
  renameSync(draft, noteIn(state));
}

/** The agents that were in it when it was built. Whether it is still there, its engine says. */
export function agentsInOwnImage(state: string): readonly unknown[] {
  try {
    const { agents } = JSON.parse(readFileSync(noteIn(state), "utf8")) as { readonly agents: unknown };
    return Array.isArray(agents) ? agents : [];
  } catch {
    return [];
  }
}

function noteIn(state: string): string {
  return join(state, "image.json");
}
