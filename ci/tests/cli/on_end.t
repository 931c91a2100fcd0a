#!/bin/bash
# --on-end: a command is run when a run is done, has failed or was interrupted, and is told which. No lab: hosts refuse the
# connection, accept it and say nothing, or are not needed, since nothing is left to run.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
for program in sqlite3 perl; do
	command -v $program >/dev/null || skip_all "no $program"
done
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"; [ -z "$listener" ] || kill "$listener" 2>/dev/null' EXIT
listener=
cd "$tmp" || exit 1
unset CULPRIT_CONFIG XDG_CONFIG_HOME
export HOME=$tmp

ssh-keygen -q -t ed25519 -N '' -f host || skip_all "no ssh-keygen"
key=$(cut -d' ' -f1,2 host.pub)
inventory() { # PORT
	cat <<-L
		return { file_system = { type = "glusterfs" }, nodes = {
		  { name = "s1", role = "server", address = "127.0.0.1", ssh_port = $1, host_key = "$key", storage = "/b", service_port = 24007 },
		  { name = "s2", role = "server", address = "127.0.0.2", ssh_port = $1, host_key = "$key", storage = "/b", service_port = 24007 },
		  { name = "c1", role = "client", address = "127.0.1.1", ssh_port = $1, host_key = "$key", mount = "/m" } } }
	L
}
inventory 1 >refusing.lua
echo 'return { name = "x", workloads = { "ddw" }, faults = { "none", "disk-hog" }, detectors = { "always-healthy" } }' >scenario.lua
cat >told <<'S'
#!/bin/bash
printf '%s\n' "$@" >>args
env | grep ^CULPRIT_END_ | sort >"end.$CULPRIT_END_STATE"
S
chmod +x told
run=(timeout 120 "$culprit" run scenario.lua --quiet --seed 5)
exits() { local want=$1 code; shift; "$@" >out 2>said; code=$?; [ $code -eq "$want" ] || { echo "exit $code"; cat said; return 1; }; }
said() { grep -q -- "$1" said || { cat said; return 1; }; }
refuses() { exits 2 "${run[@]}" -i refusing.lua -o never "${@:2}" && [ "$(wc -l <said)" = 1 ] && said "$1" && [ ! -e never ]; }

check "a run that failed: it is run" exits 3 "${run[@]}" -i refusing.lua --shard 2/2 -o failed --on-end "./told 'a b' \$HOME \"\$(id)\" ; x"
check "... with its words, untouched by any shell" cmp args <(printf '%s\n' 'a b' '$HOME' '$(id)' ';' x)
cat >want <<-E
	CULPRIT_END_ABORTED=0
	CULPRIT_END_CELLS=1
	CULPRIT_END_COMMAND=run
	CULPRIT_END_CONFIRMED=0
	CULPRIT_END_ERRORS=0
	CULPRIT_END_EXIT=3
	CULPRIT_END_FOLDER=$(realpath failed)
	CULPRIT_END_INVALID=0
	CULPRIT_END_MISSING=1
	CULPRIT_END_RUN=failed
	CULPRIT_END_SCENARIO=x
	CULPRIT_END_SEED=5
	CULPRIT_END_SHARD=2/2
	CULPRIT_END_STATE=failed
E
check "... and is told what became of the run" diff want end.failed
check "a run that cannot begin" exits 2 "${run[@]}" -i nowhere.lua -o never --on-end ./told
check "... has no folder" bash -c "grep -qx 'CULPRIT_END_EXIT=2' end.failed && grep -qx 'CULPRIT_END_FOLDER=' end.failed && grep -qx 'CULPRIT_END_SHARD=' end.failed"
rm end.failed
check "a dry run does not notify" bash -c "${run[*]} -i refusing.lua --dry-run --on-end ./told >out && [ ! -e end.done ]"

# Interrupted: a host that accepts the connection and says nothing.
# shellcheck disable=SC2016
perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, sockaddr_in(0, INADDR_ANY)); listen($s, 9); $| = 1;
	print +(sockaddr_in(getsockname $s))[0], "\n"; my @kept; while (accept(my $c, $s)) { push @kept, $c; print "accepted\n" }' >port &
listener=$!
until_true 60 [ -s port ]
inventory "$(head -1 port)" >silent.lua
"${run[@]:2}" -i silent.lua -o interrupted --on-end ./told 2>said &
pid=$!
check "it connects" until_true 100 grep -q accepted port
kill -TERM $pid
wait $pid
check "an interrupted run ends with 3" [ $? -eq 3 ]
check "... and says interrupted" bash -c "grep -qx CULPRIT_END_STATE=interrupted end.interrupted && grep -qx CULPRIT_END_RUN=interrupted end.interrupted &&
	grep -qx CULPRIT_END_MISSING=2 end.interrupted"

# Done: resumed where nothing is left to run.
check "a run to resume" exits 3 "${run[@]}" -i refusing.lua -o run
sqlite3 run/run.db "INSERT INTO attempt (cell, number, outcome, started_ns, start_ns, ended_ns, seconds) SELECT number, 1, 'confirmed', 1, 1, 9, 20 FROM cell"
resume=(timeout 120 "$culprit" resume run --quiet)
check "a run that is done" exits 0 "${resume[@]}" --on-end ./told
check "... says done" bash -c "grep -qx CULPRIT_END_STATE=done end.done && grep -qx CULPRIT_END_COMMAND=resume end.done && grep -qx CULPRIT_END_CONFIRMED=2 end.done &&
	grep -qx CULPRIT_END_EXIT=0 end.done"

# Its failure is told and changes nothing.
check "a command that fails changes no exit code" exits 0 "${resume[@]}" --on-end "bash -c 'echo no mail here; exit 7'"
check "... and is told" said "^culprit resume: --on-end: 'bash -c echo no mail here; exit 7' ended with 7: no mail here$"
check "a command that hangs is killed" exits 0 "${resume[@]}" --on-end "bash -c 'trap \"\" TERM; while :; do sleep 1; done'" --on-end-limit 1s
check "... and told" said "--on-end: 'bash' did not end within 1 s"
check "what the command prints is not mixed with the table" prints_without hello 0 "${resume[@]}" --on-end 'echo hello'
check "a machine-readable table stays one" bash -c "${resume[*]} --json --on-end 'echo hello' | perl -MJSON::PP -0777 -ne 'decode_json(\$_)'"

# What cannot be run is refused before anything is.
check "a program that is not there" refuses "--on-end: there is no program 'notify-me'" --on-end "notify-me now"
check "a folder" refuses "--on-end: there is no program '/tmp'" --on-end /tmp
check "an open quote" refuses "--on-end needs a command with closed quotes" --on-end "mail 'x"
check "nothing" refuses "--on-end needs a command, but is empty" --on-end " "
check "a limit of nothing" refuses "--on-end-limit is the limit of --on-end" --on-end-limit 5s

# The configuration file.
mkdir -p .config/culprit
rm -f end.*
echo 'return { resume = { ["on-end"] = "./told from config", ["on-end-limit"] = "90s" } }' >.config/culprit/config.lua
check "it may stand in the configuration" exits 0 "${resume[@]}"
check "... and is run" bash -c "[ -e end.done ] && tail -2 args | xargs | grep -qx 'from config'"
echo 'return { resume = { ["on-end"] = "./untold" } }' >.config/culprit/config.lua
check "... and refused" exits 2 "${resume[@]}"
done_testing
