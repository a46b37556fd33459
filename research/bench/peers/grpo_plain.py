"""
A plain PyTorch GRPO step, as somebody would write it who knows how: a decoder of fused functions, sampling with a key/value
cache from which finished rows are taken out, updates in micro-batches of rows of like length, advantage-0 rows left out.
"""
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from calculator import Calculator
from serve import serve, settings

s = settings()
torch.set_num_threads(s['threads'])
torch.manual_seed(0)
task_family = Calculator(s['symbols'])
stored = load_file(s['weights'] + '/model.safetensors')
width = stored['model.norm.weight'].numel()
layers = 1 + max(int(name.split('.')[2]) for name in stored if name.startswith('model.layers.'))
heads, context, epsilon, base = 4, 128, 1e-6, 10000.0
head = width // heads


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        parameter = lambda *names: torch.nn.Parameter(torch.cat([stored[name] for name in names]).clone())
        at = lambda i, name: f'model.layers.{i}.{name}.weight'
        each = lambda *names: torch.nn.ParameterList([parameter(*(at(i, name) for name in names)) for i in range(layers)])
        self.embedding = parameter('model.embed_tokens.weight')
        self.final = parameter('model.norm.weight')
        self.norm1, self.norm2 = each('input_layernorm'), each('post_attention_layernorm')
        self.qkv = each('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj')
        self.out = each('self_attn.o_proj')
        self.gate_up, self.down = each('mlp.gate_proj', 'mlp.up_proj'), each('mlp.down_proj')
        angle = torch.arange(context)[:, None] * base ** (-torch.arange(0, head, 2) / head)
        self.cos, self.sin = torch.cat([angle.cos()] * 2, -1), torch.cat([-angle.sin(), angle.sin()], -1)

    def rotate(self, x, positions):
        return x * self.cos[positions] + x.roll(head // 2, -1) * self.sin[positions]

    def forward(self, tokens, positions, attend):
        """tokens [B, T], positions [B or 1, T]; attend(layer, q, k, v), each [B, heads, T, head], gives what q attends to."""
        x = F.embedding(tokens, self.embedding)
        rows, steps = tokens.shape
        for i in range(layers):
            qkv = F.linear(F.rms_norm(x, (width,), self.norm1[i], epsilon), self.qkv[i])
            q, k, v = qkv.view(rows, steps, 3, heads, head).permute(2, 0, 3, 1, 4)
            q, k = self.rotate(q, positions[:, None]), self.rotate(k, positions[:, None])
            x = x + F.linear(attend(i, q, k, v).transpose(1, 2).reshape(rows, steps, width), self.out[i])
            gate, up = F.linear(F.rms_norm(x, (width,), self.norm2[i], epsilon), self.gate_up[i]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, self.down[i])
        return F.rms_norm(x, (width,), self.final, epsilon)


def causal(_, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@torch.inference_mode()
def sample(model, prompts):
    """Responses and their log-probs at temperature 1, each list in the order of the prompts."""
    count, longest = len(prompts), max(map(len, prompts))
    tokens = torch.zeros(count, longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        tokens[row, :len(prompt)] = torch.tensor(prompt)
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    keys = torch.zeros(layers, count, heads, longest + s['maxTokens'], head)
    values = torch.zeros_like(keys)

    def prefill(layer, q, k, v):
        keys[layer, :, :, :longest], values[layer, :, :, :longest] = k, v
        return causal(layer, q, k, v)

    hidden = model(tokens, torch.arange(longest)[None], prefill)
    last = hidden[torch.arange(count), lengths - 1]
    alive, at = torch.arange(count), lengths.clone()
    responses, logprobs = [[] for _ in prompts], [[] for _ in prompts]
    for step in range(s['maxTokens']):
        distribution = torch.log_softmax(F.linear(last, model.embedding), -1)
        # The largest of log-probabilities with Gumbel noise is a draw from them.
        drawn = (distribution - torch.empty_like(distribution).exponential_().log()).argmax(-1)
        chosen = distribution.gather(1, drawn[:, None])[:, 0]
        for row, token, logprob in zip(alive.tolist(), drawn.tolist(), chosen.tolist()):
            responses[row].append(token)
            logprobs[row].append(logprob)
        going = drawn != task_family.stop
        if step == s['maxTokens'] - 1 or not going.any():
            break
        if not going.all():
            alive, at, drawn = alive[going], at[going], drawn[going]
            keys, values = keys[:, going], values[:, going]
        rows, until = torch.arange(len(alive)), int(at.max()) + 1
        mask = (torch.arange(until)[None] <= at[:, None])[:, None, None]

        def cached(layer, q, k, v):
            keys[layer, rows, :, at], values[layer, rows, :, at] = k[:, :, 0], v[:, :, 0]
            return F.scaled_dot_product_attention(q, keys[layer, :, :, :until], values[layer, :, :, :until], attn_mask=mask)

        last = model(drawn[:, None], at[:, None], cached)[:, 0]
        at = at + 1
    return responses, logprobs


def micro_batches(turns):
    """Rows of like length together, at most so many padded tokens each."""
    batch = []
    for turn in sorted(turns, key=lambda turn: len(turn['tokens'])):
        if batch and (len(batch) + 1) * len(turn['tokens']) > s['microBatchTokens']:
            yield batch
            batch = []
        batch.append(turn)
    if batch:
        yield batch


def update(model, optimizer, turns):
    written = sum(len(turn['logprobs']) for turn in turns)
    for batch in micro_batches([turn for turn in turns if turn['advantage'] != 0]):
        steps = max(len(turn['tokens']) for turn in batch) - 1
        tokens = torch.zeros(len(batch), steps, dtype=torch.long)
        predicts = torch.zeros(len(batch), steps, dtype=torch.bool)
        for row, turn in enumerate(batch):
            ids = turn['tokens']
            tokens[row, :len(ids) - 1] = torch.tensor(ids[:-1])
            predicts[row, len(ids) - 1 - len(turn['logprobs']):len(ids) - 1] = True
        targets = torch.tensor([token for turn in batch for token in turn['tokens'][-len(turn['logprobs']):]])
        old = torch.tensor([logprob for turn in batch for logprob in turn['logprobs']])
        advantage = torch.tensor([turn['advantage'] for turn in batch for _ in turn['logprobs']])
        hidden = model(tokens, torch.arange(steps)[None], causal)[predicts]
        new = torch.log_softmax(F.linear(hidden, model.embedding), -1).gather(1, targets[:, None])[:, 0]
        ratio = (new - old).exp()
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).sum() / written
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def step(model, optimizer, number):
    start = time.perf_counter()
    for group in optimizer.param_groups:
        group['lr'] = s['learningRate'] * min(1, (number + 1) / 5)
    tasks = [task for task in s['tasks'][number] for _ in range(s['group'])]
    prompts = [task_family.prompt(task) for task in tasks]
    responses, logprobs = sample(model, prompts)
    played = time.perf_counter()
    rewards = torch.tensor([task_family.reward(r, task['answer']) for r, task in zip(responses, tasks)]).view(-1, s['group'])
    spread = rewards.std(1, keepdim=True)
    advantages = torch.where(spread < 1e-6, 0, (rewards - rewards.mean(1, keepdim=True)) / (spread + 1e-6)).flatten().tolist()
    update(model, optimizer, [
        dict(tokens=prompt + response, logprobs=logprob, advantage=advantage)
        for prompt, response, logprob, advantage in zip(prompts, responses, logprobs, advantages)
    ])
    end = time.perf_counter()
    return dict(seconds=end - start, rollout=played - start, update=end - played, tokens=sum(map(len, responses)),
                reward=float(rewards.mean()))


def repeat():
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=s['learningRate'], betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    steps = [step(model, optimizer, number) for number in range(len(s['tasks']))]
    middle = lambda key, taken=steps[s['warm']:]: sorted(one[key] for one in taken)[len(taken) // 2]
    return {'amount': 1, 'seconds': middle('seconds'), 'ms rollout': 1e3 * middle('rollout'),
            'ms update': 1e3 * middle('update'), 'tokens sampled': middle('tokens'), 'reward': middle('reward'),
            'ms step 4 to 23': 1e3 * middle('seconds', steps[slice(*s['early'])])}


serve(dict(torch=torch.__version__), repeat)
