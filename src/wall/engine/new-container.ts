import type { EngineClient } from "../../engine/client.ts";
import type { ProcessMark } from "../../machine/process-mark.ts";
import type { ContainerPlan } from "../../plan/container.ts";

/** A container in which nothing runs but the warden. */
export interface NewContainer {
  readonly client: EngineClient;
  readonly container: ContainerPlan;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The warden out here; null where its processes are not the host's. */
  readonly first: ProcessMark | null;
  /** Resolves when the engine is done with the start. */
  readonly started: Promise<void>;
}
