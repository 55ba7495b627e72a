"""`compress`: one call, no store, no model, no set-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.deprecation import renamed_parameter
from leporello.engines import make_builtin
from leporello.engines.lcm import LcmSettings
from leporello.errors import InputError
from leporello.events import CompactionReport
from leporello.messages import Message, Messages, encode_json
from leporello.models import Limits, resolve_limits
from leporello.models.limits import PROTECT_LAST_N, TARGET_RATIO, THRESHOLD
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter
from leporello.turns import check_roles

DEFAULT_WINDOW = 128_000


class Compressed(list[Message]):
    """The messages to go on with: a plain list, with the report of what was done as `report`."""

    def __init__(self, messages: Sequence[Message], report: CompactionReport) -> None:
        super().__init__(messages)
        self.report = report

    @property
    def messages(self) -> list[Message]:
        """The same messages as an ordinary list."""
        return list(self)


@renamed_parameter("narrator", "summariser")
def compress(
    messages: Messages,
    *,
    window: int | None = None,
    model: str | None = None,
    focus: str = "",
    tools: Sequence[dict[str, Any]] = (),
    system: str = "",
    engine: str = "compressor",
    summariser: Summariser | None = None,
    threshold: float = THRESHOLD,
    target_ratio: float = TARGET_RATIO,
    protect_last_n: int = PROTECT_LAST_N,
    key: bytes | None = None,
) -> Compressed:
    """Compact a message list now, whatever its size.

    The input list is left alone; without gain the messages come back unchanged.

    Raises `InputError` with the offending index when an item is no message. Reads no settings: `threshold`,
    `target_ratio` and `protect_last_n` mean what `compression.*` means in config.yaml.

    With a `key` the fold is signed, and folds in the list that bear its signature are taken over in full. Any other
    fold in the list is an earlier summary that nobody vouches for: its lines stay, marked as unverified.
    """
    limits = resolve_limits(
        model,
        declared_window=window if window or model else DEFAULT_WINDOW,
        threshold=threshold,
        target_ratio=target_ratio,
        protect_last_n=protect_last_n,
    )
    return compress_within(messages, limits, CompressInput(model, focus, tools, system, engine, summariser, key))


@dataclass(frozen=True, slots=True)
class CompressInput:
    """What a compaction goes by beside messages and limits; the fields mean what `compress` says of them."""

    model: str | None = None
    focus: str = ""
    tools: Sequence[dict[str, Any]] = ()
    system: str = ""
    engine: str = "compressor"
    summariser: Summariser | None = None
    key: bytes | None = None
    lcm: LcmSettings | None = None


def compress_within(messages: Messages, limits: Limits, given: CompressInput) -> Compressed:
    """The same within limits that are already known."""
    listed = checked(messages)
    counter = TokenCounter.for_model(given.model)
    folder = make_builtin(given.engine, limits, counter, given.summariser, given.lcm)
    folder.trust.key = given.key
    folder.tool_tokens = counter.tools(given.tools)
    folder.system_tokens = counter.text(given.system) if given.system else 0
    result = folder.compress(listed, focus_topic=given.focus or None, force=True)
    assert folder.last_report is not None
    return Compressed(result, folder.last_report)


def checked(messages: Any) -> list[Message]:
    """The messages as a list; `InputError` for anything else (bytes in one, too), with the place of the first."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        kind = "None" if messages is None else f"a {type(messages).__name__}"
        raise InputError(f'expected a list of messages such as {{"role": "user", "content": "..."}}, not {kind}')
    listed = list(messages)
    check_roles(listed, "messages[{}]".format)
    for index, message in enumerate(listed):
        try:
            encode_json(message)
        except (TypeError, ValueError, RecursionError) as error:
            hint = ". Decode bytes to text first" if "byte" in str(error) else ""
            raise InputError(f"is not JSON: {error}{hint}", f"messages[{index}]") from error
    return listed
