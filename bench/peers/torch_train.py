"""Training steps in PyTorch: forward, backward, clipping, fused AdamW on unpadded sequences, eager or compiled, in float32
or with autocast to bfloat16."""
import torch
from transformers import Qwen2ForCausalLM

from models import qwen2_config
from serve import for_seconds, serve, settings

s = settings()
torch.set_num_threads(s['threads'])
torch.manual_seed(0)
model = Qwen2ForCausalLM(qwen2_config(s['shape'], s['shape']['sequence'])).float()
forward = torch.compile(model) if s['compile'] else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
rows = s['tokens'] // s['shape']['sequence']


def step():
    tokens = torch.randint(0, s['shape']['vocabSize'], (rows, s['shape']['sequence']))
    with torch.autocast('cpu', dtype=torch.bfloat16, enabled=s['autocast']):
        loss = forward(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def repeat():
    steps, seconds = for_seconds(s['seconds'], step)
    return dict(amount=steps * s['tokens'], seconds=seconds)


step()
step()
serve(dict(torch=torch.__version__), repeat)
