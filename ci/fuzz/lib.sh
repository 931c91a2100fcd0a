#!/bin/bash
# For ci/tests/fuzz.t and ci/fuzz/long.sh, from the top folder.

# fuzzers COMMAND...: runs COMMAND NAME RUNS SEEDS [OPTION ...] for each line of ci/fuzz/fuzzers.
fuzzers() {
	local -a words
	while read -ra words; do
		[[ ${#words[@]} -eq 0 || ${words[0]} == \#* ]] || "$@" "${words[@]}" </dev/null
	done <ci/fuzz/fuzzers
}

# seeds_of NAME SEEDS FOLDER: the folders that its inputs begin with; FOLDER is for those that are made.
seeds_of() {
	local name=$1 seeds=$2 folder=$3 log
	[[ ! -d ci/fuzz/seeds/$name ]] || echo "ci/fuzz/seeds/$name"
	if [[ -f ci/fuzz/corpus/$name.tar.gz ]]; then
		mkdir -p "$folder.kept" && tar -C "$folder.kept" -xzf "ci/fuzz/corpus/$name.tar.gz" && echo "$folder.kept"
	fi
	case $seeds in
	-) ;;
	logs)
		mkdir -p "$folder"
		for log in lab-kill.s2.fs lab-none.c1.app; do zcat "ci/tests/data/$log.log.gz" | head -c 6000 >"$folder/$log"; done
		echo "$folder"
		;;
	*) echo "$seeds" ;;
	esac
}
