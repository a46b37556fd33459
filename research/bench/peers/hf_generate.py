"""Decoding with transformers' generate in static batches: a batch runs until its longest response is done."""
import time

import torch
from transformers import Qwen2ForCausalLM

from serve import named_device, qwen2_config, serve, settings, stored_model, wait_for

s = settings()
torch.set_num_threads(s['threads'])
torch.manual_seed(0)
device = named_device(s['device'])
shape = s.get('shape', {})
model = Qwen2ForCausalLM(qwen2_config(shape, s['context'])) if shape else stored_model(s['model'])
# A random base that adapters are trained on lies in bfloat16, as with us.
model = model.to(device, torch.bfloat16 if 'adapterRank' in shape else torch.float32).eval()
requests = s['requests']


def generate(batch, **sampling):
    width = max(len(request['prompt']) for request in batch)
    tokens = torch.zeros(len(batch), width, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, request in enumerate(batch):  # padded on the left
        tokens[row, width - len(request['prompt']):] = torch.tensor(request['prompt'])
        mask[row, width - len(request['prompt']):] = 1
    length = max(request['length'] for request in batch)
    sampling = sampling or dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
    written = model.generate(input_ids=tokens.to(device), attention_mask=mask.to(device), max_new_tokens=length,
                             min_new_tokens=length, pad_token_id=0, eos_token_id=1, **sampling)
    wait_for(device)
    return written[:, width:].tolist()


@torch.inference_mode()
def repeat():
    start = time.perf_counter()
    for first in range(0, len(requests), s['batch']):
        generate(requests[first:first + s['batch']])
    return dict(amount=sum(request['length'] for request in requests), seconds=time.perf_counter() - start)


with torch.inference_mode():
    generate([dict(request, length=2) for request in requests[:4]])
    greedy = [generate([check], do_sample=False)[0] for check in s.get('checks', [])]
serve(dict(torch=torch.__version__, device=str(device), greedy=greedy), repeat)
