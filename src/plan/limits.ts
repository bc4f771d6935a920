/** What the processes inside may use. Null: not limited by Podbot. */
export interface Limits {
  /** `require`: where one cannot be enforced, nothing starts. */
  readonly mode: "best-effort" | "require";
  readonly memoryMb: number | null;
  readonly cpus: number | null;
  readonly pids: number | null;
  readonly ulimits: readonly Ulimit[];
}

/** A limit of each process, as `setrlimit` has it. */
export interface Ulimit {
  readonly name: string;
  readonly soft: number;
  readonly hard: number;
}

/** `nofile=1024` or `nofile=1024:2048`. Null where it is neither. */
export function parseUlimit(text: string): Ulimit | null {
  const match = /^([a-z]+)=(\d{1,15})(?::(\d{1,15}))?$/.exec(text);
  if (match === null) return null;
  const [, name, soft, hard = soft] = match as unknown as [string, string, string, string?];
  return Number(soft) <= Number(hard) ? { name, soft: Number(soft), hard: Number(hard) } : null;
}

/**
 * Those that the owner set, and the machine's own for the two that engines would otherwise try to raise. Each name once,
 * as it was said last: runtimes refuse a limit that is named twice.
 */
export function completeUlimits(given: readonly Ulimit[], machine: readonly Ulimit[]): readonly Ulimit[] {
  const said = new Map(given.map((limit) => [limit.name, limit]));
  return [...said.values(), ...machine.filter(({ name }) => !said.has(name))];
}

/** The names of the limits that are set, for walls that know none of them. */
export function limitsSet({ memoryMb, cpus, pids, ulimits }: Limits): readonly string[] {
  return [
    ...(memoryMb === null ? [] : ["sandbox.memory_mb"]),
    ...(cpus === null ? [] : ["sandbox.cpus"]),
    ...(pids === null ? [] : ["sandbox.pids"]),
    ...(ulimits.length === 0 ? [] : ["sandbox.ulimits"]),
  ];
}
