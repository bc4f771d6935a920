import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { newWorld, program, type World } from "../world.ts";

/** Where the examples take place: a home with a key, a project with a test, a secret and a repository. */
export function newStage(): World {
  const world = newWorld();
  world.file(
    "home/project/package.json",
    '{ "name": "project", "version": "1.0.0", "scripts": { "test": "node test.js" } }\n',
  );
  world.file("home/project/test.js", 'console.log("1 test passed");\n');
  world.file("home/project/docs/guide.md", "# Guide\n");
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

/** Runs a program on the stage and gives all that it prints, as it would look in the home of `me`. */
export function play(world: World, file: string, ...words: string[]): Promise<string> {
  return new Promise((resolve) => {
    const options = { cwd: world.project, env: world.env as NodeJS.ProcessEnv };
    const child = execFile("bash", ["-c", 'exec "$0" "$@" 2>&1 </dev/null', file, ...words], options, (_, stdout) => {
      resolve(stdout.replaceAll(world.home, "/home/me"));
    });
    child.stdin?.end();
  });
}

/** Compares what was printed with what the page shows, where `…` stands for anything, alone on a line for any lines. */
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
    .join(".*");
}
