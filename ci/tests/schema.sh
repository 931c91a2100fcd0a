# JSON held against culprit's own schemas; source it after tap.sh, from the root of the tree:
#     fits COMMAND FILE    a test: FILE, which $culprit COMMAND --json printed, is as results/schemas says (python3-jsonschema)
schema_py=$PWD/ci/tests/schema.py
schema_python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import jsonschema' 2>/dev/null && echo "$p" && break; done)

fits() {
	if [ "$schema_python" ]; then
		# shellcheck disable=SC2086
		check "culprit $1 --json is as its schema says: ${2##*/}" "$schema_python" "$schema_py" "$culprit" $1 <"$2"
	else
		ok "culprit $1 --json is as its schema says: ${2##*/} # SKIP no python3-jsonschema"
	fi
}
