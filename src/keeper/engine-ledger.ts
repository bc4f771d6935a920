import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { thisHost } from "../machine/host.ts";
import { type EngineMark, isEngineMark } from "../registry/record.ts";

/** Notes that an engine may hold boxes of ours. Written before the first one, so that no accident hides it. */
export function noteEngine(state: string, mark: EngineMark): void {
  if (notedEngines(state).some((noted) => keyOf(noted) === keyOf(mark))) return;
  mkdirSync(join(state, "engines"), { recursive: true, mode: 0o700 });
  const path = pathOf(state, mark);
  const half = `${path}.${thisHost().pid}`;
  writeFileSync(half, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
  renameSync(half, path);
}

export function forgetEngine(state: string, mark: EngineMark): void {
  rmSync(pathOf(state, mark), { force: true });
}

/** The engines that may hold boxes of sessions of this state directory. */
export function notedEngines(state: string): readonly EngineMark[] {
  const directory = join(state, "engines");
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory).filter((name) => name.endsWith(".json"));
  return names.flatMap((name) => {
    try {
      const noted: unknown = JSON.parse(readFileSync(join(directory, name), "utf8"));
      return isEngineMark(noted) ? [noted] : [];
    } catch {
      return [];
    }
  });
}

function pathOf(state: string, mark: EngineMark): string {
  return join(state, "engines", `${createHash("sha256").update(keyOf(mark)).digest("hex").slice(0, 16)}.json`);
}

/** The same engine, by the same name. */
export function keyOf({ endpoint, service }: EngineMark): string {
  return `${endpoint} ${service === null ? "" : (service.runtime ?? "-")}`;
}
