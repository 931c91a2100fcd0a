#!/bin/bash
# Detectors are blind: their input does not depend on the truth, which can be rewritten without changing a byte of it. Detectors
# that try to cheat get no information: as Lua files and as programs, as root and as nobody.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
# A separate TMPDIR, so that leftovers of this test are distinguished from those of others.
mkdir -m 1777 "$tmp/tmp" && export TMPDIR=$tmp/tmp
cp -r results/runs/errors-20261121 "$tmp/run"
cd "$tmp" || exit 1
sqlite3 run/run.db "DELETE FROM attempt WHERE cell > 13; DELETE FROM cell WHERE number > 13;
	INSERT OR REPLACE INTO fact VALUES ('blind_key', '00112233445566778899aabbccddeeff')"
evidence() { perl -MJSON::PP -0777 -e 'print map { "$_\n" } map { ref $_ ? JSON::PP->new->canonical->encode($_) : $_ // "-" }
	map { $_->{verdict}{evidence}{told} // $_->{verdict}{error} // "nothing said" } @{ decode_json(<STDIN>) }'; }

# Everything that a Lua detector can reach from its arguments and globals, as one text. The order of walking tables is random in
# each state, so it reveals nothing.
cat >spy.lua <<'L'
local function dump(v, seen, depth)
	if tostring(v):match("^vec of") then
		local out = {}
		for i = 1, #v do out[i] = string.format("%.17g", v[i]) end
		return "vec(" .. table.concat(out, ",") .. ")"
	end
	if type(v) ~= "table" and tostring(v) ~= "series" then return type(v) == "function" and "function" or tostring(v) end
	if seen[v] or depth > 12 then return "..." end
	seen[v] = true
	local keys = {}
	for k in pairs(v) do keys[#keys + 1] = k end
	table.sort(keys, function(a, b) return (type(a) .. tostring(a)) < (type(b) .. tostring(b)) end)
	local out = {}
	for _, k in ipairs(keys) do out[#out + 1] = tostring(k) .. "=" .. dump(v[k], seen, depth + 1) end
	seen[v] = nil
	return "{" .. table.concat(out, " ") .. "}"
end
local function all(name, ...)
	return (name .. " " .. dump({ ... }, {}, 0) .. " globals " .. dump(_G, {}, 0)):gsub("[^ -~]", "?")
end
return { name = "spy", summary = "reports its input",
	train = function(...) return { told = (all("train", ...)) } end,
	diagnose = function(...) return { { metric = "any", evidence = { told = (all("diagnose", ...)) } } } end }
L
# Likewise for a program: all its input, by cell.
cat >spy.pl <<'L'
#!/usr/bin/perl
use Digest::MD5; local $/; my $in = <STDIN>;
use JSON::PP; my $c = JSON::PP->new->canonical;
my $text = join "\n", map { $c->encode($c->decode($_)) } split /\n/, $in;
print $c->encode({ metric => "any", indicted => [], evidence => { told => Digest::MD5::md5_hex($text) . " " . substr($text, -3000) =~ s/"/'/gr } }), "\n";
L
chmod +x spy.pl
look() { "$culprit" diagnose "$1" --detector ./spy.lua --json | evidence >"$2.lua"; "$culprit" diagnose "$1" --detector ./spy.pl --json | evidence >"$2.pl"; }
look run seen
check "the spy detector reports something for every cell" [ "$(grep -c '^diagnose {.*dread={server-0001' seen.lua)" = 12 ]
check "... and the spy program" [ "$(grep -c '^[0-9a-f]\{32\} ' seen.pl)" = 12 ]
cp -r run rewritten
sqlite3 rewritten/run.db "
	UPDATE cell SET workload = 'other', workload_params = '{}', fault = 'no-such-fault' || (number % 3), fault_params = '{}', resource = 'cpu',
		repeat = repeat + 7, victims = CASE WHEN number % 2 THEN '[\"s4\"]' ELSE NULL END WHERE NOT training;
	UPDATE attempt SET detail = NULL, reason = NULL, number = number + 1, started_ns = started_ns - 1000000007, start_ns = start_ns + 5000000000,
		onset_ns = 12345, offset_ns = 67890, ended_ns = 1;
	UPDATE attempt SET seconds = seconds + 3 * (id % 5) WHERE seconds > 17;
	UPDATE fact SET value = '1' WHERE key = 'seed';
	UPDATE fact SET value = 'nothing' WHERE key IN ('scenario', 'scenario_text', 'inventory_text', 'culprit_version');
	UPDATE fact SET value = '{}' WHERE key = 'hosts';
	DELETE FROM verdict; DELETE FROM model; DELETE FROM file;"
look rewritten again
check "fault, victim, workload, onset, seed, lengths, hosts rewritten: a Lua detector sees the same, to the last byte" cmp seen.lua again.lua
check "... and a program as well" cmp seen.pl again.pl
sqlite3 rewritten/run.db "UPDATE fact SET value = 'another key' WHERE key = 'blind_key'"
look rewritten again
check "(the comparison can fail: with another key they see other names)" bash -c '! cmp -s seen.lua again.lua && ! cmp -s seen.pl again.pl'

check "their input has no name, place, time or word of the truth" [ -z "$(grep -o -E \
	"s[1-4]\b|\bc[12]\b|err-|hog|kill\b|ddw|create|session|20261121|victim|onset|fault|attempt|cell|/tmp|seed|pktloss|17[0-9]{17}" seen.lua seen.pl |
	sort | uniq -c | tee words)" ]
[ ! -s words ] || sed 's/^/# /' words
check "all scored runs are equally long" [ "$(grep -o 'seconds=[0-9]* ' seen.lua | sort -u | wc -l)" = 1 ]
check "each has a different id" [ "$(grep -o ' id=[0-9a-f]* ' seen.lua | sort -u | wc -l)" -ge 12 ]

# Ways out of Lua, and functions that must be missing. Each line is an expression; it must be nil, or raise an error.
cat >ways <<'L'
io
os
package
debug
require
load
loadstring
dofile
loadfile
coroutine
collectgarbage
print
warn
setmetatable
getmetatable
rawset
math.random
math.randomseed
string.dump
_G.os
_ENV.io
_G._G._G.debug
("").dump
("x").rep.io
string.format("%p", {})
tostring({}):match("0x")
tostring(print or pairs):match("0x")
tostring(run.series.dread[run.servers[1]].mean):match("0x")
string.format("%s", {}):match("0x")
string.format("%-20s", pairs):match("0x")
table.concat({ {} })
select(2, pcall(error, {})) == nil or nil
select(2, pcall(function() return {} + 1 end)):match("0x")
select(2, pcall(function() return nil .. {} end)):match("0x")
model.victims
model.truth
rawget(_G, "arg")
rawget(run, "fault")
rawget(run, "victim")
rawget(run, "workload")
rawget(run, "onset")
rawget(params, "seed")
L
{
	echo 'return { name = "ways", summary = "tries them", diagnose = function(run, model, params)'
	echo 'local got, n = {}, 0'
	echo 'local function try(what, way) n = n + 1 local ok, v = pcall(way) if ok and v ~= nil then got[#got + 1] = what end end'
	while IFS= read -r way; do echo "try([==[$way]==], function() return $way end)"; done <ways
	echo 'return { { metric = "any", evidence = { told = n .. " tried, got: " .. table.concat(got, "; ") } } } end }'
} >ways.lua
"$culprit" diagnose run --cell 2 --detector ./ways.lua --json 2>&1 | evidence >got
check "every way out of the sandbox is closed" [ "$(cat got)" = "$(wc -l <ways) tried, got: " ]
sed 's/^/# /' got

# Memory of an earlier run: in globals, upvalues, library tables, the string library, the model, the arguments.
cat >memory.lua <<'L'
local up, kept = 0, {}
local function remembered(run, model, params)
	local was = {}
	local function note(what, value) if value then was[#was + 1] = what end end
	note("upvalue", up > 0) up = up + 1
	note("table", kept.mark) kept.mark = true
	note("global", mark) mark = true
	note("_G", _G.mark2) _G.mark2 = true
	note("string", string.mark) string.mark = "x"
	note("string method", pcall(function() return ("").mark end) and ("").mark ~= nil and #was > 0 or nil)
	note("math", math.mark) math.mark = true
	note("vec", vec.mark) vec.mark = true
	note("table library", table.mark) table.mark = true
	note("model", model.mark) model.mark = true
	note("params", params.mark) params.mark = true
	note("run", run.mark) run.mark = true
	note("servers", run.servers.mark) run.servers.mark = true
	local v = run.series.dread[run.servers[1]].mean
	note("vec element", v[1] == 4711) v[1] = 4711
	string.format, pairs, ipairs = function() return "spoilt" end, nil, ipairs
	return was
end
return { name = "memory", summary = "remembers", train = function(runs) up = up + 1 mark = true return { n = #runs } end,
	diagnose = function(run, model, params) local was = remembered(run, model, params)
		return { { metric = "any", evidence = { told = "remembers: " .. table.concat(was, ", ") } } } end }
L
"$culprit" diagnose run --detector ./memory.lua --json | evidence | sort | uniq -c >said
check "a Lua detector remembers no earlier run, and of its training only the model" grep -qx ' *12 remembers: ' said
[ "$(wc -l <said)" = 1 ] || sed 's/^/# /' said
"$culprit" rescore run --detector ./memory.lua --detector peer-threshold --json >/dev/null 2>err
check "... and does not affect other detectors" [ ! -s err ]

# Time: there is no clock to measure the length of a call, and limits end a detector that spins.
cat >spin.lua <<'L'
return { name = "spin", summary = "spins", diagnose = function() while true do end end }
L
check "a detector that spins fails, and the run continues" bash -c "'$culprit' diagnose run --cell 2 --detector ./spin.lua --detector always-same 2>&1 | grep -q 'always-same: s'"

# Programs. Each way that works is a word in the answer.
run=$(realpath run)
cat >thief.pl <<L
#!/usr/bin/perl
use warnings; no warnings qw(once void);
my \$run = '$run'; my \$parent = getppid(); my \$socket = "\\0culprit-blind-test-$$";
L
cat >>thief.pl <<'L'
my @in = <STDIN>;
my @got;
sub try { my ($what, $how) = @_; my $r = eval { no warnings; $how->() }; push @got, $what if $r; }
sub slurp { open($f, '<', $_[0]) or return; local $/; my $x = <$f>; return defined $x && length $x }
try("environment: $_", sub { 1 }) for grep { $_ ne 'PWD' && $_ ne 'SHLVL' && $_ ne '_' } sort keys %ENV;
try("run folder", sub { slurp("$run/run.db") });
try("run folder listed", sub { opendir($d, $run) });
try("its parent listed", sub { opendir($d, "$run/..") });
try("own place listed", sub { opendir($d, '/detector') and grep { !/^\.|^run$/ } readdir $d });
try("cwd", sub { opendir($d, '.'); grep { !/^\./ } readdir $d });
try("descriptor $_", do { my $n = $_; sub { open($f, "<&=$n") && -e $f } }) for 4 .. 255; # 3 is perl's own descriptor of this file
try("writable stdin", sub { syswrite(STDIN, "x") });
for my $p ($parent, 0, 1, 'self', 'thread-self') {
	try("/proc/$p/$_", do { my $x = "/proc/$p/$_"; sub { -e $x || slurp($x) || readlink($x) } }) for qw(environ cmdline cwd root exe fd maps mem mountinfo status net/tcp);
}
try($_, do { my $x = $_; sub { -e $x } }) for qw(/proc /sys /run /var /home /root /dev/shm /dev/tty /dev/mqueue /dev/pts /etc/passwd /etc/hostname /etc/hosts /work /opt /mnt /boot /srv);
try("tty", sub { open($t, '+<', '/dev/tty') });
if (!$ENV{HARMLESS}) {
try("kill parent", sub { $parent > 1 && kill(0, $parent) });
try("other processes", sub { grep { kill(0, $_) } 3 .. 32768 });
try("ptrace", sub { syscall(101, 16, $parent, 0, 0) == 0 });
try("become root", sub { $> = 0; $< = 0; $> == 0 });
try("is root", sub { $> == 0 || $< == 0 || $( =~ /^0 |\b0\b/ });
try("groups", sub { my %g = map { $_ => 1 } split ' ', $); delete $g{65534}; keys %g });
try("chroot out", sub { mkdir '/tmp/x'; chroot '/tmp/x' });
try("mount", sub { syscall(165, "none", "/tmp", "tmpfs", 0, 0) == 0 });
try("write $_", do { my $x = "$_/culprit-thief"; sub { open($f, '>', $x) && ($x !~ m{^/tmp/}) } }) for qw(/ /usr /usr/bin /etc /dev /detector /lib);
try("network", sub { socket($s, 2, 1, 0) && connect($s, pack('SnC4x8', 2, 22, 127, 0, 0, 1)) });
try("network out", sub { socket($s, 2, 2, 0) && connect($s, pack('SnC4x8', 2, 53, 192, 0, 2, 1)) });
try("abstract socket", sub { socket($s, 1, 1, 0) && connect($s, pack('Sa*', 1, $socket)) });
try("host name", sub { open($p, '-|', 'uname -n'); my $n = <$p>; $n ne "detector\n" });
try("memory of an earlier run: $_", do { my $x = $_; sub { my $there = -e $x; open($f, '>>', $x) and print $f 'x'; $there } }) for qw(/tmp/mark /tmp/.mark /dev/null.mark /detector/mark);
try("earlier shared memory", sub { my $id = syscall(29, 4711, 4096, 0666); my $there = $id >= 0; syscall(29, 4711, 4096, 01666); $there });
try("set-user-id programs", sub { open($p, '-|', 'su -c id 2>/dev/null </dev/null'); my $x = <$p>; $x && $x =~ /uid=0/ });
for my $ring (-5, -4, -3) { # the user's session, the user's, the caller's session
	my ($kind, $name, $value) = ('user', 'culprit-thief', 'x');
	try("a key of an earlier run in $ring", sub { syscall(250, 10, $ring, $kind, $name, 0) > 0 });
	try("a key put into $ring", sub { syscall(248, $kind, $name, $value, 1, $ring) > 0 });
}
try("keys of the caller", sub { ($k = syscall(250, 0, -3, 0)) > 0 && syscall(250, 11, $k, ($buf = "\0" x 512), 512) > 100 });
}
try("truth in the question", sub { grep { /victim|onset|disk-hog|err-|"s[1-4]"|20261121|kill"|attempt|"cell/ } @in });
printf "{\"metric\":\"any\",\"indicted\":[],\"evidence\":{\"told\":\"got: %s\"}}\n", join(', ', @got) =~ s/["\\]//gr;
L
chmod +x thief.pl
perl -MSocket -e 'socket($s, 1, 1, 0); bind($s, pack("Sa*", 1, "\0culprit-blind-test-'$$'")) or die; listen($s, 5); print "up\n"; close STDOUT; sleep 300' >sock &
listener=$!
until_true 60 test -s sock
check "(the test offers a socket to find)" [ -s sock ]
exec 7<run/run.db
SECRET_OF_THE_CALLER=s1 "$culprit" diagnose run --cell 2 --detector ./thief.pl --json 2>err | evidence >said
check "a program that tries everything gets nothing" [ "$(cat said)" = "got: " ]
cat said err | sed 's/^/# /'
"$culprit" diagnose run --detector ./thief.pl --json 2>/dev/null | evidence | sort -u >said
check "... in any cell, and from an earlier one" [ "$(cat said)" = "got: " ]
HARMLESS=1 perl thief.pl </dev/null >self 2>/dev/null # without its harmful actions
check "(outside the sandbox it gets a lot)" [ "$(grep -o , self | wc -l)" -gt 10 ]
if [ "$(id -u)" -eq 0 ]; then
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	cp -r run nobodys && chown -R 65534 nobodys && sed -i "s|$run|$(realpath nobodys)|" thief.pl
	if as_nobody unshare -Ur true 2>/dev/null; then
		as_nobody "$culprit" diagnose nobodys --cell 2 --detector ./thief.pl --json 2>err 7<&- | evidence >said
		check "... and without root, although the run's folder belongs to its user" [ "$(cat said)" = "got: " ]
		cat said err | sed 's/^/# /'
	else
		echo "ok $((++tap_n)) - # SKIP needs user namespaces"
	fi
	# Without namespaces a program runs only if it is trusted.
	refused() { setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$culprit" diagnose run --cell 2 --detector ./thief.pl; }
	refused >said 2>err
	code=$?
	check "without namespaces it is refused, with the reason" bash -c "[ $code -eq 2 ] && grep -q 'namespaces are not available here' err"
	cat >who.sh <<'L'
#!/bin/sh
printf '{"metric": "any", "evidence": {"told": "%s"}}\n' "$(id -u) $(id -G) $(ls | wc -l) $(env | grep -c SECRET)"
L
	chmod 755 who.sh
	SECRET=1 setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$culprit" diagnose run --cell 2 --detector ./who.sh --trust --json 2>err | evidence >said
	check "a trusted one runs as nobody, in an empty folder, with an empty environment" [ "$(cat said)" = "65534 65534 0 0" ]
	cat said err | sed 's/^/# /'
fi
kill $listener
wait $listener 2>/dev/null
check "its folders are removed" bash -c "! ls -d $TMPDIR/culprit-detector.* 2>/dev/null"
# Detectors of other tests come and go at the same time; a process left by this test would stay.
left=$(pgrep -f '[/]detector/run' | sed 's,.*,/proc/&/ns/pid,' | xargs -r readlink)
for _ in $(seq 1200); do
	[ -n "$left" ] || break
	left=$(comm -12 <(sort -u <<<"$left") <(pgrep -f '[/]detector/run' | sed 's,.*,/proc/&/ns/pid,' | xargs -r readlink 2>/dev/null | sort -u))
	sleep 0.1
done
check "... and its processes have ended" [ -z "$left" ]
done_testing
