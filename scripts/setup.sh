#!/usr/bin/env bash
# Makes sure of everything that the build needs and, with the arguments "test", "test-e2e", "package" or "bench", of
# what these need besides.
# What is there already is left alone. System packages are installed by apt-get, as root or through `sudo -n`.
set -euo pipefail
cd "$(dirname "$0")/.."
# An ordinary user's PATH often lacks where dockerd lies.
PATH=$PATH:/usr/sbin:/sbin

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
wanted=" $* "
wants() { [[ $wanted == *" $1 "* ]]; }
need() { apt+=("$1"); dnf+=("${2:-$1}"); pacman+=("${3:-$1}"); }
command -v bwrap >/dev/null || need bubblewrap
command -v git >/dev/null || need git
command -v gcc >/dev/null || need gcc
command -v musl-gcc >/dev/null || need musl-tools musl-gcc musl
if wants test; then
  command -v tmux >/dev/null || need tmux
  # An editor that takes the whole screen.
  command -v vi >/dev/null || need vim-tiny vim-minimal vi
  command -v python3 >/dev/null || need python3 python3 python
  # openssl makes certificates for an engine behind TLS, and verifies the gateway's certificates.
  command -v openssl >/dev/null || need openssl
  # curl and wget are clients of the gateway.
  command -v curl >/dev/null || need curl
  command -v wget >/dev/null || need wget
  command -v ssh >/dev/null || need openssh-client openssh-clients openssh
  [[ -x /usr/sbin/sshd || -x /usr/bin/sshd ]] || need openssh-server openssh-server openssh
  # The shells, beside bash, whose completion is tested.
  command -v zsh >/dev/null || need zsh
  command -v fish >/dev/null || need fish
  # libfaketime lets the clock of the test processes jump.
  compgen -G "/usr/lib*/*/faketime/libfaketime.so.1" >/dev/null || compgen -G "/usr/lib*/faketime/libfaketime.so.1" >/dev/null ||
    need libfaketime
  libc=$(gcc -print-file-name=libc.so 2>/dev/null || true)
  [[ $libc == /* && -e $libc ]] || need libc6-dev glibc-devel glibc
fi
if wants package; then
  # The package carries programs for two architectures.
  if [[ $(uname -m) == x86_64 ]]; then
    command -v aarch64-linux-gnu-gcc >/dev/null || need gcc-aarch64-linux-gnu gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
    libc=$(aarch64-linux-gnu-gcc -print-file-name=libc.a 2>/dev/null || true)
    [[ $libc == /* ]] || need libc6-dev-arm64-cross sysroot-aarch64-glibc aarch64-linux-gnu-glibc
  else
    command -v x86_64-linux-gnu-gcc >/dev/null || need gcc-x86-64-linux-gnu gcc-x86_64-linux-gnu x86_64-linux-gnu-gcc
    libc=$(x86_64-linux-gnu-gcc -print-file-name=libc.a 2>/dev/null || true)
    [[ $libc == /* ]] || need libc6-dev-amd64-cross sysroot-x86_64-glibc x86_64-linux-gnu-glibc
  fi
fi
if wants test-e2e; then
  # Runs the programs of the other architecture.
  command -v "qemu-$([[ $(uname -m) == x86_64 ]] && echo aarch64 || echo x86_64)-static" >/dev/null ||
    need qemu-user-static
  # The engines. Not crun: where it is installed Podman prefers it, and it refuses some machines' cgroups.
  command -v podman >/dev/null || need podman
  command -v runc >/dev/null || need runc
  command -v dockerd >/dev/null || need docker.io docker docker
  command -v runsc >/dev/null || need runsc runsc gvisor-bin
  [[ -x /usr/lib/podman/netavark || -x /usr/libexec/podman/netavark ]] || need netavark
  command -v catatonit >/dev/null || need catatonit
  # Rootless Podman.
  command -v newuidmap >/dev/null || need uidmap shadow-utils shadow
  command -v slirp4netns >/dev/null || need slirp4netns
  # A network in which real agents find nothing but loopback.
  command -v ip >/dev/null || need iproute2 iproute iproute2
  # Clients of the gateway that are too large for the fast suite. Only those that every user of the machine has.
  [[ -x /usr/bin/pip3 ]] || need python3-pip python3-pip python-pip
  /usr/bin/python3 -c 'import requests' 2>/dev/null || need python3-requests python3-requests python-requests
  [[ -x /usr/bin/go ]] || need golang-go golang go
  [[ -x /usr/bin/cargo ]] || need cargo cargo rust
  [[ -x /usr/bin/javac ]] || need default-jdk-headless java-latest-openjdk-devel jdk-openjdk
  # Their image.
  command -v mmdebstrap >/dev/null || need mmdebstrap
fi
if wants bench; then
  # For srt, beside which Podbot is measured.
  command -v socat >/dev/null || need socat
  command -v rg >/dev/null || need ripgrep
  # And podman, beside which exec is.
  command -v podman >/dev/null || need podman
  command -v runc >/dev/null || need runc
  # And another proxy that opens TLS, beside which the gateway is.
  command -v mitmdump >/dev/null || need mitmproxy
fi

as=()
[[ $EUID == 0 ]] || as=(sudo -n)
policy=/usr/sbin/policy-rc.d
# A set-up that was killed has left it, and it would keep daemons from starting for ever.
if grep -qs "podbot's set-up" "$policy"; then "${as[@]}" rm -f "$policy" || true; fi

if ((${#apt[@]} > 0)); then
  if command -v apt-get >/dev/null && { [[ $EUID == 0 ]] || sudo -n true 2>/dev/null; }; then
    echo "setup: installing ${apt[*]}"
    install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${apt[@]}")
    # Some packages start a daemon when they are installed. The tests need only its program, so policy-rc.d keeps the
    # daemon from starting now, and `systemctl disable` from starting with the machine.
    daemons=()
    if [[ " ${apt[*]} " == *" docker.io "* ]]; then
      daemons+=(docker.service docker.socket)
      command -v containerd >/dev/null || daemons+=(containerd.service)
    fi
    [[ " ${apt[*]} " != *" openssh-server "* ]] || daemons+=(ssh.service ssh.socket)
    if ((${#daemons[@]} > 0)) && [[ ! -e $policy ]]; then
      trap '"${as[@]}" rm -f "$policy"' EXIT
      printf "#!/bin/sh\n# podbot's set-up\nexit 101\n" | "${as[@]}" install -m 755 /dev/stdin "$policy"
    fi
    said=$({ "${as[@]}" apt-get update -qq && "${as[@]}" "${install[@]}"; } 2>&1) || fail "apt-get failed:" "$said"
    if ((${#daemons[@]} > 0)) && command -v systemctl >/dev/null; then
      "${as[@]}" systemctl disable --quiet "${daemons[@]}" 2>/dev/null || true
    fi
  else
    fail "system packages are missing. Install them with one of:" \
      "sudo apt-get install ${apt[*]}" \
      "sudo dnf install ${dnf[*]}" \
      "sudo pacman -S --needed ${pacman[*]}"
  fi
fi

if wants test-e2e && [[ ! -d /var/lib/containers ]]; then
  # Root's Podman creates it at its first use. The slow suite mounts a directory of its own over it.
  if [[ $EUID == 0 ]]; then mkdir -m 700 /var/lib/containers; else sudo -n mkdir -m 700 /var/lib/containers; fi
fi

# Its end marks a complete installation: an npm that was killed leaves half of one. It inherits the lock, since it may
# outlive this script for a while, and then removes what it had installed.
installed=node_modules/.installed
mkdir -p .make
exec 9>.make/npm-lock
flock 9
if [[ ! package-lock.json -ot $installed ]]; then
  echo "setup: npm ci"
  rm -f "$installed"
  npm ci --no-progress --loglevel=error
  touch "$installed"
fi
