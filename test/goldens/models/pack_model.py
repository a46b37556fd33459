"""Writes the golden numbers of random miniatures as transformers and PyTorch compute them, in one JSON file.

    python pack_model.py > packed.json

The file holds the files of each model's directory: JSON as it is, safetensors in base64. The tokenizer is llama-mini's, but
gemma3-mini has one of its own, of SentencePiece's kind, with its golden encodings and Gemma's chat template, and
lfm2-mini one of bytes, with a template of ChatML's kind.
Needs torch 2.13.0 (CPU) and transformers 5.23.0.
"""

import base64
import json
import sys
import tempfile
from pathlib import Path

import tokenizers
import torch
import transformers
from safetensors.torch import save
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    Lfm2Config,
    MistralConfig,
    PreTrainedTokenizerFast,
    SmolLM3Config,
)

VOCABULARY = 395
MINIATURES = {
    # The fourth of five layers does not rotate: it is neither the first nor the last.
    "smollm3-mini": SmolLM3Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        rope_theta=5_000_000.0,
        bos_token_id=None,
        eos_token_id=391,
        pad_token_id=None,
    ),
    # A window shorter than the texts, a scale of scores that is not the heads', and stretched positions.
    "gemma3-mini": Gemma3TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=20,
        intermediate_size=24,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        query_pre_attn_scalar=12,
        max_position_embeddings=512,
        sliding_window=5,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        bos_token_id=None,
        eos_token_id=391,
        pad_token_id=None,
    ),
    # The first and the last layer convolve, and feed-forward layers are 48 wide: 60 * 2 / 3 * 1.1 in multiples of 8.
    "lfm2-mini": Lfm2Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=60,
        block_ffn_dim_multiplier=1.1,
        block_multiple_of=8,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        layer_types=["conv", "full_attention", "conv", "full_attention", "conv"],
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=391,
        pad_token_id=None,
    ),
    # A window shorter than the texts, in all layers, and heads that are wider than the stream together.
    "mistral-mini": MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=6,
        max_position_embeddings=512,
        sliding_window=7,
        rope_theta=20_000.0,
        bos_token_id=None,
        eos_token_id=391,
        pad_token_id=None,
    ),
}
LEARNING = {"lr": 0.002, "beta1": 0.9, "beta2": 0.95, "eps": 1e-08, "weightDecay": 0.1, "clipGradNorm": 1.0}
TEMPERATURE = 0.6


