import type { Command, Flag } from "../command.ts";
import { flagSource, positionalWords, type Source } from "./source.ts";
import { indent, oneLine, quoteFish, shell } from "./text.ts";

export function fishScript(commands: readonly Command[]): string {
  return [
    "# Completion of podbot for fish, printed by `podbot completion fish`.",
    "",
    program(indent(2, commands.flatMap(commandCase)).join("\n")),
    ...[...commands, { name: "help", summary: "Explain a command." }].flatMap(({ name, summary }) => [
      rule("__podbot_at_start", `-a ${quoteFish(quoteFish(name))}`, summary),
      ...(name === "help" ? [] : [rule("__podbot_at_word help -eq 0", `-a ${quoteFish(quoteFish(name))}`, summary)]),
    ]),
    rule("__podbot_at_start", "-s h -l help", "Show help."),
    rule("__podbot_at_start", "-s v -l version", "Show the version."),
    ...commands.flatMap(commandRules),
    "",
  ].join("\n");
}

function commandCase(command: Command): string[] {
  const valued = command.flags.filter(({ value }) => value !== undefined).flatMap(flagForms);
  return [
    `case ${quoteFish(command.name)}`,
    `  set valued ${valued.map(quoteFish).join(" ")}`,
    ...(command.takesCommand ? [`  set foreign ${positionalWords(command).length}`] : []),
  ];
}

function commandRules(command: Command): string[] {
  const name = quoteFish(command.name);
  return [
    ...command.flags.map((flag) => flagRule(command, flag)),
    ...positionalWords(command).flatMap(({ repeated, source }, at) =>
      source.kind === "nowhere"
        ? []
        : [rule(`__podbot_at_word ${name} ${repeated ? "-ge" : "-eq"} ${at}`, sourceFlags(source))],
    ),
    ...(command.takesCommand ? [rule(`__podbot_at_foreign ${name}`, "-a '(__podbot_foreign)'")] : []),
  ];
}

function flagRule(command: Command, flag: Flag): string {
  const { name, short, value, repeatable, about } = flag;
  const once = repeatable ? [] : flagForms(flag).map(quoteFish);
  const condition = ["__podbot_at_flag", quoteFish(command.name), ...once].join(" ");
  const forms = `${short === undefined ? "" : `-s ${quoteFish(short)} `}-l ${quoteFish(name)}`;
  return rule(condition, `${forms}${value === undefined ? "" : ` -r ${sourceFlags(flagSource(flag))}`}`, about);
}

function flagForms({ name, short }: Flag): string[] {
  return [...(short === undefined ? [] : [`-${short}`]), `--${name}`];
}

function sourceFlags(source: Source): string {
  switch (source.kind) {
    case "nowhere":
      return "-f";
    case "files":
      return "-F";
    case "directories":
      return "-f -a '(__podbot_directories)'";
    case "sessions":
      return "-f -a '(command podbot ps --quiet 2>/dev/null </dev/null)'";
    case "choices":
      // Quoted twice, since fish expands what it is given here.
      return `-f -a ${quoteFish(source.of.map(quoteFish).join(" "))}`;
  }
}

function rule(condition: string, what: string, about?: string): string {
  const told = about === undefined ? "" : ` -d ${quoteFish(oneLine(about))}`;
  return `complete -c podbot -n ${quoteFish(condition)} ${what}${told}`;
}

const program = (cases: string): string => shell`# Reads the line up to the word that is being completed.
function __podbot_read
  set -g __podbot_command
  set -g __podbot_given
  set -g __podbot_count 0
  set -g __podbot_rest 0
  set -l tokens (commandline -opc)
  set -q tokens[2]; or return
  set -g __podbot_command $tokens[2]
  set -l valued
  set -l foreign -1
  switch $__podbot_command
${cases}
  end
  set -g __podbot_takes_after $foreign
  set -l i 3
  while test $i -le (count $tokens)
    set -l token $tokens[$i]
    if test "$token" = --
      set -g __podbot_rest (math $i + 1)
      return
    else if string match -qr -- '^--[^=]*=' $token
      set -a __podbot_given (string replace -r -- '=.*' '' $token)
    else if string match -qr -- '^(--|-.$)' $token
      if contains -- $token $valued
        # The value that is being written does not yet count.
        test $i -lt (count $tokens); or return
        set i (math $i + 1)
      end
      set -a __podbot_given $token
    else if string match -qr -- '^-.' $token
      set -a __podbot_given (string sub -l 2 -- $token)
    else if test $foreign -eq $__podbot_count
      set -g __podbot_rest $i
      return
    else
      set -g __podbot_count (math $__podbot_count + 1)
    end
    set i (math $i + 1)
  end
end

function __podbot_at_start
  __podbot_read
  test -z "$__podbot_command"
end

# Whether the command is $argv[1] and none of the flags that follow has been given.
function __podbot_at_flag
  __podbot_read
  test "$__podbot_command" = $argv[1] -a $__podbot_rest -eq 0; or return
  for flag in $argv[2..]
    contains -- $flag $__podbot_given; and return 1
  end
  return 0
end

function __podbot_at_word
  __podbot_read
  test "$__podbot_command" = $argv[1] -a $__podbot_rest -eq 0 -a $__podbot_count $argv[2] $argv[3]
end

function __podbot_at_foreign
  __podbot_read
  test "$__podbot_command" = $argv[1]; or return
  test $__podbot_rest -gt 0 -o $__podbot_count -eq $__podbot_takes_after
end

function __podbot_foreign
  __podbot_read
  set -l line (commandline -ct)
  if test $__podbot_rest -gt 0
    set -l tokens (commandline -opc)
    set line (string join -- ' ' (string escape -- $tokens[$__podbot_rest..]) $line)
  else if string match -q -- '-*' $line
    return
  end
  complete "--do-complete=$line"
end

function __podbot_directories
  __fish_complete_directories (commandline -ct | string replace -r -- '^(--[^=]*=|-[^-])' '')
end

complete -c podbot -e
complete -c podbot -f
`;
