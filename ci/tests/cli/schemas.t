#!/bin/bash
# JSON Schemas of what --json prints: there is one for each command that has --json, each is closed, and what is printed of
# recorded runs and logs is as they say. Tests that have hosts, a lab or a store hold their output against them, too (fits).
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
[ "$schema_python" ] || skip_all "no python3-jsonschema"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache XDG_CONFIG_HOME=$tmp/config

# --- one for each command, from the table of options
mapfile -t commands < <("$culprit" help --schemas | cut -c1-15 | sed 's/ *$//')
check "there are schemas" [ ${#commands[@]} -ge 17 ]
has_json() { # by completion, which knows nothing of schemas
	local c part
	for c in $("$culprit" complete -- ''); do
		for part in "$c" $("$culprit" complete -- "$c" '' | sed "s/^/$c:/"); do
			# What follows may also be a word such as a kind of things.
			# shellcheck disable=SC2086
			! "$culprit" help ${part/:/ } >/dev/null 2>&1 || ! "$culprit" complete -- ${part/:/ } --json | grep -qx -- --json || echo "${part/:/ }"
		done
	done | sort
}
check "each command with --json has one, and no other" diff <(printf '%s\n' "${commands[@]}" | sort) <(has_json)
check "each is a schema of draft 2020-12, has its command's title, and is closed" "$schema_python" "$schema_py" --strict "$culprit"
check "there is no schema of anything else" diff <(printf '%s.json\n' "${commands[@]}" | tr ' ' - | sort) <(ls results/schemas)
check "it can be printed" cmp <("$culprit" help --schemas lab status) results/schemas/lab-status.json
check "a command without --json has none" bash -c "'$culprit' help --schemas undo >/dev/null && '$culprit' help --schemas new 2>&1 | grep -q \"'culprit new' has no --json\""
mkdir -p "$tmp/home/results" && ln -s "$PWD"/{faults,workloads,scenarios,diag,harness} "$tmp/home" && cp -r results/schemas "$tmp/home/results"
check "in a home of one's own, too" env CULPRIT_HOME="$tmp/home" "$culprit" help --schemas
rm "$tmp/home/results/schemas/undo.json"
check "a command without its schema is told: 3" bash -c "CULPRIT_HOME='$tmp/home' '$culprit' help --schemas 2>&1 >/dev/null | grep -q 'cannot read .*undo.json'; [ \${PIPESTATUS[0]} = 3 ]"

# --- what is printed of recorded runs and logs
say() { # COMMAND FILE ARGUMENTS...: into the file, with whatever exit code
	local command=$1 file=$tmp/$2
	shift 2
	# shellcheck disable=SC2086
	"$culprit" $command --json "$@" >"$file" 2>"$tmp/err" </dev/null
	fits "$command" "$file"
}
say list all
for kind in scenarios faults workloads detectors file-systems findings metrics; do say list "$kind" "$kind"; done
for corpus in ci errors matrix; do
	say table "table-$corpus" "results/corpora/$corpus"
	say diagnose "diagnose-$corpus" "results/corpora/$corpus"
	say status "status-$corpus" "results/corpora/$corpus"
done
cp -r results/corpora/matrix "$tmp/matrix"
say rescore rescore "$tmp/matrix" --detector peer-threshold --details
say table against "$tmp/matrix" --against hotdep09-table1
say table two results/corpora/matrix results/corpora/ci
say table strength results/runs/dose-20261121 --by strength
say table times results/runs/overhead-20261121
say table times-against results/runs/overhead-20261121 --against hotdep09-table2
say lab\ status no-lab --dir "$tmp/lab"
cat >"$tmp/inventory.lua" <<'L'
return { file_system = { type = "glusterfs", layout = "distribute" }, ssh_config = "none", nodes = {
  { name = "s1", role = "server", address = "192.0.2.1", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
  { name = "s2", role = "server", address = "192.0.2.2", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
  { name = "s3", role = "server", address = "192.0.2.3", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
  { name = "c1", role = "client", address = "192.0.2.4", mount = "/mnt/fs" } } }
L
say run plan quick --dry-run --seed 1 --inventory "$tmp/inventory.lua"
say doctor doctor quick
say doctor doctor-ssh --ssh --inventory "$tmp/inventory.lua"
for log in lab-kill.s2.fs lab-none.c1.app; do
	zcat ci/tests/data/$log.log.gz >"$tmp/$log"
	"$culprit" log --json "$tmp/$log" | awk 'NR <= 1500 || NR % 50 == 0' >"$tmp/$log.json"
	fits log "$tmp/$log.json"
done
zcat ci/tests/data/lab-ddw.s1.samples.gz >"$tmp/samples"
"$culprit" log --json "$tmp/samples" | head -1000 >"$tmp/samples.json"
fits log "$tmp/samples.json"
say query rows "$tmp/lab-none.c1.app" "select *, x'00ff' b, 0.5 r from events limit 500"
say query tables --schema
"$culprit" ship --json --to "$tmp/events.jsonl" "$tmp/lab-none.c1.app" 2>"$tmp/sent"
fits ship "$tmp/sent"
say log compared "$tmp/lab-kill.s2.fs" --compare "$tmp/lab-none.c1.app"

# --- a changed output does not fit
changed() { # COMMAND FILE PYTHON: the statement changes v
	"$schema_python" -c "import json, sys; v = json.load(open('$2')); $3; json.dump(v, open('$tmp/changed', 'w'))" || return 1
	# shellcheck disable=SC2086
	! "$schema_python" "$schema_py" "$culprit" $1 <"$tmp/changed"
}
check "a new key does not fit" changed status "$tmp/status-ci" "v['news'] = 1"
check "... deep within, either" changed table "$tmp/table-matrix" "v['summary']['detectors'][0]['faulty']['news'] = 1"
check "a missing key does not" changed diagnose "$tmp/diagnose-ci" "del v[3]['verdict']['indicted']"
check "another type does not" changed list "$tmp/all" "v['faults'][0]['summary'] = 7"
check "an empty output does not" bash -c "! '$schema_python' '$schema_py' '$culprit' table </dev/null"

# --- nobody forgets one
for command in "${commands[@]}"; do
	check "the output of 'culprit $command --json' is held against its schema in some test" \
		grep -rqE "^\s*(say|fits) ['\"]?${command/ /\\\\? }['\"]? " ci/tests --include='*.t'
done
done_testing