def random_model(config, seed):
    """A model with random weights that bfloat16 holds exactly, computing in float32."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            gain = parameter.dim() == 1
            mean = 1 if gain and config.model_type != "gemma3_text" else 0  # Gemma stores gains minus 1
            parameter.copy_(torch.randn_like(parameter) * (0.2 if gain else 0.4) + mean)
            parameter.copy_(parameter.bfloat16().float())
    return model


def ids(count):
    return torch.randint(0, VOCABULARY - 5, (count,)).tolist()


def logits_of(model, tokens):
    return model(input_ids=torch.tensor([tokens])).logits[0]


@torch.no_grad()
def greedy(model, prompt, length):
    tokens, margin = list(prompt), float("inf")
    for _ in range(length):
        best = logits_of(model, tokens)[-1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
    return {"prompt": prompt, "generated": tokens[len(prompt) :], "smallestMargin": margin}


@torch.no_grad()
def continuation(model, prompt, tokens):
    logits = logits_of(model, prompt + tokens)[len(prompt) - 1 : -1].double()
    rows = torch.arange(len(tokens))
    logprobs = logits.log_softmax(-1)
    cooler = (logits / TEMPERATURE).log_softmax(-1)
    return {
        "prompt": prompt,
        "continuation": tokens,
        "logprobs": logprobs[rows, tokens].tolist(),
        "entropies": (-(logprobs.exp() * logprobs).sum(-1)).tolist(),
        "logprobsAtTemperature": {str(TEMPERATURE): cooler[rows, tokens].tolist()},
    }


def cross_entropy(model, batch):
    """The mean over all tokens with mask 1; a first token is never predicted."""
    total, count = 0, 0
    for row in batch:
        logprobs = logits_of(model, row["ids"])[:-1].log_softmax(-1)
        targets, mask = torch.tensor(row["ids"][1:]), torch.tensor(row["lossMask"][1:])
        total = total - (logprobs.gather(1, targets[:, None])[:, 0] * mask).sum()
        count += int(mask.sum())
    return total / count, count


def adamw(model, batch):
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=LEARNING["lr"],
        betas=(LEARNING["beta1"], LEARNING["beta2"]),
        eps=LEARNING["eps"],
        weight_decay=LEARNING["weightDecay"],
    )
    losses = []
    for step in range(4):
        loss, _ = cross_entropy(model, batch)
        losses.append(loss.item())
        if step == 3:
            break
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LEARNING["clipGradNorm"])
        optimizer.step()
    named = dict(model.named_parameters())
    return {
        **LEARNING,
        "losses": losses,
        "parameterNormsAfter": {name: each.double().norm().item() for name, each in named.items()},
        "parameterSumsAfter": {name: each.double().sum().item() for name, each in named.items()},
    }


def packed(config, seed):
    model = random_model(config, seed)
    weights = {name: each.detach().bfloat16() for name, each in model.named_parameters()}
    tensors, logits = {}, []
    for index, length in enumerate((5, 12, 24)):
        prompt = ids(length)
        with torch.no_grad():
            tensors[f"logits.{index}"] = logits_of(model, prompt).contiguous()
        argmax = tensors[f"logits.{index}"].argmax(-1).tolist()
        logits.append({"ids": prompt, "tensor": f"logits.{index}", "argmax": argmax})
    numbers = {
        "library": f"transformers {transformers.__version__}, torch {torch.__version__}, "
        f"tokenizers {tokenizers.__version__}",
        "dtype": "float32 (weights stored bf16)",
        "attention": "eager",
        "seed": seed,
        "logits": logits,
        "greedy": greedy(model, ids(9), 32),
        "continuation": continuation(model, ids(6), ids(20)),
    }
    batch = [{"ids": ids(n), "lossMask": torch.randint(0, 2, (n,)).tolist()} for n in (8, 15, 22)]
    loss, count = cross_entropy(model, batch)
    loss.backward()
    gradients = {name: each.grad.clone() for name, each in model.named_parameters()}
    tensors.update({f"grad.{name}": gradient for name, gradient in gradients.items()})
    norm = torch.cat([gradient.double().flatten() for gradient in gradients.values()]).norm().item()
    numbers["crossEntropy"] = {
        "batch": batch,
        "loss": loss.item(),
        "targetTokens": count,
        "globalGradNorm": norm,
    }
    numbers["adamw"] = adamw(model, batch)
    with tempfile.TemporaryDirectory() as directory:
        model.config.save_pretrained(directory)
        description = json.loads(Path(directory, "config.json").read_text())
    return {
        "config.json": {**description, "dtype": "bfloat16"},
        "golden_model.json": numbers,
        "model.safetensors": base64.b64encode(save(weights, {"format": "pt"})).decode(),
        "golden_tensors.safetensors": base64.b64encode(save(tensors)).decode(),
    }


SPECIAL = ["<pad>", "<end_of_turn>", "<start_of_turn>", "<bos>", "<unk>"]
CORPUS = [
    "so it is 4, it is so: the sum of 2 and 2 is 4.",
    "What is the sum of the numbers? The answer is in the box, and the box is \\boxed{12}.",
    "Hello there,\n\nwhy is the  sky blue? It is not that blue here.",
]
TEXTS = [
    *CORPUS,
    *["a", " ", "  leading and trailing  ", "tabs\tand\r\nlines\n\n\n", "▁ as it is written", "naïve café 北京 😀👍🏽"],
    *["<start_of_turn>user\nHello<end_of_turn>\n", "<bos>the<unk>the", "\u0000\u0007 control", "it's 12345 - x_1^2"],
]
CHATS = [
    [("user", "Hello there")],
    [("system", "You are the box."), ("user", "  What is the sum of 2 and 2? ")],
    [("user", "so"), ("assistant", "it is 4"), ("user", "why?")],
    [("system", "Be\nbrief."), ("user", "so"), ("assistant", "it is"), ("user", "北京?"), ("assistant", "4")],
]
# Gemma has no system role: its text goes before the first user turn.
TEMPLATE = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
"""


