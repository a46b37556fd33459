"""What the engine on PyTorch does on a card, in minutes: `python3 research/bench/card/card.py --out FOLDER`.

Parts: `check` (gradients by FlexAttention beside sequences that attend by themselves; the same step several times;
groups of one size; a cache that grows between records), `launch` (what a kernel costs the host, by itself and in a
graph), `train` (rows of a step and rows with nothing in common), `decode` (milliseconds a tick with all rows in use,
tokens a second with refill, the limit of the card's memory), `kernels` (how many a tick launches in a layer, and beside
the layers), `gap` (sampler beside trainer), `publish`, and the peers transformers and PEFT where they are installed.
Milliseconds are those of passes that were recorded before. Lines `profile` have the milliseconds of kernels.

Each result is a line of JSON in FOLDER/card.jsonl at once. A shape's parts run in a process of their own, and each has
its share of the time. A part that takes longer, or whose process ends, is a result of its own: the next part goes on.
Records of passes, their memory, recompilations (those of TORCH_LOGS=recompiles) and pieces that did not compile are
counted by process. It needs torch and numpy, and no network. `--device cpu --shapes tiny` rehearses it without a card.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import gc
import json
import logging
import math
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..', '..'))
sys.path.insert(0, os.path.join(ROOT, 'packages', 'engine', 'python'))
import numpy as np
import torch
import torch._dynamo
import torch.nn.functional as F
from drmas_torch.config import AdapterSettings, Config, size_of
from drmas_torch.decoder import Decoder, Pieces, Ropes
from drmas_torch.place import Place
from drmas_torch.policy import Batch, Policy, Sample
from drmas_torch.sampler import Sampler
from drmas_torch.trained import Trained, clipped_step
from drmas_torch.tree import Tree, groups_of
from drmas_torch.worker import place_of
from torch.utils._python_dispatch import TorchDispatchMode

ALL = ('q', 'k', 'v', 'o', 'gate', 'up', 'down')
RANK, PROMPT, WRITTEN = 16, 160, 192
SETTINGS = AdapterSettings(RANK, RANK, ALL)
ADAM = {
    'type': 'adamw',
    'learningRate': 1e-5,
    'beta1': 0.9,
    'beta2': 0.99,
    'epsilon': 1e-8,
    'weightDecay': 0.0,
}


def shape(
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    kv: int,
    d: int,
    ff: int,
    **more: Any,
) -> dict[str, Any]:
    sizes = {
        'vocabSize': vocabulary,
        'width': width,
        'layers': layers,
        'heads': heads,
        'kvHeads': kv,
        'headDim': d,
    }
    return {**sizes, 'feedForward': ff, 'context': 2048, 'normEpsilon': 1e-6, **more}


SHAPES = {
    'tiny': shape(512, 64, 2, 4, 2, 16, 128),
    'smollm2-135m': shape(49152, 576, 30, 9, 3, 64, 1536),
    'qwen2.5-0.5b': shape(151936, 896, 24, 14, 2, 64, 4864, attentionBias='qkv'),
    'qwen2.5-1.5b': shape(151936, 1536, 28, 12, 2, 128, 8960, attentionBias='qkv'),
    'qwen3-4b': shape(151936, 2560, 36, 32, 8, 128, 9728, queryKeyNorm=True),
    'qwen3-8b': shape(151936, 4096, 36, 32, 8, 128, 12288, queryKeyNorm=True, untiedOutput=True),
}
ROWS = {
    'tiny': (8,),
    'smollm2-135m': (8, 32, 256),
    'qwen2.5-0.5b': (8, 32, 256),
    'qwen2.5-1.5b': (32, 256),
}

options = argparse.ArgumentParser(description=__doc__)
options.add_argument('--device', default='cuda')
options.add_argument('--shapes', default='smollm2-135m,qwen2.5-0.5b,qwen2.5-1.5b,qwen3-4b')
options.add_argument('--parts', default='check,launch,train,decode,kernels,gap,publish,peers')
options.add_argument('--seconds', type=float, default=400)
options.add_argument('--out', default='.')
options.add_argument('--since', type=float, help=argparse.SUPPRESS)
options.add_argument('--answers', type=int, help=argparse.SUPPRESS)
given = options.parse_args()
device = torch.device('cuda:0' if given.device == 'cuda' else given.device)
on_card = device.type == 'cuda'
if not on_card:
    torch.set_num_threads(1)
begun = given.since or time.monotonic()  # processes have one clock
limit = begun + given.seconds
"""When the script's time is over; in the process of a shape, that of the part."""


