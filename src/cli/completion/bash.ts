import type { Command, Flag } from "../command.ts";
import { flagSource, positionalWords, type Source } from "./source.ts";
import { indent, quotePosix, shell } from "./text.ts";

/** Needs nothing but bash; where the package bash-completion is loaded, it completes foreign commands. */
export function bashScript(commands: readonly Command[]): string {
  return [
    "# Completion of podbot for bash, printed by `podbot completion bash`.",
    "",
    "# Of the command $1: its flags, the sources of its words, and how many words precede a foreign command.",
    "_podbot_command() {",
    "  case $1 in",
    ...indent(2, commands.flatMap(commandCase)),
    "  esac",
    "}",
    "",
    "# Of the flag $2 of the command $1: its name, whether it can be repeated, and the source of its value.",
    "_podbot_flag() {",
    "  flag= repeatable= source=()",
    '  case "$1 $2" in',
    ...indent(
      2,
      commands.flatMap((command) => command.flags.map((flag) => flagCase(command, flag))),
    ),
    "  esac",
    "}",
    "",
    program(commands.map(({ name }) => name)),
  ].join("\n");
}

function commandCase(command: Command): string[] {
  const words = positionalWords(command);
  return [
    `${quotePosix(command.name)})`,
    `  flags=(${command.flags.map(({ name }) => quotePosix(`--${name}`)).join(" ")})`,
    ...(command.takesCommand ? [`  foreign=${words.length}`] : []),
    ...(words.length > 0 ? ["  case $count in"] : []),
    ...words.map(({ repeated, source }, at) => `    ${repeated ? "*" : at}) source=(${sourceWords(source)}) ;;`),
    ...(words.length > 0 ? ["  esac"] : []),
    "  ;;",
  ];
}

function flagCase(command: Command, flag: Flag): string {
  const { name, short, value, repeatable } = flag;
  const forms = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
  const patterns = forms.map((form) => quotePosix(`${command.name} ${form}`)).join(" | ");
  const source = value === undefined ? "" : ` source=(${sourceWords(flagSource(flag))})`;
  return `${patterns}) flag=${quotePosix(`--${name}`)}${repeatable ? " repeatable=1" : ""}${source} ;;`;
}

function sourceWords(source: Source): string {
  return [source.kind, ...(source.kind === "choices" ? source.of.map(quotePosix) : [])].join(" ");
}

const program = (names: readonly string[]): string => shell`# Offers those of its arguments that continue the word.
_podbot_offer() {
  local candidate quoted
  for candidate; do
    printf -v quoted %q "$candidate"
    [[ $candidate == "$value"* || $quoted == "$value"* ]] || continue
    # Readline has a mind of its own about where a word begins, and replaces only what is behind that.
    quoted=$lead$quoted
    COMPREPLY+=("\${quoted#"$kept"}")
  done
}

_podbot_offer_from() {
  local -a found
  case $1 in
    choices) _podbot_offer "\${@:2}" ;;
    sessions)
      mapfile -t found < <(command podbot ps --quiet 2>/dev/null </dev/null)
      _podbot_offer "\${found[@]}"
      ;;
    files) compopt -o default ;;
    directories) compopt -o dirnames -o filenames ;;
  esac
}

# Completes a foreign command that begins with word $1.
_podbot_foreign() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "\${starts[$1]}"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "\${starts[$1]}"
  elif (($1 < last)) || [[ $value == [~./]* || $value == */* ]]; then
    compopt -o default
  else
    mapfile -t COMPREPLY < <(compgen -c -- "$value")
  fi
}

_podbot() {
  COMPREPLY=()

  # Bash has cut the line at = and : too; what no blank divides is one word.
  local -a words=() starts=()
  local line=\${COMP_LINE:0:COMP_POINT} rest word i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    rest=\${line#"\${line%%[![:space:]]*}"} word=\${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=$rest
    if ((i > 0)) && [[ $rest == "$line" && -n $rest ]]; then
      words[-1]+=$word
    else
      words+=("$word") starts+=("$i")
    fi
    line=\${rest#"$word"}
  done

  local -i last=\${#words[@]}-1 count=0 foreign=-1
  local -a flags=() source=()
  local current=\${words[last]} value lead= kept command=\${words[1]} given=' ' flag repeatable
  value=$current kept=\${current%"$2"}

  if ((last == 1)); then
    _podbot_offer ${[...names, "help"].map(quotePosix).join(" ")}
    [[ $current != -* ]] || _podbot_offer --help --version
    return
  elif [[ $command == help ]]; then
    ((last > 2)) || _podbot_offer ${names.map(quotePosix).join(" ")}
    return
  fi

  _podbot_command "$command"
  for ((i = 2; i < last; i++)); do
    word=\${words[i]}
    case $word in
      --)
        ((foreign < 0)) || _podbot_foreign $((i + 1))
        return
        ;;
      -?*)
        case $word in
          --*=*) _podbot_flag "$command" "\${word%%=*}" ;;
          --* | -?) _podbot_flag "$command" "$word" ;;
          *) _podbot_flag "$command" "\${word:0:2}" ;;
        esac
        [[ -n $repeatable ]] || given+="$flag "
        if [[ -n \${source-} && $word != --*=* && ( $word == --* || $word == -? ) ]]; then
          if ((i + 1 == last)); then
            _podbot_offer_from "\${source[@]}"
            return
          fi
          ((++i))
        fi
        ;;
      *)
        if ((foreign == count)); then
          _podbot_foreign "$i"
          return
        fi
        ((++count))
        ;;
    esac
  done

  case $current in
    --*=*)
      _podbot_flag "$command" "\${current%%=*}"
      lead=\${current%%=*}= value=\${current#*=}
      [[ -z \${source-} ]] || _podbot_offer_from "\${source[@]}"
      return
      ;;
    -*) ;;
    *)
      if ((foreign == count)); then
        _podbot_foreign "$last"
        return
      fi
      source=()
      _podbot_command "$command"
      if [[ -n \${source-} ]]; then
        _podbot_offer_from "\${source[@]}"
        return
      fi
      ;;
  esac
  for flag in "\${flags[@]}"; do
    [[ $given == *" $flag "* ]] || _podbot_offer "$flag"
  done
}

complete -F _podbot podbot
`;
