#!/bin/bash
# The fleet detector at its default on data that others made, and on recorded runs of this project.
#
#     ci/bench/fleet_public.sh get DIR             fetch and convert the public data (network; apt-get, npm, Rscript, node)
#     ci/bench/fleet_public.sh trial DIR [DRAWS]   findings, and planted faults (default: 200 of each) -> results/fleet/
#     ci/bench/fleet_public.sh recorded [RUN ...]  recorded runs with known victims -> results/fleet/
#     ci/bench/fleet_public.sh page                results/fleet-public.md from results/fleet/
#
# Data (nothing is installed, and nothing of it is in the repository):
#   flights   npm vega-datasets: 3 million flights of 2001 in the United States (Bureau of Transportation Statistics; public
#             domain), read by npm hyparquet and fzstd (MIT). Members: airports; groups: census divisions; 3 hours a sample.
#   air       Debian r-cran-spacetime: daily PM10 at rural background stations in Germany, 1998 to 2009 (AirBase of the
#             European Environment Agency; free with attribution; the package is GPL-2+). Members: stations; groups: networks.
#   cpus      Debian pcp-testsuite: 24 processors of a machine for 6 minutes in 1996, every 3 s (GPL-2+). One group.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=ci/bench trial=${OUT:-out}/bench/fleet_public_trial culprit=${OUT:-out}/culprit results=${RESULTS:-results/fleet}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
metrics=(flights:late_min air:pm10 cpus:sys)
runs=(results/runs/table1-20261121 results/runs/table1-again-20261122)

die() {
	echo "fleet_public: $*" >&2
	exit 2
}

# Package, its version, and a file in it with its checksum.
debian=("r-cran-spacetime=1.2-8+dfsg-1" "pcp-testsuite=6.0.3-1.1" "pcp=6.0.3-1.1" "libpcp3=6.0.3-1.1" "pcp-conf=6.0.3-1.1")
npm=("vega-datasets@3.2.1" "hyparquet@1.31.5" "fzstd@0.1.1")
archives=debian/var/lib/pcp/testsuite/archives
checksums="1fb2eb299947fd525069b865d48fa88efd3dc8d2307e8779fe005b63eaa53981  debian/usr/lib/R/site-library/spacetime/data/air.rda
dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0  vega-datasets/data/flights-3m.parquet
903c7169e6d558eefb95295fe2947ec8503135fbb855ea5c737cf4a90ea603ad  vega-datasets/data/airports.csv"

get() {
	for program in apt-get dpkg npm node Rscript sha256sum; do
		command -v "$program" >/dev/null || die "'$program' is missing (Debian: npm, nodejs, r-base-core)"
	done
	mkdir -p "$1/packages"
	cd "$1"
	(cd packages && apt-get -q download "${debian[@]}" && npm pack --silent "${npm[@]}")
	for file in packages/*.deb; do dpkg -x "$file" debian; done
	for package in "${npm[@]%@*}"; do
		mkdir -p "$package"
		tar -xzf packages/"$package"-*.tgz -C "$package" --strip-components=1
	done
	echo "$checksums" | sha256sum -c --quiet || die "the data are not those of the published trial"
	cd "$OLDPWD"
	node $here/fleet_public_flights.mjs "$1" >"$1/flights.csv"
	Rscript $here/fleet_public_air.R "$1/debian/usr/lib/R/site-library/spacetime/data/air.rda" >"$1/air.csv"
	cpus "$1" >"$1/cpus.csv" 2>"$1/cpus.before" # the counters since the machine's start, as a check
	wc -l "$1"/*.csv
}

# The processors' counters as rates.
cpus() {
	echo "# metric sys unit=ms/s worse=more kind=gauge zero=value"
	echo "time,group,member,sys"
	LD_LIBRARY_PATH=$1/debian/usr/lib PCP_CONF=$1/debian/etc/pcp.conf "$1/debian/usr/bin/pmdumplog" -z \
		"$1/$archives/babylon.pmview_v2" kernel.percpu.cpu.sys |
		perl -ne '$t = 3600 * $1 + 60 * $2 + $3 if /^(\d\d):(\d\d):(\d\d\.\d+) /;
			next if !/inst \[\d+ or "(cpu\d+)"\] value (\d+)/;
			printf "%.3f,babylon,%s,%.3f\n", $t, $1, ($2 - $last{$1}[1]) / ($t - $last{$1}[0]) if $last{$1};
			$last{$1} = [ $t, $2 ];
			print STDERR "$1,$2\n" if !$said{$1}++;'
}

# A file is called by its name alone, so that the results do not depend on where it lies.
trials() {
	local draws=$2
	mkdir -p "$results"
	git log -1 --format=%h -- diag/fleet >"$results/public-build"
	results=$(realpath "$results") trial=$(realpath "$trial")
	cd "$1"
	"$trial" findings "${metrics[@]/%:*/.csv}" >"$results/public-findings.csv"
	(echo "who,ms" && cat cpus.before) >"$results/public-cpus-before.csv"
	for one in "${metrics[@]}"; do
		"$trial" members "${one%:*}.csv" "${one#*:}" >"$results/public-members-${one%:*}.csv"
		"$trial" plant "${one%:*}.csv" "${one#*:}" "$draws" >"$results/public-planted-${one%:*}.csv"
	done
}

# The truth, and what peer-robust said, are in the lines of table --tap.
recorded() {
	mkdir -p "$results"
	for run in "$@"; do
		mkdir -p "$tmp/cells"
		"$culprit" query --samples "$run" | perl $here/fleet_recorded.pl convert "$tmp/cells"
		"$trial" findings "$tmp"/cells/*.csv >"$tmp/findings.csv"
		"$culprit" table "$run" --tap >"$tmp/tap" || [ $? = 1 ]
		perl $here/fleet_recorded.pl score "$tmp/tap" "$tmp/findings.csv" >"$results/recorded-$(basename "$run").csv"
		rm -r "$tmp/cells"
	done
}

case ${1:-} in
get | trial) [ $# -ge 2 ] || die "no directory is given" ;;&
get) get "$(realpath -m "$2")" ;;
trial) trials "$2" "${3:-200}" ;;
recorded)
	shift
	[ $# -gt 0 ] || set -- "${runs[@]}"
	recorded "$@"
	;;
page) perl $here/fleet_public_page.pl "$results" >results/fleet-public.md ;;
"") echo "skipped: public data must be fetched: $0 get DIR" ;;
*) die "unknown command '$1'; see the head of $0" ;;
esac
