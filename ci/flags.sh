#!/bin/bash
# Asks pkg-config once and writes the flags of all libraries to FILE, which the Makefile includes: asking in each recipe costs a
# fork for every object. A library that is missing is named with the command that installs it. Usage: ci/flags.sh FILE
#
# As root, the packages that building needs are installed at once, as 'make demo' does (CULPRIT_INSTALL=no: not).
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:?usage: ci/flags.sh FILE}
core='lua5.4 libssh sqlite3 jansson fuse3 gsl libcrypto zlib libzstd libcurl libmicrohttpd'
agent='jansson libnftnl libmnl zlib libbpf'

missing() { # prints what the build lacks, a word each
	local name
	for name in "${CC:-gcc}" clang llvm-strip bpftool pkg-config; do
		PATH=$PATH:/usr/sbin command -v "$name" >/dev/null || echo "$name"
	done
	if command -v pkg-config >/dev/null; then
		# shellcheck disable=SC2086
		for name in $core $agent; do pkg-config --exists "$name" || echo "$name"; done
	fi
}

lacks=$(missing | sort -u | tr '\n' ' ')
if [[ $lacks && $EUID -eq 0 && ${CULPRIT_INSTALL:-yes} != no ]] && command -v apt-get >/dev/null; then
	ci/install.sh --demo >&2
	lacks=$(missing | sort -u | tr '\n' ' ')
fi
if [[ $lacks ]]; then
	echo "make: the build lacks: ${lacks% }" >&2
	echo "make: install the Debian packages it needs with: ci/install.sh --demo" >&2
	exit 2
fi

mkdir -p "$(dirname "$file")"
{
	# shellcheck disable=SC2086
	echo "PKG_CFLAGS := $(pkg-config --cflags $core $agent)"
	# shellcheck disable=SC2086
	echo "CORE_LIBS := $(pkg-config --libs $core) -lm"
	# shellcheck disable=SC2086
	echo "AGENT_LIBS := $(pkg-config --libs $agent) -lm"
	# shellcheck disable=SC2086
	echo "TEST_LIBS := $(pkg-config --libs $core $agent) -lm"
	# Only tests need it; empty where it is missing, and asked for again then.
	echo "CMOCKA_LIBS := $(pkg-config --libs cmocka 2>/dev/null || true)"
	# binutils' second linker takes a third of the time for 140 test programs.
	echo "TEST_LD := $(command -v ld.gold >/dev/null && echo -fuse-ld=gold)"
	echo "MULTIARCH := $("${CC:-gcc}" -print-multiarch)"
} >"$file.new"
mv "$file.new" "$file"
