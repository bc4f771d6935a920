#!/usr/bin/env bash
# Runs a command in its own mount namespace, as root. The mounts vanish with its last process:
# - /mnt/podbot is the checkout. Some tests run as another user, who often cannot enter the home directory that holds
#   the checkout. If that user cannot execute Node either, /mnt/node is the directory that Node is installed in.
# - /tmp, /dev/shm, /etc/cni/net.d and /var/lib/containers are private, and so is every new entry of /run: the engines
#   leave files there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .make/mnt
exec unshare --mount --propagation private bash -euc '
  # Without -n, mount would keep notes in /run.
  mount() { command mount -n "$@"; }
  # The stage lies in the checkout, because a checkout below /mnt or /tmp is hidden as soon as these are covered.
  stage=$PWD/.make/mnt
  mount -t tmpfs -o mode=755 podbot "$stage"
  mkdir "$stage"/{podbot,run,tmp}
  mount --bind "$PWD" "$stage/podbot"

  node=$(readlink -f "$(command -v node)")
  if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$node"; then
    mkdir "$stage/node"
    mount --bind "$(dirname "$(dirname "$node")")" "$stage/node"
    PATH=/mnt/node/bin:$PATH
  fi

  mount -t tmpfs -o mode=755 podbot "$stage/run"
  for entry in /run/*; do
    inside=$stage/run/${entry##*/}
    if [[ -L $entry ]]; then cp -P "$entry" "$inside"; continue; fi
    if [[ -d $entry ]]; then mkdir "$inside"; else : >"$inside"; fi
    mount --rbind "$entry" "$inside"
  done
  mount --move "$stage/run" /run

  if [[ -d /etc/cni/net.d ]]; then
    cp -a /etc/cni/net.d "$stage/cni"
    mount --bind "$stage/cni" /etc/cni/net.d
  fi
  [[ ! -d /var/lib/containers ]] || mount -t tmpfs -o mode=700 podbot /var/lib/containers
  mount -t tmpfs -o mode=1777 podbot /dev/shm
  mount --move "$stage" /mnt
  mount -t tmpfs -o mode=1777 podbot /tmp
  cd /mnt/podbot
  exec "$@"' private-mounts "$@"
