"""The cache simulation beside what providers really counted: every recorded session that holds usage.

Sizes and times are the recording's own, so that only the cache rules are judged. A call is *served cold* when the
provider read at least 1,024 tokens less than its own published rule says, although the request repeats the one before
within the time to live: another machine without the entry, an entry that was not kept, or a beginning (system prompt,
tools) that the file does not show and that changed. Nothing visible tells such calls from others, so the error is
given without them and with them.
"""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.table import table
from leporello.billing import SHORT, CacheBill, CacheBlock, CacheSim, Prompt
from leporello.importers import CallUsage, ImportedSession, load_sessions
from leporello.messages import role_of
from leporello.models import model_facts

FOLDERS = ("openai-chat/mini-swe*", "codex/*", "pi/*")
COLD = 1_024
ASSUMED = "gpt-5-codex"
"""For files that name no model."""


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """One recorded call: what the simulation says, and what the provider counted."""

    simulated: CacheBill
    recorded: CacheBill

    @property
    def served_cold(self) -> bool:
        return self.simulated.read - self.recorded.read >= COLD


def checked(session: ImportedSession) -> Iterator[CheckedCall]:
    """Each call with usage, simulated from sizes and times alone."""
    cache = CacheSim(model_facts(_model(session)).cache)
    life = SHORT if cache.rules.breakpoints else None
    blocks: list[CacheBlock] = []
    before: CallUsage | None = None
    turn = 0
    """Blocks up to the request that began the turn."""
    for number, call in enumerate(session.usage):
        size, answered = _sizes(before)
        new_turn = before is None or _asked_between(session, before.index, call.index)
        if new_turn and session.format == "codex":
            # The reasoning of a finished turn is not sent again: from its first answer on, the request is another.
            del blocks[turn:]
            size, answered = sum(block.tokens for block in blocks), 0
        grown = call.usage.prompt_tokens - size
        if grown < answered:
            # Shorter than the request before: the client compacted or the user went back, to what is not recorded.
            blocks, grown, answered = [], call.usage.prompt_tokens, 0
        # What the model said and is sent back, then what came in after it.
        parts = (("answer", answered), ("heard", grown - answered))
        blocks += [CacheBlock(f"{name} {number}".encode(), tokens) for name, tokens in parts]
        turn = len(blocks) if new_turn else turn
        prompt, now = Prompt.of([*blocks[:-1], replace(blocks[-1], mark=life)]), _sent_at(session, call)
        bill = cache.bill(prompt, now)
        cache.answered(prompt, CacheBlock(f"answer {number + 1}".encode(), _sizes(call)[1]), now)
        recorded = CacheBill(call.usage.cache_read_tokens, call.usage.cache_write_tokens, call.usage.input_tokens)
        # What other sessions left in the cache for the first call is not known here: it is taken as it was.
        yield CheckedCall(bill if number else recorded, recorded)
        before = call


def _model(session: ImportedSession) -> str:
    models = Counter(call.model for call in session.usage if call.model)
    return models.most_common(1)[0][0] if models else ASSUMED


def _sizes(call: CallUsage | None) -> tuple[int, int]:
    """The prompt of a call, and what of its answer is sent back."""
    return (call.usage.prompt_tokens, call.usage.output_tokens) if call else (0, 0)


def _asked_between(session: ImportedSession, first: int, last: int) -> bool:
    return any(role_of(message) == "user" for message in session.messages[first + 1 : last])


def _sent_at(session: ImportedSession, call: CallUsage) -> float:
    """When the request went out: at the newest message before the answer."""
    times = [time for time in session.times[: call.index + 1] if time is not None]
    before = [time for time in session.times[max(0, call.index - 1) : call.index] if time is not None]
    return before[-1] if before else times[-1] if times else 0.0


def error_of(calls: Sequence[CheckedCall]) -> float:
    """How far the simulated bill is from the recorded one."""
    recorded = sum(call.recorded.units for call in calls)
    return abs(sum(call.simulated.units for call in calls) / recorded - 1) if recorded else 0.0


def run() -> str:
    """The table, and what is left out."""
    folder = Path(os.environ.get("LEPORELLO_DATA", ""))
    rows, left_out, errors = [], [], []
    for path in sorted(path for pattern in FOLDERS for path in folder.glob(pattern)):
        session = load_sessions(path)[0]
        calls = list(checked(session))
        if not calls:
            left_out.append(f"- `{path.name}`: no usage is recorded.")
            continue
        warm = [call for call in calls if not call.served_cold]
        errors.append(error_of(warm))
        rows.append(
            [
                path.name[:58],
                _model(session) if session.models else f"not named ({ASSUMED} assumed)",
                str(len(calls)),
                f"{sum(call.recorded.units for call in calls):,.0f}",
                str(len(calls) - len(warm)),
                f"{errors[-1]:.1%}",
                f"{error_of(calls):.1%}",
            ]
        )
    if not rows:
        raise SystemExit("LEPORELLO_DATA names no folder with recorded sessions that hold usage.")
    header = ["file", "model", "calls", "recorded units", "served cold", "error", "error with cold calls"]
    summary = f"Median error {statistics.median(errors):.1%}, largest {max(errors):.1%}. Left out:"
    return "\n".join([table(header, rows), "", summary, "", *left_out])
