"""What the headers of messages hold, with the names of the other side (src/torch), and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing import NotRequired

DecoderJson = dict[str, Any]
"""`DecoderConfig` of src/contract/architecture.ts; `Config.of` reads it."""


class AdapterJson(TypedDict):
    rank: int
    alpha: float
    targets: list[str]


class Shape(TypedDict):
    """What a policy is: {base, adapter?}, {config} or {trunk, agents, adapter}."""

    base: NotRequired[int]
    config: NotRequired[DecoderJson]
    trunk: NotRequired[DecoderJson]
    agents: NotRequired[list[str]]
    adapter: NotRequired[AdapterJson]


class Part(TypedDict):
    """A tensor of a file, and its place in a flat buffer: from number `at` on. `stride` is the width of the matrix that
    holds the transposed tensor as a block of its columns; None if the order is the same."""

    path: str
    offset: int
    dtype: str
    shape: list[int]
    at: int
    stride: int | None


class Samples(TypedDict):
    """Their lengths, tokens and masks are arrays."""

    temperatures: list[float]
    agents: NotRequired[list[str]]


class Optimizer(TypedDict):
    """The state of an optimiser; its buffers are arrays of these names."""

    type: str
    step: int
    buffers: list[str]


class Rates(TypedDict):
    trunk: float
    adapters: float


class OptimizerSettings(TypedDict):
    """Each type has those that it needs."""

    type: str
    learningRate: float
    beta1: NotRequired[float]
    beta2: NotRequired[float]
    epsilon: NotRequired[float]
    weightDecay: NotRequired[float]
    momentum: NotRequired[float]
    nesterov: NotRequired[bool]


class Step(TypedDict):
    """`OptimStepSettings` of src/contract/optimizer-settings.ts."""

    optimizer: OptimizerSettings
    clipNorm: float
    skipAboveNorm: NotRequired[float]
    undoNonFinite: NotRequired[bool]
    partRates: NotRequired[Rates]


class Stepped(TypedDict):
    applied: bool
    why: NotRequired[str]
    norm: NotRequired[float]


class Wanted(TypedDict):
    """A request for one sample. Its prompt and the uniform numbers of its draws are arrays."""

    id: int
    policy: int
    version: NotRequired[int | None]
    agent: NotRequired[str | None]
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
