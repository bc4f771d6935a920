import type { ImageAgent } from "./recipe.ts";

/** A step of the build that somebody waits for. */
export interface BuildStep {
  readonly number: number;
  readonly of: number;
  readonly title: string;
  /** Whether it was built before. */
  readonly cached: boolean;
}

export interface StepReader {
  /** Takes what the engine says, in whatever pieces. */
  hear(text: string): void;
  /** The last lines that were said, without those of the engine's own. */
  lastLines(): readonly string[];
  /** What was being built. */
  current(): string | null;
}

const keptLines = 15;

/** Understands what Podman and Docker say while they build. Whether a step was cached is said only after its name. */
export function makeStepReader(agents: readonly ImageAgent[], onStep: (step: BuildStep) => void): StepReader {
  let rest = "";
  let pending: BuildStep | null = null;
  let current: string | null = null;
  const kept: string[] = [];

  const settle = (cached: boolean) => {
    if (pending !== null) onStep({ ...pending, cached });
    pending = null;
  };
  const take = (line: string) => {
    const [, number, of, instruction] = /^STEP (\d+)\/(\d+) ?: (.*)$/i.exec(line) ?? [];
    if (instruction !== undefined) {
      settle(false);
      const title = titleOf(instruction, agents);
      current = title ?? instruction;
      pending = title === null ? null : { number: Number(number), of: Number(of), title, cached: false };
    } else if (/^ ?--+> Using cache/.test(line)) settle(true);
    else if (line.trim() !== "" && !/^ ?--+>/.test(line)) {
      settle(false);
      kept.push(line.trimEnd());
      if (kept.length > keptLines) kept.shift();
    }
  };
  return {
    hear: (text) => {
      const lines = (rest + text).split(/\r?\n|\r/);
      rest = lines.pop() as string;
      for (const line of lines) take(line);
    },
    lastLines: () => (rest.trim() === "" ? [...kept] : [...kept, rest.trim()]),
    current: () => current,
  };
}

/** Null for what takes no time. */
function titleOf(instruction: string, agents: readonly ImageAgent[]): string | null {
  const script = /^RUN sh \S*\/(install-\w+|add-\w+)/.exec(instruction)?.[1];
  if (script === "install-packages") return "Debian packages";
  if (script === "install-npm") return "npm";
  if (script !== "install-agent") return null;
  const agent = agents.find(({ package: { name, version } }) => instruction.includes(` ${name}@${version} `));
  return agent === undefined ? null : `${agent.title} ${agent.package.version}`;
}
