import type { RequestOptions, request } from "node:http";
import type { EngineError } from "../errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** How requests travel to an endpoint. */
export interface Transport extends Disposable {
  /** Where requests go. Throws an EngineError where that cannot be prepared. */
  target(): RequestOptions;
  readonly request: typeof request;
  /** The error for a connection that could not be made or that broke. */
  explain(error: unknown): EngineError | Promise<EngineError>;
}

/** Idle connections are closed before an engine would do so in the middle of our next request. */
export const idleMs = 4_000;
