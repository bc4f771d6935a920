import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import type { Io } from "../src/cli/io.ts";
import { main } from "../src/cli/main.ts";
import { writeTo } from "../src/machine/descriptor-stream.ts";

export interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A throwaway home and project. They lie in /var/tmp, since /tmp is private inside and would hide what is to be
 * seen. Nothing of the caller's own home or environment takes part.
 */
export class World {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), "w-")));
  readonly home = join(this.directory, "home");
  readonly project = join(this.directory, "home", "project");
  readonly env: Record<string, string | undefined>;

  constructor() {
    mkdirSync(this.project, { recursive: true });
    // Mount points that every home has.
    mkdirSync(join(this.home, ".cache"));
    mkdirSync(join(this.home, ".npm"));
    mkdirSync(join(this.directory, "run"), { mode: 0o700 });
    this.env = {
      HOME: this.home,
      XDG_RUNTIME_DIR: join(this.directory, "run"),
      PATH: "/usr/local/bin:/usr/bin:/bin",
      LANG: "C.UTF-8",
      TERM: "dumb",
      GIT_AUTHOR_NAME: "Test",
      GIT_AUTHOR_EMAIL: "test@example.com",
      GIT_COMMITTER_NAME: "Test",
      GIT_COMMITTER_EMAIL: "test@example.com",
    };
  }

  /** Writes a file below the world's directory (or at an absolute path) and returns its path. */
  file(path: string, content = "content\n", mode = 0o644): string {
    const absolute = path.startsWith("/") ? path : join(this.directory, path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, content);
    chmodSync(absolute, mode);
    return absolute;
  }

  link(path: string, to: string): void {
    const absolute = path.startsWith("/") ? path : join(this.directory, path);
    mkdirSync(dirname(absolute), { recursive: true });
    symlinkSync(to, absolute);
  }

  /** Runs git outside the wall. */
  git(...words: string[]): string {
    const { status, stdout, stderr } = spawnSync("git", words, {
      cwd: this.project,
      env: { ...this.env, GIT_CONFIG_NOSYSTEM: "1" },
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`git ${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  repository(): this {
    this.git("init", "-q", "-b", "main");
    this.file("home/project/file.txt", "one\n");
    this.git("add", ".");
    this.git("commit", "-qm", "first");
    return this;
  }

  /** The real program, in this process, on files as its descriptors. */
  async podbot(
    words: readonly string[],
    options: Partial<Pick<Io, "cwd" | "cwdIdentity" | "env" | "onSignal">> = {},
  ): Promise<Outcome> {
    const out = join(this.directory, "stdout");
    const err = join(this.directory, "stderr");
    const descriptors = [openSync("/dev/null", "r"), openSync(out, "w+"), openSync(err, "w+")] as const;
    const spoken = { stdout: "", stderr: "" };
    const speaker = (name: "stdout" | "stderr") => ({
      write: (text: string) => {
        spoken[name] += text;
      },
      isTerminal: false,
      isLeft: false,
    });
    const streams = async () => ({
      input: createReadStream("/dev/null"),
      output: writeTo(descriptors[1]),
      errors: writeTo(descriptors[2]),
    });
    try {
      const status = await main(words, {
        stdout: speaker("stdout"),
        stderr: speaker("stderr"),
        descriptors,
        streams,
        channel: async () => ({ ...(await streams()), isAbandoned: () => false }),
        terminal: async () => null,
        env: this.env,
        cwd: this.project,
        onSignal: () => () => {},
        now: Date.now,
        ...options,
      });
      return {
        status,
        stdout: spoken.stdout + readFileSync(out, "utf8"),
        stderr: spoken.stderr + readFileSync(err, "utf8"),
      };
    } finally {
      for (const descriptor of descriptors) closeSync(descriptor);
    }
  }

  /** A shell script behind the wall. */
  inside(script: string, ...flags: string[]): Promise<Outcome> {
    return this.podbot(["sandbox", ...flags, "--", "sh", "-c", script]);
  }

  /** The same script without a wall: the control that shows what a test would see if the wall were not there. */
  outside(script: string): Outcome {
    const { status, stdout, stderr } = spawnSync("sh", ["-c", script], {
      cwd: this.project,
      env: this.env as NodeJS.ProcessEnv,
      encoding: "utf8",
    });
    return { status: status ?? -1, stdout, stderr };
  }

  /** The built program in a process of its own, for what needs one: signals, terminals, inherited descriptors. */
  spawn(words: readonly string[], options: Parameters<typeof spawn>[2] = {}): ChildProcess {
    return spawn(process.execPath, [program, ...words], {
      cwd: this.project,
      env: this.env as NodeJS.ProcessEnv,
      ...options,
    });
  }
}

/** The program as it is shipped. */
export const program = join(import.meta.dirname, "..", "dist", "podbot.cjs");

/** Flags that show it inside, wherever the checkout lies: /tmp is private there. */
export const showProgram = ["dist", "native/bin"].flatMap((part) => ["--ro", join(import.meta.dirname, "..", part)]);

/** A world that is gone when the tests of the file are. */
export function newWorld(): World {
  const world = new World();
  worlds.push(world);
  return world;
}

const worlds: World[] = [];

afterAll(() => {
  for (const world of worlds) rmSync(world.directory, { recursive: true, force: true });
});
