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
