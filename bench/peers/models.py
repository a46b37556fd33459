"""A shape of bench/workload.ts as a transformers configuration."""
from transformers import Qwen2Config


def qwen2_config(shape, context):
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
