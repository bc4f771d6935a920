import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command, Flag } from "../../src/cli/command.ts";
import { completionScript, type Shell } from "../../src/cli/completion.ts";
import { commands as realCommands } from "../../src/cli/table.ts";
import { patience } from "../faults/thorough.ts";
import { newWorld } from "../world.ts";

const shells = ["bash", "zsh", "fish"] as const satisfies readonly Shell[];

/** A directory with something to complete in it, and a `podbot` that knows two sessions. */
const place = realpathSync(mkdtempSync(join(tmpdir(), "podbot-completion-")));
afterAll(() => rmSync(place, { recursive: true }));
for (const directory of ["bin", "broken", "home", "here/docs", "here/a dir"]) {
  mkdirSync(join(place, directory), { recursive: true });
}
writeFileSync(join(place, "here", "data.txt"), "");
writeFileSync(join(place, "bin", "zorkmid"), "#!/bin/sh\n", { mode: 0o755 });
writeFileSync(
  join(place, "bin", "podbot"),
  `#!/bin/sh\n[ "$*" = "ps --quiet" ] || exit 2\necho kind-owl\necho calm-yak\necho a warning >&2\n`,
  { mode: 0o755 },
);
writeFileSync(join(place, "broken", "podbot"), "#!/bin/sh\necho broken >&2\nexit 125\n", { mode: 0o755 });

const help: Flag = { name: "help", short: "h", about: "Show this help." };
const load = () => Promise.reject(new Error("Completion loads no command."));

/** What a table can hold, in ordinary words. */
const plain: readonly Command[] = [
  {
    name: "build",
    summary: "Build a thing.",
    usage: "podbot build [flags] [--] COMMAND [ARGS…]",
    takesCommand: true,
    flags: [
      { name: "path", value: "PATH", repeatable: true, about: "A path." },
      { name: "mode", value: "MODE", choices: ["none", "open"], about: "A mode." },
      { name: "cwd", short: "C", value: "DIR", about: "A directory." },
      { name: "config", short: "c", value: "FILE", about: "A file." },
      { name: "time", value: "TIME", about: "A time." },
      { name: "quiet", short: "q", about: "No words." },
      help,
    ],
    examples: [],
    load,
  },
  {
    name: "enter",
    summary: "Enter a session.",
    usage: "podbot enter [flags] SESSION [--] COMMAND [ARGS…]",
    words: ["session"],
    completes: "session",
    takesCommand: true,
    flags: [{ name: "cwd", short: "C", value: "DIR", about: "A directory." }, help],
    examples: [],
    load,
  },
  {
    name: "end",
    summary: "End sessions.",
    usage: "podbot end [--all] [SESSION…]",
    words: ["session…?"],
    completes: "session",
    flags: [{ name: "all", about: "All of them." }, help],
    examples: [],
    load,
  },
  {
    name: "show",
    summary: "Show a part.",
    usage: "podbot show left|right FILE [WHAT]",
    words: ["side", "file", "what?"],
    flags: [{ name: "json", about: "Print JSON." }, help],
    examples: [],
    load,
  },
];

const nastyText = `it's "so" $(touch pwned) \`touch pwned\` $HOME [a:b] {c,d} %d %F{red} \\ \\: ; & | * ~ #x !! (e) <f> = +`;
const nastyChoices = ["it's", "a b", "$HOME", "`touch pwned`", "$(touch pwned)", 'q"q', "c:d", "e=f", "[g]", "h\\i"];
const nasty: readonly Command[] = [
  {
    name: "nasty",
    summary: nastyText,
    usage: nastyText,
    words: [nastyText, "path?"],
    flags: [
      { name: "first", short: "f", value: nastyText, about: `1 ${nastyText}` },
      { name: "second", about: `${nastyText}\n${nastyText}\u001b[31m` },
      { name: "third", value: "THIRD", choices: nastyChoices, about: `3 ${nastyText}` },
      { name: nastyText, value: nastyText, about: nastyText },
      help,
    ],
    examples: [[nastyText, nastyText]],
    load,
  },
  { name: nastyText, summary: nastyText, usage: "", flags: [help], examples: [], load },
];

