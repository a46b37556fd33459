"""Training steps in PyTorch: forward, backward, clipping, AdamW, eager or compiled. Either a random model of a shape on unpadded random
sequences, or a model on disk on the rows of an update, padded to the longest of a micro-batch. An adapter is PEFT's."""
import torch
from transformers import Qwen2ForCausalLM

from serve import for_seconds, named_device, qwen2_config, serve, settings, stored_model, wait_for, with_adapter

s = settings()
torch.set_num_threads(s['threads'])
torch.manual_seed(0)
device = named_device(s['device'])
shape = s.get('shape', {})
model = Qwen2ForCausalLM(qwen2_config(shape, shape['sequence'])).float() if shape else stored_model(s['model'])
rank = shape.get('adapterRank') or s.get('rank')
if rank:
    # The base in bfloat16, the adapter in float32.
    model = with_adapter(model.bfloat16() if s['autocast'] else model, rank)
if shape.get('recompute'):
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
model.to(device).train()
trained = [weights for weights in model.parameters() if weights.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.01, fused=device.type == 'cpu')
autocast = torch.autocast(device.type, dtype=torch.bfloat16, enabled=s['autocast'])


def of_sequences():
    """Loss of random sequences that are predicted whole, and the number of tokens of a step."""
    forward = torch.compile(model) if s['compile'] else model
    rows, length = s['tokens'] // shape['sequence'], shape['sequence']

    def losses():
        tokens = torch.randint(0, shape['vocabSize'], (rows, length), device=device)
        yield forward(input_ids=tokens, labels=tokens, use_cache=False).loss
    return losses, s['tokens']


def micro_batches(rows, size):
    """Rows by length, `size` at a time: tokens, which are there, which the policy wrote, and the advantages. Compiled code is
    made anew for each width, so all micro-batches have one width there."""
    ordered = sorted(rows, key=lambda row: len(row['tokens']))
    for first in range(0, len(ordered), size):
        some = ordered[first:first + size]
        width = max(len(row['tokens']) for row in (ordered if s['compile'] else some))
        tokens = torch.zeros(len(some), width, dtype=torch.long)
        there, written = torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        advantages = torch.zeros(len(some), width)
        for r, row in enumerate(some):
            length = len(row['tokens'])
            tokens[r, :length], there[r, :length] = torch.tensor(row['tokens']), 1
            written[r, row['first']:length], advantages[r, row['first']:length] = True, row['advantage']
        yield tuple(some.to(device) for some in (tokens, there, written, advantages))


def of_rows():
    """PPO's clipped loss of the tokens that the policy wrote. Logits are computed for these alone."""
    inner = model.base_model.model
    body, head = inner.model, inner.lm_head
    if s['compile']:
        body = torch.compile(body, dynamic=False)
    batches = list(micro_batches(s['rows'], s['microRows']))
    count = sum(int(written.sum()) for _, _, written, _ in batches)

    def logprobs(tokens, there, written):
        stream = body(input_ids=tokens, attention_mask=there, use_cache=False).last_hidden_state
        logits = head(stream[:, :-1][written[:, 1:]]).float()
        return -torch.nn.functional.cross_entropy(logits, tokens[:, 1:][written[:, 1:]], reduction='none')

    with torch.no_grad(), autocast:
        before = [logprobs(*batch[:3]) for batch in batches]

    def losses():
        for (tokens, there, written, advantages), old in zip(batches, before):
            ratio = (logprobs(tokens, there, written) - old).exp()
            a = advantages[written]
            yield -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a).sum() / count
    mean = sum(float(old.sum()) for old in before) / count
    return losses, sum(len(row['tokens']) for row in s['rows']), dict(meanLogprob=mean)


losses, tokens, *about = of_rows() if 'rows' in s else of_sequences()


def step():
    with autocast:
        parts = losses()
        while (loss := next(parts, None)) is not None:
            with torch.autocast(device.type, enabled=False):
                loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    wait_for(device)


def repeat():
    steps, seconds = for_seconds(s['seconds'], step)
    return dict(amount=steps * tokens, seconds=seconds)


step()
step()
versions = dict(torch=torch.__version__, device=str(device), trained=sum(weights.numel() for weights in trained))
serve(dict(versions, **(about[0] if about else {})), repeat)
