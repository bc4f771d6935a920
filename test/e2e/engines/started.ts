import { accountOf, type Run } from "../../suite/run.ts";
import type { Caller, EngineName, EngineRecord } from "./record.ts";
import type { Service } from "./service.ts";

/** What an engine is started with. */
export interface EngineContext {
  readonly run: Run;
  /** The name of its service, and of its directory in that of the run. */
  readonly place: string;
  /** The root of the image. */
  readonly archive: string;
  readonly root: Caller;
  readonly user: Caller;
}

/** One service that the main process has started, and the engine names under which tests use it. */
export interface Started {
  readonly place: string;
  readonly service: Service;
  readonly engines: readonly Omit<EngineRecord, "control" | "service">[];
  /** Removes all containers and ends what was started. */
  stop(): Promise<void>;
}

/** How the service of an engine is started. */
export interface Starter {
  readonly names: readonly EngineName[];
  /** What its place is called, before a number. Short: engines limit the length of their paths. */
  readonly prefix: string;
  start(context: EngineContext): Promise<Started>;
}

/** What the image of the tests is called in every engine. */
export function imageOf(run: Run): string {
  return `localhost/${accountOf(run)}:latest`;
}
