"""`python -m unittest` in the folder above: what the suite in TypeScript cannot see from outside."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import math
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from drmas_torch.adapters import AdapterBank, adapter_adds
from drmas_torch.attention import BLOCK, Cache, masked_softmax, tree_blocks, wide_product
from drmas_torch.config import AdapterSettings, Config, sent, size_of, views
from drmas_torch.decoder import Decoder, Pieces, Ropes, compiled, rms_norm
from drmas_torch.draws import draw, triangle_for
from drmas_torch.engine import Engine, plain
from drmas_torch.files import Base, read_parts
from drmas_torch.frames import FrameError, Inbox, read_frame, write_frame
from drmas_torch.head import TokenScores
from drmas_torch.messages import Refusal
from drmas_torch.place import Packed, Place
from drmas_torch.policy import Batch, Policy, Sample
from drmas_torch.sampler import Sampler
from drmas_torch.trained import NonFinite, Trained, clipped_step, norm_of
from drmas_torch.tree import Tree, groups_of
from drmas_torch.worker import sender, take

CPU = torch.device('cpu')
TRIANGLE = triangle_for(2048, CPU)
SETTINGS = AdapterSettings(3, 6, ('q', 'v', 'o', 'gate', 'down'))
SHAPE = {
    'vocabSize': 300,
    'width': 32,
    'layers': 3,
    'heads': 4,
    'kvHeads': 2,
    'headDim': 8,
    'feedForward': 48,
    'context': 400,
    'ropeBase': 1e4,
    'normEpsilon': 1e-6,
}


FEATURES: tuple[dict[str, object], ...] = (
    {},
    {'slidingWindow': {'positions': 7, 'layers': [0, 2]}},
    {'convolution': {'taps': 3, 'layers': [1]}},
)


def on_flex() -> Place:
    """The place of a card on a processor."""
    from torch.nn.attention.flex_attention import flex_attention

    def flex(q: torch.Tensor, *rest: torch.Tensor, **more: Any) -> Any:
        assert q.shape[-1] >= 16, 'the kernels of a card take no smaller heads'
        return flex_attention(q, *rest, **more)

    return Place(CPU, 4096, Pieces(flex=flex), False)


def place(rows: int = 4096, recompute: bool = False) -> Place:
    return Place(CPU, rows, Pieces(), recompute)


def decoder(seed: int = 1, **features: object) -> Decoder:
    config = Config.of({**SHAPE, **features})
    random = np.random.default_rng(seed)
    flat = torch.from_numpy(random.normal(0, 0.3, size_of(config.shapes())).astype(np.float32))
    frequencies = (1e4 ** (-np.arange(config.head_dim // 2) / (config.head_dim // 2))).astype(np.float32)
    return Decoder(
        config,
        views(flat, config.shapes()),
        Ropes(config, frequencies, frequencies * 0.9, CPU),
        torch.float32,
        Pieces(),
    )


def adapted(base: Decoder, seed: int, rows: int = 4096, recompute: bool = False) -> Policy:
    shapes = SETTINGS.shapes(base.config)
    flat = np.random.default_rng(seed).normal(0, 0.1, size_of(shapes)).astype(np.float32)
    return Policy(place(rows, recompute), base, Trained(torch.from_numpy(flat), shapes), SETTINGS)


def forest(random: np.random.Generator, most: int = 150) -> list[np.ndarray]:
    """Sequences of some tasks, which begin alike, with some answers each."""
    system = random.integers(0, 9, int(random.integers(1, most)))
    tasks = [np.concatenate((system, random.integers(0, 9, int(random.integers(1, most))))) for _ in range(3)]
    return [
        np.concatenate((task, random.integers(0, 9, int(random.integers(1, most))))).astype(np.int32)
        for task in tasks
        for _ in range(int(random.integers(1, 5)))
    ]


def samples(seed: int, most: int = 20) -> list[Sample]:
    random = np.random.default_rng(seed)
    found = []
    for sequence in forest(random, most):
        mask = (random.random(len(sequence)) < 0.5).astype(np.uint8)
        mask[0] = 0
        found.append(Sample(sequence, mask, float(random.choice([1.0, 0.7])), ''))
    return found


def request(number: int, prompt: np.ndarray, **changes: object) -> tuple[Any, np.ndarray, np.ndarray]:
    uniforms = np.random.default_rng(number).random(12).astype(np.float32)
    wanted: Any = {
        'id': number,
        'temperature': 1.0,
        'topP': 1.0,
        'topK': 0,
        'maxTokens': 12,
        'stopTokens': [],
        **changes,
    }
    return {**wanted, 'streamed': False}, prompt, uniforms


def slopes(batch: Batch, logprobs: np.ndarray, entropies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes that depend on a sample's number and place alone."""
    wanted = [np.cos(places * (i + 1)) for i, places in zip(batch.samples, batch.written, strict=True)]
    return np.concatenate(wanted).astype(np.float32), np.full(len(entropies), 0.01, np.float32)


