"""The calls of the engine: models by their numbers, training, publishing, sampling. Names in messages are the
caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .config import AdapterSettings, Config, size_of
from .decoder import Decoder, Ropes
from .files import FilePart, read_parts
from .frames import Arrays, Header, Inbox
from .policy import Base, Batch, Critic, Place, Policy, Sample, Trunk
from .sampler import Request, Result, Sampler
from .trained import OptimizerState, Trained, clipped_step

Answer = tuple[Header, Arrays]
Send = Callable[[Header, Arrays], None]
DTYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


class Refusal(Exception):
    """A request that the caller made wrongly. `name` is the class of its error there."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass
class Resident:
    """A policy in the engine."""

    id: int
    name: str
    policy: Policy
    dtype: torch.dtype
    base: Base | None
    shape: dict[str, Any]
    next_version: int = 0
    samplers: dict[int, Sampler] = field(default_factory=dict)
    """By the versions that can be sampled, the oldest first."""
    spare: list[Sampler] = field(default_factory=list)
    """Samplers of whole models whose versions are kept no longer; their memory serves later versions."""

    @property
    def published(self) -> list[int]:
        return list(self.samplers)

    def plays(self, version: int) -> bool:
        return any(self.samplers[version].plays(key) for key in self.keys(version))

    @property
    def agents(self) -> tuple[str, ...]:
        return self.policy.agents if isinstance(self.policy, Trunk) else ()

    def key(self, version: int, agent: str) -> Hashable:
        return self.id, version, agent

    def keys(self, version: int) -> list[Hashable]:
        """The names of a version in its sampler: its own, and one for each agent with an adapter."""
        return [self.key(version, agent) for agent in ('', *self.agents)]


