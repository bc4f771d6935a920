import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Report } from "./program.ts";
import type { ModelRequest } from "./server.ts";

const program = fileURLToPath(new URL("run.mjs", import.meta.url));

/** The provider in a process of its own. */
export interface ModelProcess extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  readonly namesPort: number;
  /** All that has arrived since this was asked the last time: requests, and names that were asked for. */
  heard(): Promise<{ readonly requests: readonly ModelRequest[]; readonly names: readonly string[] }>;
}

export interface ModelPlace {
  /** Words before the program's own, by which it gets to another network. They must become the program. */
  readonly before?: readonly string[];
  readonly host?: string;
  readonly port?: number;
  readonly namesPort?: number;
}

export async function startModel(place: ModelPlace = {}): Promise<ModelProcess> {
  const { before = [], host = "127.0.0.1", port = 0, namesPort = 0 } = place;
  const [file = "", ...words] = [...before, process.execPath, program, host, String(port), String(namesPort)];
  const child = spawn(file, words, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise<never>((_resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`the model's process ended with ${code}`)));
  });
  ended.catch(() => {});
  const requests: ModelRequest[] = [];
  const names: string[] = [];
  const marks = new Map<string, () => void>();
  const ready = new Promise<Extract<Report, { kind: "ready" }>>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const report = JSON.parse(line) as Report;
      if (report.kind === "ready") resolve(report);
      else if (report.kind === "request") requests.push(report.request);
      else if (report.kind === "name") names.push(report.name);
      else marks.get(report.mark)?.();
    });
  });
  const { url, namesPort: foundPort } = await Promise.race([ready, ended]);
  let count = 0;
  return {
    pid: child.pid ?? 0,
    url,
    namesPort: foundPort,
    async heard() {
      const mark = String(count++);
      const reached = new Promise<void>((resolve) => marks.set(mark, resolve));
      child.stdin.write(`${mark}\n`);
      await Promise.race([reached, ended]);
      return { requests: requests.splice(0), names: names.splice(0) };
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended.catch(() => {});
    },
  };
}
