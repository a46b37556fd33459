"""Reads a line of JSON for each conversation, and writes what transformers renders, or null if it refuses it."""
import datetime, json, sys
import transformers.utils.chat_template_utils as utilities


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 27, 0, 34, 37)


utilities.datetime = Fixed
for line in sys.stdin:
    question = json.loads(line)
    values = question["variables"] | {"messages": question["messages"], "tools": question["tools"], "documents": None}
    try:
        print(json.dumps(utilities._compile_jinja_template(question["template"]).render(**values)))
    except Exception:
        print("null")
