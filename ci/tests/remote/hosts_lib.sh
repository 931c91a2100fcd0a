# What the tests of lost hosts share: a lab of two servers, and runs of one cell on it.
. ci/tests/lab/lab_lib.sh
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

scenario() { # NAME FAULT SECONDS
	cat >$1.lua <<-L
	return { name = "$1", workloads = { { "ddw", records = 1 } }, faults = { "$2" }, detectors = { "always-healthy" },
	         phases = { before = "1s", fault = "$3s", after = "1s" } }
	L
}
begin() { # NAME: in the background; its words go to NAME.said
	"$culprit" run --inventory "$dir/inventory.lua" --seed 1 -o "$1" "$1.lua" >"$1.said" 2>&1 &
	run=$!
	current=$1
}
go_on() { # NAME: likewise, with a run that has ended before its time
	"$culprit" resume "$1" >"$1.said" 2>&1 &
	run=$!
	current=$1
}
ended() { # CODE NAME: holds if the run ends so
	wait $run
	is "$2" $? "$1"
	sed 's/^/# /' "$current.said"
}
sql() { sqlite3 "$1/run.db" "$2"; }
victim() { sql "$current" "SELECT victims->>0 FROM cell WHERE victims IS NOT NULL" 2>/dev/null; }
acting() { inside "$(victim)" sh -c 'nft list tables | grep -q culprit_' 2>/dev/null; }
comes_to_act() { until_true 60 eval 'acting || ! kill -0 $run' && acting; }
left() { # anything of ours on any node
	local n
	for n in s1 s2 c1 o1; do
		inside $n sh -c 'nft list tables | grep culprit_; pgrep culprit-agent; ls /var/lib/culprit/undo'
	done
}
nothing_left() { [ -z "$(left)" ]; }
attempts() { sql "$1" "SELECT group_concat(outcome) FROM (SELECT outcome FROM attempt ORDER BY number)"; }
reason() { sql "$1" "SELECT reason FROM attempt WHERE number = 1"; }
# The first attempt is invalid and a later one is confirmed. On a busy machine further ones may be invalid between
# them: too little processor time is its own reason.
recovered() { [[ $(attempts "$1") =~ ^invalid(,invalid)*,confirmed$ ]]; }