def left() -> float:
    return limit - time.monotonic()


def note(part: str, **values: Any) -> None:
    # JSON has no NaN, and a gap that is none is the most important result.
    plain = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
    line = json.dumps({'part': part, 'at': round(time.monotonic() - begun, 1), **plain}, allow_nan=False)
    print(line, flush=True)
    with open(os.path.join(given.out, 'card.jsonl'), 'a') as lines:
        lines.write(line + '\n')


class Counted(logging.Handler):
    """Counts what a logger prints."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def wait() -> None:
    if on_card:
        torch.cuda.synchronize()


LEAST = 10
"""With fewer seconds left, nothing more begins."""


def seconds_of(work: Callable[[], object], least: float = 1.0, most: int = 100) -> float:
    """The median of runs that take `least` seconds together."""
    work()
    wait()
    runs: list[float] = []
    while len(runs) < 3 or (sum(runs) < least and len(runs) < most):
        at = time.perf_counter()
        work()
        wait()
        runs.append(time.perf_counter() - at)
    return float(np.median(runs))


ROUNDS = 4
"""A size is recorded when it comes for the third time; the fourth time shows what the record takes."""


recompilations, uncompiled = Counted(), Counted()
"""Pieces that PyTorch compiled again, and those that it could not compile: they run as they are."""


def records(place: Place) -> dict[str, int]:
    memory = place.memory
    return {} if memory is None else {'records_made': memory.made, 'records_refused': memory.refused}


def counts(place: Place) -> dict[str, float]:
    """Of this process so far: recompilations, pieces that run uncompiled, records, and the memory of records: what they
    keep, what their pool has for all of them, and what the driver has taken besides (graphs, and all else that CUDA
    loads)."""
    found: dict[str, float] = {'recompiles': recompilations.count, 'uncompiled': uncompiled.count, **records(place)}
    if on_card:
        free, total = torch.cuda.mem_get_info()
        pool = [one for one in torch.cuda.memory_snapshot() if tuple(one['segment_pool_id']) != (0, 0)]
        found['records_MB'] = round(sum(one['allocated_size'] for one in pool) / 1e6)
        found['pool_MB'] = round(sum(one['total_size'] for one in pool) / 1e6)
        found['driver_MB'] = round((total - free - torch.cuda.memory_reserved()) / 1e6)
    return found


def settle(work: Callable[[], object], place: Place) -> None:
    """Runs the work until nothing of it is recorded any more."""
    for turn in range(2 * ROUNDS if on_card else 1):
        before = records(place)
        work()
        if turn >= ROUNDS - 1 and records(place) == before:
            break
    wait()


def memory_taken() -> dict[str, float]:
    """At most since the last reset: by tensors, and by PyTorch, which keeps memory for later tensors and graphs."""
    if not on_card:
        return {}
    most = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return {name: round(size / 1e9, 2) for name, size in zip(('peak_GB', 'reserved_GB'), most, strict=True)}


def random_of(seed: int) -> torch.Generator:
    """PyTorch's own generator of a card is of no use after a capture that broke."""
    return torch.Generator(device).manual_seed(seed)


