#!/usr/bin/env bash
# Makes the root that the containers of the slow suite have, of packages of this machine's own distribution, and says
# where its archive is. It is made once, and again when this file changes.
set -euo pipefail
cd "$(dirname "$0")/.."

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[[ -n $codename ]] && command -v apt-get >/dev/null && command -v mmdebstrap >/dev/null || {
  echo "e2e-image: this needs Debian or Ubuntu, and mmdebstrap" >&2
  exit 1
}

mkdir -p .make/e2e
exec 9>.make/e2e/lock
flock 9
key=$({ cat scripts/e2e-image.sh; echo "$codename $(dpkg --print-architecture)"; } | sha256sum | cut -c1-16)
image=.make/e2e/root-$key.tar
if [[ ! -e $image ]]; then
  # Where apt has its own packages from, and how it gets there.
  mirror() {
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' "Created-By: Packages" |
      sed -n "/^$codename main /{s///p;q}"
  }
  [[ -n $(mirror) ]] || apt-get update -qq >&2
  options=()
  while IFS= read -r line; do
    options+=("--aptopt=$line")
  done < <(apt-config dump --format '%F "%v";%n' | grep -E '^Acquire::(https?::|Check-|ForceIPv|Retries)' | grep -v ' "";$')
  for unread in doc info locale man; do options+=("--dpkgopt=path-exclude=/usr/share/$unread/*"); done

  # gVisor of 2022 refuses AT_NO_AUTOMOUNT, which df, ls and stat of coreutils pass. So these three come from busybox.
  echo "e2e-image: making a root of $codename" >&2
  rm -f .make/e2e/root-*
  said=$(mmdebstrap --quiet --format=tar --variant=essential --include=busybox,git,python3-minimal "${options[@]}" \
    --customize-hook='for each in df ls stat; do ln -s /bin/busybox "$1/usr/local/bin/$each"; done' \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/apt/sources.list' --skip=output/dev \
    "$codename" "$image.part" "$(mirror)" 2>&1) || {
    printf '%s\n' "e2e-image: mmdebstrap failed:" "$said" >&2
    exit 1
  }
  mv "$image.part" "$image"
fi
echo "$PWD/$image"
