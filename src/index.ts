/** The library: everything that the command line can do, without its words. */
export type { Agent, AgentPackage, AgentServer, Permissive } from "./agents/agent.ts";
export { agents } from "./agents/table.ts";
export type { BridgeEvent } from "./bridge/event.ts";
export type { Delegation, HostedProtocol } from "./bridge/policy.ts";
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
export type { Decide, Decision, Question } from "./decision.ts";
export {
  ConfigError,
  EngineError,
  type ErrorCode,
  errorTable,
  FilesystemError,
  GitHubError,
  MachineError,
  PodbotError,
  PolicyError,
  SessionError,
  UsageError,
  WallError,
} from "./errors.ts";
export type { BuiltImage, ImageEvent } from "./image/build.ts";
export type { ImageDescription } from "./image/show.ts";
export type { BuildStep } from "./image/steps.ts";
export { type AgentRequest, planAgent } from "./keeper/agent.ts";
export type { Furnishing } from "./keeper/furnish.ts";
export { type HostedSession, type HostOptions, type HostRequest, hostAgent, type ProtocolIo } from "./keeper/host.ts";
export type { Dismissal, HostedEvent } from "./keeper/host-events.ts";
export { type BuildRequest, buildImage, type ImageRequest, showImage } from "./keeper/image.ts";
export { type AgentsOptions, type HostedForm, type InstalledAgent, listAgents } from "./keeper/installed.ts";
export { startSession } from "./keeper/kept-session.ts";
export type { PlannedSandbox } from "./keeper/planned.ts";
export { openPool, type Pool, type PoolOptions } from "./keeper/pool.ts";
export type { SandboxOptions } from "./keeper/request.ts";
export { planSandbox } from "./keeper/sandbox.ts";
export type { AgentOptions, Session, SessionOptions, SessionStep } from "./keeper/session.ts";
export { listSessions, openSession, type Stopped, stopSessions } from "./keeper/sessions.ts";
export { diagnose, type Finding, isAble } from "./machine/diagnosis.ts";
export { detectSandbox, type Inside } from "./machine/inside.ts";
export type { KnownHole } from "./machine/known-holes.ts";
export { decisionFor } from "./plan/access.ts";
export type { ContainerPlan, EngineFacts } from "./plan/container.ts";
export type { Limits, Ulimit } from "./plan/limits.ts";
export type { CommandDecision, HeldName, Operation, PathDecision, Plan } from "./plan/plan.ts";
export type { NetworkMode, NetworkPlan } from "./plan/request.ts";
export type { NetworkPolicy, NetworkRule, SecretBinding } from "./policy/network.ts";
export { type Preset, presets } from "./policy/presets.ts";
export type { SessionState, SessionView } from "./registry/reconcile.ts";
export type { SessionRecord } from "./registry/record.ts";
export type { Command, Process, Sandbox, Size, TerminalProcess } from "./sandbox/sandbox.ts";
export type { Birth, Exit, Gap, Signal, Stdio } from "./wall/wall.ts";
