import type { EngineClient } from "../../engine/client.ts";
import type { ProcessMark } from "../../machine/process-mark.ts";
import type { ContainerPlan } from "../../plan/container.ts";

/** A container in which nothing runs but the warden. */
export interface NewContainer {
  readonly client: EngineClient;
  readonly container: ContainerPlan;
  /** As its creation has returned it: whatever is done to the container is done by this and not by the name. */
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The warden out here, or gVisor's own process around it. */
  readonly first: ProcessMark;
  /** Resolves when the engine is done with the start. */
  readonly started: Promise<void>;
}
