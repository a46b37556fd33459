"""Reads lines of [schema, value as text] and writes for each whether jsonschema accepts the value."""
import json, sys
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

for line in sys.stdin:
    schema, value = json.loads(line)
    validator = validator_for(schema, default=Draft202012Validator)
    try:  # the registry asks no server for documents
        print(json.dumps(validator(schema, registry=Registry()).is_valid(json.loads(value))))
    except (OverflowError, Unresolvable, RecursionError):  # a multiple of infinity; no such schema; no end
        print("null")
