"""Writes what PyPI's tokenizers 0.23.3 makes of texts and ids with small tokenizers, to small-tokenizers.jsonl.

Each line is a tokenizer.json, texts with their ids, and lists of ids with their texts. Special tokens are not added.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CORPUS = ["the hello world foo bar ing Hello don't I'll 日本 é 123 3.14 naïve cafe\u0301 "] * 5
TEXTS = [
    *["hello world", "the hello the", "Hello, wörld! naïve", "a\u0301 é e\u0301", "日本語 中文", "x\u200dy \u200d> <s>"],
    *["  two  spaces  ", "one\n\ntwo\t", "7² ½3", "ΑΣ ΟΔΟΣ. ẞ", "foofoo foo ²foo Foo FOO", "😀👍🏽", "zzz hello zzz"],
    *["<tool> <tool>  <tool>", "don't I'll", "▁the▁", "a\x00b\x07c\u00a0d", ""],
]
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def bpe(bytes=False, **settings):
    affixes = {key: settings[key] for key in settings if key in ("continuing_subword_prefix", "end_of_word_suffix")}
    trainer = trainers.BpeTrainer(
        vocab_size=400 if bytes else 90,
        special_tokens=SPECIAL + (BYTES if bytes else []),
        limit_alphabet=24,
        show_progress=False,
        **affixes,
    )
    return models.BPE(byte_fallback=bytes, **settings), trainer


def unigram(bytes=False):
    trainer = trainers.UnigramTrainer(
        vocab_size=330 if bytes else 70,
        special_tokens=SPECIAL + (BYTES if bytes else []),
        unk_token="<unk>",
        show_progress=False,
    )
    return models.Unigram(), trainer


def word_piece(**settings):
    trainer = trainers.WordPieceTrainer(vocab_size=80, special_tokens=SPECIAL, show_progress=False)
    return models.WordPiece(unk_token="<unk>", **settings), trainer


def build(model, normalizer=None, pre_tokenizer=None, decoder=None, added=(), bytes=False):
    made, trainer = model
    tokenizer = Tokenizer(made)
    for name, part in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer), ("decoder", decoder)):
        if part is not None:
            setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(CORPUS, trainer)
    if bytes:
        settings = json.loads(tokenizer.to_str())
        settings["model"]["byte_fallback"] = True
        tokenizer = Tokenizer.from_str(json.dumps(settings))
    tokenizer.add_tokens(list(added))
    return tokenizer


P, N, D = pre_tokenizers, normalizers, decoders
FLAGS = [
    AddedToken("foo", single_word=True, normalized=True),
    AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False, special=True),
    AddedToken(" ", rstrip=True, normalized=False),
    AddedToken("FOO", normalized=True),
]
TOKENIZERS = {
    "byte pairs of words, unknown ones beside each other are one": build(
        bpe(unk_token="<unk>", fuse_unk=True), None, P.Whitespace()
    ),
    "byte pairs, each unknown character": build(bpe(unk_token="<unk>"), N.NFC(), P.Metaspace(), D.Metaspace()),
    "byte pairs with a prefix": build(bpe(continuing_subword_prefix="##"), None, P.Whitespace(), D.WordPiece()),
    "byte pairs with a prefix and unknown ones": build(
        bpe(continuing_subword_prefix="##", unk_token="<unk>", fuse_unk=True), N.Lowercase(), P.WhitespaceSplit()
    ),
    "byte pairs with the end of words": build(
        bpe(end_of_word_suffix="</w>", unk_token="<unk>"), N.BertNormalizer(), P.BertPreTokenizer(), D.BPEDecoder()
    ),
    "byte pairs that fall back to bytes": build(
        bpe(True, unk_token="<unk>", fuse_unk=True),
        N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]),
        None,
        D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
    ),
    "whole words before merges": build(bpe(ignore_merges=True), None, P.Digits(True)),
    "unigram": build(unigram(), N.NFKC(), P.Metaspace(), D.Metaspace()),
    "unigram that falls back to bytes": build(
        unigram(True), None, P.Metaspace(prepend_scheme="first"), D.Sequence([D.ByteFallback(), D.Metaspace()]), (), True
    ),
    "pieces of words": build(word_piece(max_input_chars_per_word=6), N.BertNormalizer(), P.BertPreTokenizer(), D.WordPiece()),
    "added tokens": build(bpe(unk_token="<unk>"), N.Lowercase(), P.Whitespace(), D.Fuse(), FLAGS),
    "added tokens behind a prefix": build(
        bpe(True, unk_token="<unk>"), N.Prepend("▁"), None, D.Sequence([D.Replace("▁", " "), D.Fuse()]), FLAGS
    ),
    "one added space": build(bpe(), None, P.Digits(), None, [AddedToken(" ", lstrip=True, rstrip=True)]),
    "bytes that are no characters between pieces of words": build(
        bpe(True, unk_token="<unk>"), None, P.Whitespace(), D.Sequence([D.ByteFallback(), D.WordPiece(cleanup=False)])
    ),
    "the first piece of a text that loses its start": build(
        bpe(unk_token="<unk>"),
        N.Sequence([N.Strip(right=False), N.Replace("the", ""), N.Replace("he", "o"), N.Replace("f", "oo")]),
        P.Metaspace(prepend_scheme="first"),
        D.Metaspace(prepend_scheme="first"),
    ),
    "cuts at places without characters": build(
        bpe(unk_token="<unk>"), None, P.Split(Regex("\\b"), "contiguous"), D.Fuse()
    ),
    "cuts at places and characters": build(
        bpe(unk_token="<unk>"), None, P.Split(Regex("(?=l)|o"), "merged_with_previous"), D.Fuse()
    ),
    "clean text": build(
        word_piece(), N.BertNormalizer(clean_text=True, strip_accents=True, lowercase=True), P.WhitespaceSplit(), D.WordPiece(cleanup=False)
    ),
}


def row(name, tokenizer):
    encodings = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in TEXTS]
    size = tokenizer.get_vocab_size()
    lists = [[(i * i * 7 + k * 13) % size for i in range(k + 3)] for k in range(8)] + [ids for _, ids in encodings[:8]]
    decodings = [[ids, tokenizer.decode(ids, skip_special_tokens=False)] for ids in lists]
    return {"name": name, "tokenizer": json.loads(tokenizer.to_str()), "encodings": encodings, "decodings": decodings}


FILE = pathlib.Path(__file__).with_name("small-tokenizers.jsonl")
FILE.write_text("".join(json.dumps(row(*each), ensure_ascii=False, separators=(",", ":")) + "\n" for each in TOKENIZERS.items()))
