import type { Server } from "node:net";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { agentArchive } from "./agent-archive.ts";
import { listen, type Wish } from "./control.ts";
import { docker } from "./docker.ts";
import { execute } from "./execute.ts";
import { gvisorHostPodman, gvisorPodman, podman, rootlessPodman } from "./podman.ts";
import type { EngineName } from "./record.ts";
import { deadRuns, erase, newRun } from "./run.ts";
import type { Started, Starter } from "./started.ts";
import { ordinaryUser, rootUser } from "./user.ts";

const starters: readonly Starter[] = [podman, rootlessPodman, gvisorPodman, docker];

/** Those that are started only when somebody asks for a new one. */
const others: readonly Starter[] = [gvisorHostPodman];

/** Starts every engine before the first test, and leaves nothing of them after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.getuid?.() !== 0) throw new Error("the engines of the slow suite need root: `sudo make test-e2e`");
  for (const run of deadRuns()) await erase(run);
  const archive = await execute([join(import.meta.dirname, "../../../scripts/e2e-image.sh")]);
  const run = newRun();
  const started = new Set<Started>();
  let server: Server | undefined;
  const release = holdSignals(() => teardown());

  async function teardown(): Promise<void> {
    release();
    server?.close();
    const stopped = await Promise.allSettled([...started].map((it) => it.stop()));
    throwAll([...stopped, ...(await Promise.allSettled([erase(run)]))]);
  }

  try {
    const user = await ordinaryUser(run);
    const root = rootUser(run);
    const control = join(run.directory, "control");
    let count = 0;
    let agents: Promise<string> | undefined;

    async function start(starter: Starter) {
      count += 1;
      const place = `${starter.prefix}${count}`;
      const it = await starter.start({ run, place, archive, root, user });
      started.add(it);
      return it.engines.map((engine) => ({ ...engine, service: place, control }));
    }

    async function fulfil(wish: Wish): Promise<string> {
      if (wish.action === "new") {
        const starter = starterOf(wish.name);
        return JSON.stringify((await start(starter)).find(({ name }) => name === wish.name));
      }
      if (wish.action === "agent-archive") {
        agents ??= agentArchive(() => podman.start({ run, place: `podman${++count}`, archive, root, user }));
        return await agents;
      }
      const it = [...started].find(({ place }) => place === wish.service);
      if (it === undefined) throw new Error(`there is no service ${wish.service}`);
      if (wish.action === "remove") {
        started.delete(it);
        await it.stop();
      } else {
        await it.service[wish.action]();
      }
      return "";
    }

    server = await listen(control, user.gid, fulfil);
    const chosen = new Set(wantedEngines().map(starterOf));
    const starting = await Promise.allSettled([...chosen].map(start));
    throwAll(starting);
    project.provide(
      "engines",
      starting.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : [])),
    );
    return teardown;
  } catch (error) {
    await teardown().catch((other: unknown) =>
      throwAll([error, other].map((reason) => ({ status: "rejected", reason }))),
    );
    throw error;
  }
}

/** Vitest leaves at once when it is told to end: it has to wait until the engines are gone. */
function holdSignals(before: () => Promise<void>): () => void {
  const held = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => ({
    signal,
    others: process.listeners(signal),
  }));
  const hold = async (signal: NodeJS.Signals) => {
    await before().catch((error: unknown) => console.error(error));
    release();
    process.kill(process.pid, signal);
  };
  const release = () => {
    for (const { signal, others } of held) {
      if (!process.listeners(signal).includes(hold)) continue;
      process.off(signal, hold);
      for (const other of others) process.on(signal, other);
    }
  };
  for (const { signal } of held) process.removeAllListeners(signal).on(signal, hold);
  return release;
}

/** All, unless somebody who works on one of them says otherwise; in CI nobody does. */
function wantedEngines(): readonly EngineName[] {
  const { CI, PODBOT_E2E_ENGINES: wanted } = process.env as Readonly<Record<string, string | undefined>>;
  if (CI || !wanted) return starters.flatMap(({ names }) => names);
  return wanted.split(",") as EngineName[];
}

function starterOf(name: EngineName): Starter {
  const starter = [...starters, ...others].find(({ names }) => names.includes(name));
  if (starter === undefined) throw new Error(`there is no engine ${name}`);
  return starter;
}

function throwAll(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const reasons = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  if (reasons.length > 0) throw new AggregateError(reasons, reasons.map(String).join("\n"));
}
