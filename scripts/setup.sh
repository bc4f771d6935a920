#!/usr/bin/env bash
# Makes sure of everything that the build needs and, with the argument "test" or "bench", of what these need besides.
# What is there already is left alone. System packages are installed by apt-get, as root or through `sudo -n`.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "setup: $1" >&2
  (($# == 1)) || printf '  %s\n' "${@:2}" >&2
  exit 1
}

command -v node >/dev/null || fail "Node.js is not installed; Podbot needs 20.19 or later."
node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' ||
  fail "Node.js $(node --version) is too old; Podbot needs 20.19 or later."
command -v npm >/dev/null || fail "npm is not installed; it comes with Node.js."

apt=() dnf=() pacman=()
need() { apt+=("$1"); dnf+=("${2:-$1}"); pacman+=("${3:-$1}"); }
command -v bwrap >/dev/null || need bubblewrap
command -v git >/dev/null || need git
command -v gcc >/dev/null || need gcc
command -v musl-gcc >/dev/null || need musl-tools musl-gcc musl
if [[ ${1:-} == test ]]; then
  command -v tmux >/dev/null || need tmux
  command -v python3 >/dev/null || need python3 python3 python
  libc=$(gcc -print-file-name=libc.so 2>/dev/null || true)
  [[ $libc == /* && -e $libc ]] || need libc6-dev glibc-devel glibc
fi
if [[ ${1:-} == bench ]]; then
  # For srt, beside which Podbot is measured.
  command -v socat >/dev/null || need socat
  command -v rg >/dev/null || need ripgrep
fi

if ((${#apt[@]} > 0)); then
  as=()
  [[ $EUID == 0 ]] || as=(sudo -n)
  if command -v apt-get >/dev/null && { [[ $EUID == 0 ]] || sudo -n true 2>/dev/null; }; then
    echo "setup: installing ${apt[*]}"
    install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${apt[@]}")
    said=$({ "${as[@]}" apt-get update -qq && "${as[@]}" "${install[@]}"; } 2>&1) || fail "apt-get failed:" "$said"
  else
    fail "system packages are missing. Install them with one of:" \
      "sudo apt-get install ${apt[*]}" \
      "sudo dnf install ${dnf[*]}" \
      "sudo pacman -S --needed ${pacman[*]}"
  fi
fi

if [[ ! package-lock.json -ot node_modules/.package-lock.json ]]; then
  echo "setup: npm ci"
  npm ci --no-progress --loglevel=error
  touch node_modules/.package-lock.json
fi
