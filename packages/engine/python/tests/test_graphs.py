"""Recorded passes, with a stand-in for a card: its records run their work again and write over the first result."""

from __future__ import annotations

import dataclasses
import functools
import gc
import unittest
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch.utils._python_dispatch import TorchDispatchMode

from drmas_torch import graphs as graphs_module
from drmas_torch.attention import Cache
from drmas_torch.decoder import Decoder, Pieces
from drmas_torch.graphs import Graphs, Memory, Work
from drmas_torch.place import Place
from drmas_torch.policy import Policy
from drmas_torch.sampler import Sampler
from drmas_torch.trained import Trained
from drmas_torch.tree import Tree

from .test_engine import CPU, SETTINGS, adapted, decoder, request, samples, slopes


class Rerun(Memory):
    """`restored`: what the work changes beside its result. A record of a card runs nothing; this one undoes that."""

    def __init__(self, restored: Callable[[], list[Tensor]] = list) -> None:
        super().__init__()
        self.restored, self.replays, self.spoils, self.room = restored, 0, False, 2**40
        self.slope = 1.0
        """The gradient of a record beside that of its pass."""

    def record(self, work: Work, numbers: Tensor, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Work:
        kept = [tensor.clone() for tensor in self.restored()]
        result = work(numbers, *leaves)
        for tensor, before in zip(self.restored(), kept, strict=True):
            tensor.copy_(before)

        def repeat(numbers: Tensor, *leaves: Tensor) -> Any:
            self.replays += 1
            again = work(numbers, *leaves)
            if not isinstance(again, Tensor):
                return again
            again = again * 1.1 if self.spoils else again
            if self.slope != 1:
                again = again.detach() + self.slope * (again - again.detach())
            return again if leaves else result.copy_(again)

        return repeat

    def taken(self) -> int:
        return 0

    def free(self) -> int:
        return self.room


def dense(q: Tensor, k: Tensor, v: Tensor, block_mask: Any, scale: float, enable_gqa: bool) -> Tensor:
    """FlexAttention has no backward pass on a processor. This one sees the same mask, whole."""
    rows, keys = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
    mask = block_mask.mask_mod(None, None, rows, keys)
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    return torch.softmax((q @ k.transpose(-1, -2) * scale).masked_fill(~mask, -torch.inf), -1) @ v


def on_card(memory: Memory | None = None) -> Place:
    return Place(CPU, 4096, Pieces(flex=dense), False, memory)


def failing(_: Tensor) -> None:
    raise RuntimeError('cannot be recorded')


class Unmeasured(Memory):
    def taken(self) -> int:
        return 0

    def free(self) -> int:
        return 2**40


class Captured(TorchDispatchMode):
    """The operations of a capture, which runs nothing: what it changed is undone."""

    def __init__(self, graph: CardGraph) -> None:
        super().__init__()
        self.graph, self.changed, self.own = graph, list[tuple[Tensor, Tensor]](), set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for argument, value in zip(func._schema.arguments, args, strict=False):
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and value.untyped_storage().data_ptr() not in self.own:
                self.changed.append((value, value.clone()))
        out = func(*args, **(kwargs or {}))
        if not any(one.alias_info for one in func._schema.returns):
            made = [out] if isinstance(out, Tensor) else out
            self.own |= {each.untyped_storage().data_ptr() for each in made}
        self.graph.operations.append((func, args, kwargs or {}, out))
        return out

    def __exit__(self, *rest: Any) -> None:
        super().__exit__(*rest)
        for tensor, before in reversed(self.changed):
            tensor.detach().copy_(before)


class CardGraph:
    """A graph of a card: operations at the addresses of their capture."""

    def __init__(self, card: Card) -> None:
        self.card, self.operations = card, list[tuple[Any, Any, Any, Any]]()

    @torch.no_grad()
    def replay(self) -> None:
        self.card.replays += 1
        for func, args, kwargs, out in self.operations:
            again = func(*args, **kwargs)
            if not any(one.alias_info for one in func._schema.returns):
                pairs = [(out, again)] if isinstance(out, Tensor) else zip(out, again, strict=True)
                for to, value in pairs:
                    to.detach().copy_(value)


class Card:
    """Stands in for the graphs of a card, on a processor."""

    def __init__(self) -> None:
        self.replays = 0

    def graph(self, graph: CardGraph, pool: Any) -> Captured:
        return Captured(graph)

    def __enter__(self) -> Card:
        self._stack = ExitStack()
        ended = mock.Mock(side_effect=RuntimeError('not currently recording'))
        self._stack.enter_context(mock.patch.object(torch._C, '_cuda_endAllocateToPool', ended, create=True))
        cuda = dict(
            current_device=lambda: 0,
            graph_pool_handle=lambda: 'pool',
            CUDAGraph=lambda: CardGraph(self),
            graph=self.graph,
        )
        streams = dict(current_stream=mock.Mock(), set_stream=mock.Mock())
        self._stack.enter_context(mock.patch.multiple(torch.cuda, **cuda, **streams))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def leaves_of(tensor: Tensor) -> list[Tensor]:
    """The leaves that a backward pass from here reaches."""
    found, nodes, seen = [], [tensor.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, 'variable'):
            found.append(node.variable)
        nodes += [each for each, _ in node.next_functions]
    return found


class Allocator:
    """The pools of a card's graphs, as PyTorch keeps them. `breaks`: captures become invalid, and their end throws."""

    def __init__(self) -> None:
        self.pools, self.breaks, self.recording = 0, False, set[int]()
        self.graphs: weakref.WeakSet[Any] = weakref.WeakSet()

    def handle(self) -> int:
        self.pools += 1
        return self.pools

    def graph(self) -> Any:
        made = mock.Mock()
        self.graphs.add(made)
        return made

    @contextmanager
    def capture(self, graph: Any, pool: int) -> Iterator[None]:
        if pool in self.recording:
            raise RuntimeError('beginAllocateToPool: already recording to mempool_id')
        self.recording.add(pool)
        try:
            yield
        finally:
            if self.breaks:
                raise RuntimeError('operation failed due to a previous error during capture')
            self.recording.remove(pool)

    def end(self, device: int, pool: int) -> None:
        if pool not in self.recording:
            raise RuntimeError('endAllocatePool: not currently recording to mempool_id')
        self.recording.remove(pool)

    def __enter__(self) -> Allocator:
        self._stack = ExitStack()
        cuda = dict(graph_pool_handle=self.handle, CUDAGraph=self.graph, graph=self.capture, current_device=lambda: 0)
        streams = dict(current_stream=mock.Mock(), set_stream=mock.Mock())
        self._stack.enter_context(mock.patch.multiple(torch.cuda, **cuda, **streams))
        # Builds for processors lack it.
        self._stack.enter_context(mock.patch.object(torch._C, '_cuda_endAllocateToPool', self.end, create=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Compiled(unittest.TestCase):
    """What the pieces of a card compile, with a compiler that only counts."""

    def setUp(self) -> None:
        self.counter = CompileCounter()
        with mock.patch.object(torch, 'compile', functools.partial(torch.compile, backend=self.counter)):
            self.pieces = Pieces.on(torch.device('cuda'))

    def base(self, **features: object) -> Decoder:
        found = decoder(**features)
        found.pieces = self.pieces
        return found

    def test_nothing_is_compiled_while_a_pass_is_recorded(self) -> None:
        """A record reads other leaves than its pass. To compile means to wait, which breaks a capture."""
        compiled, counter = [], self.counter

        class Recording(Rerun):
            def record(
                self, work: Work, numbers: Tensor, leaves: Sequence[Tensor], gradients: Sequence[Tensor]
            ) -> Work:
                before = counter.frame_count
                with torch.set_grad_enabled(bool(leaves)):
                    work(numbers.clone(), *(leaf.detach().requires_grad_() for leaf in leaves))
                compiled.append(counter.frame_count - before)
                return super().record(work, numbers, leaves, gradients)

        memory = Recording()
        where = Place(CPU, 4096, dataclasses.replace(self.pieces, flex=dense), False, memory)
        base, whole = self.base(), self.base(queryKeyNorm=True, offsetNorms=True)
        adapter = Policy(where, base, adapted(base, 2).trained, SETTINGS)
        trained = Trained(torch.cat([each.reshape(-1) for each in whole.tensors.values()]), whole.config.shapes())
        whole.tensors = trained.tensors
        for policy in (adapter, Policy(where, whole, trained)):
            for _ in range(3):
                policy.accumulate(samples(6), slopes)
                policy.score(samples(6))
        sampler = Sampler(where, base, 16, None, lambda *_: None)
        memory.restored = lambda: list(sampler._state.values())
        sampler.load(0, 0, None)
        for turn in range(3):
            sampler.submit(*request(1, np.arange(20, dtype=np.int32) + turn), 0)
            while sampler.busy:
                sampler.step()
        self.assertGreater(counter.frame_count, 5)
        self.assertEqual(compiled, 6 * [0])

    def test_prompts_of_all_sizes_are_one_kind(self) -> None:
        where, kinds = Place(CPU, 4096, self.pieces, False), []
        for features in ({}, {'slidingWindow': {'positions': 7, 'layers': [0, 1, 2]}}):
            base = self.base(**features, context=2048)
            cache = Cache(base.config, CPU, torch.float32)
            cache.resize(4, 2048)
            for rows, before in ((20, 0), (300, 0), (1100, 0), (20, 20), (20, 300), (300, 300), (600, 900)):
                counted = self.counter.frame_count
                packed = where.packed(base.config, [Tree([np.zeros(rows, np.int32)], before)], [[1]], [-1])
                tokens, positions, mixer = where.mixer(base.config, packed, packed.numbers, cache)
                with torch.no_grad():
                    base.hidden(tokens, positions, mixer)
                kinds.append(self.counter.frame_count > counted)
        self.assertEqual(kinds, 2 * [True, *(6 * [False])])


class Recorded(unittest.TestCase):
    def policies(self, memory: Memory) -> tuple[Policy, Policy]:
        base = decoder()
        plain, other = adapted(base, 2), adapted(base, 2)
        return Policy(on_card(), base, plain.trained, SETTINGS), Policy(on_card(memory), base, other.trained, SETTINGS)

    def test_gradients_and_scores_are_those_of_the_pass(self) -> None:
        memory = Rerun()
        plain, policy = self.policies(memory)
        for seed in (6, 7, 8, 9, 10):  # trees of one size with other tokens
            some = samples(seed)
            wanted, found = plain.accumulate(some, slopes), policy.accumulate(some, slopes)
            for one, other in zip(wanted[0], found[0], strict=True):
                np.testing.assert_array_equal(one, other)
            self.assertAlmostEqual(wanted[1], found[1], delta=1e-5 * wanted[1])
            scores = zip(plain.score(some), policy.score(some), strict=True)
            self.assertTrue(all(np.array_equal(one, other) for one, other in scores))
        self.assertEqual(memory.replays, 8)
        apart = (plain.trained.gradient - policy.trained.gradient).norm() / plain.trained.gradient.norm()
        self.assertLess(float(apart), 1e-5)

    def test_graphs_of_a_card_repeat_passes_and_their_gradients(self) -> None:
        with Card() as card:
            memory = Unmeasured()
            plain, policy = self.policies(memory)
            for turn in range(3):
                for seed in (6, 7, 8, 9):  # of two sizes
                    some = samples(seed, 20 if seed < 8 else 60)
                    wanted, found = plain.accumulate(some, slopes), policy.accumulate(some, slopes)
                    for one, other in zip([*wanted[0], wanted[1]], [*found[0], found[1]], strict=True):
                        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
                    plain.score(some)
                    policy.score(some)
                if turn == 1:  # the records read the weights where they lie
                    plain.trained.flat.mul_(0.5)
                    policy.trained.flat.mul_(0.5)
            self.assertGreater(memory.made, 2)
            self.assertEqual(memory.refused, 0)
            self.assertGreater(card.replays, 4 * memory.made)
            apart = (plain.trained.gradient - policy.trained.gradient).norm() / plain.trained.gradient.norm()
            self.assertLess(float(apart), 1e-5)
            # All records of updates write their gradients to the same places.
            updates = [one.__self__ for key, one in policy._graphs._made.items() if key[-1]]  # type: ignore
            self.assertGreater(len(updates), 1)
            self.assertTrue(all(one.gradients is updates[0].gradients for one in updates))
            # What is dropped gives its memory back at once.
            numbers = weakref.ref(updates[0].numbers)
            gc.disable()
            self.addCleanup(gc.enable)
            del updates
            policy._graphs.forget()
            self.assertIsNone(numbers())

    def test_a_pass_of_a_whole_decoder_reads_the_leaves_that_it_is_given(self) -> None:
        model = decoder()
        flat = torch.cat([tensor.reshape(-1) for tensor in model.tensors.values()])
        trained = Trained(flat, model.config.shapes())
        whole = Decoder(model.config, trained.tensors, model.ropes, model.dtype, model.pieces)
        policy = Policy(on_card(), whole, trained)
        aliases = [tensor.detach().requires_grad_() for tensor in trained.tensors.values()]
        reading, adds = policy._reading(aliases, '')
        self.assertIsNone(adds)
        self.assertEqual([id(tensor) for tensor in reading.tensors.values()], [id(alias) for alias in aliases])
        self.assertIs(policy._reading((), '')[0], whole)

    def test_a_micro_batch_is_gone_before_the_next_one_runs(self) -> None:
        policy = adapted(decoder(), 2, rows=40)
        alive: list[list[bool]] = []
        hiddens: list[weakref.ref[Tensor]] = []
        forward = policy._hidden

        def hidden(*given: Any) -> Tensor:
            alive.append([ref() is not None for ref in hiddens])
            out = forward(*given)
            hiddens.append(weakref.ref(out))
            return out

        with mock.patch.object(policy, '_hidden', hidden):
            policy.accumulate(samples(5), slopes)
        self.assertGreater(len(alive), 2)
        self.assertFalse(any(any(each) for each in alive))

    def test_a_record_that_differs_is_not_used(self) -> None:
        memory = Rerun()
        memory.spoils = True
        plain, policy = self.policies(memory)
        for seed in (6, 7, 8, 10):
            some = samples(seed)
            for one, other in zip(plain.accumulate(some, slopes)[0], policy.accumulate(some, slopes)[0], strict=True):
                np.testing.assert_array_equal(one, other)
        self.assertEqual((memory.replays, memory.made, memory.refused), (1, 0, 1))

    def test_a_record_whose_gradient_differs_is_not_used(self) -> None:
        for slope, made in ((1.1, 0), (1.001, 1)):
            memory = Rerun()
            memory.slope = slope
            policy = self.policies(memory)[1]
            for seed in (6, 7, 8, 10):
                policy.accumulate(samples(seed), slopes)
            self.assertEqual((memory.made, memory.refused), (made, 1 - made))

    def test_a_size_that_was_refused_is_recorded_when_its_cause_is_gone(self) -> None:
        memory = Rerun()
        memory.room, memory.report = -1, mock.Mock()
        graphs, first = Graphs(CPU, memory), graphs_module.AGAIN * graphs_module.FIRST
        for number in range(first + 2):
            graphs.run('a', torch.tensor([number]), lambda numbers: numbers + 1)
            if number == 5:
                memory.room = 2**40
        self.assertEqual((memory.made, memory.refused), (1, 1))
        self.assertEqual(memory.replays, 3)

    def test_the_first_pass_that_is_not_recorded_is_reported(self) -> None:
        memory = Rerun()
        memory.room, memory.report = -1, mock.Mock()
        graphs = Graphs(CPU, memory)
        for key in 'ab':
            for _ in range(4):
                graphs.run(key, torch.zeros(1), torch.neg)
        self.assertEqual(memory.refused, 2)
        self.assertRegex(memory.report.call_args.args[0], r'stays slow for now: memory is scarce \(size a\)')
        memory.report.assert_called_once()

    def test_what_cannot_be_recorded_runs_as_it_is(self) -> None:
        class Refusing(Rerun):
            def __init__(self, error: Exception) -> None:
                super().__init__()
                self.error = error

            def record(
                self, work: Work, numbers: Tensor, leaves: Sequence[Tensor], gradients: Sequence[Tensor]
            ) -> Work:
                raise self.error

        scarce = Rerun()
        scarce.room = graphs_module.BESIDE - 1
        errors = (
            torch.OutOfMemoryError('no memory'),
            AssertionError('an output without a gradient'),
            AttributeError('x'),
        )
        for memory in (*map(Refusing, errors), scarce):
            graphs = Graphs(CPU, memory)
            for number in range(4):
                found = graphs.run('a', torch.tensor([number]), lambda numbers: numbers + 1)
                self.assertEqual(int(found), number + 1)
            self.assertEqual(memory.replays, 0)

    def test_records_make_room(self) -> None:
        memory = Rerun()
        graphs = Graphs(CPU, memory)
        for _ in range(3):
            graphs.run('a', torch.tensor([1]), torch.neg)
        self.assertTrue(graphs._made)
        memory.give_back()
        self.assertEqual((graphs._made, memory.passes_free), ({}, 2 * graphs_module.ROOM))

    def test_only_the_records_used_last_are_kept(self) -> None:
        memory = Rerun()
        graphs = Graphs(CPU, memory)
        with mock.patch.object(graphs_module, 'MOST_KEPT', 2):
            for key in 'aaabbbacccabc':
                self.assertEqual(int(graphs.run(key, torch.tensor([3]), lambda numbers: numbers + 1)), 4)
        self.assertEqual(list(graphs._made), ['b', 'c'])

    def test_what_has_moved_runs_as_it_is_before_it_is_recorded_anew(self) -> None:
        memory = Rerun()
        graphs = Graphs(CPU, memory)
        replays = []
        for moves in (False, False, False, True, False, False):
            if moves:
                graphs.forget()
            graphs.run('a', torch.tensor([1]), lambda numbers: numbers + 1)
            replays.append(memory.replays)
        self.assertEqual(replays, [0, 0, 2, 2, 2, 4])  # a record is tried once before it is used

    def test_a_recording_that_fails_gives_the_stream_back(self) -> None:
        streams = ['default']

        @contextmanager
        def graph(*_: Any, **__: Any) -> Iterator[None]:
            streams.append('of recording')
            yield  # PyTorch does not come to the line that goes back, if the end of a recording throws

        cuda = dict(graph=graph, CUDAGraph=mock.Mock(), graph_pool_handle=mock.Mock(), set_stream=streams.append)
        with mock.patch.multiple(torch.cuda, current_stream=lambda: streams[-1], current_device=lambda: 0, **cuda):
            self.assertRaises(RuntimeError, Memory().record, failing, torch.zeros(1), (), ())
        self.assertEqual(streams[-1], 'default')

    def test_a_capture_that_breaks_leaves_a_pool_for_the_next_one(self) -> None:
        with Allocator() as card:
            memory = Memory()
            first = memory.record(torch.neg, torch.zeros(1), (), ())
            self.assertEqual(card.pools, 1)
            # One that fails in order leaves its pool as it is.
            self.assertRaises(RuntimeError, memory.record, failing, torch.zeros(1), (), ())
            memory.record(torch.neg, torch.zeros(1), (), ())
            self.assertEqual(card.pools, 1)
            card.breaks = True
            self.assertRaises(RuntimeError, memory.record, torch.neg, torch.zeros(1), (), ())
            self.assertEqual(card.recording, set())
            card.breaks = False
            memory.record(torch.neg, torch.zeros(1), (), ())
            self.assertEqual(card.pools, 2)
            del first

    def test_a_pool_outlives_its_last_record(self) -> None:
        with Allocator() as card:
            memory = Memory()
            record = memory.record(torch.neg, torch.zeros(1), (), ())
            self.assertEqual(len(card.graphs), 2)
            del record
            gc.collect()
            self.assertEqual(len(card.graphs), 1)

    def test_what_graphs_have_taken_is_not_free(self) -> None:
        segments = [
            {'total_size': 100, 'allocated_size': 30, 'segment_pool_id': (0, 0)},
            {'total_size': 50, 'allocated_size': 10, 'segment_pool_id': (0, 1)},
        ]
        cuda = dict(memory_snapshot=lambda: segments, mem_get_info=lambda: (1000, 5000))
        with mock.patch.multiple(torch.cuda, **cuda):
            self.assertEqual(Memory().free(), 1070)

    def test_a_cache_takes_its_share_of_free_memory_and_grows_when_there_is_more(self) -> None:
        memory, base = Rerun(), decoder()
        sampler = Sampler(on_card(memory), base, 64, None, lambda *_: None)
        memory.restored = lambda: list(sampler._state.values())
        sampler.load(0, 0, None)
        cache, slots = sampler._cache, []
        for total in (32, 80, 256):  # slots that there is memory for; a cache takes half of it
            taken = 256 * cache.bytes_of_position
            free = mock.patch.object(memory, 'free', lambda total=total, taken=taken: (total - cache.slots) * taken)
            for i in range(40):
                sampler.submit(*request(100 * total + i, np.arange(20, dtype=np.int32)), 0)
            ended = 0
            with free:
                while sampler.busy:
                    ended += len(sampler.step())
            self.assertEqual(ended, 40)
            slots.append(cache.slots)
        self.assertEqual(slots, [16, 40, 64])

    def test_answers_are_those_of_the_sampler_that_records_nothing(self) -> None:
        def answers(memory: Memory | None) -> dict[int, tuple[list[int], list[float]]]:
            base = decoder(convolution={'taps': 3, 'layers': [1]})
            sampler = Sampler(on_card(memory), base, 16, SETTINGS, lambda *_: None)
            for number in (1, 2):
                sampler.load(number, 0, adapted(base, number).trained.tensors)
            random, found = np.random.default_rng(5), {}
            for turn in range(5):
                for i in range(6):
                    prompt = random.integers(0, 300, 20 + i).astype(np.int32)
                    more = {'topP': 0.7} if turn == 4 else {}
                    sampler.submit(*request(10 * turn + i, prompt, **more), 1 + i % 2)
                while sampler.busy:
                    found.update({one.id: (one.tokens, one.logprobs) for one in sampler.step()})
            return found

        memory = Unmeasured()
        with Card() as card:
            wanted, found = answers(None), answers(memory)
        self.assertEqual(len(wanted), 30)
        self.assertEqual({id: tokens for id, (tokens, _) in wanted.items()}, {i: one[0] for i, one in found.items()})
        apart = [abs(a - b) for id in wanted for a, b in zip(wanted[id][1], found[id][1], strict=True)]
        self.assertLess(max(apart), 1e-5)
        self.assertEqual(memory.refused, 0)
        self.assertGreater(card.replays, 20)


if __name__ == '__main__':
    unittest.main()
