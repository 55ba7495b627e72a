"""Bills a session call by call with the cache simulator, without building each request anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from leporello.messages import Message, is_instruction
from leporello.models import model_facts
from leporello.providers.base import ModelRequest
from leporello.providers.cache_sim import SHORT, CacheBlock, CacheSim, blocks_of
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

TAIL_MARKS = 3


@dataclass(slots=True)
class Meter:
    """What the calls of one session cost; cache marks stand on the system prompt and the last three messages."""

    model: str
    total: CanonicalUsage = field(default_factory=CanonicalUsage)
    calls: int = 0
    largest: int = 0
    counter: TokenCounter = field(init=False)
    sim: CacheSim = field(init=False)
    _blocks: dict[int, tuple[Message, list[CacheBlock]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counter = TokenCounter.for_model(self.model)
        self.sim = CacheSim(model_facts(self.model).cache)

    def call(self, messages: Sequence[Message], now: float) -> CanonicalUsage:
        """Send these messages at a time in seconds; the usage of that one call, output aside."""
        marked = {index for index, message in enumerate(messages) if is_instruction(message)}
        marked |= set(range(max(0, len(messages) - TAIL_MARKS), len(messages)))
        blocks: list[CacheBlock] = []
        for index, message in enumerate(messages):
            own = self._of(message)
            blocks.extend(own[:-1])
            blocks.append(replace(own[-1], mark=SHORT) if index in marked else own[-1])
        usage = self.sim.bill(blocks, now).usage()
        self.total += usage
        self.calls += 1
        self.largest = max(self.largest, usage.prompt_tokens)
        return usage

    def _of(self, message: Message) -> list[CacheBlock]:
        # By identity: the messages of a session are never changed, and hashing them again would cost most of all.
        known = self._blocks.get(id(message))
        if known is None or known[0] is not message:
            known = (message, blocks_of(ModelRequest(self.model, [message]), self.counter))
            self._blocks[id(message)] = known
        return known[1]
