"""Writes what jinja2 makes of the small templates of chat-templates.json, as transformers sets it up.

Each row is a template and its output, or null if jinja2 refuses it. To add a template, add a row with null and run
this script with transformers 5.24.0 and jinja2 3.1.6. The clock stands at 2026-11-27 00:34:37.
"""

import datetime
import json
import pathlib

import transformers.utils.chat_template_utils as utilities

FILE = pathlib.Path(__file__).with_name("chat-templates.json")


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 27, 0, 34, 37)


def rendered(template):
    try:
        return utilities._compile_jinja_template(template).render(messages=[], tools=None, documents=None)
    except Exception:
        return None


utilities.datetime = Fixed
rows = [[template, rendered(template)] for template, _ in json.loads(FILE.read_text())]
FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
