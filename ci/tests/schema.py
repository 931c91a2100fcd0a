"""Is the JSON on standard input what culprit's own schema of a command says?
   schema.py CULPRIT COMMAND...     exit code 1 with what does not fit, and where
   schema.py --strict CULPRIT       is each schema itself one, and closed: does every object of it say which keys it may have?
"""
import json
import subprocess
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore", DeprecationWarning)  # Debian's jsonschema has RefResolver only, newer ones complain of it
from jsonschema import Draft202012Validator, RefResolver


def files(culprit):
    out = subprocess.run([culprit, "help", "--schemas"], capture_output=True, check=True, text=True).stdout
    return {line[:15].strip(): Path(line[16:]) for line in out.splitlines()}


def validator(path):
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    return schema, Draft202012Validator(schema, resolver=RefResolver(path.as_uri(), schema))


def values(text, lines):
    if lines:
        return [json.loads(line) for line in text.splitlines()]
    return [json.loads(text)]


def deepest(error):
    """Of the branches of a oneOf, what is wrong with the one that goes deepest."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), -len(e.context or [])))
    return error


def open_objects(schema, at=""):
    if isinstance(schema, list):
        for i, s in enumerate(schema):
            yield from open_objects(s, f"{at}/{i}")
    if not isinstance(schema, dict):
        return
    if "properties" in schema and schema.get("additionalProperties") is not False:
        yield at
    if schema.get("type") == "object" and not {"properties", "additionalProperties", "oneOf"} & set(schema):
        yield at
    for key, s in schema.items():
        if key not in ("enum", "const"):
            yield from open_objects(s, f"{at}/{key}")


def strict(culprit):
    bad = []
    for command, path in files(culprit).items():
        schema, _ = validator(path)
        bad += [f"{path.name}: {at or '/'} may have any key" for at in open_objects(schema)]
        if schema["title"] != f"culprit {command} --json":
            bad.append(f"{path.name}: its title is '{schema['title']}'")
    return bad


def misfits(culprit, command):
    schema, check = validator(files(culprit)[command])
    found = values(sys.stdin.read(), schema.get("x-lines"))
    bad = [f"{n}: {'/'.join(map(str, e.absolute_path))}: {e.message[:300]}"
           for n, v in enumerate(found, 1) for e in map(deepest, check.iter_errors(v))]
    return bad if found else [f"culprit {command} printed nothing"]


if __name__ == "__main__":
    wrong = strict(sys.argv[2]) if sys.argv[1] == "--strict" else misfits(sys.argv[1], " ".join(sys.argv[2:]))
    print("\n".join(wrong[:20]))
    sys.exit(bool(wrong))