/** Candidates, with what is told about them. */
type Offer = Readonly<Record<string, string>>;

/** What a shell offers at the end of each line. */
async function offers(
  shell: Shell,
  commands: readonly Command[],
  lines: readonly string[],
  bin = "bin",
): Promise<Record<string, Offer>> {
  const file = writeScript(shell, commands);
  const record =
    shell === "fish" ? askFish(file, lines, bin) : await atTerminal(shell, spying[shell](file), lines, bin);
  const blocks = record.split(/^\n/m).slice(0, lines.length);
  return Object.fromEntries(blocks.map((block, at) => [lines[at], readOffer(block)]));
}

function readOffer(text: string): Offer {
  const found = text.split("\n").filter((line) => line !== "");
  return Object.fromEntries(found.map((line) => line.split("\t")).map(([word, about = ""]) => [word, about]));
}

/** The words of `podbot` as they are after a tab has completed the line and a return has run it. */
async function runs(shell: "bash" | "zsh", commands: readonly Command[], lines: readonly string[]) {
  const record = await atTerminal(shell, running[shell](writeScript(shell, commands)), lines, "bin", "\r");
  return record
    .split(/^\n/m)
    .map((block) => block.split("\n").slice(0, -1))
    .slice(0, lines.length);
}

function writeScript(shell: Shell, commands: readonly Command[]): string {
  const file = join(place, shell === "zsh" ? "_podbot" : `podbot.${shell}`);
  writeFileSync(file, completionScript(shell, commands));
  return file;
}

