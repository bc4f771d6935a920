import type { Server } from "node:net";
import { basename, join } from "node:path";
import type { TestProject } from "vitest/node";
import { failingLoudly } from "../../suite/setup.ts";
import { Builder } from "./builder.ts";
import { type ControlRequest, listen } from "./control.ts";
import { docker } from "./docker.ts";
import { execute } from "./execute.ts";
import { gvisorHostPodman, gvisorPodman, podman, rootlessPodman } from "./podman.ts";
import type { EngineName, EngineRecord } from "./record.ts";
import type { Started, Starter } from "./started.ts";
import { ordinaryUser, rootUser } from "./user.ts";

const starters: readonly Starter[] = [podman, rootlessPodman, gvisorPodman, docker];

/** Engines that start only when a test requests one. */
const others: readonly Starter[] = [gvisorHostPodman];

/** Starts every engine before the first test, and leaves nothing of them after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.getuid?.() !== 0) throw new Error("the engines of the slow suite need root: `sudo make test-e2e`");
  const chosen = new Set(wantedEngines().map(starterOf));
  const archive = await makeRoot();
  const { run } = project.getProvidedContext();
  const started = new Set<Started>();
  let server: Server | undefined;
  let endBuilder = async () => {};

  async function teardown(): Promise<void> {
    server?.close();
    await endBuilder();
    throwAll(await Promise.allSettled([...started].map((it) => it.stop())));
  }

  try {
    const user = await ordinaryUser(run);
    const root = rootUser(run);
    const control = join(run.directory, "control");
    let count = 0;
    const builder = new Builder(async () => (await start(podman))[0] as EngineRecord);
    endBuilder = () => builder.end();

    async function start(starter: Starter) {
      count += 1;
      const place = `${starter.prefix}${count}`;
      const it = await starter.start({ run, place, archive, root, user });
      started.add(it);
      return it.engines.map((engine) => ({ ...engine, service: place, control }));
    }

    async function handle(request: ControlRequest): Promise<string> {
      if (request.action === "new") {
        const starter = starterOf(request.name);
        return JSON.stringify((await start(starter)).find(({ name }) => name === request.name));
      }
      if (request.action === "first-build") return JSON.stringify(await builder.first());
      if (request.action === "agent-image") return JSON.stringify(await builder.agentImage(request.engine));
      const it = [...started].find(({ place }) => place === request.service);
      if (it === undefined) throw new Error(`there is no service ${request.service}`);
      if (request.action === "remove") {
        started.delete(it);
        await it.stop();
      } else {
        await it.service[request.action]();
      }
      return "";
    }

    server = await listen(control, user.gid, handle);
    const starting = await Promise.allSettled([...chosen].map(start));
    throwAll(starting);
    const engines = starting.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : []));
    project.provide("engines", engines);
    buildAhead(builder, engines, project.vitest.state.getPaths());
    return failingLoudly(teardown);
  } catch (error) {
    await teardown().catch((other: unknown) =>
      throwAll([error, other].map((reason) => ({ status: "rejected", reason }))),
    );
    throw error;
  }
}

/** Makes the root of the containers, which takes minutes on a slow mirror. `timeout` ends mmdebstrap as well. */
function makeRoot(): Promise<string> {
  const minutes = 20;
  const script = join(import.meta.dirname, "../../../scripts/e2e-image.sh");
  const proxies = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name));
  return execute(["timeout", "--kill-after=10s", `${minutes}m`, script], {
    env: Object.fromEntries(proxies) as Readonly<Record<string, string>>,
    timeoutMs: (minutes + 1) * 60_000,
  });
}

/** Starts the builds that files of this run need. A file that needs a failed build reports the error itself. */
function buildAhead(builder: Builder, engines: readonly EngineRecord[], paths: readonly string[]): void {
  const wanted = paths.map((path) => basename(path, ".test.ts"));
  const ignore = () => {};
  if (wanted.includes("image") || wanted.includes("image-docker")) builder.first().catch(ignore);
  for (const engine of engines)
    if (wanted.includes(`agents-${engine.name}`) || wanted.includes(`host-${engine.name}`))
      builder.agentImage(engine).catch(ignore);
}

/** All engines, or those in PODBOT_E2E_ENGINES. CI ignores the variable. */
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