class Trees(unittest.TestCase):
    def test_rows_see_their_own_past(self) -> None:
        random = np.random.default_rng(1)
        for _ in range(10):
            sequences = forest(random)
            tree = Tree(sequences)
            row = np.arange(tree.rows)
            sees = (row[None] <= row[:, None]) & (row[:, None] < tree.end[None])
            for sequence, path in zip(sequences, tree.paths, strict=True):
                np.testing.assert_array_equal(tree.tokens[path], sequence)
                np.testing.assert_array_equal(tree.positions[path], np.arange(len(sequence)))
                for t in (0, len(path) // 2, len(path) - 1):
                    np.testing.assert_array_equal(np.flatnonzero(sees[path[t]]), path[: t + 1])

    def test_blocks_are_those_of_all_pairs(self) -> None:
        random = np.random.default_rng(2)
        for _ in range(10):
            tree = Tree(forest(random))
            rows = -(-tree.rows // BLOCK) * BLOCK
            row = torch.arange(rows)
            end = torch.from_numpy(np.concatenate((tree.end, np.arange(tree.rows, rows) + 1)))
            pairs = (row[None] <= row[:, None]) & (row[:, None] < end[None])
            blocks = pairs.view(rows // BLOCK, BLOCK, -1, BLOCK).transpose(1, 2).flatten(2)
            part, whole = tree_blocks(row, end, rows)
            diagonal = torch.eye(len(blocks), dtype=torch.bool)
            self.assertTrue(torch.equal(part | whole, blocks.any(-1)))
            self.assertTrue(torch.equal(whole & ~diagonal, blocks.all(-1) & ~diagonal))

    def test_groups_keep_to_their_rows_and_lose_nothing(self) -> None:
        sequences = forest(np.random.default_rng(3))
        for most in (1, 200, 10_000):
            groups = groups_of(sequences, most)
            self.assertEqual(sorted(i for group in groups for i in group), list(range(len(sequences))))
            for group in groups:
                self.assertTrue(len(group) == 1 or Tree([sequences[i] for i in group]).rows <= most)


class Attention(unittest.TestCase):
    def test_flex_attention_sees_what_sequences_see(self) -> None:
        """The attention of cards beside that of processors; its backward pass needs a card."""
        for features in (*FEATURES, {'headDim': 32}):
            model, tree = decoder(**features), Tree(forest(np.random.default_rng(4), 40))
            found = []
            for where in (place(), on_flex()):
                packed = where.packed(model.config, [tree])
                tokens, positions, mixer = where.mixer(model.config, packed, packed.numbers)
                with torch.no_grad():
                    found.append(model.hidden(tokens, positions, mixer)[: tree.rows])
            self.assertLess(float((found[0] - found[1]).abs().max()), 1e-4)

    def test_blocks_outside_the_window_of_a_layer_are_not_read(self) -> None:
        """The kernels of a card read the listed blocks alone."""
        masks: list[Any] = []

        def flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_mask: Any, **_: Any) -> torch.Tensor:
            masks.append(block_mask)
            return q

        config = decoder(slidingWindow={'positions': 200, 'layers': [0]}, context=2048).config
        where = Place(CPU, 4096, Pieces(flex=flex), False)
        random = np.random.default_rng(1)
        for tree in (
            Tree([np.arange(1000, dtype=np.int32)], 0),
            Tree(forest(random, 300), 0),
            Tree(forest(random), 600),
        ):
            packed = where.packed(config, [tree])
            _, _, mixer = where.mixer(config, packed, packed.numbers)
            keys = torch.arange(packed.sizes.before + packed.sizes.rows)
            listed = []
            for window in (None, 200):
                mixer.attention[window](*(torch.zeros(n, 2, 8) for n in (packed.sizes.rows, len(keys), len(keys))))
                mask = masks.pop()
                pairs = mask.mask_mod(None, None, torch.arange(packed.sizes.rows)[:, None], keys[None])
                seen = pairs.view(-1, BLOCK, len(keys) // BLOCK, BLOCK).transpose(1, 2).flatten(2).any(-1)
                listed.append(mask.to_dense()[0, 0].bool())
                self.assertTrue(bool((listed[-1] | ~seen).all()))
            self.assertLess(int(listed[1].sum()), int(listed[0].sum()))

    def test_gradients_of_trees_are_those_of_rows_apart(self) -> None:
        some = samples(5)
        for recompute in (False, True):
            base = decoder()
            together, small = adapted(base, 2, recompute=recompute), adapted(base, 2, rows=40, recompute=recompute)
            apart = adapted(base, 2)
            logprobs = together.accumulate(some, slopes)[0]
            small.accumulate(some, slopes)
            for i, sample in enumerate(some):

                def own(batch: Batch, *scores: np.ndarray, i: int = i) -> tuple[np.ndarray, np.ndarray]:
                    return slopes(Batch([i], batch.written, batch.hidden, batch.targets, batch.scale), *scores)

                rows = apart.accumulate([sample], own)[0]
                np.testing.assert_array_equal(rows[0], logprobs[i])  # to the last bit
            wanted = apart.trained.gradient
            for policy in (together, small):
                difference = (policy.trained.gradient - wanted).norm() / wanted.norm()
                self.assertLess(float(difference), 1e-5)

    def test_gradients_are_slopes(self) -> None:
        policy, some = adapted(decoder(), 2), samples(6)

        def value() -> float:
            total = 0.0
            for batch in policy.batches(some):
                logprobs, entropies = policy.scores(batch)
                of_logprobs, of_entropies = slopes(
                    batch, *(part[: batch.count].numpy() for part in (logprobs, entropies))
                )
                total += float((logprobs[: batch.count].double() * torch.from_numpy(of_logprobs)).sum())
                total += float((entropies[: batch.count].double() * torch.from_numpy(of_entropies)).sum())
            return total

        policy.accumulate(some, slopes)
        gradient, flat = policy.trained.gradient.clone(), policy.trained.flat
        direction = torch.from_numpy(np.random.default_rng(7).normal(size=flat.numel()).astype(np.float32))
        with torch.no_grad():
            start, step = flat.clone(), 2e-4
            ends = []
            for sign in (1, -1):
                flat.copy_(start + sign * step * direction)
                ends.append(value())
        measured, expected = (ends[0] - ends[1]) / (2 * step), float(gradient @ direction)
        self.assertLess(abs(measured - expected) / abs(expected), 2e-3)

    def test_products_of_narrow_numbers_stay_wide_on_a_card(self) -> None:
        """With tensors of a card that have no numbers."""
        with FakeTensorMode():
            narrow = dict(dtype=torch.bfloat16, device='cuda')
            a, b, keys = (torch.empty(size, **narrow) for size in ((4, 8), (8, 6), (3, 2, 40, 8)))  # type: ignore
            self.assertEqual((wide_product(a, b).dtype, wide_product(a, b).shape), (torch.float32, (4, 6)))
            scores = wide_product(torch.empty(3, 2, 5, 8, **narrow), keys.narrow(2, 0, 20).transpose(-1, -2))  # type: ignore
            self.assertEqual((scores.dtype, scores.shape), (torch.float32, (3, 2, 5, 20)))
        a, b = torch.randn(3, 2, 5, 8), torch.randn(3, 2, 8, 20)
        self.assertTrue(torch.equal(wide_product(a, b), a @ b))


class Sampling(unittest.TestCase):
    def sampled(
        self, base: Decoder, waves: list[int], where: Place | None = None, **changes: object
    ) -> dict[int, tuple[list[int], list[float]]]:
        """Three turns of each of 8 conversations with two adapters, submitted in waves."""
        sampler = Sampler(where or place(), base, 16, SETTINGS, lambda *_: None)
        for number in (1, 2):
            sampler.load(number, 0, adapted(base, number).trained.tensors)
        random = np.random.default_rng(8)
        system = random.integers(0, 300, 20)
        prompts = [np.concatenate((system, random.integers(0, 300, 5 + i // 4))).astype(np.int32) for i in range(8)]
        found: dict[int, tuple[list[int], list[float]]] = {}
        for turn in range(3):
            waiting = list(range(8))
            while waiting or sampler.busy:
                for i in waiting[: waves[turn % len(waves)]]:
                    sampler.submit(*request(100 * turn + i, prompts[i], **changes), 1 + i % 2)
                del waiting[: waves[turn % len(waves)]]
                for result in sampler.step():
                    found[result.id] = result.tokens, result.logprobs
            for i in range(8):
                more = np.array([*found[100 * turn + i][0], 7, 8], np.int32)
                prompts[i] = np.concatenate((prompts[i], more))
        return found

    def test_answers_do_not_depend_on_company(self) -> None:
        for features in (
            {},
            {'convolution': {'taps': 3, 'layers': [0, 1]}},
            {'slidingWindow': {'positions': 5, 'layers': [1]}},
        ):
            base = decoder(**features)
            together = self.sampled(base, [8])
            self.assertEqual(len(together), 24)
            for waves in ([1], [3, 5, 1]):
                self.assertEqual(self.sampled(base, waves), together)

    def test_a_small_load_after_a_large_one_has_narrow_ticks(self) -> None:
        """The last requests of many run in the highest slots. A card's tokens are read one tick late."""
        base = decoder(convolution={'taps': 3, 'layers': [1]})

        def answers(slots: int, late: bool, many: int) -> tuple[dict[int, tuple[list[int], list[float]]], list[int]]:
            sampler = Sampler(place(), base, slots, SETTINGS, lambda *_: None)
            sampler._on_card, widths = late, list[int]()
            sampler.load(1, 0, adapted(base, 1).trained.tensors)
            whole, found = sampler._tick, {}

            def tick(count: int, *rest: Any) -> None:
                widths.append(count)
                whole(count, *rest)

            with mock.patch.object(sampler, '_tick', tick), mock.patch.object(torch.cuda, 'Event'):
                for turn in range(2):
                    for i in range(many):
                        prompt = np.arange(30, dtype=np.int32) * (i + 1) % 300
                        some = np.concatenate((prompt, found[i][0])) if turn else prompt
                        most = 12 if i >= many - 2 else 2 + i % 3
                        sampler.submit(*request(100 * turn + i, some.astype(np.int32), maxTokens=most), 1)
                    while sampler.busy:
                        for one in sampler.step():
                            found[one.id] = one.tokens, one.logprobs
            return found, widths

        wanted = answers(64, False, 40)[0]
        self.assertEqual(len(wanted), 80)
        for late in (False, True):
            found, widths = answers(40, late, 40)
            self.assertEqual(
                {id: tokens for id, (tokens, _) in found.items()}, {i: one[0] for i, one in wanted.items()}
            )
            apart = [abs(a - b) for id in wanted for a, b in zip(wanted[id][1], found[id][1], strict=True)]
            self.assertLess(max(apart), 1e-5 if late else 1e-30)
            self.assertEqual((max(widths), widths[-1]), (40, 8))
            self.assertLess(sum(widths), len(widths) * 20)

    def test_prompts_that_go_on_from_others_are_copied_together(self) -> None:
        """Conversations with few slots, which go on from each other's tokens."""
        base, random, copies = decoder(convolution={'taps': 3, 'layers': [1]}), np.random.default_rng(1), []

        def sampler() -> Sampler:
            made = Sampler(place(rows=60), base, 8, SETTINGS, lambda *_: None)
            for number in (1, 2):
                made.load(number, 0, adapted(base, number).trained.tensors)
            return made

        def answers(by: Sampler, some: list[tuple[int, np.ndarray]]) -> dict[int, tuple[list[int], list[float]]]:
            for number, prompt in some:
                by.submit(*request(number, prompt, maxTokens=4), 1 + number % 2)
            found = {}
            while by.busy:
                found.update({one.id: (one.tokens, one.logprobs) for one in by.step()})
            return found

        def copy(self: Cache, *given: torch.Tensor) -> None:
            copies.append(len(given[0]))
            whole(self, *given)

        whole, together, prompts = Cache.copy, sampler(), [np.arange(1, dtype=np.int32)]
        for turn in range(12):
            some = []
            for i in range(12):
                known = prompts[int(random.integers(len(prompts)))]
                more = random.integers(0, 3, int(random.integers(1, 30)))
                some.append((100 * turn + i, np.concatenate((known[: int(random.integers(len(known) + 1))], more))))
            some = [(number, prompt.astype(np.int32)) for number, prompt in some]
            with mock.patch.object(Cache, 'copy', copy):
                found = answers(together, some)
            for one in some:
                self.assertEqual(answers(sampler(), [one]), {one[0]: found[one[0]]})
                prompts.append(np.concatenate((one[1], found[one[0]][0])).astype(np.int32))
        self.assertGreater(len(copies), 12)
        self.assertGreater(sum(copies), 200)

    def test_prompts_come_in_passes_of_the_rows_of_the_place(self) -> None:
        base, rows = decoder(), []

        def packed(self: Place, config: Config, trees: list[Tree], *rest: Any) -> Packed:
            rows.append(sum(tree.rows for tree in trees))
            return whole(self, config, trees, *rest)

        together, whole = self.sampled(base, [8]), Place.packed
        with mock.patch.object(Place, 'packed', packed):
            self.assertEqual(self.sampled(base, [8], place(rows=40)), together)
        self.assertLessEqual(max(rows), 40)
        self.assertGreater(sum(rows), 40)

    def test_prefill_by_flex_attention_is_prefill_by_sequence(self) -> None:
        """Cached tokens are read, not computed again, on a card as on a processor."""
        for features in FEATURES:
            base = decoder(**features)
            one, other = self.sampled(base, [3, 5, 1]), self.sampled(base, [3, 5, 1], on_flex())
            self.assertEqual({id: tokens for id, (tokens, _) in one.items()}, {id: t for id, (t, _) in other.items()})
            apart = [abs(a - b) for id in one for a, b in zip(one[id][1], other[id][1], strict=True)]
            self.assertLess(max(apart), 1e-4)

    def test_a_cache_that_grows_keeps_what_it_holds(self) -> None:
        cache = Cache(decoder(convolution={'taps': 3, 'layers': [1]}).config, CPU, torch.float32)
        cache.resize(2, 64)
        for tensors in cache.layers:
            for tensor in tensors:
                tensor.copy_(torch.randn(tensor.shape))
        old = [tensor.clone() for tensors in cache.layers for tensor in tensors]
        cache.resize(8, 128)
        new = [tensor for tensors in cache.layers for tensor in tensors]
        for before, after in zip(old, new, strict=True):
            self.assertTrue(torch.equal(after[:2, :, :64], before))
            self.assertEqual(float(after[2:].abs().sum() + after[:2, :, 64:].abs().sum()), 0)

    def test_log_probs_are_the_trainers(self) -> None:
        base = decoder()
        for number, (tokens, logprobs) in self.sampled(base, [8], temperature=0.7).items():
            if number >= 100:
                continue
            random = np.random.default_rng(8)
            system = random.integers(0, 300, 20)
            prompts = [np.concatenate((system, random.integers(0, 300, 5 + i // 4))) for i in range(8)]
            sequence = np.concatenate((prompts[number], tokens)).astype(np.int32)
            mask = np.zeros(len(sequence), np.uint8)
            mask[len(prompts[number]) :] = 1
            row = adapted(base, 1 + number % 2).score([Sample(sequence, mask, 0.7, '')])[0]
            np.testing.assert_array_equal(row[len(prompts[number]) :], np.array(logprobs, np.float32))

    def test_a_policy_whose_numbers_overflow_spoils_no_other(self) -> None:
        """Both are adapters on one base, and the second gets the slots of the first."""
        base, found = decoder(), []
        for numbers in ([1, 2], [2]):
            sampler = Sampler(place(), base, 8, SETTINGS, lambda *_: None)
            for number, factor in ((1, 1e25), (2, 1)):
                policy = adapted(base, number)
                policy.trained.flat.mul_(factor)
                sampler.load(number, 0, policy.trained.tensors)
            for number in numbers:
                for i in range(8):
                    sampler.submit(*request(i, np.arange(40 // number, dtype=np.int32) + i), number)
                answers = {}
                while sampler.busy:
                    answers.update({one.id: (one.tokens, one.logprobs) for one in sampler.step()})
                if number == 1:
                    self.assertTrue(all(math.isnan(logprobs[-1]) for _, logprobs in answers.values()))
            found.append(answers)
        self.assertEqual(found[0], found[1])

    def test_a_policy_whose_numbers_overflow_spoils_no_other_in_a_pass(self) -> None:
        """Their prompts are computed together."""
        for where in (place(), on_flex()):
            sampler = Sampler(where, decoder(), 8, SETTINGS, lambda *_: None)
            for number, factor in ((1, 1e25), (2, 1)):
                policy = adapted(decoder(), number)
                policy.trained.flat.mul_(factor)
                sampler.load(number, 0, policy.trained.tensors)
            for i in range(8):
                sampler.submit(*request(i, np.arange(20, dtype=np.int32) + i), 1 + i % 2)
            spoilt = {}
            while sampler.busy:
                spoilt.update({one.id: math.isnan(one.logprobs[-1]) for one in sampler.step()})
            self.assertEqual(spoilt, {i: i % 2 == 0 for i in range(8)})

    def test_a_slot_that_nobody_uses_spoils_no_request(self) -> None:
        """It goes on with the tick, and a version whose numbers overflow has the place of its adapter."""
        base, found = decoder(), []
        for factor in (1, 1e25):
            sampler = Sampler(place(), base, 8, SETTINGS, lambda *_: None)
            policies = [adapted(base, number) for number in (1, 2, 3)]
            policies[1].trained.flat.mul_(factor)
            for number, policy in enumerate(policies):
                sampler.load(number, 0, policy.trained.tensors)
                if number != 1:
                    for i in range(8):
                        sampler.submit(*request(i, np.arange(40 - number, dtype=np.int32) + i), number)
                else:
                    sampler.submit(*request(9, np.arange(3, dtype=np.int32)), number)
                answers = {}
                while sampler.busy:
                    answers.update({one.id: (one.tokens, one.logprobs) for one in sampler.step()})
                sampler.unload(number)
            found.append(answers)
        self.assertEqual(found[0], found[1])

    def test_a_slot_whose_window_lies_outside_what_a_tick_reads_stays_finite(self) -> None:
        """The first request ends far on, and its slot is advanced while a short one runs. The third goes on from it."""
        base = decoder(slidingWindow={'positions': 5, 'layers': [0]})
        sampler = Sampler(place(), base, 8, None, lambda *_: None)
        sampler.load(0, 0, None)

        def answer(number: int, prompt: np.ndarray, most: int) -> tuple[list[int], list[float]]:
            sampler.submit(*request(number, prompt, maxTokens=most), 0)
            found = []
            while sampler.busy:
                found += sampler.step()
            return found[0].tokens, found[0].logprobs

        prompt = np.arange(100, dtype=np.int32)
        first = answer(1, prompt, 12)[0]
        answer(2, np.arange(200, 220, dtype=np.int32), 12)
        answer(3, np.concatenate((prompt, first, [7, 8])).astype(np.int32), 12)
        kept = [tensor for tensors in sampler._cache.layers for tensor in tensors]
        self.assertTrue(all(bool(torch.isfinite(tensor).all()) for tensor in kept))

    def test_a_row_that_sees_something_gets_the_bits_of_a_mask_without_end(self) -> None:
        random = torch.Generator().manual_seed(1)
        for scale in (1, 1e4, 1e30):
            scores = torch.randn(64, 200, generator=random) * scale
            hides = torch.rand(64, 200, generator=random) < 0.9
            hides[:, 3] = False
            wanted = torch.softmax((scores * 0.3).masked_fill(hides, -torch.inf), -1)
            self.assertTrue(torch.equal(masked_softmax(scores, hides, 0.3), wanted))

    def test_keys_of_a_cache_that_nobody_asks_for_reach_nobody(self) -> None:
        base, sequence = decoder(), np.arange(40, dtype=np.int32)
        cache = Cache(base.config, CPU, torch.float32)
        cache.resize(4, 64)
        where = on_flex()
        tree = Tree([sequence[20:]], before=20)
        packed = where.packed(base.config, [tree], [[3]], [-1])
        for spoilt in (0.0, math.nan):
            for keys, _ in cache.layers:
                keys[0] = spoilt
            tokens, positions, mixer = where.mixer(base.config, packed, packed.numbers, cache)
            with torch.no_grad():
                hidden = base.hidden(tokens, positions, mixer)
            self.assertTrue(bool(torch.isfinite(hidden[: tree.rows]).all()))

    def test_draws_follow_the_distribution(self) -> None:
        random = np.random.default_rng(9)
        logits = torch.from_numpy(random.normal(0, 2, 600).astype(np.float32)).expand(20_000, -1)
        uniforms = torch.from_numpy(random.random(20_000).astype(np.float32))
        one, zero = torch.ones(20_000), torch.zeros(20_000, dtype=torch.long)
        tokens, logprobs = draw(logits, uniforms, one, zero, one, False, TRIANGLE)
        p = torch.softmax(logits[0], -1)
        counts = torch.bincount(tokens, minlength=600)
        chi = float((((counts - 20_000 * p) ** 2) / (20_000 * p)).sum())
        self.assertLess(chi, 600 + 5 * math.sqrt(2 * 600))
        self.assertTrue(torch.allclose(logprobs, p.log()[tokens], atol=1e-5))

    def test_filters_keep_what_they_say(self) -> None:
        logits = torch.log(torch.tensor([0.4, 0.3, 0.2, 0.06, 0.04])).expand(1000, -1)
        uniforms = torch.linspace(0, 0.999999, 1000)
        one, zero = torch.ones(1000), torch.zeros(1000, dtype=torch.long)
        for top_k, top_p, kept in ((2, 1.0, {0, 1}), (0, 0.71, {0, 1, 2}), (0, 0.39, {0}), (1, 0.9, {0})):
            tokens, _ = draw(logits, uniforms, one, zero + top_k, one * top_p, True, TRIANGLE)
            self.assertEqual(set(tokens.tolist()), kept)
        # A token that reaches the share exactly is the last, as far down as the vocabulary goes.
        flat = torch.zeros(1000, 2048)
        tokens, _ = draw(flat, uniforms, one, zero, one * 0.5, True, TRIANGLE)
        self.assertEqual(int(tokens.max()), 1023)
        greedy, _ = draw(logits, uniforms, one * 0, zero, one, False, TRIANGLE)
        self.assertEqual(set(greedy.tolist()), {0})

    def test_a_draw_holds_no_logits_in_doubles(self) -> None:
        """Of 256 rows and 150,000 words they take 0.3 GB each time."""
        logits, one, sizes = torch.randn(80, 1000), torch.ones(80), list[int]()

        class Doubles(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                out = func(*args, **(kwargs or {}))
                if isinstance(out, torch.Tensor) and out.dtype == torch.float64:
                    sizes.append(out.numel())
                return out

        for filtered in (False, True):
            with Doubles():
                draw(logits, one / 2, one, 5 * one.long(), one, filtered, TRIANGLE)
        self.assertLess(max(sizes), logits.numel())
        self.assertGreater(len(sizes), 5)


class Adapters(unittest.TestCase):
    def test_a_bank_adds_what_each_adapter_adds(self) -> None:
        base = decoder()
        bank = AdapterBank(base.config, SETTINGS, CPU, torch.float32)
        bank.resize(4)
        policies = [adapted(base, seed) for seed in (1, 2, 3)]
        for slot, policy in enumerate(policies):
            bank.load(slot, policy.trained.tensors)
        x = torch.from_numpy(np.random.default_rng(1).normal(size=(16, 32)).astype(np.float32))
        places = torch.tensor([0, 1, 2, -1] * 4)
        for matrix in ('qkv', 'gateUp'):
            product = torch.zeros(16, sum(size for _, size in base.config.matrix(1, matrix)[1]))
            both = bank.adds(places)(1, matrix, x, product)
            for slot, policy in enumerate(policies):
                adds = adapter_adds(base.config, SETTINGS, policy.trained.tensors)
                alone = adds(1, matrix, x, torch.zeros_like(product))
                self.assertTrue(torch.equal(both[places == slot], alone[places == slot]))
            self.assertEqual(float(both[places == -1].abs().max()), 0)


class Learning(unittest.TestCase):
    def test_slopes_of_a_narrow_head_are_summed_in_float32(self) -> None:
        """Over many blocks of rows, sums in bfloat16 would lose what the last blocks add."""
        random = torch.Generator().manual_seed(1)
        hidden = torch.randn(2048, 16, generator=random).abs().bfloat16()
        output = torch.randn(64, 16, generator=random).bfloat16()
        targets, scale = torch.zeros(2048, dtype=torch.long), torch.ones(2048)

        def slope(head: torch.Tensor) -> torch.Tensor:
            leaf = head.requires_grad_()
            logprobs, _ = TokenScores.apply(Pieces(), hidden.to(head.dtype), leaf, targets, scale)
            return torch.autograd.grad(logprobs.sum(), leaf)[0].float()

        wanted = slope(output.float())
        with mock.patch('drmas_torch.head.BLOCK_LOGITS', 64 * 8):
            found = slope(output)
        self.assertLess(float((found - wanted).norm() / wanted.norm()), 2e-3)

    def test_a_call_that_fails_leaves_no_gradient(self) -> None:
        some = samples(5)

        def failing(batch: Batch, *scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen.append(batch)
            if len(seen) == 2:
                raise ValueError('a loss that fails')
            return slopes(batch, *scores)

        for before in ([], [slopes]):
            policy, alone, seen = adapted(decoder(), 2, rows=40), adapted(decoder(), 2, rows=40), list[Batch]()
            for one in before:
                policy.accumulate(some, one)
                alone.accumulate(some, one)
            with self.assertRaisesRegex(ValueError, 'a loss that fails'):
                policy.accumulate(some, failing)
            self.assertEqual(len(seen), 2)
            self.assertTrue(torch.equal(policy.trained.gradient, alone.trained.gradient))
            for each in (policy, alone):
                each.accumulate(some, slopes)
            self.assertTrue(torch.equal(policy.trained.gradient, alone.trained.gradient))

    def test_numbers_that_are_not_finite_are_named_without_a_copy(self) -> None:
        class Largest(TorchDispatchMode):
            numel = 0

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                out = func(*args, **(kwargs or {}))
                self.numel = max(self.numel, out.numel() if isinstance(out, torch.Tensor) else 0)
                return out

        trained = Trained(torch.ones(1000), [('a', (400,)), ('b', (600,))])
        with Largest() as largest:
            trained.require_finite(True)
        self.assertLess(largest.numel, 1000)
        for value, name in ((math.nan, 'NaN'), (math.inf, 'Infinity'), (-math.inf, '-Infinity')):
            trained.flat[700] = value
            with self.assertRaisesRegex(NonFinite, f'a weight of b is {name}'):
                trained.require_finite(False)

    def test_the_norm_of_many_numbers_is_summed_in_parts(self) -> None:
        """A card copies them to another type."""
        numbers, widened = torch.from_numpy(np.random.default_rng(1).normal(size=1000).astype(np.float32)), []

        class Inputs(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if 'vector_norm' in str(func):
                    widened.append(args[0].numel())
                return func(*args, **(kwargs or {}))

        with mock.patch('drmas_torch.trained.WIDENED', 300), Inputs():
            norm = norm_of([numbers, numbers[:5]])
        self.assertEqual(widened, [300, 300, 300, 100, 5])
        self.assertAlmostEqual(norm, float(torch.cat((numbers, numbers[:5])).double().norm()), delta=1e-9)

    def test_rates_of_zero_change_no_weight(self) -> None:
        trained = Trained(torch.ones(10), [('a', (10,))])
        trained.gradient.fill_(1)
        optimizer: Any = {'type': 'sgd', 'learningRate': 0.1, 'momentum': 0, 'nesterov': False, 'weightDecay': 0.1}
        found = clipped_step([trained], {'optimizer': optimizer, 'clipNorm': 0}, [])
        self.assertEqual(found, {'applied': True, 'norm': 0.0})
        self.assertTrue(torch.equal(trained.flat, torch.ones(10)))


class Copies(unittest.TestCase):
    def test_what_goes_to_a_card_goes_from_pinned_memory(self) -> None:
        card, numbers = torch.device('cuda'), mock.Mock(is_cuda=False)
        self.assertIs(sent(numbers, card), numbers.pin_memory().to.return_value)
        numbers.pin_memory().to.assert_called_once_with(card, non_blocking=True)
        here = torch.ones(2)
        self.assertIs(sent(here, CPU), here)

    def test_sizes_of_prompts_on_a_card_are_few(self) -> None:
        """Of prompts for one slot or several, that no one has read or that go on."""
        where, random, sizes = on_flex(), np.random.default_rng(1), set()
        config = decoder().config
        for _ in range(300):
            first = random.integers(0, 9, int(random.integers(1, 300)))
            answers = [random.integers(0, 9, int(random.integers(1, 60))) for _ in range(int(random.integers(1, 9)))]
            sequences = [np.concatenate((first, answer)).astype(np.int32) for answer in answers]
            packed = where.packed(config, [Tree(sequences)], [list(range(len(sequences)))], [0])
            writes = views(packed.numbers, packed.sizes.shapes)['writes']
            places = {(slot, place) for _, slot, place in writes.t().tolist()}
            self.assertEqual(len(places), sum(map(len, sequences)))
            sizes.add(packed.sizes)
        self.assertLess(len(sizes), 16)


class Files(unittest.TestCase):
    def test_parts_of_files_come_to_their_places(self) -> None:
        """Two matrices lie side by side, transposed, behind a vector. Their number types are those of files."""
        numbers = torch.arange(1, 5 + 2 * 4 + 3 * 4 + 1).float()
        vector, one, other = numbers[:5], numbers[5:13].view(2, 4), numbers[13:].view(3, 4)
        wanted = torch.cat((vector, torch.cat((one.t(), other.t()), 1).reshape(-1)))
        for name, dtype in (('F32', torch.float32), ('F16', torch.float16), ('BF16', torch.bfloat16)):
            with tempfile.NamedTemporaryFile() as file:
                data = numbers.to(dtype)
                file.write(b'12345678' + data.view(torch.uint8).numpy().tobytes())
                file.flush()
                parts: Any = [
                    dict(
                        path=file.name, offset=8 + first * dtype.itemsize, dtype=name, shape=shape, at=at, stride=stride
                    )
                    for first, shape, at, stride in ((0, [5], 0, None), (5, [2, 4], 5, 5), (13, [3, 4], 7, 5))
                ]
                found = read_parts(parts, 0, len(wanted), CPU)
            self.assertEqual(found.dtype, torch.bfloat16 if name == 'BF16' else torch.float32)
            self.assertTrue(torch.equal(found.float(), wanted))


class Calls(unittest.TestCase):
    def test_a_model_with_a_field_that_is_unknown_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "argument 'soft_cap'"):
            Config.of({**SHAPE, 'softCap': 30})
        window = {'positions': 7, 'layers': [0], 'ropeBase': 1e4}
        config = Config.of({**SHAPE, 'ropeScaling': {'factor': 8}, 'slidingWindow': window})
        self.assertEqual([config.window_of(layer) for layer in range(3)], [7, None, None])

    def two_policies(self) -> Engine:
        """An engine with two published policies on one base."""
        config = decoder().config
        engine = Engine(mock.Mock(), mock.Mock(), place(), 8)
        flat = np.random.default_rng(1).normal(0, 0.3, size_of(config.shapes())).astype(np.float32)
        frequencies = np.ones(config.head_dim // 2, np.float32)
        engine.call('create_base', {'id': 0, 'config': SHAPE}, {'weights': flat, 'frequencies': frequencies})
        adapter = {'rank': 3, 'alpha': 6, 'targets': ['q', 'v']}
        sizes = AdapterSettings.of(adapter).shapes(config)  # type: ignore[arg-type]
        for id in (1, 2):
            shape = {'base': 0, 'adapter': adapter}
            args = {'id': id, 'name': f'policy {id}', 'shape': shape, 'precision': 'float32'}
            engine.call('create_policy', args, {'flat': np.zeros(size_of(sizes), np.float32)})
            engine.call('publish', {'id': id, 'keep': 1}, {})
        return engine

    def answered(self, engine: Engine) -> dict[str, Any]:
        """Three requests, and by the type of its frame what the engine sends."""
        prompt, uniforms = np.arange(20, dtype=np.int32), np.linspace(0, 0.9, 5, dtype=np.float32)
        wanted = {**request(0, prompt)[0], 'maxTokens': 5, 'promptLength': 20, 'uniformsLength': 5}
        requests: Any = [{**wanted, 'id': id, 'policy': 1 + id % 2} for id in range(3)]
        engine.generate(requests, {'prompts': np.tile(prompt, 3), 'uniforms': np.tile(uniforms, 3)})
        send: Any = engine.send
        send.reset_mock()
        while engine.busy:
            engine.tick()
        found: dict[str, Any] = {}
        for (header, arrays), _ in send.call_args_list:
            found.setdefault(header['type'], []).append(
                (header, {name: array.tolist() for name, array in arrays.items()})
            )
        return found

    def test_a_tick_without_memory_refuses_its_requests_and_no_more(self) -> None:
        wanted = self.answered(self.two_policies())
        self.assertEqual(set(wanted), {'generated'})
        scarce = torch.OutOfMemoryError('tried to allocate 9 GiB')
        for fault in (
            mock.patch.object(Sampler, '_decode', side_effect=scarce),
            mock.patch.object(Sampler, '_prefill', side_effect=scarce),
        ):
            engine = self.two_policies()
            with fault:
                found = self.answered(engine)
            self.assertEqual(set(found), {'refused'})
            self.assertEqual(sorted(header['id'] for header, _ in found['refused']), [0, 1, 2])
            for header, _ in found['refused']:
                self.assertEqual((header['error']['name'], header['error']['reason']), ('DeviceError', 'memory'))
            for id in (1, 2):
                engine.call('publish', {'id': id, 'keep': 1}, {})
            self.assertEqual(
                [rest for _, rest in self.answered(engine)['generated']], [rest for _, rest in wanted['generated']]
            )

    def test_a_device_without_memory_is_named_as_such(self) -> None:
        """Macs, CUDA itself and its libraries have no error of their own."""
        for words in ('MPS backend out of memory', 'CUDA error: out of memory', 'CUBLAS_STATUS_ALLOC_FAILED'):
            engine: Any = self.two_policies()
            with mock.patch.object(Sampler, '_decode', side_effect=RuntimeError(words)):
                found = self.answered(engine)
            self.assertEqual({header['error']['name'] for header, _ in found['refused']}, {'DeviceError'})

    def test_an_error_of_a_card_or_its_compiler_is_one_line(self) -> None:
        advice = 'CUDA kernel errors might be asynchronously reported at some other API call.\nCompile with `DSA`.\n'
        for words, line in (
            (f'CUDA error: an illegal memory access was encountered\n{advice}', 'CUDA error: an illegal memory access'),
            (f'CUDA error: out of memory\n{advice}', 'the device has too little memory: CUDA error: out of memory'),
            ('inductor raised:\nRuntimeError: No valid configs.\n\nSet VERBOSE', 'inductor raised: RuntimeError: No'),
        ):
            message = plain(RuntimeError(words))['message']
            self.assertTrue(message.startswith(line), message)
            self.assertNotIn('\n', message)
            self.assertNotRegex(message, 'asynchronously|VERBOSE')
        self.assertEqual(plain(KeyError())['message'], 'KeyError')

    def test_whatever_finds_no_memory_runs_again_with_the_same_results(self) -> None:
        """Calls and ticks, and whichever of their operations it is that finds none, once."""

        class Scarce(TorchDispatchMode):
            """Counts the operations that take memory; that of this number finds none."""

            def __init__(self, failing: int) -> None:
                super().__init__()
                self.failing, self.count = failing, 0

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if not any(one.alias_info for one in func._schema.returns):
                    self.count += 1
                    if self.count == self.failing:
                        raise torch.OutOfMemoryError('tried to allocate 9 GiB')
                return func(*args, **(kwargs or {}))

        optimizers: tuple[Any, ...] = (
            {'type': 'adamw', 'beta1': 0.9, 'beta2': 0.99, 'epsilon': 1e-8, 'weightDecay': 0.1},
            {'type': 'sgd', 'momentum': 0.9, 'nesterov': True, 'weightDecay': 0.1},
            {'type': 'nigt', 'momentum': 0.9},
        )

        def run(failing: int, optimizer: dict[str, Any]) -> tuple[Any, int]:
            engine, adapter = self.two_policies(), {'rank': 3, 'alpha': 6, 'targets': ['q']}
            config = engine.bases[0].config
            sizes = size_of(config.shapes()), size_of(AdapterSettings.of(adapter).shapes(config))  # type: ignore
            flat = np.random.default_rng(2).normal(0, 0.3, sizes[0] + 2 * sizes[1]).astype(np.float32)
            arrays = {'flat': flat, 'frequencies': np.ones(4, np.float32)}
            shape = {'trunk': SHAPE, 'agents': ['a', 'b'], 'adapter': adapter}
            inbox: Any = engine.inbox
            inbox.until.side_effect = lambda _: ({}, {'logprobs': np.ones(4, np.float32), 'entropies': np.ones(4)})
            length, prompt = 9, np.arange(20, dtype=np.int32)
            samples = {'lengths': np.array([length]), 'tokens': prompt[:length], 'mask': np.arange(length) // 5}
            requests: Any = [
                {**request(id, prompt)[0], 'policy': policy, 'agent': 'b', 'streamed': id == 0, 'maxTokens': 5}
                for id, policy in enumerate((1, 2, 3, 1))
            ]
            for one in requests:
                one |= {'promptLength': 20 - one['id'], 'uniformsLength': 5}
            prompts = np.concatenate([prompt[: one['promptLength']] for one in requests])
            settings = {'optimizer': {**optimizer, 'learningRate': 1e-3}, 'clipNorm': 1, 'undoNonFinite': True}
            with Scarce(failing) as scarce:
                args = {'id': 3, 'name': 'trunk', 'shape': shape, 'precision': 'bfloat16'}
                engine.call('create_policy', args, arrays)
                for id in (3, 1, 1, 1):
                    engine.call('publish', {'id': id, 'keep': 3}, {})
                engine.generate(requests, {'prompts': prompts, 'uniforms': np.linspace(0, 0.9, 20, dtype=np.float32)})
                for id, agent in ((3, 'a'), (1, ''), (3, 'b')):
                    engine.tick()
                    given = {'temperatures': [1.0], **({'agents': [agent]} if agent else {})}
                    engine.call('accumulate', {'id': id, 'samples': given}, samples)
                for id in (1, 3):
                    engine.call('optim_step', {'id': id, 'settings': settings}, {})
                while engine.busy:
                    engine.tick()
            sent: Any = engine.send
            found: dict[Any, Any] = {'scores': [], 'streamed': []}
            for (header, out), _ in sent.call_args_list:
                if header['type'] == 'streamed':
                    found['streamed'] += header['tokens']
                elif header['type'] == 'generated':
                    ends = np.cumsum([one['length'] for one in header['results']])
                    for one, end in zip(header['results'], ends, strict=True):
                        found[one['id']] = out['tokens'][end - one['length'] : end].tolist(), one['policyVersion']
                else:
                    found.setdefault(header['type'], []).append(header)
            for id in (1, 3):
                value, out = engine.call('state', {'id': id, 'optimizer': True}, {})
                found[f'state {id}'] = value, {name: array.tobytes() for name, array in out.items()}
            return found, scarce.count

        for turn, optimizer in enumerate(optimizers):
            wanted, count = run(0, optimizer)
            self.assertEqual((len(wanted), len(wanted['streamed'])), (8, 5))
            for failing in range(1 + 30 * turn, count, count // 8):
                self.assertEqual(run(failing, optimizer)[0], wanted, f'operation {failing}')

    def test_an_update_that_finds_no_memory_halfway_does_not_run_again(self) -> None:
        engine = self.two_policies()
        settings = {'optimizer': {'type': 'nigt', 'momentum': 0.9, 'learningRate': 1e-3}, 'clipNorm': 1}
        scarce = mock.patch.object(Trained, 'require_finite', side_effect=torch.OutOfMemoryError('CUDA out of memory'))
        with scarce, self.assertRaisesRegex(RuntimeError, 'found no memory halfway'):
            engine.call('optim_step', {'id': 1, 'settings': settings}, {})
        self.assertEqual(engine.policies[1].policy.trained.optimizer.step, 1)

    def test_a_loss_that_fails_elsewhere_ends_its_call_without_a_gradient(self) -> None:
        engine = self.two_policies()
        inbox: Any = engine.inbox
        inbox.until.return_value = {'type': 'slopes', 'failed': True}, {}
        arrays = {'lengths': np.array([9]), 'tokens': np.arange(9, dtype=np.int32), 'mask': np.arange(9) // 5}
        with self.assertRaisesRegex(Refusal, 'the loss failed'):
            engine.call('accumulate', {'id': 1, 'samples': {'temperatures': [1.0]}}, arrays)
        self.assertEqual(float(engine.policies[1].policy.trained.gradient.abs().sum()), 0)

    def test_a_policy_that_is_dropped_gives_its_memory_back_at_once(self) -> None:
        engine = self.two_policies()
        flat = weakref.ref(engine.policies[1].policy.trained.flat)
        gc.disable()
        self.addCleanup(gc.enable)
        engine.call('drop', {'id': 1}, {})
        self.assertIsNone(flat())

    def test_the_last_policy_on_a_base_takes_its_cache_with_it(self) -> None:
        engine = self.two_policies()
        for id, left in ((1, 1), (2, 0)):
            engine.call('drop', {'id': id}, {})
            self.assertEqual(len(engine.shared_samplers), left)

    def test_what_is_refused_is_not_among_the_last_words(self) -> None:
        """The other side shows the last line of stderr when the worker ends, which a refusal does not cause."""
        engine = self.two_policies()
        for method, args, printed in (('publish', {'id': 9, 'keep': 1}, ''), ('publish', {}, 'TypeError')):
            with contextlib.redirect_stderr(io.StringIO()) as words:
                take(engine, ({'type': 'call', 'id': 7, 'method': method, 'args': args}, {}))
            self.assertEqual(words.getvalue().strip().split('\n')[-1].partition(':')[0], printed)

    def test_an_answer_that_is_no_frame_is_an_error_of_its_call(self) -> None:
        engine, stream = self.two_policies(), io.BytesIO()
        engine.send = sender(stream)
        frame: Any = {'type': 'call', 'id': 7, 'method': 'base_flat', 'args': {'id': 0}}
        with mock.patch.object(Base, 'flat', return_value=np.zeros(1, np.int64)):
            take(engine, (frame, {}))
        stream.seek(0)
        header, _ = read_frame(stream)  # type: ignore[arg-type]
        self.assertEqual((header['type'], header['id'], header['error']['name']), ('answer', 7, 'BackendError'))


class Compiling(unittest.TestCase):
    def test_more_kinds_of_arguments_than_pytorch_allows_by_default(self) -> None:
        counter = CompileCounter()
        with mock.patch.object(torch, 'compile', functools.partial(torch.compile, backend=counter)):
            norm = compiled(rms_norm)
        kinds = [
            (dtype, learns, gained, offset)
            for dtype in (torch.float32, torch.bfloat16)
            for learns in (False, True)
            for gained in (False, True)
            for offset in (False, True)
        ]
        for dtype, learns, gained, offset in kinds:
            x = torch.ones(4, 8, dtype=dtype, requires_grad=learns)
            norm(x, torch.ones(8, requires_grad=gained), 1e-6, offset)
        self.assertEqual(counter.frame_count, len(kinds))


class Worker(unittest.TestCase):
    def test_an_interrupt_of_the_terminal_leaves_it_at_work(self) -> None:
        program = Path(__file__).parents[1] / 'drmas_torch'
        pipe: Any = subprocess.PIPE
        with subprocess.Popen([sys.executable, str(program)], stdin=pipe, stdout=pipe, bufsize=0) as worker:
            stdin: Any = worker.stdin
            stdout: Any = worker.stdout
            self.assertEqual(read_frame(stdout)[0]['type'], 'ready')
            worker.send_signal(signal.SIGINT)
            for _ in range(2):
                write_frame(stdin, {'type': 'ping'})
                self.assertEqual(read_frame(stdout)[0]['type'], 'pong')
            stdin.close()
            self.assertEqual(worker.wait(20), 0)


class Frames(unittest.TestCase):
    def test_frames_come_back(self) -> None:
        stream = io.BytesIO()
        arrays = {'a': np.arange(5, dtype=np.float32), 'b': np.array([np.nan, np.inf]), 'c': np.zeros(0, np.uint8)}
        write_frame(stream, {'type': 'x', 'text': 'ä'}, arrays)
        stream.seek(0)
        header, found = read_frame(stream)  # type: ignore[arg-type]
        self.assertEqual(header, {'type': 'x', 'text': 'ä'})
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
        with self.assertRaises(EOFError):
            read_frame(stream)  # type: ignore[arg-type]

    def test_an_array_of_4_gib_is_one_frame(self) -> None:
        class Sink:
            """Looks at the first bytes, and counts the others."""

            head, size = b'', 0

            def write(self, data: bytes | memoryview) -> None:
                self.head = self.head or bytes(data[:16])
                self.size += memoryview(data).nbytes

            def flush(self) -> None:
                pass

        sink: Any = Sink()
        write_frame(sink, {'type': 'x'}, {'w': np.empty(2**30, np.float32), 'v': np.zeros(1, np.uint8)})
        _, header, arrays = struct.unpack('<4sIQ', sink.head)
        self.assertEqual(arrays, 2**32 + 8)
        self.assertEqual(sink.size, 16 + header + arrays)

    def test_whatever_ends_the_reader_reaches_who_waits(self) -> None:
        def torn(error: Exception) -> Any:
            return mock.Mock(readinto=mock.Mock(side_effect=error))

        streams = (
            (io.BytesIO(bytes(16)), FrameError),
            *((torn(error()), error) for error in (MemoryError, OSError, OverflowError, RecursionError)),
        )
        for stream, error in streams:
            inbox = Inbox(stream)
            found: queue.Queue[Exception] = queue.Queue()

            def ask(inbox: Inbox = inbox, found: queue.Queue[Exception] = found) -> None:
                for wait in (lambda: inbox.until('slopes'), lambda: inbox.next(True), lambda: inbox.next(False)):
                    try:
                        wait()
                    except Exception as caught:
                        found.put(caught)

            threading.Thread(target=ask, daemon=True).start()
            for _ in range(3):
                self.assertIsInstance(found.get(timeout=20), error)


if __name__ == '__main__':
    torch.set_num_threads(1)
    unittest.main()
