#!/bin/bash
# Installs what culprit is built from, runs on and is tested with: the packages in ci/packages.txt, and with --all also those
# of ci/packages-all.txt, which only some tests need. With --demo only what building and 'make demo' need: not those whose
# note begins with "check:" (tests) or "more:" (other workloads and faults). Prints what it adds; silent when nothing is
# missing. Needs root (asks for sudo and says why).
#
# A package source that the machine had not is added only if somebody says so: on a terminal it asks; elsewhere --non-free
# or CULPRIT_NON_FREE=yes says yes. Without it, what comes from there is left out, and said.
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive

die() { echo "ci/install.sh: $*" >&2; exit 2; }

command -v apt-get >/dev/null || die "this installer works with Debian's apt-get only; install the packages of packages.txt by hand"

lists=(packages.txt) demo='' non_free_too=${CULPRIT_NON_FREE:-} given=("$@")
while [[ $# -gt 0 ]]; do
	case $1 in
	--all) lists+=(packages-all.txt) ;;
	--demo) demo=1 ;;
	--non-free) non_free_too=yes ;;
	*) die "there is no option '$1'; usage: ci/install.sh [--all | --demo] [--non-free]" ;;
	esac
	shift
done

missing=()
while read -r name note; do
	[[ -z $name || $name == \#* ]] && continue
	[[ $demo && ($note == '# check:'* || $note == '# more:'*) ]] && continue
	[[ $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null || true) == "install ok installed" ]] || missing+=("$name")
done < <(cat "${lists[@]}")

# iozone3 is in Debian's non-free, which is not configured on a bare machine.
non_free=/etc/apt/sources.list.d/culprit-non-free.sources
has_non_free() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(COMPONENT)' 'Created-By: Packages' 2>/dev/null | grep -qx non-free
}
add_non_free=''
if [[ " ${missing[*]-} " == *" iozone3 "* ]] && ! has_non_free; then
	if [[ $non_free_too != yes && -t 0 && -t 1 ]]; then
		echo "The iozone workloads need the package iozone3. It is in Debian's non-free, which this machine has no package source for."
		read -r -p "Add that source? Without it, all else works. [y/N] " answer || answer=
		[[ ${answer,,} != y* ]] || non_free_too=yes
	fi
	if [[ $non_free_too == yes ]]; then
		add_non_free=1
	else
		echo "iozone3 is left out: the iozone workloads cannot run, their tests are skipped (ci/install.sh --non-free adds Debian's non-free for it)"
		kept=()
		for name in "${missing[@]}"; do [[ $name == iozone3 ]] || kept+=("$name"); done
		missing=("${kept[@]+"${kept[@]}"}")
	fi
fi
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || die "missing packages: ${missing[*]}; installing them needs root, and there is no sudo"
	echo "installing packages needs root: asking sudo"
	[[ ! $add_non_free || " ${given[*]} " == *" --non-free "* ]] || given+=(--non-free)
	exec sudo --preserve-env=DEBIAN_FRONTEND "$PWD/install.sh" "${given[@]+"${given[@]}"}"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
columns=100
[[ ! -t 1 ]] || columns=$(stty size 2>/dev/null | cut -d' ' -f2) || true
[[ ${columns:-0} -gt 20 ]] || columns=80

# What the command says goes to the log; on a terminal its last line is shown in the meantime.
show() {
	local line
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		[[ ! -t 1 ]] || printf '\r\033[K     %s' "${line:0:columns-6}"
	done
	[[ ! -t 1 ]] || printf '\r\033[K'
}
quietly() {
	: >"$log"
	"$@" </dev/null 2>&1 | show || { cat "$log" >&2; die "'$1' failed"; }
}

# It comes from the mirror of the machine's own 'main'.
if [[ $add_non_free ]]; then
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

quietly apt-get -q update
# With what they depend on: "Need to get 231 MB of archives." "After this operation, 1,226 MB of additional disk space ..."
sizes=$(LC_ALL=C apt-get -q --assume-no --no-install-recommends install "${missing[@]}" 2>/dev/null |
	sed -n 's/^Need to get \([^/]*\).* of archives.*/\1 to fetch/p; s/^After this operation, \(.*\) of additional disk space.*/, \1 on disk/p' | tr -d '\n') || true
echo "adding ${#missing[@]} packages of Debian and what they depend on${sizes:+ ($sizes)}:"
fold -s -w $((columns - 4)) <<<"${missing[*]}" | sed 's/^/    /; s/ *$//'
# The packages' services are not started: culprit starts what it needs in its own namespaces.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$log" "$policy"' EXIT
fi
# dpkg's own progress bar has no place in a log.
quietly apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}"
