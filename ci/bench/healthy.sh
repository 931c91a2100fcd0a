#!/bin/bash
# What 'culprit findings' says of 32 healthy programs of Debian, each at its ordinary work: a line a program with its calls and findings.
#
#   ci/bench/healthy.sh [TRACER]          ebpf (default), or ptrace
#   KEEP=FOLDER ci/bench/healthy.sh       the logs are kept there
#
# A program that is not installed says so. Nothing goes over a network.
set -eu
cd "$(dirname "$0")/../.."
tracer=${1:-ebpf}
culprit=$PWD/${OUT:-out}/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOME=$dir/home XDG_CACHE_HOME=$dir/cache LC_ALL=C
logs=${KEEP:-$dir/logs}
mkdir -p "$HOME" "$logs"
cd "$dir"

try() { # NAME NEEDED COMMAND...: the command, traced
	local name=$1 needed=$2 log code=0 found calls
	shift 2
	command -v "$needed" >/dev/null || { printf '%-18s not installed\n' "$name"; return; }
	log=$logs/$(tr -c 'a-z0-9\n' _ <<<"$name")
	timeout 120 "$culprit" trace --tracer "$tracer" -o "$log" -- "$@" >"$log.out" 2>&1 </dev/null || code=$?
	calls=$("$culprit" query --csv "$log" 'select count(*) from events' | tail -n 1)
	timeout 120 "$culprit" findings "$log" >"$log.findings" 2>&1 || :
	found=$(sed -n 's/^\(error\|warning\|note\): \([a-z-]*\): \([^ ]*\) ([0-9]*) on .*/\1 \2: \3/p; s/^note: blind-spots: .*/note blind-spots/p' "$log.findings" | sort | uniq -c | sed 's/^ *1 //')
	printf '%-18s exit %3d %8d calls  %s\n' "$name" "$code" "$calls" "${found:-nothing}" | sed '2,$s/^/                                          /'
}
inserts() { # N
	seq "$1" | sed 's/.*/insert into t values(&);/'
}

"$culprit" --version | head -n 1
mkdir src
echo 'int f(void); int main(void) { return f(); }' >src/a.c
echo 'int f(void) { return 0; }' >src/b.c
printf 'prog: a.o b.o\n\tgcc -o $@ $^\n' >src/Makefile
printf 'cmake_minimum_required(VERSION 3.18)\nproject(x C)\nadd_executable(prog a.c b.c)\n' >src/CMakeLists.txt
try 'sqlite, rollback' sqlite3 sqlite3 a.db "create table t(a); $(inserts 40) select count(*) from t;"
try 'sqlite, WAL' sqlite3 sqlite3 b.db "pragma journal_mode=wal; create table t(a); $(inserts 40) select count(*) from t;"
try 'db_bench' db_bench db_bench --benchmarks=fillseq,readrandom --num=20000 --db="$dir/rocks"
try git git bash -c 'git init -q g && cd g && git config user.email a@b && git config user.name n &&
	for i in $(seq 20); do echo $i >f$i; git add .; git commit -qm $i; done; git gc -q && git fsck'
try make make make -C src prog
try cmake cmake bash -c 'cmake -S src -B build && cmake --build build'
try 'tar, packing' tar tar czf x.tgz -C /usr/include linux
try 'tar, unpacking' tar bash -c 'mkdir u && tar xzf x.tgz -C u'
try xz xz xz -k -c x.tgz
try zip zip zip -qr x.zip /usr/include/linux
try unzip unzip unzip -q x.zip -d uz
try 'cp, find, grep, rm' cp bash -c 'cp -a /usr/include/linux c && find c -type f -exec grep -l define {} + >list; rm -r c'
try 'sort, uniq' sort bash -c 'cat /usr/include/linux/*.h | sort | uniq -c >counted'
try 'sed -i' sed bash -c 'cp /usr/include/stdio.h s.h && sed -i s/FILE/file/ s.h'
try patch patch bash -c 'cp s.h t.h && diff -u s.h /usr/include/stdio.h | patch t.h'
try vim vim vim -u NONE -es -c 'e v.txt' -c 'normal ihello' -c wq
try ed ed bash -c 'printf "a\nhello\n.\nw e.txt\nq\n" | ed -s'
try dpkg-query dpkg-query bash -c 'dpkg-query -l && dpkg-query -S /bin/ls'
try apt-cache apt-cache apt-cache policy coreutils
try perl perl perl -MJSON::PP -e 'print JSON::PP->new->encode({a => [1 .. 1000]})'
try python3 python3 python3 -c 'import json, sqlite3, email, http.client, asyncio'
try 'python3, compiling' python3 bash -c 'mkdir p && cp /usr/lib/python3*/json/*.py p/ && python3 -m compileall -q p'
try node node node -e 'for (let i = 0; i < 200; i++) require("fs").writeFileSync("n" + i % 10, "x".repeat(i))'
try java java bash -c 'echo "class A { public static void main(String[] a) { System.out.println(1); } }" >A.java && java A.java'
try gdb gdb gdb -batch -ex 'info functions main' /bin/true
try openssl openssl bash -c 'openssl genrsa -out k.pem 2048 && openssl req -new -x509 -key k.pem -subj /CN=x -out c.pem'
try gpg gpg bash -c 'mkdir -m 700 gh && gpg --homedir gh --batch --passphrase "" --quick-gen-key a@b default default never; gpgconf --homedir gh --kill all'
try mandb mandb mandb -c -u manuals
try logrotate logrotate bash -c 'mkdir lr && head -c 100000 /dev/zero >lr/a.log && echo "$PWD/lr/a.log { size 1k
rotate 2
compress
create
}" >lr.conf && logrotate -f -s lr.state lr.conf'
try localedef localedef localedef -i de_DE -f UTF-8 ./de
try ctags ctags ctags -f tags -R /usr/include/linux
try fio fio fio --name=a --rw=randrw --size=8m --bs=4k --filename=fio.dat
