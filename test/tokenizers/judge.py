"""Reads a line of JSON for each question about a tokenizer.json or a pattern, and writes PyPI's answer as a line."""
import json, sys
from tokenizers import Regex, Tokenizer, pre_tokenizers

for line in sys.stdin:
    question = json.loads(line)
    if "pattern" in question:
        try:
            split = pre_tokenizers.Split(Regex(question["pattern"]), "isolated")
        except Exception:
            print("null")
            continue
        answer = [[piece for piece, _ in split.pre_tokenize_str(text)] for text in question["texts"]]
    else:
        tokenizer = Tokenizer.from_str(question["tokenizer"])
        encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in question["texts"]]
        lists = encoded + question["lists"]
        answer = {"encoded": encoded, "decoded": [tokenizer.decode(ids, skip_special_tokens=False) for ids in lists]}
    print(json.dumps(answer), flush=True)
