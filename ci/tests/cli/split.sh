# A recorded run cut into the shards that 'culprit run --shard' would have made of it, for tests of merging.

# split RUN N INVENTORY TO: the folder RUN, with a run.db, becomes TO-1 ... TO-N. The inventory has as many servers as the
# run had. Each shard gets a plan, attempts and verdicts of its own; TO-i.key is its secret key, if that file is there.
split() {
	local from=$1 n=$2 inventory=$3 to=$4 i cells seed all training
	seed=$(sqlite3 "$from/run.db" "SELECT value FROM fact WHERE key = 'seed'")
	sqlite3 "$from/run.db" "SELECT value FROM fact WHERE key = 'scenario_text'" >"$to.lua"
	all=$(sqlite3 "$from/run.db" 'SELECT count(*) FROM cell')
	training=$(sqlite3 "$from/run.db" 'SELECT sum(training) FROM cell')
	for ((i = 1; i <= n; i++)); do
		cells=$("$culprit" run "$to.lua" --inventory "$inventory" --seed "$seed" --shard "$i/$n" --dry-run --json |
			perl -MJSON::PP -0777 -ne 'print join ",", map { $_->{cell} } @{decode_json($_)->{cells}}')
		[[ $cells ]] || return 1
		mkdir "$to-$i"
		cp "$from/run.db" "$to-$i/run.db"
		sqlite3 "$to-$i/run.db" "DELETE FROM cell WHERE number NOT IN ($cells);
			DELETE FROM attempt WHERE cell NOT IN ($cells);
			DELETE FROM series WHERE attempt NOT IN (SELECT id FROM attempt);
			DELETE FROM event WHERE attempt NOT IN (SELECT id FROM attempt);
			DELETE FROM verdict WHERE attempt NOT IN (SELECT id FROM attempt);
			INSERT INTO fact VALUES ('shard', json_object('index', $i, 'of', $n, 'cells', $all, 'training', $training, 'plan', 'p'));
			VACUUM" || return 1
		[[ ! -e $to-$i.key ]] || sqlite3 "$to-$i/run.db" "UPDATE fact SET value = '$(cat "$to-$i.key")' WHERE key = 'blind_key'"
	done
}
