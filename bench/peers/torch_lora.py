"""Training steps in PyTorch on a device: forward, backward, clipping, AdamW. An adapter on all projections of a base in bfloat16
with PEFT where the shape has one, else all weights in float32."""
import torch
from transformers import Qwen2ForCausalLM

from models import named_device, qwen2_config, wait_for
from serve import for_seconds, serve, settings

s = settings()
device = named_device(s['device'])
shape = s['shape']
torch.manual_seed(0)
model = Qwen2ForCausalLM(qwen2_config(shape, shape['sequence']))
rank = shape.get('adapterRank')
if rank is not None:
    from peft import LoraConfig, get_peft_model
    targets = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
    model = get_peft_model(model.bfloat16(), LoraConfig(r=rank, lora_alpha=rank, target_modules=targets))
if shape.get('recompute'):
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
model.to(device).train()
trained = [weights for weights in model.parameters() if weights.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.01)
rows = s['tokens'] // shape['sequence']


def step():
    tokens = torch.randint(0, shape['vocabSize'], (rows, shape['sequence']), device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=rank is not None):
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    wait_for(device)


def repeat():
    steps, seconds = for_seconds(s['seconds'], step)
    return dict(amount=steps * s['tokens'], seconds=seconds)


step()
step()
serve(dict(torch=torch.__version__, device=str(device), trained=sum(weights.numel() for weights in trained)), repeat)