def base_of(name: str, dtype: torch.dtype, place: Place) -> Decoder:
    """A decoder with random weights, made on the device."""
    config, random = Config.of(SHAPES[name]), random_of(0)
    tensors = {}
    for label, size in config.shapes():
        matrix = len(size) == 2
        tensor = torch.empty(size, device=device, dtype=dtype if matrix else torch.float32)
        if matrix:
            inputs = size[1] if label in ('embedding', 'output') else size[0]
            tensor.normal_(0, 1 / math.sqrt(inputs), generator=random)
        else:
            tensor.fill_(0 if 'Bias' in label else 1)
        tensors[label] = tensor
    half = config.head_dim // 2
    frequencies = (1e6 ** (-np.arange(half) / half)).astype(np.float32)
    return Decoder(config, tensors, Ropes(config, frequencies, None, device), dtype, place.pieces)


def policy_on(base: Decoder, place: Place, seed: int) -> Policy:
    shapes = SETTINGS.shapes(base.config)
    flat = torch.empty(size_of(shapes), device=device).normal_(0, 0.01, generator=random_of(seed))
    return Policy(place, base, Trained(flat, shapes), SETTINGS)


def parameters(base: Decoder) -> int:
    return sum(tensor.numel() for tensor in base.tensors.values())


def rows_of_step(
    vocabulary: int,
    shared: bool,
    tasks: int = 8,
    group: int = 8,
    system: int = 96,
    asked: int = 64,
    written: int = 96,
) -> list[Sample]:
    """The turns of an agent in a step; without `shared` no two have a token in common."""
    random = np.random.default_rng(1)
    head = random.integers(0, vocabulary, system)
    samples = []
    for _ in range(tasks):
        task = random.integers(0, vocabulary, asked)
        for _ in range(group):
            prompt = np.concatenate((head, task)) if shared else random.integers(0, vocabulary, system + asked)
            answer = random.integers(0, vocabulary, int(random.integers(written // 2, written * 3 // 2)))
            mask = np.zeros(len(prompt) + len(answer), np.uint8)
            mask[len(prompt) :] = 1
            samples.append(Sample(np.concatenate((prompt, answer)).astype(np.int32), mask, 1.0, ''))
    return samples


def ones(batch: Batch, logprobs: np.ndarray, entropies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.full(len(logprobs), 1e-3, np.float32), np.full(len(entropies), 1e-4, np.float32)


def check() -> None:
    SHAPES['check'] = {**SHAPES['smollm2-135m'], 'layers': 2, 'vocabSize': 2048} if on_card else SHAPES['tiny']
    place = place_of(device, 8192, False)
    base = base_of('check', torch.float32, place)
    samples = rows_of_step(base.config.vocab_size, True, 2, 4, 200, 90, 40)

    def gradients(where: Place, parts: list[list[Sample]], times: int) -> list[torch.Tensor]:
        policy = policy_on(base, where, 1)
        found = []
        for _ in range(times):
            for part in parts:
                policy.accumulate(part, ones)
            found.append(policy.trained.gradient.clone())
            policy.trained.discard()
        return found

    alone = gradients(Place(device, 8192, Pieces(), False), [[sample] for sample in samples], 1)[0]
    found = gradients(place, [samples], ROUNDS if on_card else 3)
    # Two groups of one size in a call: the second one is recorded after the first one has learnt.
    small = place_of(device, 512, False)
    groups = groups_of([sample.read for sample in samples], small.rows)
    of_groups = gradients(small, [samples], ROUNDS if on_card else 1)
    note(
        'check',
        tree_beside_apart=float((found[0] - alone).norm() / alone.norm()),
        repeats_equal=all(torch.equal(one, found[0]) for one in found),
        flex=place.pieces.flex is not None,
        groups=len(groups),
        groups_beside_apart=max(float((one - alone).norm() / alone.norm()) for one in of_groups),
        **records(small),
    )
    # Longer prompts let the cache grow, and all that was recorded is recorded anew.
    gap('check', base, place, (64, 300, 64) if on_card else (64, 150))


def launch() -> None:
    """What it takes to start a kernel that does next to nothing, alone and as a node of a graph."""
    count, number = 1000, torch.zeros(1, device=device)

    def alone() -> None:
        for _ in range(count):
            number.add_(1)

    found = {'eager_us': round(1e6 * seconds_of(alone, 0.2) / count, 3)}
    if on_card:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            alone()
        found['node_us'] = round(1e6 * seconds_of(graph.replay, 0.2) / count, 3)
    note('launch', **found)


def request(number: int, prompt: np.ndarray, most: int) -> tuple[Any, np.ndarray, np.ndarray]:
    uniforms = np.random.default_rng(number).random(most).astype(np.float32)
    wanted: Any = {'id': number, 'temperature': 1.0, 'topP': 1.0, 'topK': 0, 'maxTokens': most, 'stopTokens': []}
    return {**wanted, 'streamed': False}, prompt, uniforms


def sampler_of(base: Decoder, place: Place, rows: int, adapters: int) -> Sampler:
    sampler = Sampler(place, base, rows, SETTINGS, lambda *_: None)
    for number in range(adapters):
        sampler.load(number, 0, policy_on(base, place, number).trained.tensors)
    return sampler


def decode(name: str, base: Decoder, place: Place) -> None:
    c = base.config
    for rows in ROWS.get(name, (32, 128)):
        for adapters in (1, 4) if rows == 32 else (2,):
            if left() < LEAST:
                return
            sampler = sampler_of(base, place, rows, adapters)
            random = np.random.default_rng(2)
            written = WRITTEN if on_card else 24

            def fresh(random: np.random.Generator = random, rows: int = rows) -> list[np.ndarray]:
                return [random.integers(0, c.vocab_size, PROMPT).astype(np.int32) for _ in range(rows)]

            # The first rounds compile and record, which belongs to the beginning of a run.
            firsts: list[float] = []
            ticks: list[float] = []
            if on_card:
                torch.cuda.reset_peak_memory_stats()
            before: dict[str, int] = {}
            for _ in range(ROUNDS if on_card else 1):
                before = records(place)
                for i, prompt in enumerate(fresh()):
                    sampler.submit(*request(i, prompt, written), i % adapters)
                at = time.perf_counter()
                sampler.step()
                wait()
                firsts.append(time.perf_counter() - at)
                ticks = []
                while sampler.busy:
                    at = time.perf_counter()
                    sampler.step()
                    ticks.append(time.perf_counter() - at)
                wait()
            recorded_late = records(place) != before

            full = ticks[4 : written - 8]
            tick = float(np.median(full))
            # The sum of ticks counts the waits that single ticks pass on to each other.
            mean = float(np.mean(full))
            size = sum(
                t.numel() * t.element_size() for n, t in base.tensors.items() if n != 'embedding' or not c.untied_output
            )
            cache = 2 * c.layers * c.kv_heads * c.head_dim * (PROMPT + written / 2) * rows * base.dtype.itemsize
            limit = (size + cache) / limits()[0]
            note(
                'decode',
                shape=name,
                rows=rows,
                adapters=adapters,
                ms=round(1e3 * mean, 3),
                median_ms=round(1e3 * tick, 3),
                tok_s=round(rows / mean),
                limit_ms=round(1e3 * limit, 3),
                share_of_limit=round(limit / mean, 3),
                first_s=round(firsts[0], 1),
                prefill_ms=round(1e3 * firsts[-1] - 1e3 * mean, 1),
                recorded_late=recorded_late,
                **memory_taken(),
                **counts(place),
            )
            if adapters == 4 or left() < LEAST:
                continue
            lengths = [int(n) for n in random.integers(written // 6, written, 3 * rows)]
            seconds: list[float] = []
            for _ in range(ROUNDS if on_card else 1):
                for i, (most, prompt) in enumerate(zip(lengths, fresh() + fresh() + fresh(), strict=True)):
                    sampler.submit(*request(1000 + i, prompt, most), i % adapters)
                at = time.perf_counter()
                while sampler.busy:
                    sampler.step()
                wait()
                seconds.append(time.perf_counter() - at)
            note(
                'refill',
                shape=name,
                rows=rows,
                tok_s=round(sum(lengths) / seconds[-1]),
                first_tok_s=round(sum(lengths) / seconds[0]),
                **counts(place),
            )
            if not on_card or left() < LEAST:
                continue

            def some_ticks(sampler: Sampler = sampler) -> None:
                for _ in range(8):
                    sampler.step()

            for i, prompt in enumerate(fresh()):
                sampler.submit(*request(i, prompt, written), i % adapters)
            some_ticks()
            profile(name, f'8 ticks of {rows} rows', some_ticks)
            sampler.cancel(set(range(rows)))
            while sampler.busy:
                sampler.step()


class Operations(TorchDispatchMode):
    """Counts operations, those without a kernel left out: views and new memory."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aliases = [one.alias_info for one in func._schema.returns]
        is_view = any(alias is not None and not alias.is_write for alias in aliases)
        self.count += not is_view and not func._schema.name.startswith(('aten::_unsafe_view', 'aten::empty'))
        return func(*args, **(kwargs or {}))


def kernels_of_tick(base: Decoder, place: Place, layers: int) -> int:
    """On a card the kernels that it ran, on a processor the operations that would each be one."""
    config = dataclasses.replace(base.config, layers=layers)
    ropes = Ropes(config, np.ones(config.head_dim // 2, np.float32), None, device)
    sampler = sampler_of(Decoder(config, base.tensors, ropes, base.dtype, base.pieces), place, 8, 2)
    for i in range(8):
        sampler.submit(*request(i, np.arange(9, dtype=np.int32), 4), i % 2)
    sampler.step()

    def tick() -> None:
        with torch.no_grad():
            sampler._tick(8, 64, False)

    tick()
    if not on_card:
        with Operations() as counted:
            tick()
        return counted.count
    wait()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        tick()
        wait()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())


def kernels(name: str, base: Decoder, place: Place) -> None:
    one, two = (kernels_of_tick(base, place, layers) for layers in (1, 2))
    counted = 'kernels' if on_card else 'operations'
    note('kernels', shape=name, counted=counted, a_layer=two - one, beside=2 * one - two)


def publish(name: str, base: Decoder, place: Place) -> None:
    """From the end of an update to the first new token."""
    sampler, policy = sampler_of(base, place, 8, 1), policy_on(base, place, 5)
    prompt = np.arange(PROMPT, dtype=np.int32)

    def once() -> None:
        sampler.unload(0)
        sampler.load(0, 1, policy.trained.tensors)
        sampler.submit(*request(1, prompt, 1), 0)
        while sampler.busy:
            sampler.step()

    settle(once, place)
    note('publish', shape=name, ms=round(1e3 * seconds_of(once, 0.3, 20), 2))


def train(name: str, base: Decoder, place: Place) -> None:
    for shared in (True, False):
        if left() < LEAST:
            return
        few = {} if on_card else {'tasks': 2, 'group': 4}
        samples = rows_of_step(base.config.vocab_size, shared, **few)
        tokens = sum(len(sample.tokens) - 1 for sample in samples)
        policy = policy_on(base, place, 1)

        def step(policy: Policy = policy, samples: list[Sample] = samples) -> None:
            policy.accumulate(samples, ones)
            clipped_step(policy.parts, {'optimizer': ADAM, 'clipNorm': 1.0})

        if on_card:
            torch.cuda.reset_peak_memory_stats()
        at = time.perf_counter()
        step()
        wait()
        first = time.perf_counter() - at
        settle(step, place)
        before = records(place)
        seconds = seconds_of(step, 2, 10)
        recorded_late = records(place) != before
        groups = groups_of([sample.read for sample in samples], place.rows)
        computed = sum(Tree([samples[i].read for i in group]).rows for group in groups)
        note(
            'train',
            shape=name,
            rows='shared prompts' if shared else 'nothing in common',
            tokens=tokens,
            computed=computed,
            ms=round(1e3 * seconds, 1),
            tok_s=round(tokens / seconds),
            computed_tok_s=round(computed / seconds),
            share_of_peak=round(4 * parameters(base) * computed / seconds / limits()[1], 3),
            first_s=round(first, 1),
            recorded_late=recorded_late,
            **memory_taken(),
            **counts(place),
        )
        profile(name, f'a step of rows with {"shared prompts" if shared else "nothing in common"}', step)


def profile(name: str, title: str, work: Callable[[], object]) -> None:
    """Notes how long all kernels of the work take, and prints the longest. It comes after what was measured, since a
    profiler may fail."""
    if not on_card:
        return
    wait()
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
            at = time.perf_counter()
            work()
            wait()
            seconds = time.perf_counter() - at
        by_name: dict[str, list[float]] = {}
        for event in found.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                by_name.setdefault(event.name[:70], []).append(event.device_time_total / 1e3)
    except Exception as error:
        note('profile', shape=name, of=title, failed=f'{type(error).__name__}: {error}'[:300])
        return
    total = sum(map(sum, by_name.values()))
    note('profile', shape=name, of=title, ms=round(1e3 * seconds, 1), kernel_ms=round(total, 1))
    for label, times in sorted(by_name.items(), key=lambda one: -sum(one[1]))[:12]:
        print(f'  {sum(times):8.2f} ms {len(times):6d} {label}')


def gap(name: str, base: Decoder, place: Place, lengths: Sequence[int] = (64,)) -> None:
    """Log-probs of the sampler beside those of the trainer, on prompts of these lengths one after another."""
    sampler, policy = sampler_of(base, place, 32, 1), policy_on(base, place, 0)
    random = np.random.default_rng(3)
    differences = []
    # In the last round of a length all passes repeat what was recorded.
    for length in np.repeat(lengths, ROUNDS if on_card else 1):
        prompts = [random.integers(0, base.config.vocab_size, length).astype(np.int32) for _ in range(32)]
        for i, prompt in enumerate(prompts):
            sampler.submit(*request(i, prompt, 32), 0)
        while sampler.busy:
            for result in sampler.step():
                prompt = prompts[result.id]
                tokens = np.concatenate((prompt, result.tokens)).astype(np.int32)
                mask = np.zeros(len(tokens), np.uint8)
                mask[len(prompt) :] = 1
                row = policy.score([Sample(tokens, mask, 1.0, '')])[0]
                differences.append(row[len(prompt) :] - np.array(result.logprobs))
    d = np.concatenate(differences)
    note(
        'gap',
        shape=name,
        dtype=str(base.dtype),
        mean=float(np.abs(d).mean()),
        rms=float(np.sqrt((d**2).mean())),
        most=float(np.abs(d).max()),
        outside_10_percent=float((np.abs(np.expm1(d)) > 0.1).mean()),
        **records(place),
    )


def peer_model(name: str) -> Any:
    from transformers import (
        Qwen2Config,
        Qwen2ForCausalLM,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    s = SHAPES[name]
    kind, settings = (Qwen3ForCausalLM, Qwen3Config) if s.get('queryKeyNorm') else (Qwen2ForCausalLM, Qwen2Config)
    config = settings(
        vocab_size=s['vocabSize'],
        hidden_size=s['width'],
        num_hidden_layers=s['layers'],
        num_attention_heads=s['heads'],
        num_key_value_heads=s['kvHeads'],
        head_dim=s['headDim'],
        intermediate_size=s['feedForward'],
        rope_theta=1e6,
        max_position_embeddings=2048,
        tie_word_embeddings=not s.get('untiedOutput'),
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=0,
    )
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return kind(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def peer_generate(name: str) -> None:
    model, rows = peer_model(name), 32 if on_card else 4
    tokens = torch.randint(1, SHAPES[name]['vocabSize'], (rows, PROMPT), device=device)

    def once(new: int) -> float:
        at = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=new,
                min_new_tokens=new,
                do_sample=True,
                top_k=0,
                top_p=1.0,
            )
        wait()
        return time.perf_counter() - at

    once(2)
    seconds = (once(26) - once(2)) / 24
    note(
        'transformers generate',
        shape=name,
        rows=rows,
        ms=round(1e3 * seconds, 2),
        tok_s=round(rows / seconds),
    )


def peer_train(name: str) -> None:
    from peft import LoraConfig, get_peft_model

    names = [
        'q_proj',
        'k_proj',
        'v_proj',
        'o_proj',
        'gate_proj',
        'up_proj',
        'down_proj',
    ]
    model = get_peft_model(peer_model(name), LoraConfig(r=RANK, lora_alpha=RANK, target_modules=names)).train()
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-5, fused=on_card)
    few = {} if on_card else {'tasks': 2, 'group': 4}
    samples = sorted(
        rows_of_step(SHAPES[name]['vocabSize'], True, **few),
        key=lambda s: len(s.tokens),
    )
    tokens = sum(len(s.tokens) - 1 for s in samples)

    def step() -> None:
        for first in range(0, len(samples), 16):
            some = samples[first : first + 16]
            width = max(len(s.tokens) for s in some)
            ids, there, mask = (torch.zeros(len(some), width, dtype=torch.long) for _ in range(3))
            for r, s in enumerate(some):
                ids[r, : len(s.tokens)], there[r, : len(s.tokens)] = (
                    torch.from_numpy(s.tokens),
                    1,
                )
                mask[r, : len(s.tokens)] = torch.from_numpy(s.mask)
            ids, there, written = (
                ids.to(device),
                there.to(device),
                mask.bool().to(device),
            )
            inner = model.base_model.model
            hidden = inner.model(input_ids=ids, attention_mask=there, use_cache=False).last_hidden_state
            logits = inner.lm_head(hidden[:, :-1][written[:, 1:]]).float()
            (F.cross_entropy(logits, ids[:, 1:][written[:, 1:]], reduction='sum') / tokens).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = seconds_of(step, 2, 5)
    note(
        'PEFT',
        shape=name,
        rows='shared prompts',
        tokens=tokens,
        ms=round(1e3 * seconds, 1),
        tok_s=round(tokens / seconds),
    )


@cache
def limits() -> tuple[float, float]:
    """Bytes that are read and written in a second, and operations of bfloat16."""
    if not on_card:
        return 2e10, 1e11
    x = torch.empty(2**30, device=device, dtype=torch.uint8)
    y, a = torch.empty_like(x), torch.ones(8192, 8192, device=device, dtype=torch.bfloat16).normal_()
    return 2 * x.numel() / seconds_of(lambda: y.copy_(x), 0.3), 2 * 8192**3 / seconds_of(lambda: a @ a, 0.3)


def machine() -> None:
    name, (bandwidth, flops) = torch.cuda.get_device_name() if on_card else 'cpu', limits()
    speeds = {'bandwidth_TBs': round(bandwidth / 1e12, 2), 'bf16_TFLOPs': round(flops / 1e12, 1)}
    note('machine', device=name, torch=torch.__version__, **speeds)


def peers(name: str) -> None:
    for peer in (peer_generate, peer_train):
        try:
            peer(name)
        except (ImportError, torch.OutOfMemoryError) as error:
            note(peer.__name__, shape=name, failed=f'{type(error).__name__}: {error}'[:300])


@cache
def model_of(name: str) -> tuple[Decoder, Place]:
    limits()  # first: it takes gigabytes, which are no memory of the model
    place = place_of(device, 4096 if name in ('qwen3-4b', 'qwen3-8b') else 8192, False)
    return base_of(name, torch.bfloat16 if on_card else torch.float32, place), place


SMALL: dict[str, Callable[[], None]] = {'machine': machine, 'check': check, 'launch': launch}
PARTS = {'train': train, 'decode': decode, 'kernels': kernels, 'gap': gap, 'publish': publish}
SHARES = {'check': 5, 'train': 4, 'decode': 4, 'peers': 3, 'gap': 2}
"""Of the time; other parts have 1. A part may take what is left as if its share were `GENEROUS` times as large: the
first ones compile, and most take less. Each has `LEAST` seconds while there are so many."""
GENEROUS, GRACE = 2.5, 5
"""A part that hears no alarm is ended so many seconds later."""


class Late(BaseException):
    """Who goes on after any other exception does not go on after this one."""


def attempt(name: str, part: str, seconds: float) -> None:
    """A part that fails is a result too."""
    global limit
    limit = time.monotonic() + seconds
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + GRACE / 2)  # tells where one hangs that hears no alarm
    try:
        if part in SMALL:
            SMALL[part]()
        elif part == 'peers':
            peers(name)
        else:
            PARTS[part](name, *model_of(name))
    except (Exception, Late) as error:
        traceback.print_exc()
        note(part, shape=name, failed=f'{type(error).__name__}: {error}'[:300])
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()
    if on_card:
        torch.cuda.synchronize()  # an error of the card stays: this process ends
        gc.collect()
        torch.cuda.empty_cache()


def serve(name: str) -> None:
    """Takes parts and their seconds from stdin, one a line, and ends with it."""
    orders: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            orders.put(line)
        os._exit(0)

    def alarm(*_: object) -> None:
        raise Late('it took longer than its share of the time')

    signal.signal(signal.SIGALRM, alarm)
    torch._logging.set_logs(recompiles=True)
    torch._dynamo.config.suppress_errors = True
    logging.getLogger('torch._dynamo.guards.__recompiles').addHandler(recompilations)
    logging.getLogger('torch._dynamo.convert_frame').addHandler(uncompiled)
    threading.Thread(target=read, daemon=True).start()
    os.write(given.answers, b'.')
    while True:
        part, seconds = orders.get().split()
        attempt(name, part, float(seconds))
        os.write(given.answers, b'.')


def heard(answers: int, seconds: float) -> bool:
    """Whether the process answers in time. What compiles for it may live on when it has ended, and hold the pipe."""
    return bool(select.select([answers], [], [], seconds)[0]) and bool(os.read(answers, 1))


def run_parts(name: str, parts: Sequence[str], rest: float) -> None:
    """In processes of their own: the next one begins when one has ended before its time. `rest`: the shares from the
    first of these parts on, to the end of the script."""
    child: subprocess.Popen[str] | None = None
    for part in parts:
        share = SHARES.get(part, 1)
        rest -= share
        most = left() - GRACE
        if most < LEAST:
            break
        if child is None:
            answers, answering = os.pipe()
            words = ['--device', given.device, '--out', given.out, '--since', str(begun), '--answers', str(answering)]
            command = [sys.executable, __file__, *words, '--shapes', name]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, pass_fds=(answering,))
            os.close(answering)
            heard(answers, most)  # to start may read gigabytes, which is no part's time
            most = max(LEAST, left() - GRACE)
        seconds = min(most, max(LEAST, GENEROUS * share / (GENEROUS * share + rest) * most))
        with contextlib.suppress(BrokenPipeError):  # it has ended
            print(part, seconds, file=child.stdin, flush=True)
        if not heard(answers, seconds + GRACE):
            child.kill()
            note(part, shape=name, failed=f'its process has ended with {child.wait()}')
            os.close(answers)
            child = None
    if child is not None and child.stdin is not None:
        child.stdin.close()
        child.wait()


def main() -> None:
    os.makedirs(given.out, exist_ok=True)
    wanted = ['machine', *given.parts.split(',')]
    jobs = [('', list(SMALL))]
    for name in given.shapes.split(','):  # peers need the memory of the model
        jobs += [(name, list(PARTS)), (name, ['peers'] if name != 'qwen3-8b' else [])]
    jobs = [(name, [part for part in parts if part in wanted]) for name, parts in jobs]
    rest = sum(SHARES.get(part, 1) for _, parts in jobs for part in parts)
    for name, parts in jobs:
        run_parts(name, parts, rest)
        rest -= sum(SHARES.get(part, 1) for part in parts)
    note('end')


if given.answers is None:
    main()
else:
    serve(given.shapes)
