"""What the headers of messages hold, with the names of the other side (src/torch), and refusals. Of classes with
`total=False` some names may be missing."""

from __future__ import annotations

from typing import Any, TypedDict

DecoderJson = dict[str, Any]
"""`DecoderConfig` of src/contract/architecture.ts; `Config.of` reads it."""


class AdapterJson(TypedDict):
    rank: int
    alpha: float
    targets: list[str]


class Shape(TypedDict, total=False):
    """What a policy is: {base, adapter?}, {config} or {trunk, agents, adapter}."""

    base: int
    config: DecoderJson
    trunk: DecoderJson
    agents: list[str]
    adapter: AdapterJson


class Part(TypedDict):
    """A tensor of a file, and its place in a flat buffer: from number `at` on. `stride` is the width of the matrix that
    holds the transposed tensor as a block of its columns; None if the order is the same."""

    path: str
    offset: int
    dtype: str
    shape: list[int]
    at: int
    stride: int | None


class Samples(TypedDict, total=False):
    """Their lengths, tokens and masks are arrays."""

    temperatures: list[float]
    agents: list[str]


class Optimizer(TypedDict):
    """The state of an optimiser; its buffers are arrays of these names."""

    type: str
    step: int
    buffers: list[str]


class OptimizerSettings(TypedDict, total=False):
    """Each type has those that it needs."""

    type: str
    learningRate: float
    beta1: float
    beta2: float
    epsilon: float
    weightDecay: float
    momentum: float
    nesterov: bool


class Step(TypedDict, total=False):
    """`OptimStepSettings` of src/contract/optimizer-settings.ts."""

    optimizer: OptimizerSettings
    clipNorm: float
    skipAboveNorm: float
    undoNonFinite: bool
    partRates: dict[str, float]


class Stepped(TypedDict, total=False):
    applied: bool
    why: str
    norm: float


class Wanted(TypedDict, total=False):
    """A request for one sample. Its prompt and the uniform numbers of its draws are arrays."""

    id: int
    policy: int
    version: int | None
    agent: str | None
    temperature: float
    topP: float
    topK: int
    maxTokens: int
    stopTokens: list[int]
    streamed: bool
    promptLength: int
    uniformsLength: int


class Refusal(Exception):
    """A request that the caller made wrongly. `name` is the class of its error there."""

    def __init__(self, message: str, name: str = 'BackendError') -> None:
        super().__init__(message)
        self.name = name
