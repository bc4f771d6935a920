import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { expectNobody, Machine, namesIn } from "../faults/machine.ts";
import { newWorld, program, type World } from "../world.ts";

/** Where the examples take place: a home with a key, a project with a test, a secret and a repository. */
export function newStage(): World {
  return furnish(newWorld());
}

function furnish(world: World): World {
  world.file(
    "home/project/package.json",
    '{ "name": "project", "version": "1.0.0", "scripts": { "test": "node test.js" } }\n',
  );
  world.file("home/project/test.js", 'console.log("1 test passed");\n');
  world.file("home/project/docs/guide.md", "# Guide\n");
  // Otherwise npm asks, now and then, whether there is a newer one.
  world.file("home/project/.npmrc", "update-notifier=false\n");
  world.file("home/project/.gitignore", ".env\n");
  world.file("home/project/.env", "TOKEN=1\n");
  world.file("home/.ssh/id_ed25519", "a key\n", 0o600);
  world.file("home/.ssh/id_ed25519.pub", "a key for everybody\n");
  world.file("home/.bashrc", "# mine\n");
  world.file("home/go/pkg/mod/cache.txt", "from the host\n");
  const bin = join(world.directory, "bin");
  mkdirSync(bin);
  world.file(join(bin, "podbot"), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, 0o755);
  world.env["PATH"] = `${bin}:${dirname(process.execPath)}:${world.env["PATH"]}`;
  return world.repository();
}

/** All on one descriptor, as on a screen. */
const onScreen = ["bash", "-c", 'exec "$0" "$@" 2>&1 </dev/null'] as const;

/** Runs a program on the stage and gives all that it prints, as it would look in the home of `me`. */
export function play(world: World, file: string, ...words: string[]): Promise<string> {
  return new Promise((resolve) => {
    const options = { cwd: world.project, env: world.env as NodeJS.ProcessEnv };
    const [bash, ...rest] = onScreen;
    const child = execFile(bash, [...rest, file, ...words], options, (_, stdout) => {
      resolve(stdout.replaceAll(world.home, "/home/me"));
    });
    child.stdin?.end();
  });
}

/** Whether an example has to do with sessions: those of other tests must not be seen in it, let alone be stopped. */
export function needsMachine(lines: readonly string[]): boolean {
  return /podbot (run|exec|ps|logs|stop|keep)\b|(start|list|open|stop)Sessions?\(/.test(lines.join("\n"));
}

/** The same on a machine of its own, on which the example must leave no session and no process. */
export async function playOnMachine(prepare: (stage: World) => readonly string[]): Promise<string> {
  const machine = await Machine.boot();
  const words = prepare(furnish(machine.world));
  const { stdout } = await machine.spawn([...onScreen, ...words]).done;
  expect(namesIn(machine.sessions)).toEqual([]);
  expect(namesIn(machine.runtime)).toEqual([]);
  await expectNobody(machine);
  return stdout.replaceAll(machine.world.home, "/home/me");
}

/** The session of which the pages speak, where an example has one. */
const exampleId = "k3mzq7w2ha";

/** What is typed on the page with the id of its session, whole or abbreviated, for the session that there is. */
export function withRealId(command: string): string {
  return command.replace(new RegExp(`\\b${exampleId.slice(0, 2)}(${exampleId.slice(2)})?\\b`, "g"), (word) => {
    return `"$(podbot ps --quiet | cut -c 1-${word.length})"`;
  });
}

/**
 * Compares what was printed with what the page shows, where `…` stands for anything, alone on a line for any lines.
 * Columns may be wider, and seconds more.
 */
export function expectShown(printed: string, shown: readonly string[]): void {
  const pattern = shown.map((line) => (line === "…" ? "(?:.*\n)*?" : `${inPattern(line)}\n`)).join("");
  const text = printed === "" || printed.endsWith("\n") ? printed : `${printed}\n`;
  if (new RegExp(`^${pattern}$`).test(text)) return;
  expect(text.split("\n").slice(0, -1)).toEqual(shown);
}

function inPattern(line: string): string {
  return line
    .split("…")
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .join(".*")
    .replaceAll(exampleId, "[a-z][a-z2-9]{9}")
    .replace(/ {2}\d+s {2}/g, "  \\d+s  ")
    .replace(/(?<=\S) {2,}/g, " {2,}");
}
