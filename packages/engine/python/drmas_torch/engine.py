"""The calls of the engine, by the caller's names: models by their numbers, training, publishing, sampling."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .config import AdapterSettings, Config
from .decoder import Decoder, Ropes
from .files import Base
from .frames import Arrays, Header, Inbox
from .messages import DecoderJson, Optimizer, Part, Refusal, Samples, Shape, Step, Wanted
from .place import Place
from .policy import Batch, Critic, Policy, Sample
from .sampler import Request, Sampler
from .trained import NonFinite, OptimizerState, Trained, clipped_step

Answer = tuple[Any, Arrays]
"""The value of an answer, which is a JSON object, and its arrays."""
Send = Callable[[Header, Arrays], None]
DTYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


@dataclass
class Resident:
    """A policy in the engine."""

    id: int
    name: str
    policy: Policy
    shape: Shape
    next_version: int = 0
    samplers: dict[int, Sampler] = field(default_factory=dict)
    """By the versions that can be sampled, the oldest first."""
    spare: list[Sampler] = field(default_factory=list)
    """Samplers of whole models whose versions are kept no longer; their memory serves later versions."""

    def plays(self, version: int) -> bool:
        return any(self.samplers[version].plays(self.key(version, agent)) for agent in self.voices)

    @property
    def voices(self) -> tuple[str, ...]:
        """What can be sampled: the model itself, and each agent with an adapter of its own."""
        return '', *self.policy.agents

    def key(self, version: int, agent: str) -> Hashable:
        """The name of a version in its sampler."""
        return self.id, version, agent


class Engine:
    """Its methods `on_...` are what the other side calls."""

    def __init__(self, inbox: Inbox, send: Send, place: Place, slots: int) -> None:
        self.inbox, self.send, self.place, self.slots = inbox, send, place, slots
        self.bases: dict[int, Base] = {}
        self.policies: dict[int, Resident] = {}
        self.critics: dict[int, Critic] = {}
        self.shared_samplers: dict[Hashable, Sampler] = {}
        self._streamed: list[tuple[int, int]] = []
        self._slopes: list[Arrays] = []
        """What the other side has answered within the present call, and how much of it is in use."""
        self._used = 0

    def call(self, method: str, args: dict[str, Any], arrays: Arrays) -> Answer:
        called: Callable[..., Answer | None] = getattr(self, f'on_{method}')
        self._slopes = []

        def work() -> Answer:
            self._used = 0
            return called(arrays, **args) or ({}, {})

        return self._with_room(work)

    def _with_room(self, work: Callable[[], Any]) -> Any:
        """Work that finds no memory has changed nothing, and runs again when caches and records have made room."""
        try:
            return work()
        except Exception as error:
            if not out_of_memory(error):
                raise
        # Here the work that failed has let its tensors go.
        for sampler in self._samplers():
            sampler.pause()
        if self.place.memory is not None:
            self.place.memory.give_back()
        return work()

    def _ask(self, header: Header, arrays: Arrays) -> Arrays:
        """The other side's answer to a question. A call that runs again asks none twice."""
        if self._used == len(self._slopes):
            self.send(header, arrays)
            answer, slopes = self.inbox.until('slopes')
            if answer.get('failed'):
                raise Refusal('the loss failed')
            self._slopes.append(slopes)
        self._used += 1
        return self._slopes[self._used - 1]

    # Models

    def on_create_base(self, arrays: Arrays, id: int, config: DecoderJson, files: list[Part] | None = None) -> None:
        """A model that does not train: from the array `weights`, or from parts of files."""
        read = Config.of(config)
        ropes = self._ropes(read, arrays)
        self.bases[id] = Base(read, ropes, self.place.pieces, self.place.device, files or arrays['weights'])

    def on_base_hash(self, arrays: Arrays, id: int) -> Answer:
        return {'hash': self.bases[id].hash()}, {}

    def on_base_flat(self, arrays: Arrays, id: int) -> Answer:
        return {}, {'weights': self.bases[id].flat()}

    def on_create_policy(self, arrays: Arrays, id: int, name: str, shape: Shape, precision: str) -> None:
        """The array `flat` has the weights that train."""
        self.policies[id] = Resident(id, name, self._created(shape, arrays, DTYPES[precision]), shape)

    def _created(self, shape: Shape, arrays: Arrays, dtype: torch.dtype) -> Policy:
        settings = AdapterSettings.of(shape['adapter']) if shape.get('adapter') else None
        flat = torch.from_numpy(arrays['flat'].copy()).to(self.place.device)
        if 'base' in shape:
            decoder = self.bases[shape['base']].decoder(dtype)
            trained = Trained(flat, settings.shapes(decoder.config)) if settings is not None else None
            return Policy(self.place, decoder, trained, settings)
        config = Config.of(shape['trunk'] if 'trunk' in shape else shape['config'])
        agents, shapes = shape.get('agents', []), config.shapes()
        if settings is not None:
            shapes += [(f'{agent} {name}', size) for agent in agents for name, size in settings.shapes(config)]
        trained = Trained(flat, shapes)
        decoder = Decoder(config, trained.tensors, self._ropes(config, arrays), dtype, self.place.pieces)
        return Policy(self.place, decoder, trained, settings, agents)

    def _ropes(self, config: Config, arrays: Arrays) -> Ropes:
        return Ropes(config, arrays['frequencies'], arrays.get('local'), self.place.device)

    def on_copy_weights(self, arrays: Arrays, source: int, target: int) -> None:
        one, other = self._of(source), self._of(target)
        if one.shape != other.shape:
            raise Refusal(f"the weights of policy '{one.name}' do not fit '{other.name}': their models differ")
        other.policy.trained.load(one.policy.trained.flat, None)

    def _model(self, id: int) -> Policy:
        return self.critics[id] if id in self.critics else self._of(id).policy

    def on_set_state(
        self,
        arrays: Arrays,
        id: int,
        part: int = 0,
        optimizer: Optimizer | None = None,
        next_version: int | None = None,
    ) -> None:
        """`part`: its number among those that a model trains."""
        state = None
        if optimizer is not None:
            buffers = {name: torch.from_numpy(arrays[name].copy()) for name in optimizer['buffers']}
            on_device = {name: buffer.to(self.place.device) for name, buffer in buffers.items()}
            state = OptimizerState(optimizer['type'], optimizer['step'], on_device)
        self._model(id).parts[part].load(torch.from_numpy(arrays['weights']), state)
        if next_version is not None:
            self._of(id).next_version = next_version

    def on_state(self, arrays: Arrays, id: int, optimizer: bool) -> Answer:
        """Of each part of a model the weights, and with `optimizer` its state; arrays have the part's number before
        their names. @throws NonFinite naming the tensor"""
        parts: list[Optimizer] = []
        out: Arrays = {}
        for i, part in enumerate(self._model(id).parts):
            part.require_finite(optimizer)
            out[f'{i} weights'] = part.flat.cpu().numpy()
            state = part.optimizer
            buffers = state.buffers if optimizer and state.step > 0 else {}
            out.update({f'{i} {name}': buffer.cpu().numpy() for name, buffer in buffers.items()})
            parts.append({'type': state.type, 'step': state.step, 'buffers': list(buffers)})
        published = self.policies[id].samplers if id in self.policies else ()
        return {'parts': parts, 'version': max(published, default=0)}, out

    def on_drop(self, arrays: Arrays, id: int) -> None:
        resident = self._of(id)
        if any(resident.plays(version) for version in resident.samplers):
            raise Refusal('a policy that is playing cannot be unloaded', 'ArgumentError')
        for version in list(resident.samplers):
            self._unload(resident, version)
        del self.policies[id], resident
        used = [sampler for one in self.policies.values() for sampler in one.samplers.values()]
        self.shared_samplers = {key: one for key, one in self.shared_samplers.items() if one in used}

    # Training

    def on_score(self, arrays: Arrays, id: int, samples: Samples) -> Answer:
        return {}, {'scores': joined(self._model(id).score(samples_of(samples, arrays)))}

    def on_logits(self, arrays: Arrays, id: int) -> Answer:
        return {}, {'logits': self._of(id).policy.logits(arrays['tokens'])}

    def on_accumulate(self, arrays: Arrays, id: int, samples: Samples) -> Answer:
        """Sends the scores of each micro-batch, and receives the slopes of the loss."""
        model = self._model(id)

        def upstream(batch: Batch, *scores: np.ndarray) -> list[np.ndarray]:
            header = {'type': 'scores', 'indices': batch.samples, 'counts': [len(one) for one in batch.written]}
            places = np.concatenate(batch.written).astype(np.int32)
            slopes = self._ask(header, {'places': places, **dict(zip(model.scored, scores, strict=True))})
            return [slopes[name] for name in model.scored]

        rows, norm = model.accumulate(samples_of(samples, arrays), upstream)
        # The norm may be NaN, which JSON has no word for.
        return {}, {'norm': np.array([norm]), 'scores': joined(rows)}

    def on_optim_step(self, arrays: Arrays, id: int, settings: Step) -> Answer:
        model = self._model(id)
        return clipped_step(model.parts, settings, model.slices(settings.get('partRates'))), {}

    def on_discard(self, arrays: Arrays, id: int) -> None:
        self._of(id).policy.trained.discard()

    def on_reset_optimizer(self, arrays: Arrays, id: int) -> None:
        trained = self._of(id).policy.trained
        trained.optimizer = OptimizerState(trained.optimizer.type)

    # Critics

    def on_create_critic(self, arrays: Arrays, id: int, policy: int) -> None:
        """A critic of a policy's shape and present weights, whose head is 0."""
        resident = self._of(policy)
        like = resident.policy
        if like.agents:
            raise Refusal(f"policy '{resident.name}' has adapters of agents, so it has no critic")
        trained, decoder = Trained(like.trained.flat.clone(), like.trained.shapes), like.decoder
        if 'base' not in resident.shape:
            decoder = Decoder(decoder.config, trained.tensors, decoder.ropes, decoder.dtype, decoder.pieces)
        head = torch.zeros(decoder.config.width + 1, device=self.place.device)
        self.critics[id] = Critic(self.place, decoder, trained, like.settings, head)

    # Sampling

    def on_publish(self, arrays: Arrays, id: int, keep: int) -> Answer:
        """Publishes the present weights as the next version; `keep` versions can be sampled from now on."""
        resident = self._of(id)
        stale = list(resident.samplers)[: max(0, len(resident.samplers) - max(1, keep) + 1)]
        if any(resident.plays(version) for version in stale):
            raise Refusal(f"policy '{resident.name}' is playing; its weights cannot change now")
        for version in stale:
            self._unload(resident, version)
        version, sampler = resident.next_version, self._sampler(resident)
        for agent in resident.voices:
            sampler.load(resident.key(version, agent), version, resident.policy.adapters.get(agent))
        resident.next_version += 1
        resident.samplers[version] = sampler
        resident.spare = [one for one in resident.spare if one is not sampler]
        return {'version': version}, {}

    def _sampler(self, resident: Resident) -> Sampler:
        """The sampler of a base for all adapters of a shape on it; for a whole model one with a copy of its weights."""
        policy, of = resident.policy, resident.policy.decoder
        if 'base' in resident.shape:
            key = resident.shape['base'], of.dtype, policy.settings
            if key not in self.shared_samplers:
                self.shared_samplers[key] = self._new_sampler(of, policy.settings)
            return self.shared_samplers[key]
        if not resident.spare:
            # Matrices are kept in the number type of products, so that a tick need not cast them.
            copies = {
                name: torch.empty_like(of.tensors[name], dtype=of.dtype if len(shape) == 2 else torch.float32)
                for name, shape in of.config.shapes()
            }
            alike = Decoder(of.config, copies, of.ropes, of.dtype, of.pieces)
            resident.spare.append(self._new_sampler(alike, policy.settings))
        sampler = resident.spare[-1]
        for name, tensor in sampler.decoder.tensors.items():
            tensor.copy_(of.tensors[name].detach())
        return sampler

    def _new_sampler(self, decoder: Decoder, settings: AdapterSettings | None) -> Sampler:
        return Sampler(self.place, decoder, self.slots, settings, lambda id, token: self._streamed.append((id, token)))

    def _unload(self, resident: Resident, version: int) -> None:
        sampler = resident.samplers.pop(version)
        for agent in resident.voices:
            sampler.unload(resident.key(version, agent))
        if 'base' not in resident.shape:
            resident.spare.append(sampler)

    def generate(self, requests: Sequence[Wanted], arrays: Arrays) -> None:
        """Puts requests in their samplers' queues; their prompts and uniforms come one after another."""
        at, drawn = 0, 0
        for one in requests:
            prompt = arrays['prompts'][at : at + one['promptLength']]
            uniforms = arrays['uniforms'][drawn : drawn + one['uniformsLength']]
            at, drawn = at + one['promptLength'], drawn + one['uniformsLength']
            try:
                self._submit(one, prompt, uniforms)
            except (Refusal, ValueError) as error:
                self.send({'type': 'refused', 'id': one['id'], 'error': plain(error)}, {})

    def _submit(self, one: Wanted, prompt: np.ndarray, uniforms: np.ndarray) -> None:
        resident = self._of(one['policy'])
        name, config, agents = resident.name, resident.policy.config, resident.policy.agents
        if not resident.samplers:
            raise Refusal(f"policy '{name}' has not been published")
        given = one.get('version')
        version = given if given is not None else list(resident.samplers)[-1]
        if version not in resident.samplers:
            raise Refusal(f"version {version} of policy '{name}' is not kept")
        agent = (agents and one.get('agent')) or ''
        if agents and agent not in agents:
            spoken = agent or 'no agent'
            raise Refusal(f"policy '{name}' has adapters of {', '.join(agents)}; the request is of {spoken}")
        if not 1 <= len(prompt) < config.context:
            raise Refusal(
                f'a prompt of {len(prompt)} tokens leaves no room in a context of {config.context}', 'ArgumentError'
            )
        wrong = prompt[(prompt < 0) | (prompt >= config.vocab_size)]
        if len(wrong):
            raise Refusal(f'token {wrong[0]} is outside the vocabulary of {config.vocab_size}', 'ArgumentError')
        resident.samplers[version].submit(one, prompt.copy(), uniforms.copy(), resident.key(version, agent))

    def cancel(self, ids: set[int]) -> None:
        for sampler in self._samplers():
            sampler.cancel(ids)

    def _samplers(self) -> list[Sampler]:
        whole = ([*one.samplers.values(), *one.spare] for one in self.policies.values() if 'base' not in one.shape)
        return [*self.shared_samplers.values(), *(sampler for samplers in whole for sampler in samplers)]

    @property
    def busy(self) -> bool:
        return any(sampler.busy for sampler in self._samplers())

    def tick(self) -> None:
        """One token for every running request of every policy. If a sampler fails, for want of memory, its requests are
        refused; the engine and its weights stay."""
        ended: list[Request] = []
        refused: list[Header] = []
        for sampler in self._samplers():
            try:
                if sampler.busy:
                    ended += self._with_room(sampler.step)
            except Exception as error:
                if not out_of_memory(error):
                    traceback.print_exc()
                refused += [{'type': 'refused', 'id': id, 'error': plain(error)} for id in sampler.clear()]
        if self._streamed:
            self.send({'type': 'streamed', 'tokens': [{'id': id, 'token': token} for id, token in self._streamed]}, {})
            self._streamed = []
        if ended:
            results = [
                {
                    'id': one.id,
                    'length': len(one.tokens),
                    'finishReason': one.finish_reason,
                    'policyVersion': one.version.number,
                }
                for one in ended
            ]
            tokens = np.array([token for one in ended for token in one.tokens], np.int32)
            logprobs = np.array([logprob for one in ended for logprob in one.logprobs], np.float32)
            self.send({'type': 'generated', 'results': results}, {'tokens': tokens, 'logprobs': logprobs})
        for header in refused:
            self.send(header, {})

    def _of(self, id: int) -> Resident:
        if id not in self.policies:
            raise Refusal(f'the engine has no policy of number {id}')
        return self.policies[id]


