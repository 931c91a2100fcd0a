#!/bin/bash
# Installs what culprit is built from, runs on and is tested with: the packages in ci/packages.txt, and with --all also those
# of ci/packages-all.txt, which only some tests need. Prints what it adds; silent when nothing is missing. Needs root (asks
# for sudo and says why).
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive

die() { echo "ci/install.sh: $*" >&2; exit 2; }

command -v apt-get >/dev/null || die "this installer works with Debian's apt-get only; install the packages of packages.txt by hand"

lists=(packages.txt)
case ${1-} in
--all) lists+=(packages-all.txt) ;;
'') ;;
*) die "there is no option '$1'; usage: ci/install.sh [--all]" ;;
esac

missing=()
while read -r name _; do
	[[ -z $name || $name == \#* ]] && continue
	[[ $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null || true) == "install ok installed" ]] || missing+=("$name")
done < <(cat "${lists[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || die "missing packages: ${missing[*]}; installing them needs root, and there is no sudo"
	echo "installing packages needs root: asking sudo"
	exec sudo --preserve-env=DEBIAN_FRONTEND "$PWD/install.sh" "$@"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; die "'$1' failed"; }; }

# iozone3 is in Debian's non-free, which is not configured on a bare machine. It comes from the mirror of the
# machine's own 'main'.
non_free=/etc/apt/sources.list.d/culprit-non-free.sources
if [[ " ${missing[*]} " == *" iozone3 "* && ! -e $non_free ]]; then
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v c="$codename" '$2 == c && $3 == "main" { print $1; exit }')
	[[ -n $mirror ]] || die "cannot find the mirror that 'main' of $codename comes from; add its non-free component by hand"
	echo "adding Debian's non-free component (for iozone3): $non_free"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: non-free\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
		"$mirror" "$codename" >"$non_free"
fi

echo "adding ${#missing[@]} packages: ${missing[*]}"
quietly apt-get -q update
# The packages' services are not started: culprit starts what it needs in its own namespaces.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$log" "$policy"' EXIT
fi
quietly apt-get -q -y --no-install-recommends install "${missing[@]}"
