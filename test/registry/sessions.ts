import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { markOf, type ProcessMark } from "../../src/machine/process-mark.ts";
import type { Boxes } from "../../src/registry/evidence.ts";
import type { SessionRecord } from "../../src/registry/record.ts";

/** A state directory and a runtime root on disk, removed when the test ends. */
export interface Scratch {
  readonly state: string;
  readonly root: string;
  /** The runtime directory of a session, made. */
  readonly runtimeOf: (id: string) => string;
}

export function makeScratch(): Scratch {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "podbot-registry-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [state, root] = [join(base, "state"), join(base, "run")];
  mkdirSync(root);
  return {
    state,
    root,
    runtimeOf: (id) => {
      mkdirSync(join(root, id), { recursive: true, mode: 0o700 });
      return join(root, id);
    },
  };
}

export function sampleRecord(change: Partial<SessionRecord> = {}): SessionRecord {
  const id = change.id ?? "abcdefgh23";
  return {
    version: 1,
    id,
    createdAt: "2026-01-02T03:04:05.678Z",
    keeper: { pid: 4711, started: "12345", space: "boot pid:[1]", machine: "m" },
    wall: "bubblewrap",
    engine: null,
    github: null,
    directory: `/run/podbot/${id}`,
    cwd: "/home/me/project",
    agent: "custom",
    command: ["sh", "-c", "true"],
    detached: true,
    dedicated: true,
    phase: "running",
    endedAt: null,
    exit: null,
    ...change,
  };
}

/** What walls say that have these boxes and know of no others. */
export function seen(...ids: readonly string[]): Boxes {
  return { there: new Set(ids), paused: new Set(), unknown: new Set(), own: [] };
}

export const ended = { phase: "ended", endedAt: "2026-01-02T03:05:00.000Z", exit: { code: 0, killed: false } } as const;

/** The mark of a process that lives; by default this one. */
export function liveMark(pid = process.pid): ProcessMark {
  const mark = markOf(pid);
  if (mark === null) throw new Error(`process ${pid} does not live`);
  return mark;
}

/** One that has the number of a living process, and is not it. */
export function deadMark(): ProcessMark {
  return { ...liveMark(), started: "1" };
}

/** Listens as a keeper would; `answer` makes what it says to each line, or null to say nothing. */
export async function listen(socket: string, answer: (line: string) => string | null): Promise<Server> {
  const server = createServer((connection) => {
    connection.on("error", () => {});
    connection.on("data", (bytes) => {
      const said = answer(bytes.toString());
      if (said === "") connection.end();
      else if (said !== null) connection.write(said);
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  return server;
}

export function keeperOf(id: string, { state }: Pick<Scratch, "state">): (line: string) => string {
  return (line) => `${JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(line).id, result: { id, state } })}\n`;
}
