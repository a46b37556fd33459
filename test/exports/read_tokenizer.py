"""What `tokenizers` and `transformers` make of exported tokenizers: a request a line in, an answer a line out."""

import json
import sys

from tokenizers import Tokenizer
from transformers import AutoTokenizer

for line in sys.stdin:
    request = json.loads(line)
    directory = request["directory"]
    plain = Tokenizer.from_file(f"{directory}/tokenizer.json")
    auto = AutoTokenizer.from_pretrained(directory)
    literal = Tokenizer.from_file(f"{directory}/tokenizer.json")
    literal.encode_special_tokens = True  # a special token that is written out in a text is text
    print(
        json.dumps(
            {
                "vocabulary": len(auto),
                "end": [auto.eos_token_id],
                "plain": [plain.encode(text).ids for text in request["texts"]],
                "auto": [auto(text)["input_ids"] for text in request["texts"]],
                "literal": [literal.encode(text).ids for text in request["literalTexts"]],
                "decoded": [plain.decode(ids, skip_special_tokens=False) for ids in request["tokens"]],
                "autoDecoded": [auto.decode(ids) for ids in request["tokens"]],
                "chats": [
                    auto.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
                    for messages in request["conversations"]
                ],
            }
        ),
        flush=True,
    )
