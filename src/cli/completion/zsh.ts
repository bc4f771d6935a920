import type { Command, Flag } from "../command.ts";
import { flagSource, positionalWords, type Source } from "./source.ts";
import { indent, oneLine, quotePosix, shell } from "./text.ts";

/** Works from a directory of `fpath` as well as when it is sourced. */
export function zshScript(commands: readonly Command[]): string {
  const lists: string[][] = [];
  /** What `_arguments` is to do for a source. Choices stay out of its little language: they go by number. */
  const action = (source: Source): string => {
    if (source.kind !== "choices") return actions[source.kind];
    lists.push(source.of.map(quotePosix));
    return `_podbot_choices ${lists.length}`;
  };
  const cases = commands.flatMap((command) => commandCase(command, action));
  const names = commands.map(({ name, summary }) =>
    quotePosix(`${escapeName(name)}:${escapeSummary(oneLine(summary))}`),
  );
  return [
    "#compdef podbot",
    "# Completion of podbot for zsh, printed by `podbot completion zsh`.",
    "",
    "_podbot_choices() {",
    "  local number=$@[-1]",
    "  case $number in",
    ...lists.map((list, at) => `    ${at + 1}) compadd "$\{@[1,-2]}" -- ${list.join(" ")} ;;`),
    "  esac",
    "}",
    "",
    "_podbot_commands() {",
    "  local -a commands=(",
    ...indent(2, names),
    "  )",
    "  [[ $@[-1] == all ]] && commands+=('help:Explain a command.')",
    "  _describe -t commands command commands",
    "}",
    "",
    program(indent(2, cases).join("\n")),
  ].join("\n");
}

const actions = {
  nowhere: " ",
  files: "_files",
  directories: "_files -/",
  sessions: "_podbot_sessions",
} as const;

function commandCase(command: Command, action: (source: Source) => string): string[] {
  const words = positionalWords(command).map(({ name, optional, repeated, source }, at) => {
    const place = repeated ? "*:" : `${at + 1}:${optional ? ":" : ""}`;
    return quotePosix(`${place}${escapeMessage(name)}:${action(source)}`);
  });
  const specs = [
    ...command.flags.filter(isSimple).map((flag) => flagSpecs(flag, action(flagSource(flag)))),
    ...words,
    ...(command.takesCommand ? ["'*:::command:_normal'"] : []),
  ];
  return [
    `(${quotePosix(command.name)})`,
    `  _arguments -S \\`,
    ...specs.map((spec, at) => `    ${spec}${at + 1 < specs.length ? " \\" : ""}`),
    "  ;;",
  ];
}

/** The little language has no way to quote a blank in a flag's name; who has such a flag completes it by hand. */
function isSimple({ name, short = "" }: Flag): boolean {
  return /^[\w-]*$/.test(name + short);
}

function flagSpecs(flag: Flag, action: string): string {
  const { name, short, value, repeatable, about } = flag;
  const forms = [...(short === undefined ? [] : [`-${short}`]), `--${name}`];
  const once = repeatable ? "*" : `(${forms.join(" ")})`;
  const tail = `[${escapeAbout(oneLine(about))}]${value === undefined ? "" : `:${escapeMessage(value)}:${action}`}`;
  return forms
    .map((form) => `${form}${value === undefined ? "" : form.startsWith("--") ? "=" : "+"}`)
    .map((form) => quotePosix(`${once}${form}${tail}`))
    .join(" ");
}

function escapeName(name: string): string {
  return name.replace(/[\\:]/g, "\\$&");
}

function escapeSummary(text: string): string {
  return text.replaceAll("\\", "\\\\");
}

function escapeAbout(text: string): string {
  return text.replace(/[\\[\]]/g, "\\$&");
}

function escapeMessage(text: string): string {
  return oneLine(text).replaceAll("\\", "").replaceAll(":", "\\:");
}

const program = (cases: string): string => shell`_podbot_sessions() {
  local -a found=(\${(f)"$(command podbot ps --quiet 2>/dev/null </dev/null)"})
  local -a expl
  _wanted sessions expl session compadd -a found
}

_podbot() {
  local curcontext=$curcontext state
  local -a line state_descr
  local -A opt_args
  _arguments -C \
    '(- *)'{-h,--help}'[Show help.]' \
    '(- *)'{-v,--version}'[Show the version.]' \
    '1:command:_podbot_commands all' \
    '*:: :->arguments' && return
  [[ $state == arguments ]] || return
  curcontext=\${curcontext%:*:*}:podbot-$words[1]:
  case $words[1] in
${cases}
    (help) _arguments '1:command:_podbot_commands only' ;;
  esac
}

if [[ $funcstack[1] == _podbot ]]; then
  _podbot "$@"
else
  compdef _podbot podbot
fi
`;
