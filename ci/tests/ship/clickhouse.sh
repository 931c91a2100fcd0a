# A ClickHouse of the test's own, on the loopback, in a folder: source it after tap.sh.
#     clickhouse_start FOLDER PORT [SECURE_PORT]   waits until it answers; its process is $clickhouse_pid
#     clickhouse_kill                              SIGKILL
#     clickhouse_sql PORT SQL
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

clickhouse_config() { # FOLDER PORT [SECURE_PORT]
	mkdir -p "$1/data" "$1/tmp" "$1/formats"
	cat >"$1/config.xml" <<-XML
		<yandex>
		<logger><level>error</level><log>$1/log</log><errorlog>$1/errors</errorlog><size>10M</size><count>1</count></logger>
		<http_port>$2</http_port>
		${3:+<https_port>$3</https_port><openSSL><server><certificateFile>$1/cert.pem</certificateFile>
		<privateKeyFile>$1/key.pem</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>}
		<listen_host>127.0.0.1</listen_host><max_concurrent_queries>20</max_concurrent_queries>
		<mark_cache_size>67108864</mark_cache_size>
		<path>$1/data/</path><tmp_path>$1/tmp/</tmp_path><user_files_path>$1/tmp/</user_files_path>
		<format_schema_path>$1/formats/</format_schema_path><users_config>$1/users.xml</users_config>
		<default_profile>default</default_profile><default_database>default</default_database>
		</yandex>
	XML
	cat >"$1/users.xml" <<-XML
		<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
		<quotas><default/></quotas><users>
		<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
		<quota>default</quota></default>
		<me><password>sesame</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
		<quota>default</quota></me></users></yandex>
	XML
}
clickhouse_sql() { curl -sS --max-time 60 "http://127.0.0.1:$1/" --data-binary "$2"; }
clickhouse_answers() { [ "$(clickhouse_sql "$1" 'SELECT 1')" = 1 ]; }
clickhouse_start() {
	[ -e "$1/config.xml" ] || clickhouse_config "$@"
	clickhouse-server --config-file="$1/config.xml" >>"$1/out" 2>&1 &
	clickhouse_pid=$!
	until_true 120 clickhouse_answers "$2"
}
clickhouse_kill() { # and no word of the shell's
	kill -KILL "$clickhouse_pid" && wait "$clickhouse_pid"
} 2>/dev/null