def out_of_memory(error: BaseException) -> bool:
    """Only PyTorch's allocator of CUDA has an error of its own: not those of processors and Macs, nor CUDA itself."""
    words = 'DefaultCPUAllocator', 'out of memory', 'CUBLAS_STATUS_ALLOC_FAILED'
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(each in str(error) for each in words)


def plain(error: BaseException) -> Header:
    """An error as data, with the name of its class on the other side."""
    message = first_line(str(error)) or type(error).__name__
    if out_of_memory(error):
        return {'name': 'DeviceError', 'reason': 'memory', 'message': f'the device has too little memory: {message}'}
    name = error.name if isinstance(error, Refusal) else 'BackendError'
    name = 'NonFiniteError' if isinstance(error, NonFinite) else name
    return {'name': name, 'message': message}


def first_line(message: str) -> str:
    """Of an error. Those of CUDA and of compilers go on with advice for developers."""
    line, _, rest = message.strip().partition('\n')
    return f'{line} {first_line(rest)}' if line.endswith(':') else line


def samples_of(header: Samples, arrays: Arrays) -> list[Sample]:
    """Samples whose tokens and masks come one after another. `agents` may be missing."""
    ends = np.cumsum(arrays['lengths'])
    agents = header.get('agents') or [''] * len(ends)
    return [
        Sample(arrays['tokens'][end - length : end], arrays['mask'][end - length : end], temperature, agent)
        for end, length, temperature, agent in zip(ends, arrays['lengths'], header['temperatures'], agents, strict=True)
    ]


def joined(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([*rows, np.zeros(0, np.float32)])
