import { dirname, join } from "node:path";
import type { EngineClient } from "../../engine/client.ts";
import { inspectContainer, listContainers } from "../../engine/inspection.ts";
import { ping } from "../../engine/ping.ts";
import { thisHost } from "../../machine/host.ts";
import { isRunning, startTimeOf } from "../../machine/process.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { buildPossible, prepare } from "../prepare.ts";
import { type SeccompArch, seccompProgram } from "../seccomp.ts";
import type { Box, BoxBirth, Gap, SessionId, Wall } from "../wall.ts";
import { startContainerBox } from "./box.ts";
import { helperName } from "./doors-container.ts";
import { findEngineGaps } from "./gaps.ts";
import { removeSurely } from "./removal.ts";
import { containerName } from "./render.ts";

export interface EngineWallOptions {
  readonly client: EngineClient;
  readonly native: NativePrograms;
  /** Where claims on held names are recorded. */
  readonly heldDirectory: string;
  /** Names the state directory, so that nobody takes another's containers for his own. */
  readonly owner: string;
  /** The file with the system call filter that the engine gives its containers, where it is known. */
  readonly seccompProfile?: string | null;
}

interface LivingBox {
  readonly id: SessionId;
  /** Nothing in it runs until its owner lets it. */
  readonly paused: boolean;
}

interface Listed {
  readonly id: SessionId;
  readonly ended: boolean;
  /** Whether it is there for a session's doors alone. */
  readonly isHelper: boolean;
}

/** The labels by which a container is known to be one of ours. */
const sessionLabel = "podbot.session";
const ownerLabel = "podbot.owner";

/** The wall that a container engine builds. */
export class EngineWall implements Wall {
  readonly kind = "engine";
  readonly #options: EngineWallOptions;

  constructor(options: EngineWallOptions) {
    this.#options = options;
  }

  async check(plan: Plan): Promise<readonly Gap[]> {
    return findEngineGaps(plan, thisHost());
  }

  async start(plan: Plan, birth: BoxBirth): Promise<Box> {
    const { native, heldDirectory, owner } = this.#options;
    const container = plan.container as ContainerPlan;
    const holding = prepare(plan, {
      gaps: await this.check(plan),
      programs: [native.warden, native.gate],
      heldDirectory,
    });
    try {
      const labels = { [sessionLabel]: birth.id, [ownerLabel]: owner };
      const options = { ...this.#options, imagesDirectory: join(dirname(heldDirectory), "images") };
      const box = await buildPossible(plan, holding, (possible) =>
        startContainerBox(options, possible, container, filterOf(container, plan), labels, birth),
      );
      box.exited.finally(() => holding[Symbol.dispose]()).catch(() => {});
      return box;
    } catch (error) {
      holding[Symbol.dispose]();
      throw error;
    }
  }

  /** Those that have not ended: of the others the engine removes what is left. */
  async list(): Promise<readonly SessionId[]> {
    return (await this.look()).map(({ id }) => id);
  }

  /** The same, and which of them their owner has paused. */
  async look(): Promise<readonly LivingBox[]> {
    const listed = (await this.#containers()).filter(({ ended, isHelper }) => !ended && !isHelper);
    const living = await Promise.all(listed.map(({ id }) => this.#lookAt(id)));
    return living.flatMap((box) => box ?? []);
  }

  /** The engine hears of an end a little later than the kernel. */
  async #lookAt(id: SessionId): Promise<LivingBox | null> {
    const found = await inspectContainer(this.#options.client, containerName(id), { timeoutMs: listMs });
    if (found === null || endings.includes(found.status)) return null;
    if (found.status !== "running") return { id, paused: found.status === "paused" };
    const started = startTimeOf(found.pid);
    return started !== null && isRunning(found.pid, started) ? { id, paused: false } : null;
  }

  async destroy(id: SessionId): Promise<void> {
    await ping(this.#options.client, { timeoutMs: destroyMs });
    const name = containerName(id);
    await Promise.all([this.#remove(name), this.#remove(helperName(name))]);
  }

  async #remove(name: string): Promise<void> {
    const { client, owner } = this.#options;
    const found = await inspectContainer(client, name, { timeoutMs: destroyMs });
    // Of the same name, but somebody else's: to us there is none.
    if (found === null || found.labels[ownerLabel] !== owner) return;
    await removeSurely(client, found.id);
  }

  /** Removes what an engine that died meanwhile has not removed itself, and helpers of those that are not there. */
  async sweep(): Promise<void> {
    const found = await this.#containers();
    const living = new Set(found.flatMap(({ id, ended, isHelper }) => (ended || isHelper ? [] : [id])));
    const left = found.filter(({ id }) => !living.has(id));
    await Promise.all([...new Set(left.map(({ id }) => id))].map((id) => this.destroy(id)));
  }

  async #containers(): Promise<readonly Listed[]> {
    const { client, owner } = this.#options;
    // Before any other question, a client finds out which version the engine speaks, and waits longer for it.
    await ping(client, { timeoutMs: listMs });
    const found = await listContainers(client, { [sessionLabel]: "", [ownerLabel]: owner }, { timeoutMs: listMs });
    return found.flatMap(({ name, labels, status }) => {
      const id = labels[sessionLabel] as string;
      // Anybody can write labels, in an image too; a container's name is the engine's word.
      const isHelper = name === helperName(containerName(id));
      return isHelper || name === containerName(id) ? [{ id, ended: endings.includes(status), isHelper }] : [];
    });
  }
}

const endings: readonly string[] = ["exited", "dead", "removing", "stopping"];

/** An engine that does not answer must not hold up those that do. */
const listMs = 3_000;

/** A session that is to end is worth more patience with a busy engine than a look at it. */
const destroyMs = 15_000;

/** The engine's own filter holds, too. What is privileged is the owner's affair. */
function filterOf({ profile }: ContainerPlan, { nesting }: Plan): Uint8Array {
  if (profile === "privileged") return new Uint8Array();
  const containers = profile === "inner";
  return seccompProgram({ arch: thisHost().arch as SeccompArch, nesting: nesting || containers, containers });
}
