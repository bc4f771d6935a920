import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MachineError } from "../../errors.ts";
import { findOnPath } from "../../machine/programs.ts";

/** A throwaway home and repository; the owner's own are not touched. */
export class Stage implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "podbot-demo-"));
  readonly home = join(this.directory, "home");
  readonly repository = join(this.directory, "project");
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    if (findOnPath("git", path) === null) {
      throw new MachineError("FILESYSTEM", "The demo needs git, which is not on PATH.", { hint: "apt install git" });
    }
    mkdirSync(join(this.home, ".ssh"), { recursive: true });
    writeFileSync(join(this.home, ".ssh/id_ed25519"), "a key that nobody should read\n", { mode: 0o600 });
    writeFileSync(join(this.home, ".bashrc"), "# yours\n");
    writeFileSync(join(this.home, ".gitconfig"), "[user]\n\tname = Demo Agent\n\temail = agent@example.com\n");
    writeFileSync(
      join(this.home, "call.mjs"),
      'import { connect } from "node:net";\nconnect(Number(process.argv[2]), "127.0.0.1").on("data", () => process.exit(0));\n',
    );
    mkdirSync(this.repository);
    writeFileSync(join(this.repository, "greet.sh"), "echo Hello\n");
    this.git("init", "-q", "-b", "main");
    this.git("add", ".");
    this.git("commit", "-qm", "A greeting");
    this.git("tag", "base");
  }

  /** git outside the wall: the repository may have been an agent's, so nothing that it says is executed. */
  git(...words: string[]): string {
    const safely = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
    const { stdout, stderr, status } = spawnSync("git", [...safely, ...words], {
      cwd: this.repository,
      env: { PATH: this.#path, HOME: this.home, GIT_CONFIG_NOSYSTEM: "1", GIT_PAGER: "cat" },
      encoding: "utf8",
    });
    if (status !== 0) throw new MachineError("FILESYSTEM", `git ${words[0]} failed in the demo: ${stderr}`);
    return stdout;
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
