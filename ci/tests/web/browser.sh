# A headless Chromium for shell tests, driven through chromedriver (WebDriver over HTTP on loopback). Source it after tap.sh, then
#     browser_start FOLDER [FLAG ...]   keeps its profile in FOLDER; if it fails, $browser_said has the reason;
#                                       browser_stop ends what was started
#     browser_open URL                  and waits until the page is loaded
#     browser_eval JAVASCRIPT           its value: strings unchanged, other values as JSON
#     browser_wait JAVASCRIPT           until it is true, for 20 s at most
#     browser_keys TEXT                 types into what has the focus; $TAB and $ENTER are keys
#     browser_cdp COMMAND JSON          a command of the DevTools protocol
#     browser_log TYPE                  "browser" (console) or "performance" (network): messages since the last call, one a line
# shellcheck disable=SC2034
TAB=$'\xee\x80\x84' ENTER=$'\xee\x80\x87'
browser_base=
browser_pid=

# json_text: standard input as one JSON string.
json_text() { perl -MJSON::PP -0777 -ne 'print JSON::PP->new->utf8->allow_nonref->encode(do { utf8::decode($_); $_ })'; }

# json_value PATH: the member of the JSON on standard input; PATH is "value.sessionId". Fails if the driver reports an error.
json_value() {
	perl -MJSON::PP -0777 -e '
		my $v = decode_json(<STDIN>);
		if (ref $v->{value} eq "HASH" && $v->{value}{error}) { print STDERR "$v->{value}{error}: $v->{value}{message}\n"; exit 1 }
		$v = $v->{$_} for split /\./, $ARGV[0];
		$v = JSON::PP->new->canonical->allow_nonref->encode($v) if !defined $v || ref $v;
		utf8::encode($v) if utf8::is_utf8($v);
		print $v' "$1"
}

browser_post() { curl -sS --noproxy '*' --max-time 120 -H 'Content-Type: application/json' -d "$2" "$browser_base$1"; }

# One try. The driver takes a free port for IPv4 and the same one for IPv6; if another process has that one, it ends.
browser_try() {
	local folder=$1 port='' flags i
	shift
	rm -rf "$folder/profile"
	mkdir -p "$folder/profile"
	HOME=$folder chromedriver --port=0 >"$folder/driver.log" 2>&1 &
	browser_pid=$!
	for ((i = 0; i < 1200; i++)); do
		port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$folder/driver.log" 2>/dev/null || :)
		[ -z "$port" ] || break
		kill -0 "$browser_pid" 2>/dev/null || break
		sleep 0.1
	done
	[ -n "$port" ] || return 1
	browser_base=http://127.0.0.1:$port
	flags=$(printf '"%s",' --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,900 --user-data-dir="$folder/profile" "$@")
	i=$(browser_post /session "{\"capabilities\":{\"alwaysMatch\":{\"goog:chromeOptions\":{\"args\":[${flags%,}]},
		\"goog:loggingPrefs\":{\"browser\":\"ALL\",\"performance\":\"ALL\"}}}}" | json_value value.sessionId) || return 1
	browser_base+=/session/$i
}

browser_start() {
	local i
	browser_said=
	for i in 1 2 3; do
		mkdir -p "$1"
		browser_try "$@" 2>"$1/said" && return
		browser_said+="try $i: $(cat "$1/said" "$1/driver.log")"$'\n'
		browser_stop
	done
	echo "$browser_said" >&2
	return 1
}

browser_stop() {
	[ -n "$browser_pid" ] || return 0
	[ -z "$browser_base" ] || curl -sS --noproxy '*' --max-time 20 -X DELETE "$browser_base" >/dev/null 2>&1
	browser_base=
	kill "$browser_pid" 2>/dev/null
	wait "$browser_pid" 2>/dev/null
	browser_pid=
}

browser_open() { browser_post /url "{\"url\":\"$1\"}" | json_value value >/dev/null; }
browser_eval() { browser_post /execute/sync "{\"script\":$(json_text <<<"$1"),\"args\":[]}" | json_value value; }
browser_cdp() { browser_post /goog/cdp/execute "{\"cmd\":\"$1\",\"params\":$2}" | json_value "value${3:+.$3}"; }

browser_wait() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(browser_eval "return !!($1)")" != true ] || return 0
		sleep 0.1
	done
	echo "never true: $1"
	return 1
}

browser_keys() {
	local down='' i
	for ((i = 0; i < ${#1}; i++)); do
		down+="{\"type\":\"keyDown\",\"value\":\"${1:i:1}\"},{\"type\":\"keyUp\",\"value\":\"${1:i:1}\"},"
	done
	browser_post /actions "{\"actions\":[{\"type\":\"key\",\"id\":\"keys\",\"actions\":[${down%,}]}]}" | json_value value >/dev/null
}

browser_log() {
	browser_post /se/log "{\"type\":\"$1\"}" |
		perl -MJSON::PP -0777 -ne 'print map { my $m = $_->{message}; utf8::encode($m); "$m\n" } @{decode_json($_)->{value}}'
}
