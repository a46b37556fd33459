"""Reads lines of [schema, value as text] and writes for each whether jsonschema accepts the value."""
import json, sys
from jsonschema.validators import Draft202012Validator, validator_for

for line in sys.stdin:
    schema, value = json.loads(line)
    validator = validator_for(schema, default=Draft202012Validator)(schema)
    try:
        print(json.dumps(validator.is_valid(json.loads(value))))
    except OverflowError:  # a multiple of infinity
        print("null")
