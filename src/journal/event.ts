/** One thing that happened in a session. Order is by `seq`; `at` is what the clock said, and clocks are set back. */
export type JournalEvent = { readonly seq: number; readonly at: string } & Happening;

/** What can happen, without when. */
export type Happening =
  | { readonly kind: "session-started" }
  | {
      readonly kind: "process-started";
      readonly process: number;
      readonly argv: readonly string[];
      readonly tty: boolean;
    }
  | { readonly kind: "process-exited"; readonly process: number; readonly code: number; readonly killed: boolean }
  | { readonly kind: "warning"; readonly text: string }
  /** What was decided, or refused, between an agent and its client. */
  | { readonly kind: "note"; readonly text: string }
  | { readonly kind: "repository-cloned"; readonly repository: string; readonly branch: string }
  /** A new token for git lies inside. */
  | { readonly kind: "token-written"; readonly expiresAt: string }
  /** From here on the network goes by so many rules of the configuration as it was then. */
  | { readonly kind: "rules-replaced"; readonly rules: number }
  /** Null where its command never ran. */
  | { readonly kind: "session-ended"; readonly code: number | null }
  /** So many bytes of the journal and the output could not be written before this. */
  | { readonly kind: "journal-lost"; readonly bytes: number };

/** Null for what is not an event, or not one that this Podbot knows. */
export function parseEvent(line: string): JournalEvent | null {
  const value = parseObject(line);
  if (value === null || !isCount(value["seq"]) || typeof value["at"] !== "string") return null;
  const { kind } = value;
  if (typeof kind !== "string" || !Object.hasOwn(checks, kind)) return null;
  return checks[kind as Happening["kind"]](value) ? (value as unknown as JournalEvent) : null;
}

/** An object, or null for any other line. */
export function parseObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>> | null)
      : null;
  } catch {
    return null;
  }
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const checks: Readonly<Record<Happening["kind"], (value: Readonly<Record<string, unknown>>) => boolean>> = {
  "session-started": () => true,
  "process-started": ({ process, argv, tty }) =>
    isCount(process) &&
    Array.isArray(argv) &&
    argv.every((word) => typeof word === "string") &&
    typeof tty === "boolean",
  "process-exited": ({ process, code, killed }) => isCount(process) && isCount(code) && typeof killed === "boolean",
  warning: ({ text }) => typeof text === "string",
  note: ({ text }) => typeof text === "string",
  "repository-cloned": ({ repository, branch }) => typeof repository === "string" && typeof branch === "string",
  "token-written": ({ expiresAt }) => typeof expiresAt === "string",
  "rules-replaced": ({ rules }) => isCount(rules),
  "session-ended": ({ code }) => code === null || isCount(code),
  "journal-lost": ({ bytes }) => isCount(bytes),
};