class Engine:
    def __init__(self, inbox: Inbox, send: Send, place: Place, slots: int) -> None:
        self.inbox, self.send, self.place, self.slots = inbox, send, place, slots
        self.bases: dict[int, tuple[Config, Ropes, Tensor | None]] = {}
        self.hashes: dict[int, str | list[FilePart]] = {}
        self.base_models: dict[tuple[int, torch.dtype], Base] = {}
        self.policies: dict[int, Resident] = {}
        self.critics: dict[int, Critic] = {}
        self.shared_samplers: dict[Hashable, Sampler] = {}
        self._streamed: list[tuple[int, int]] = []

    # Models

    def create_base(self, arrays: Arrays, id: int, config: Header, files: list[Header] | None = None) -> Answer:
        """A model that does not train: from the array `weights`, or from parts of files."""
        shape = Config.of(config)
        parts = [FilePart(**part) for part in files or []]
        flat = read_parts(parts, size_of(shape.shapes())) if parts else torch.from_numpy(arrays['weights'].copy())
        self.bases[id] = shape, self._ropes(shape, arrays), flat
        # Products may be in a narrower number type than the weights are, and the hash is that of the weights.
        self.hashes[id] = parts or hash_of(flat)
        return {}, {}

    def base_hash(self, arrays: Arrays, id: int) -> Answer:
        """SHA-256 of a base's weights as float32 in the order of the flat buffer."""
        known = self.hashes[id]
        if not isinstance(known, str):
            known = self.hashes[id] = hash_of(read_parts(known, size_of(self.bases[id][0].shapes())))
        return {'hash': known}, {}

    def _ropes(self, config: Config, arrays: Arrays) -> Ropes:
        return Ropes(config, arrays['frequencies'], arrays.get('local'), self.place.device)

    def _base(self, id: int, dtype: torch.dtype) -> Base:
        """The base in the number type of a policy's products."""
        if (id, dtype) not in self.base_models:
            config, ropes, flat = self.bases[id]
            if flat is None:  # another number type came first, and has the values rounded to its own
                known = next(base for (other, _), base in self.base_models.items() if other == id)
                flat = torch.from_numpy(known.flat())
            self.base_models[id, dtype] = Base(config, flat, ropes, self.place, dtype)
            self.bases[id] = config, ropes, None
        return self.base_models[id, dtype]

    def create_policy(self, arrays: Arrays, id: int, name: str, shape: Header, precision: str) -> Answer:
        """`shape`: {base, adapter?}, {config} or {trunk, agents, adapter}; the array `flat` has the weights that
        train."""
        policy, base = self._model(shape, arrays, DTYPES[precision])
        self.policies[id] = Resident(id, name, policy, DTYPES[precision], base, shape)
        return {}, {}

    def _model(self, shape: Header, arrays: Arrays, dtype: torch.dtype) -> tuple[Policy, Base | None]:
        place = self.place
        if 'base' in shape:
            base = self._base(shape['base'], dtype)
            if shape.get('adapter') is None:
                return Policy(place, base.decoder, None), base
            settings = AdapterSettings.of(shape['adapter'])
            return Policy(
                place, base.decoder, Trained(self._flat(arrays), settings.shapes(base.config)), settings
            ), base
        config = Config.of(shape['trunk'] if 'trunk' in shape else shape['config'])
        ropes = self._ropes(config, arrays)
        if 'trunk' in shape:
            settings = AdapterSettings.of(shape['adapter'])
            return Trunk(place, config, ropes, dtype, self._flat(arrays), shape['agents'], settings), None
        trained = Trained(self._flat(arrays), config.shapes())
        return Policy(place, Decoder(config, trained.tensors, ropes, dtype, place.pieces), trained), None

    def _flat(self, arrays: Arrays) -> Tensor:
        return torch.from_numpy(arrays['flat'].copy()).to(self.place.device)

    def copy_weights(self, arrays: Arrays, source: int, target: int) -> Answer:
        one, other = self._of(source), self._of(target)
        if one.shape != other.shape:
            raise Refusal(
                'BackendError', f"the weights of policy '{one.name}' do not fit '{other.name}': their models differ"
            )
        self._trained(other).load(self._trained(one).flat, None)
        return {}, {}

    def set_state(
        self, arrays: Arrays, id: int, optimizer: Header | None = None, next_version: int | None = None
    ) -> Answer:
        resident = self._of(id)
        self._load(self._trained(resident), arrays, optimizer)
        if next_version is not None:
            resident.next_version = next_version
        return {}, {}

    def _load(self, trained: Trained, arrays: Arrays, optimizer: Header | None, of: str = '') -> None:
        state = optimizer and OptimizerState(
            optimizer['type'],
            optimizer['step'],
            {name: torch.from_numpy(arrays[of + name].copy()).to(self.place.device) for name in optimizer['buffers']},
        )
        trained.load(torch.from_numpy(arrays[of + 'weights'].copy()), state or None)

    def state(self, arrays: Arrays, id: int, optimizer: bool) -> Answer:
        """The weights, and with `optimizer` its state. @throws NonFinite naming policy and tensor"""
        resident = self._of(id)
        trained = resident.policy.trained
        if trained is None:
            return {}, {'weights': resident.base.flat() if resident.base else np.zeros(0, np.float32)}
        trained.require_finite(optimizer)
        header, out = {}, {'weights': trained.flat.cpu().numpy()}
        if optimizer:
            header = self._optimizer(trained, out)
            header['version'] = resident.published[-1] if resident.published else 0
        return header, out

    @staticmethod
    def _optimizer(trained: Trained, out: Arrays, of: str = '') -> Header:
        state = trained.optimizer
        buffers = state.buffers if state.step > 0 else {}
        out.update({of + name: buffer.cpu().numpy() for name, buffer in buffers.items()})
        return {'type': state.type, 'step': state.step, 'buffers': list(buffers)}

    def base_flat(self, arrays: Arrays, id: int) -> Answer:
        _, _, flat = self.bases[id]
        if flat is not None:
            return {}, {'weights': flat.float().numpy()}
        return {}, {'weights': next(base for (own, _), base in self.base_models.items() if own == id).flat()}

    def drop(self, arrays: Arrays, id: int) -> Answer:
        resident = self._of(id)
        if any(resident.plays(version) for version in resident.published):
            raise Refusal('ArgumentError', 'a policy that is playing cannot be unloaded')
        for version in resident.published:
            self._unload(resident, version)
        del self.policies[id]
        return {}, {}

    # Training

    def score(self, arrays: Arrays, id: int, samples: Header) -> Answer:
        return {}, {'logprobs': joined(self._of(id).policy.score(samples_of(samples, arrays)))}

    def logits(self, arrays: Arrays, id: int) -> Answer:
        return {}, {'logits': self._of(id).policy.logits(arrays['tokens'])}

    def accumulate(self, arrays: Arrays, id: int, samples: Header) -> Answer:
        """Sends the log-probs and entropies of each micro-batch, and receives the slopes of the loss."""
        policy = self._of(id).policy

        def upstream(batch: Batch, logprobs: np.ndarray, entropies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            given = self._exchange(batch, {'logprobs': logprobs, 'entropies': entropies})
            return given['logprobs'], given['entropies']

        rows, norm = policy.accumulate(samples_of(samples, arrays), upstream)
        # The norm may be NaN, which JSON has no word for.
        return {'rows': policy.rows_computed}, {'norm': np.array([norm]), 'logprobs': joined(rows)}

    def _exchange(self, batch: Batch, scores: Arrays) -> Arrays:
        places = np.concatenate([*batch.written, np.zeros(0, np.int64)]).astype(np.int32)
        header = {'type': 'scores', 'indices': batch.samples, 'counts': [len(one) for one in batch.written]}
        self.send(header, {'places': places, **scores})
        return self.inbox.until('slopes')[1]

    def optim_step(self, arrays: Arrays, id: int, settings: Header) -> Answer:
        resident = self._of(id)
        return clipped_step([self._trained(resident)], settings, resident.policy.slices(settings.get('partRates'))), {}

    def discard(self, arrays: Arrays, id: int) -> Answer:
        self._trained(self._of(id)).discard()
        return {}, {}

    def reset_optimizer(self, arrays: Arrays, id: int) -> Answer:
        trained = self._trained(self._of(id))
        trained.optimizer = OptimizerState(trained.optimizer.type)
        return {}, {}

    # Critics

    def create_critic(self, arrays: Arrays, id: int, policy: int) -> Answer:
        """A critic of a policy's shape and present weights, whose head is 0."""
        like = self._of(policy)
        if isinstance(like.policy, Trunk):
            raise Refusal('BackendError', f"policy '{like.name}' has adapters of agents, so it has no critic")
        flat = self._trained(like).flat.clone()
        decoder = like.policy.decoder
        trained = Trained(flat, self._trained(like).shapes)
        if like.base is None:
            decoder = Decoder(decoder.config, trained.tensors, decoder.ropes, decoder.dtype, decoder.pieces)
        own = Policy(self.place, decoder, trained, like.policy.settings)
        self.critics[id] = Critic(own, torch.zeros(decoder.config.width + 1, device=self.place.device))
        return {}, {}

    def critic_values(self, arrays: Arrays, id: int, samples: Header) -> Answer:
        return {}, {'values': joined(self.critics[id].values(samples_of(samples, arrays)))}

    def critic_accumulate(self, arrays: Arrays, id: int, samples: Header) -> Answer:
        def upstream(batch: Batch, values: np.ndarray) -> np.ndarray:
            return self._exchange(batch, {'values': values})['values']

        self.critics[id].accumulate(samples_of(samples, arrays), upstream)
        return {}, {}

    def critic_step(self, arrays: Arrays, id: int, settings: Header) -> Answer:
        critic = self.critics[id]
        return clipped_step([critic.trunk, critic.head], settings), {}

    def critic_state(self, arrays: Arrays, id: int) -> Answer:
        critic = self.critics[id]
        header, out = {}, {}
        for of, part in (('trunk ', critic.trunk), ('head ', critic.head)):
            part.require_finite(True)
            out[of + 'weights'] = part.flat.cpu().numpy()
            header[of.strip()] = self._optimizer(part, out, of)
        return header, out

    def set_critic(self, arrays: Arrays, id: int, part: str, optimizer: Header | None = None) -> Answer:
        critic = self.critics[id]
        self._load(critic.trunk if part == 'trunk' else critic.head, arrays, optimizer)
        return {}, {}

    # Sampling

    def publish(self, arrays: Arrays, id: int, keep: int) -> Answer:
        """Publishes the present weights as the next version; `keep` versions can be sampled from now on."""
        resident = self._of(id)
        stale = resident.published[: max(0, len(resident.published) - max(1, keep) + 1)]
        if any(resident.plays(version) for version in stale):
            raise Refusal('BackendError', f"policy '{resident.name}' is playing; its weights cannot change now")
        for version in stale:
            self._unload(resident, version)
        version = resident.next_version
        resident.next_version += 1
        sampler = self._sampler(resident)
        policy = resident.policy
        if isinstance(policy, Trunk):
            sampler.load(resident.key(version, ''), version, None)
            for agent in policy.agents:
                sampler.load(resident.key(version, agent), version, policy.adapter(agent))
        else:
            adapter = policy.trained.tensors if policy.settings is not None and policy.trained is not None else None
            sampler.load(resident.key(version, ''), version, adapter)
        resident.samplers[version] = sampler
        return {'version': version}, {}

    def _sampler(self, resident: Resident) -> Sampler:
        """The sampler of a base for all adapters of a shape on it; for a whole model one with a copy of its weights."""
        policy = resident.policy
        if resident.base is not None:
            key = resident.shape['base'], resident.dtype, policy.settings
            if key not in self.shared_samplers:
                self.shared_samplers[key] = self._new_sampler(policy.decoder, policy.settings)
            return self.shared_samplers[key]
        if resident.spare:
            sampler = resident.spare.pop()
        else:
            config, dtype = policy.config, policy.decoder.dtype
            shapes = config.shapes()
            # Matrices are kept in the number type of products, so that a tick need not cast them.
            copies = {
                name: torch.empty_like(policy.decoder.tensors[name], dtype=dtype if len(shape) == 2 else torch.float32)
                for name, shape in shapes
            }
            decoder = Decoder(config, copies, policy.decoder.ropes, dtype, policy.decoder.pieces)
            sampler = self._new_sampler(decoder, policy.settings)
        for name, tensor in sampler.decoder.tensors.items():
            tensor.copy_(policy.decoder.tensors[name].detach())
        return sampler

    def _new_sampler(self, decoder: Decoder, settings: AdapterSettings | None) -> Sampler:
        return Sampler(self.place, decoder, self.slots, settings, lambda id, token: self._streamed.append((id, token)))

    def _unload(self, resident: Resident, version: int) -> None:
        sampler = resident.samplers.pop(version)
        for key in resident.keys(version):
            sampler.unload(key)
        if resident.base is None:
            resident.spare.append(sampler)

    def generate(self, requests: Sequence[Header], arrays: Arrays) -> None:
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

    def _submit(self, one: Header, prompt: np.ndarray, uniforms: np.ndarray) -> None:
        resident = self._of(one['policy'])
        if not resident.published:
            raise Refusal('BackendError', f"policy '{resident.name}' has not been published")
        version = one['version'] if one.get('version') is not None else resident.published[-1]
        if version not in resident.published:
            raise Refusal('BackendError', f"version {version} of policy '{resident.name}' is not kept")
        agent = ''
        if resident.agents:
            agent = one.get('agent') or ''
            if agent not in resident.agents:
                names = ', '.join(resident.agents)
                spoken = agent or 'no agent'
                raise Refusal(
                    'BackendError', f"policy '{resident.name}' has adapters of {names}; the request is of {spoken}"
                )
        config = resident.policy.config
        if not 1 <= len(prompt) < config.context:
            raise Refusal(
                'ArgumentError', f'a prompt of {len(prompt)} tokens leaves no room in a context of {config.context}'
            )
        wrong = prompt[(prompt < 0) | (prompt >= config.vocab_size)]
        if len(wrong):
            raise Refusal('ArgumentError', f'token {wrong[0]} is outside the vocabulary of {config.vocab_size}')
        request = Request(
            one['id'],
            prompt.copy(),
            one['temperature'],
            one['topP'],
            one['topK'],
            one['maxTokens'],
            frozenset(one['stopTokens']),
            uniforms.copy(),
            one['streamed'],
        )
        resident.samplers[version].submit(request, resident.key(version, agent))

    def cancel(self, ids: set[int]) -> None:
        for sampler in self._samplers():
            sampler.cancel(ids)

    def _samplers(self) -> list[Sampler]:
        whole = [sampler for one in self.policies.values() if one.base is None for sampler in one.samplers.values()]
        return [*self.shared_samplers.values(), *whole]

    @property
    def busy(self) -> bool:
        return any(sampler.busy for sampler in self._samplers())

    def tick(self) -> None:
        """One token for every running request of every policy."""
        ended: list[Result] = []
        for sampler in self._samplers():
            if sampler.busy:
                ended += sampler.step()
        if self._streamed:
            self.send({'type': 'streamed', 'tokens': [{'id': id, 'token': token} for id, token in self._streamed]}, {})
            self._streamed = []
        if ended:
            results = [
                {
                    'id': one.request.id,
                    'length': len(one.tokens),
                    'finishReason': one.finish_reason,
                    'policyVersion': one.version,
                }
                for one in ended
            ]
            tokens = np.array([token for one in ended for token in one.tokens], np.int32)
            logprobs = np.array([logprob for one in ended for logprob in one.logprobs], np.float32)
            self.send({'type': 'generated', 'results': results}, {'tokens': tokens, 'logprobs': logprobs})

    # The machine

    def memory(self, arrays: Arrays) -> Answer:
        """Bytes on the card: taken by tensors now and at most, and free."""
        if self.place.device.type != 'cuda':
            return {}, {}
        free, total = torch.cuda.mem_get_info(self.place.device)
        most = torch.cuda.max_memory_allocated(self.place.device)
        return {
            'allocated': torch.cuda.memory_allocated(self.place.device),
            'most': most,
            'free': free,
            'total': total,
        }, {}

    def _of(self, id: int) -> Resident:
        if id not in self.policies:
            raise Refusal('BackendError', f'the engine has no policy of number {id}')
        return self.policies[id]

    @staticmethod
    def _trained(resident: Resident) -> Trained:
        if resident.policy.trained is None:
            raise Refusal('ArgumentError', 'a frozen model has no weights of its own to train')
        return resident.policy.trained

    def call(self, method: str, args: Header, arrays: Arrays) -> Answer:
        return CALLS[method](self, arrays, **args)


CALLS: dict[str, Callable[..., Answer]] = {
    'createBase': Engine.create_base,
    'baseFlat': Engine.base_flat,
    'baseHash': Engine.base_hash,
    'createPolicy': Engine.create_policy,
    'copyWeights': Engine.copy_weights,
    'setState': Engine.set_state,
    'state': Engine.state,
    'drop': Engine.drop,
    'score': Engine.score,
    'logits': Engine.logits,
    'accumulate': Engine.accumulate,
    'optimStep': Engine.optim_step,
    'discard': Engine.discard,
    'resetOptimizer': Engine.reset_optimizer,
    'publish': Engine.publish,
    'createCritic': Engine.create_critic,
    'criticValues': Engine.critic_values,
    'criticAccumulate': Engine.critic_accumulate,
    'criticStep': Engine.critic_step,
    'criticState': Engine.critic_state,
    'setCritic': Engine.set_critic,
    'memory': Engine.memory,
}


def plain(error: BaseException) -> Header:
    """An error as data, with the name of its class on the other side."""
    if isinstance(error, Refusal):
        return {'name': error.name, 'message': str(error)}
    if isinstance(error, torch.OutOfMemoryError):
        return {'name': 'DeviceError', 'reason': 'memory', 'message': f'the device has too little memory: {error}'}
    name = 'NonFiniteError' if type(error).__name__ == 'NonFinite' else 'BackendError'
    return {'name': name, 'message': str(error) or type(error).__name__}


def samples_of(header: Header, arrays: Arrays) -> list[Sample]:
    """Samples whose tokens and masks come one after another. `agents` may be missing."""
    ends = np.cumsum(arrays['lengths'])
    agents = header.get('agents') or [''] * len(ends)
    return [
        Sample(arrays['tokens'][end - length : end], arrays['mask'][end - length : end], temperature, agent)
        for end, length, temperature, agent in zip(ends, arrays['lengths'], header['temperatures'], agents, strict=True)
    ]


def hash_of(flat: Tensor, numbers: int = 2**22) -> str:
    digest = hashlib.sha256()
    for part in flat.split(numbers):
        digest.update(part.float().numpy().data)
    return digest.hexdigest()


def joined(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([*rows, np.zeros(0, np.float32)])