const environment = (bin: string) => ({
  HOME: join(place, "home"),
  PATH: [join(place, bin), join(place, "bin"), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
  LANG: "C.UTF-8",
  TERM: "xterm",
});

function askFish(file: string, lines: readonly string[], bin: string): string {
  const script = "source $argv[1]; for line in $argv[2..]; complete --do-complete=$line; echo; end";
  const { stdout, stderr } = spawnSync("fish", ["-c", script, file, ...lines], {
    cwd: join(place, "here"),
    env: environment(bin),
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return stdout;
}

const loading = {
  bash: (file: string) => `source ${file}\nPS1='<ready>'\n`,
  zsh: (file: string) => `fpath=(${dirname(file)} $fpath)\nautoload -Uz compinit\ncompinit -u -D\nPROMPT='<ready>'\n`,
};

/** Set-ups in which a return records the words of `podbot`. */
const running = {
  bash: (file: string) => `${loading.bash(file)}podbot() { printf '%s\\n' "$@" '' >> "$RECORD"; }\n`,
  zsh: (file: string) => `${loading.zsh(file)}podbot() { print -rl -- "$@" '' >> $RECORD }\n`,
};

/** Set-ups in which a tab records the candidates. */
const spying = {
  // What our function gives to readline, and what it asks readline to find by itself.
  bash: (file: string) => `${loading.bash(file)}
_spy() {
  _podbot "$@"
  {
    ((\${#COMPREPLY[@]} == 0)) || printf '%s\\n' "\${COMPREPLY[@]}"
    compopt | grep -oE -- '-o (default|dirnames)'
    echo
  } >> "$RECORD"
  printf '<asked>'
}
complete -F _spy podbot
`,
  // What reaches the builtin that adds matches.
  zsh: (file: string) => `${loading.zsh(file)}
COLUMNS=1000
compadd() {
  local -a spy_found spy_told
  local spy_at=\${argv[(i)-d]} spy_end=\${argv[(i)(-|--)]}
  if [[ " \${(j. .)argv[1,spy_end]} " == *\\ -(O|A|D)\\ * ]]; then
    builtin compadd "$@"
    return
  fi
  ((spy_at < spy_end)) && spy_told=("\${(@P)argv[spy_at+1]}")
  builtin compadd -A spy_found -D spy_told "$@"
  for ((spy_at = 1; spy_at <= $#spy_found; spy_at++)); do
    print -r -- "\${(Q)spy_found[spy_at]}"$'\\t'"\${spy_told[spy_at]#*-- }" >> $RECORD
  done
  builtin compadd "$@"
}
_spy() {
  _main_complete
  compstate[insert]= compstate[list]=
  print >> $RECORD
  print -n '<asked>' > /dev/tty
}
zle -C spy complete-word _spy
bindkey '^I' spy
`,
};

/** Types each line and a tab into an interactive shell, then the key; returns what the shell has recorded. */
async function atTerminal(
  shell: "bash" | "zsh",
  setup: string,
  lines: readonly string[],
  bin: string,
  key?: "\r",
): Promise<string> {
  const record = join(place, "record");
  const start = join(place, shell === "bash" ? "bashrc" : "home/.zshrc");
  writeFileSync(record, "");
  writeFileSync(start, setup);
  const words = shell === "bash" ? ["bash", "--noprofile", "--rcfile", start, "-i"] : ["zsh", "-d", "-i"];
  const terminal = spawn("python3", ["-c", "import pty, sys; pty.spawn(sys.argv[1:])", ...words], {
    cwd: join(place, "here"),
    env: { ...environment(bin), RECORD: record },
    stdio: ["pipe", "pipe", "inherit"],
    timeout: patience * 100_000,
  });
  let seen = "";
  let wake = () => {};
  let ended = false;
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
    seen += text;
    wake();
  });
  const end = once(terminal, "close").finally(() => {
    ended = true;
    wake();
  });
  const shown = async (text: string) => {
    while (!seen.includes(text)) {
      if (ended) throw new Error(`The shell has ended: ${seen}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    seen = "";
  };
  await shown("<ready>");
  for (const line of lines) {
    terminal.stdin.write(`${line}\t`);
    if (key === undefined) {
      await shown("<asked>");
      terminal.stdin.write("\u0015");
    } else {
      terminal.stdin.write(key);
      await shown("<ready>");
    }
  }
  terminal.stdin.end("exit\r");
  await end;
  return readFileSync(record, "utf8");
}

/** The flags of a command in an offer, long or short. */
const flagsIn = (offer: Offer | undefined) => Object.keys(offer ?? {}).filter((word) => word.startsWith("--"));

/** What is offered after each line. In bash, files and directories are left to readline. */
const files = { bash: ["-o default"], zsh: ["data.txt", "docs"], fish: ["data.txt", "docs"] };
const directories = { bash: ["-o dirnames"], zsh: ["docs"], fish: ["docs"] };
const expected: Readonly<Record<string, readonly string[] | Readonly<Record<Shell, readonly string[]>>>> = {
  "podbot e": ["end", "enter"],
  "podbot ": ["build", "end", "enter", "help", "show"],
  "podbot help e": ["end", "enter"],
  "podbot help end ": [],
  "podbot unknown ": [],
  "podbot build --": ["--config", "--cwd", "--help", "--mode", "--path", "--quiet", "--time"],
  "podbot build --path x --p": ["--path"],
  "podbot build --quiet --q": [],
  "podbot build -q --q": [],
  "podbot build --cwd docs --c": ["--config"],
  "podbot build -C docs --c": ["--config"],
  "podbot build -Cdocs --c": ["--config"],
  "podbot build --cwd=docs --c": ["--config"],
  "podbot build --mode ": ["none", "open"],
  "podbot build --mode o": ["open"],
  "podbot build --mode=o": ["open"],
  "podbot build --mode=": ["none", "open"],
  "podbot build --path -q --mode o": ["open"],
  "podbot build --time ": [],
  "podbot build --path d": files,
  "podbot build --config d": files,
  "podbot build --config=d": files,
  "podbot build -c d": files,
  "podbot build --cwd d": directories,
  "podbot build --cwd=d": directories,
  "podbot build -C d": directories,
  "podbot build zork": ["zorkmid"],
  "podbot build -- zork": ["zorkmid"],
  "podbot build --mode open -q zork": ["zorkmid"],
  "podbot build -- -q --m": { ...files, zsh: [], fish: [] },
  "podbot build cat d": files,
  "podbot build -- cat d": files,
  "podbot build cat --mode d": files,
  "podbot build cat --config x -- d": files,
  "podbot enter ": ["calm-yak", "kind-owl"],
  "podbot enter k": ["kind-owl"],
  "podbot enter --cwd docs k": ["kind-owl"],
  // Zsh takes whatever follows the session for the command.
  "podbot enter kind-owl --c": { bash: ["--cwd"], zsh: [], fish: ["--cwd"] },
  "podbot enter kind-owl zork": ["zorkmid"],
  "podbot enter kind-owl -- zork": ["zorkmid"],
  "podbot enter kind-owl cat --cwd d": files,
  "podbot end ": ["calm-yak", "kind-owl"],
  "podbot end kind-owl c": ["calm-yak"],
  "podbot end --a": ["--all"],
  "podbot show ": ["left", "right"],
  "podbot show left d": files,
  "podbot show --json left d": files,
  "podbot show left data.txt ": [],
  "podbot show left data.txt --j": ["--json"],
};

describe.each(shells)("in %s", (shell) => {
  let found: Readonly<Record<string, Offer>>;
  beforeAll(async () => {
    found = await offers(shell, plain, Object.keys(expected));
  });

  test.each(Object.entries(expected))("%j is completed", (line, words) => {
    const offer = Object.keys(found[line] ?? {});
    const bare = offer.map((word) => word.replace(/^--\w+=|\/$/g, "")).sort();
    expect(bare).toEqual("bash" in words ? words[shell] : words);
  });

  test("sessions that cannot be listed are not missed", async () => {
    const line = "podbot end ";
    expect(await offers(shell, plain, [line, line], "broken")).toEqual({ [line]: {} });
  });

  test("the script is well-formed", () => {
    for (const commands of [plain, nasty, realCommands]) {
      const { status, stderr } = spawnSync(shell, ["-n", writeScript(shell, commands)], { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
  });

  test("every command and flag of the real table is offered", async () => {
    const lines = realCommands.map(({ name }) => `podbot ${name} --`);
    const offered = await offers(shell, realCommands, ["podbot ", ...lines]);
    expect(Object.keys(offered["podbot "] ?? {}).sort()).toEqual(
      [...realCommands.map(({ name }) => name), "help"].sort(),
    );
    for (const { name, flags } of realCommands) {
      expect(flagsIn(offered[`podbot ${name} --`]).sort()).toEqual(flags.map((flag) => `--${flag.name}`).sort());
    }
  });

  test("no text of the table is taken for code", async () => {
    const lines = ["podbot n", "podbot nasty --", "podbot nasty --third ", "podbot nasty --first ", "podbot nasty x d"];
    const offered = await offers(shell, nasty, lines);
    const [names, flags, choices, nothing, after] = lines.map((line) => offered[line] ?? {});
    expect(Object.keys(names ?? {})).toEqual(["nasty"]);
    expect(flagsIn(flags)).toEqual(expect.arrayContaining(["--first", "--help", "--second", "--third"]));
    expect(
      Object.keys(choices ?? {})
        .map(unquoted[shell])
        .sort(),
    ).toEqual([...nastyChoices].sort());
    expect(nothing).toEqual({});
    expect(Object.keys(after ?? {})).toEqual(
      { bash: ["-o default"], zsh: ["data.txt", "docs"], fish: ["data.txt", "docs/"] }[shell],
    );
    if (shell !== "bash") {
      expect(names).toEqual({ nasty: nastyText });
      expect(flags).toMatchObject({
        "--first": `1 ${nastyText}`,
        "--third": `3 ${nastyText}`,
        "--second": `${nastyText} ${nastyText} [31m`,
      });
    }
    expect(readdirSync(join(place, "here")).sort()).toEqual(["a dir", "data.txt", "docs"]);
  });
});

/** Bash is given candidates as they are to be written, the others as they are. */
const unquoted: Readonly<Record<Shell, (word: string) => string>> = {
  bash: (word) => word.replace(/\\(.)/g, "$1"),
  zsh: (word) => word,
  fish: (word) => word,
};

describe.each(["bash", "zsh"] as const)("what a tab writes in %s", (shell) => {
  test("is what podbot then reads", async () => {
    const lines = {
      "podbot bu": ["build"],
      "podbot build --mode=o": ["build", "--mode=open"],
      "podbot build --config dat": ["build", "--config", "data.txt"],
      "podbot build --config=dat": ["build", "--config=data.txt"],
      "podbot build --path a": ["build", "--path", "a dir"],
      "podbot build --cwd=a": ["build", "--cwd=a dir"],
      "podbot build --cwd a": ["build", "--cwd", "a dir"],
      "podbot build --cwd ~/../here/do": ["build", "--cwd", `${place}/home/../here/docs`],
      "podbot build -- cat dat": ["build", "--", "cat", "data.txt"],
      "podbot end kind-owl ca": ["end", "kind-owl", "calm-yak"],
    };
    const ran = await runs(shell, plain, Object.keys(lines));
    expect(ran.map((words) => words.map((word) => word.replace(/\/$/, "")))).toEqual(Object.values(lines));
  });

  test("is quoted where it must be", async () => {
    const typed = ["it", "a", "\\$H", "\\`", "\\$\\(", "q", "c:", "e=", "\\[", "h"];
    const wanted = ["it's", "a b", "$HOME", "`touch pwned`", "$(touch pwned)", 'q"q', "c:d", "e=f", "[g]", "h\\i"];
    for (const attach of [" ", "="]) {
      const ran = await runs(
        shell,
        nasty,
        typed.map((start) => `podbot nasty --third${attach}${start}`),
      );
      expect(ran.map((words) => words.join(" "))).toEqual(wanted.map((choice) => `nasty --third${attach}${choice}`));
    }
  });
});

test("bash-completion, where it is loaded, completes foreign commands", async () => {
  const file = join(place, "_command_offset");
  const stub = `_command_offset() { COMPREPLY=("offset $1 \${COMP_WORDS[$1]}"); }`;
  writeFileSync(file, `${completionScript("bash", plain)}\n${stub}\n`);
  const record = await atTerminal("bash", spying.bash(file), ["podbot build --mode=open -- zork x"], "bin");
  expect(record).toBe("offset 6 zork\n\n");
});

test("zsh can source the script instead of finding it", async () => {
  const file = join(place, "sourced.zsh");
  writeFileSync(file, completionScript("zsh", plain));
  rmSync(join(place, "_podbot"), { force: true });
  const record = await atTerminal("zsh", `${spying.zsh(file)}source ${file}\n`, ["podbot bui"], "bin");
  expect(record).toBe("build\tBuild a thing.\n\n");
});

describe("podbot completion", () => {
  test.each(shells)("prints the script for %s", async (shell) => {
    const { status, stdout, stderr } = await newWorld().podbot(["completion", shell]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(completionScript(shell, realCommands));
  });

  test.each([
    [[], "say which shell"],
    [["tcsh"], 'there is no completion for "tcsh"'],
    [["toString"], 'there is no completion for "toString"'],
  ])("%j names the shells and where their scripts belong", async (words, problem) => {
    const { status, stdout, stderr } = await newWorld().podbot(["completion", ...words]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(`podbot completion: ${problem}.`);
    expect(stderr).toContain("podbot completion bash > ~/.local/share/bash-completion/completions/podbot");
    expect(stderr).toContain("podbot completion zsh > ~/.zfunc/_podbot");
    expect(stderr).toContain("podbot completion fish > ~/.config/fish/completions/podbot.fish");
    expect(stderr).toContain("fpath");
  });
});