def gemma_tokenizer():
    """Byte-pair encoding of SentencePiece's kind: spaces become "▁", unknown characters become bytes."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    size = VOCABULARY - 256 - len(SPECIAL)
    trained.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    learned = json.loads(trained.to_str())["model"]
    pieces = [f"<0x{byte:02X}>" for byte in range(256)] + sorted(learned["vocab"], key=learned["vocab"].get)
    vocabulary = {piece: index for index, piece in enumerate(pieces + SPECIAL)}
    assert len(vocabulary) == VOCABULARY, len(vocabulary)
    merges = [tuple(pair) for pair in learned["merges"]]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True, ignore_merges=False)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return tokenizer


CHATML_SPECIAL = ["<|pad|>", "<|im_end|>", "<|im_start|>", "<|startoftext|>", "<|endoftext|>"]
CHATML_TEXTS = [
    *TEXTS[:-3],
    *["<|im_start|>user\nHello<|im_end|>\n", "<|startoftext|>the", "\u0000\u0007 control", "It's 12345 - x_1^2"],
]
# The system text is a turn, and the list of messages is cut where it is there.
CHATML = """{{- bos_token -}}
{%- set first = namespace(system="") -%}
{%- if messages[0]["role"] == "system" -%}
    {%- set first.system = messages[0]["content"] -%}
    {%- set messages = messages[1:] -%}
{%- endif -%}
{%- if first.system -%}{{- "<|im_start|>system\n" + first.system + "<|im_end|>\n" -}}{%- endif -%}
{%- for message in messages -%}
    {%- set content = message["content"] -%}
    {%- if content is not string -%}{%- set content = content | tojson -%}{%- endif -%}
    {{- "<|im_start|>" + message["role"] + "\n" + content + "<|im_end|>\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\n" -}}{%- endif -%}
"""


def bytes_tokenizer():
    """Byte-level byte-pair encoding, with numbers of at most three digits and a first token before every text."""
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(CHATML_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    reserved = [f"<|reserved_{n}|>" for n in range(VOCABULARY - len(CHATML_SPECIAL) - tokenizer.get_vocab_size())]
    special = [AddedToken(token, normalized=False, special=True) for token in reserved + CHATML_SPECIAL]
    tokenizer.add_special_tokens(special)
    assert tokenizer.get_vocab_size() == VOCABULARY, tokenizer.get_vocab_size()
    first = ("<|startoftext|>", tokenizer.token_to_id("<|startoftext|>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="<|startoftext|> $A", special_tokens=[first])
    return tokenizer


def golden_tokenizer(tokenizer, named, template, texts, kind):
    chatting = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **named)
    encodings = []
    for text in texts:
        found = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(found, skip_special_tokens=False)
        encodings.append({"text": text, "ids": found, **({} if decoded == text else {"decoded": decoded})})
    # Of several bytes that are no character this library shows each, others show one.
    broken = [[0xE5], [0xE5, 300, 0x97], [391, 0x0A, 392]]
    decodings = [{"ids": some, "decoded": tokenizer.decode(some, skip_special_tokens=False)} for some in broken]
    chats = []
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        text = chatting.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        found = tokenizer.encode(text, add_special_tokens=False).ids
        chats.append({"messages": messages, "addGenerationPrompt": True, "variables": {}, "ids": found})
    config = {"tokenizer_class": kind, "clean_up_tokenization_spaces": False, **named}
    return {
        "tokenizer.json": json.loads(tokenizer.to_str()),
        "tokenizer_config.json": {**config, "chat_template": template},
        "golden_tokenizer.json": {
            "vocabSize": VOCABULARY,
            "encodings": encodings,
            "decodings": decodings,
            "chats": chats,
        },
    }


def contents(name):
    config = MINIATURES[name]
    # A continuation whose choices are close would depend on rounding.
    for seed in range(1000):
        content = packed(config, seed)
        if content["golden_model.json"]["greedy"]["smallestMargin"] > 0.02:
            break
    if name == "gemma3-mini":
        named = {"bos_token": "<bos>", "eos_token": "<end_of_turn>", "pad_token": "<pad>", "unk_token": "<unk>"}
        content.update(golden_tokenizer(gemma_tokenizer(), named, TEMPLATE, TEXTS, "GemmaTokenizerFast"))
    if name == "lfm2-mini":
        named = {"bos_token": "<|startoftext|>", "eos_token": "<|im_end|>", "pad_token": "<|pad|>"}
        content.update(golden_tokenizer(bytes_tokenizer(), named, CHATML, CHATML_TEXTS, "PreTrainedTokenizerFast"))
    return content


def lines(entries):
    """An object with an entry a line."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {text}" for key, text in entries) + "\n}"


def main():
    models = {name: contents(name) for name in MINIATURES}
    packed = ((name, lines((k, json.dumps(v)) for k, v in files.items())) for name, files in models.items())
    sys.stdout.write(lines(packed) + "\n")


main()
