#!/bin/bash
# Random queries over recorded logs and one of this machine match a count over 'culprit log --json'. N=1000 asks more, SEED=... others.
# No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=${OUT:-out}/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
logs=()
for log in lab-kill.s2.fs lab-none.c1.app lab-none.s1.fs; do
	zcat ci/tests/data/$log.log.gz >"$dir/$log"
	logs+=("$dir/$log")
done
# A program with files, failures, children and a pipe.
if "$culprit" trace --tracer ptrace -o "$dir/own" -- sh -c 'for i in 1 2 3; do echo $i >"$0/f$i"; cat "$0/f$i" "$0/none" | cat; rm "$0/f$i"; done' \
	"$dir" >/dev/null 2>"$dir/err"; then
	logs+=("$dir/own")
else
	ok "a log of this machine # SKIP $(head -n 1 "$dir/err")"
fi
agree() { python3 ci/tests/query/counted.py "$culprit" "${N:-40}" "${SEED:-2026}" "${logs[@]}"; }
check "${N:-40} random queries match an independent count" agree
# The comparison itself notices a difference.
sees_less() { ! python3 ci/tests/query/counted.py "$dir/less" 20 1 "$dir/lab-kill.s2.fs" >/dev/null; }
printf '#!/bin/bash\nif [ "$1" = log ]; then "%s" "$@" | sed \x27s|"service_ns":|&1|\x27; else "%s" "$@"; fi\n' "$culprit" "$culprit" >"$dir/less"
chmod +x "$dir/less"
check "a value that differs is noticed" sees_less
done_testing
