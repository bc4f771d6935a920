import { startSession } from "../../src/keeper/kept-session.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import type { SessionStep } from "../../src/keeper/session.ts";

/** A session from the library, in which somebody is killed at one step. */
export interface Errand<Victim extends string> {
  readonly step: SessionStep | null;
  readonly victim: Victim;
  readonly detached: boolean;
  readonly command: readonly [string, ...string[]];
}

/** Every step of a session, with everybody who is there to be killed. */
export function casesOf<Victim extends string>(everybody: Readonly<Record<SessionStep, readonly Victim[]>>) {
  return [false, true].flatMap((detached) =>
    Object.entries(everybody).flatMap(([step, victims]) =>
      victims.map((victim) => ({ step: step as SessionStep, victim, detached })),
    ),
  );
}

/** In a process of its own, whose argument it is. The status is the agent's, or 125 with the reason. */
export async function runErrand<Victim extends string>(find: (who: Victim, program: string) => number): Promise<void> {
  const { step, victim, detached, command } = JSON.parse(process.argv[2] as string) as Errand<Victim>;
  const planned = await planSandbox({ command, cwd: process.cwd(), env: { ...process.env }, session: true });
  const session = await startSession(planned, {
    detached,
    onStep: (now) => {
      if (now === step) process.kill(find(victim, command[0]), "SIGKILL");
    },
  });
  try {
    const agent = await session.run();
    agent.stdin.end();
    agent.stdout.pipe(process.stdout);
    agent.stderr.pipe(process.stderr);
    const { code } = await agent.exited;
    process.exitCode = code;
  } catch (error) {
    process.stderr.write(`${(error as { code?: string }).code}: ${(error as Error).message}\n`);
    process.exitCode = 125;
  } finally {
    await session.stop();
  }
}
