export type EngineName =
  | "podman"
  | "podman-rootless"
  | "podman-gvisor"
  | "podman-gvisor-host"
  | "docker"
  | "docker-group";

export interface Caller {
  readonly uid: number;
  readonly gid: number;
  readonly user: string;
  readonly home: string;
}

/** What the main process tells the workers of an engine. */
export interface EngineRecord {
  readonly name: EngineName;
  readonly socket: string;
  readonly image: string;
  readonly caller: Caller;
  readonly env: Readonly<Record<string, string>>;
  readonly runtime?: string;
  /** The program of its command line, and arguments that come first. */
  readonly command: readonly string[];
  /** The service behind the socket; two engines may share one. */
  readonly service: string;
  /** Socket on which the main process takes `ControlRequest`s. */
  readonly control: string;
}

declare module "vitest" {
  interface ProvidedContext {
    engines: readonly EngineRecord[];
  }
}
