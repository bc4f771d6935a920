/** The library: everything that the command line can do, without its words. */
export { configJsonSchema } from "./config/json-schema.ts";
export { loadConfig } from "./config/load.ts";
export { listTrusted, revokeTrust, trustProject } from "./config/trust.ts";
export type {
  Config,
  Layer,
  LayerName,
  LoadedConfig,
  LoadOptions,
  Origin,
  PartialConfig,
  ProjectFile,
  Widening,
} from "./config/types.ts";
export {
  ConfigError,
  type ErrorCode,
  errorTable,
  FilesystemError,
  MachineError,
  PodbotError,
  PolicyError,
  UsageError,
  WallError,
} from "./errors.ts";
export type { SandboxOptions } from "./keeper/request.ts";
export { type PlannedSandbox, planSandbox } from "./keeper/sandbox.ts";
export { diagnose, type Finding, isAble } from "./machine/diagnosis.ts";
export { detectSandbox, type Inside } from "./machine/inside.ts";
export { decisionFor } from "./plan/access.ts";
export type { CommandDecision, HeldName, Operation, PathDecision, Plan } from "./plan/plan.ts";
export { type Preset, presets } from "./policy/presets.ts";
export type { Birth, Exit, Gap, Signal, Stdio } from "./wall/wall.ts";
