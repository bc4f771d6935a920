import { UsageError } from "../errors.ts";
import type { Command, Parsed } from "./command.ts";
import { bashScript } from "./completion/bash.ts";
import { fishScript } from "./completion/fish.ts";
import { zshScript } from "./completion/zsh.ts";
import type { Io } from "./io.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export type Shell = keyof typeof scripts;

const places: Readonly<Record<Shell, string>> = {
  bash: "~/.local/share/bash-completion/completions/podbot",
  zsh: "~/.zfunc/_podbot",
  fish: "~/.config/fish/completions/podbot.fish",
};

/** A script that teaches a shell to complete command lines of podbot. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  return scripts[shell](commands);
}

/** `podbot completion`. The table is handed in, since it is the table that names this file. */
export function completionOf(commands: readonly Command[]): {
  readonly run: (parsed: Parsed, io: Io) => Promise<number>;
} {
  return {
    run: async (parsed, io) => {
      io.stdout.write(completionScript(shellOf(parsed.words[0]), commands));
      return 0;
    },
  };
}

function shellOf(word: string | undefined): Shell {
  if (word !== undefined && Object.hasOwn(scripts, word)) return word as Shell;
  const problem = word === undefined ? "say which shell" : `there is no completion for ${JSON.stringify(word)}`;
  throw new UsageError("USAGE", `podbot completion: ${problem}.`, {
    hint: [
      "It knows bash, zsh and fish.",
      ...(Object.keys(places) as Shell[]).map((shell) => `\`podbot completion ${shell} > ${places[shell]}\``),
      "Zsh finds it when `fpath=(~/.zfunc $fpath)` stands before `compinit` in ~/.zshrc.",
    ].join("\n    "),
  });
}
