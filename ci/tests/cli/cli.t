#!/bin/bash
# What holds for every command: output that cannot be written, completion, the manual page.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

exits() { # CODE COMMAND...: its complaints go to $tmp/said
	local want=$1 got
	shift
	"$@" 2>"$tmp/said"
	got=$?
	cat "$tmp/said"
	[ $got = "$want" ]
}
full() { "$@" >/dev/full; }
corpus=results/corpora/errors
for words in --version help --help "help run" "run --help" list "list --json" "list metrics" "lab --help" \
	"table $corpus" "query --samples $corpus --cell 1" "report $corpus -o -" "help --man" "help --completion zsh"; do
	# shellcheck disable=SC2086 # words
	check "$words > /dev/full: 3" exits 3 full "$culprit" $words
	check "... and says so once" [ "$(wc -l <"$tmp/said")" = 1 ]
done

check "--version names version and commit" grep -Eqx 'culprit [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]+(-dirty)?\))?' <("$culprit" --version)
check "no command: 2, with the list" exits 2 "$culprit"
check "an unknown command is refused" exits 2 "$culprit" rnu x
check "... with the nearest name" grep -q "did you mean 'run'" "$tmp/said"
while read -r old new; do
	check "'culprit $old' is refused" exits 2 "$culprit" "$old" x
	check "... with its new spelling" grep -qxF "culprit: there is no command '$old'; it is 'culprit $new' now" "$tmp/said"
	check "... 'culprit help $old', too" grep -qF "it is 'culprit $new' now" <("$culprit" help "$old" 2>&1)
	read -ra words <<<"$new"
	check "... which there is" bash -c "'$culprit' help ${words[0]} | grep -q -- '$(grep -o -- '--[a-z]*' <<<"$new")'"
done <<'L'
compare log A --compare B
corpus ship RUN --pack FOLDER
dashboard ship --dashboard FILE
remeasure rescore --remeasure RUN
samples query --samples RUN
trace-control trace --control FOLDER ORDER
L
"$culprit" help >"$tmp/help"
check "the list of commands fits a terminal" [ "$(wc -l <"$tmp/help")" -le 24 ]
check "... of 80 columns" [ -z "$(awk 'length > 80' "$tmp/help")" ]
listed() { grep '^  ' "$tmp/help" | cut -c3-12,42-51 | xargs -n 1 | sort; }
check "... and has each command once" diff <("$culprit" complete -- '' | sort) <(listed)
check "control characters in a command's name are escaped" prints_without $'\033' 2 "$culprit" $'a\033[2J'
check "control characters in an argument are escaped" prints_without $'\033' 2 "$culprit" table $'a\033[2J'
check "help of a subcommand" bash -c "'$culprit' help lab up | grep -q -- --disk-rate"
check "help of no command: 2" exits 2 "$culprit" help lab nothing

completes() { # WORDS EXPECTED: what completion offers for the last word
	PATH=${culprit%/*}:$PATH bash -c 'source <(culprit help --completion bash)
		read -ra COMP_WORDS <<<"$1"; [[ $1 == *" " ]] && COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _culprit; echo "${COMPREPLY[*]}"; [ "${COMPREPLY[*]}" = "$2" ]' - "$1" "$2"
}
check "completion of a command" completes "culprit resc" "rescore"
check "completion of a subcommand" completes "culprit lab st" "status"
check "... and its options" completes "culprit lab up --disk" "--disk-rate --disk-seek"
check "... but not the lab's internal commands" completes "culprit lab bu" ""
check "completion of a shared option" completes "culprit rescore x --write" "--write-baseline"
check "completion of a choice" completes "culprit table x --format m" "markdown"
check "... also after an equals sign" completes "culprit table x --format = m" "markdown"
check "no candidates where a file is expected" completes "culprit table x --junit " ""
check "completion of a scenario's name" completes "culprit run qu" "quick"
check "... and of nothing where a file is named" completes "culprit run ./qu" ""
check "completion of a kind" completes "culprit new det" "detector"
for shell in zsh fish; do
	if command -v $shell >/dev/null; then
		check "$shell takes its completion" bash -c "'$culprit' help --completion $shell >'$tmp/completion' && $shell -n '$tmp/completion'"
	else
		ok "$shell takes its completion # SKIP no $shell"
	fi
done
warned_of_nothing() {
	local said
	"$culprit" help --man >"$tmp/culprit.1" && [ -s "$tmp/culprit.1" ] && said=$(groff -man -ww -z "$tmp/culprit.1" 2>&1) && [ -z "$said" ] || { echo "$said"; return 1; }
}
if command -v groff >/dev/null; then
	check "groff warns of nothing in the manual page" warned_of_nothing
else
	ok "the manual page has no mistake # SKIP no groff"
fi
check "every command is in it" bash -c "'$culprit' complete -- '' | while read -r c; do
	'$culprit' help --man | grep -q \"^.SS culprit \$c\\$\" || { echo \$c; exit 1; }; done"
done_testing
