"""Parts that the peers in Python share: models, devices, and the exchange with the benchmark. A peer reads its settings
as a line of JSON from stdin and writes its answers as lines of JSON to stdout."""
import json
import os
import sys
import time


def settings():
    return json.loads(sys.stdin.readline())


def serve(about, repeat):
    """Says that it is ready, then answers each further line on stdin with repeat(): a dict with `amount`, `seconds` and
    other fields worth keeping."""
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)  # whatever libraries print must not mix with the answers
    answers.write(json.dumps(about) + '\n')
    for _ in sys.stdin:
        answers.write(json.dumps(repeat()) + '\n')


def for_seconds(least, step):
    """Calls step() until `least` seconds are over, at least once: (calls, seconds)."""
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < least:
        step()
        calls += 1
    return calls, time.perf_counter() - start


def qwen2_config(shape, context):
    """A shape of research/bench/workload.ts as a transformers configuration."""
    from transformers import Qwen2Config
    return Qwen2Config(
        vocab_size=shape['vocabSize'],
        hidden_size=shape['width'],
        num_hidden_layers=shape['layers'],
        num_attention_heads=shape['heads'],
        num_key_value_heads=shape['kvHeads'],
        intermediate_size=shape['feedForward'],
        max_position_embeddings=context,
        tie_word_embeddings=True,
        attn_implementation='sdpa',
    )


def stored_model(directory):
    """A model on disk, in float32."""
    import torch
    from transformers import AutoModelForCausalLM
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation='sdpa')


def with_adapter(model, rank):
    """A LoRA adapter on all projections of a model, with PEFT."""
    from peft import LoraConfig, get_peft_model
    targets = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
    return get_peft_model(model, LoraConfig(r=rank, lora_alpha=rank, target_modules=targets))


def named_device(name):
    """'cpu', or with 'gpu' what PyTorch has: CUDA or Metal."""
    import torch
    if name == 'cpu':
        return torch.device('cpu')
    if torch.cuda.is_available():
        return torch.device('cuda')
    if torch.backends.mps.is_available():
        return torch.device('mps')
    raise SystemExit('PyTorch sees no GPU, neither of CUDA nor of Metal')


def wait_for(device):
    """Waits until a GPU has done what it was given."""
    import torch
    if device.type == 'cuda':
        torch.cuda.synchronize()
    elif device.type == 'mps':
        torch.mps.synchronize()
