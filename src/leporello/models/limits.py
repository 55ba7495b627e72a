"""One resolver for every limit: window, reserve, threshold, budgets and caps, each with where it came from.

Windows that a provider stated in an error are remembered per provider, endpoint and model (`LearnedLimits`), guesses
never; so is that it refused to search tools. Reading them is forgiving but not silent: a window that can't be used is
left out and named in `problems`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
from msgspec import Struct

from leporello.files import open_whole

if TYPE_CHECKING:
    from pathlib import Path
import time

from leporello.config import Settings
from leporello.models.facts import ModelFacts, model_facts

VERSION = 1
STALE_SECONDS = 30 * 86_400
SMALLEST, LARGEST = 256, 100_000_000


class LearnedLimits(Struct):
    """A small mutable book; times are seconds since the epoch and come from the caller."""

    entries: dict[str, tuple[int, float]] = msgspec.field(default_factory=dict)
    refused_searches: dict[str, float] = msgspec.field(default_factory=dict)
    """When a provider refused to search tools whose loading is put off."""
    problems: list[str] = msgspec.field(default_factory=list)

    def window(self, model: str, provider: str = "", base_url: str = "", *, now: float) -> int | None:
        """The remembered window, unless it is too old to be believed."""
        entry = self.entries.get(_key(model, provider, base_url))
        return entry[0] if entry is not None and now - entry[1] <= STALE_SECONDS else None

    def learn(self, window: int, model: str, provider: str = "", base_url: str = "", *, now: float) -> bool:
        """Remember a stated window; False when the number can't be one. A newer statement replaces an older."""
        if isinstance(window, bool) or not SMALLEST <= window <= LARGEST:
            return False
        self.entries[_key(model, provider, base_url)] = (int(window), float(now))
        return True

    def refused_search(self, model: str, provider: str = "", base_url: str = "") -> bool:
        """Whether its provider refused to search tools, not too long ago."""
        return _key(model, provider, base_url) in self.refused_searches

    def learn_refused_search(self, model: str, provider: str = "", base_url: str = "", *, now: float) -> None:
        self.refused_searches[_key(model, provider, base_url)] = float(now)

    def as_dict(self) -> dict[str, Any]:
        windows = {key: [window, when] for key, (window, when) in self.entries.items()}
        return {"v": VERSION, "windows": windows, "refused_searches": self.refused_searches}

    @classmethod
    def from_dict(cls, data: Any, *, now: float) -> LearnedLimits:
        """From `as_dict`; entries that are malformed, from the future or stale are left out and named."""
        book = cls()
        windows = data.get("windows") if isinstance(data, Mapping) and data.get("v") == VERSION else None
        if not isinstance(windows, Mapping):
            book.problems.append("learned limits: not a file of this version; it was ignored")
            return book
        for key, value in windows.items():
            problem = _problem(value, now)
            if problem:
                book.problems.append(f"learned limit for {key!r}: {problem}; it was ignored")
            else:
                book.entries[str(key)] = (int(value[0]), float(value[1]))
        refused = data.get("refused_searches", {})
        for key, when in refused.items() if isinstance(refused, Mapping) else ():
            if isinstance(when, int | float) and now - STALE_SECONDS <= when <= now + 86_400:
                book.refused_searches[str(key)] = float(when)
        return book

    @classmethod
    def load(cls, path: Path, *, now: float) -> LearnedLimits:
        """From a file; a missing file is an empty book, a broken one too, but that is named."""
        try:
            data = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            return cls(problems=[f"learned limits in {path}: {error}; they were ignored"])
        return cls.from_dict(data, now=now)

    def save(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_whole(path) as file:
            file.write(orjson.dumps(self.as_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def _key(model: str, provider: str, base_url: str) -> str:
    return " ".join((provider.strip().lower() or "-", base_url.strip().rstrip("/") or "-", model.strip()))


def _problem(value: Any, now: float) -> str:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return "is not a pair of window and time"
    window, when = value
    if isinstance(window, bool) or not isinstance(window, int) or not SMALLEST <= window <= LARGEST:
        return f"{window!r} is not a window"
    if isinstance(when, bool) or not isinstance(when, int | float) or when > now + 86_400:
        return f"{when!r} is not a time in the past"
    if now - when > STALE_SECONDS:
        return "is older than 30 days"
    return ""


THRESHOLD = 0.50
TARGET_RATIO = 0.20
PROTECT_LAST_N = 20
SUMMARY_FLOOR = 2_000
SUMMARY_CEILING = 12_000
SMALL_WINDOW = 40_000
SMALL_CEILING = 400


@dataclass(frozen=True, slots=True)
class Limits:
    """Every token limit of one conversation. Made by `for_window` or `resolve_limits`, never by hand."""

    window: int
    output_reserve: int
    hard_tokens: int
    """What a request may hold before the reserve for the answer is touched."""
    threshold_tokens: int
    tail_tokens: int
    summary_floor: int
    summary_ceiling: int
    head_message_tokens: int
    head_tokens: int
    pin_tokens: int
    aim_tokens: int
    """The size to compact down to."""
    protect_last_n: int = PROTECT_LAST_N
    window_assumed: bool = False
    """Whether the window is a guess: the model is unknown, and neither the user nor the provider named one."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def for_window(
        cls,
        window: int,
        threshold: float = THRESHOLD,
        target_ratio: float = TARGET_RATIO,
        protect_last_n: int = PROTECT_LAST_N,
        max_output: int | None = None,
        largest_turn: int = 0,
        *,
        max_input: int | None = None,
        price_step: int | None = None,
        window_source: str = "given",
        window_assumed: bool = False,
    ) -> Limits:
        if window < 1:
            raise ValueError(f"a window of {window} tokens holds nothing; give a positive number")
        tenth = max(1, window // 10)
        reserve = min(max_output, tenth) if max_output and max_output > 0 else tenth
        hard = max(1, min(window - reserve, max_input or window))
        trigger, why = _threshold(window, threshold, hard, largest_turn, price_step)
        ceiling, ceiling_why = _ceiling(window, trigger)
        floor = min(SUMMARY_FLOOR, ceiling)
        by_output = f"max_output {max_output:,}" if max_output and reserve == max_output else "10% of the window"
        floor_why = "2,000" if floor == SUMMARY_FLOOR else "lowered to summary_ceiling (small window)"
        rows: tuple[tuple[str, int, str], ...] = (
            ("window", window, window_source),
            ("output_reserve", reserve, by_output),
            ("hard_tokens", hard, "largest input the model takes" if hard == max_input else "window - output_reserve"),
            ("threshold_tokens", trigger, why),
            ("tail_tokens", max(1, int(trigger * target_ratio)), f"threshold_tokens x target_ratio {target_ratio:g}"),
            ("summary_floor", floor, floor_why),
            ("summary_ceiling", ceiling, ceiling_why),
            ("head_message_tokens", max(1, window // 20), "5% of the window"),
            ("head_tokens", tenth, "10% of the window"),
            ("pin_tokens", max(1, window // 20), "5% of the window"),
            ("aim_tokens", max(1, trigger // 2), "half of threshold_tokens"),
            ("protect_last_n", protect_last_n, "compression.protect_last_n"),
        )
        values = {name: value for name, value, _ in rows}
        return cls(**values, window_assumed=window_assumed, sources={name: why for name, _, why in rows})

    @property
    def window_text(self) -> str:
        """`200,000`, or `128,000 (assumed)`."""
        return f"{self.window:,} (assumed)" if self.window_assumed else f"{self.window:,}"

    def explain(self) -> list[tuple[str, int, str]]:
        return [(name, getattr(self, name), why) for name, why in self.sources.items()]


def _threshold(window: int, share: float, hard: int, largest_turn: int, step: int | None) -> tuple[int, str]:
    wanted = int(window * share)
    why = f"{share:g} x window"
    # Room for the largest recent turn; a turn beyond three quarters of the window can't be provided for.
    room = max(hard - max(0, largest_turn), hard // 4)
    if wanted > room:
        wanted, why = room, f"hard_tokens - largest recent turn of {largest_turn:,}" if largest_turn else "hard_tokens"
    if step is not None and wanted > step:
        wanted, why = step, f"price step: requests above {step:,} tokens cost more"
    return max(1, wanted), why


def _ceiling(window: int, threshold: int) -> tuple[int, str]:
    if window >= SMALL_WINDOW:
        return min(window // 20, SUMMARY_CEILING), "min(5% of the window, 12,000)"
    ceiling = max(window // 20, SMALL_CEILING)
    if ceiling > threshold // 3:
        return max(1, threshold // 3), "a third of threshold_tokens (small window)"
    return ceiling, "max(5% of the window, 400) (small window)"


def resolve_limits(
    model: str | None,
    *,
    provider: str = "",
    declared_window: int | None = None,
    served_window: int | None = None,
    learned_window: int | None = None,
    threshold: float = THRESHOLD,
    target_ratio: float = TARGET_RATIO,
    protect_last_n: int = PROTECT_LAST_N,
    max_output: int | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
) -> Limits:
    """The limits of a model: the smallest of what the user declared, the endpoint serves, and an error taught."""
    facts = model_facts(model, provider, overrides)
    window, source, from_table = _window(facts, declared_window, served_window, learned_window)
    # A step below a tenth of the window would leave no room to work in: it is crossed, the next one counts.
    steps = [step.above for step in facts.steps if step.above * 10 >= window]
    return Limits.for_window(
        window,
        threshold,
        target_ratio,
        protect_last_n,
        max_output if max_output is not None else facts.max_output,
        max_input=facts.max_input if from_table and facts.max_input < window else None,
        price_step=steps[0] if steps else None,
        window_source=source,
        window_assumed=from_table and facts.window_assumed,
    )


def _window(facts: ModelFacts, declared: int | None, served: int | None, learned: int | None) -> tuple[int, str, bool]:
    told = ((declared, "declared by the user"), (served, "served by the endpoint"))
    known = [(window, source, False) for window, source in told if window] or [(facts.window, facts.source, True)]
    if learned:
        known.append((learned, "learned from a provider's error", False))
    return min(known, key=lambda item: item[0])


def limits_of(settings: Settings, model: str | None = None, *, served_window: int | None = None) -> Limits:
    """Window, reserve, threshold and caps for a model (the configured one when none is named)."""
    name = model or settings.model.default
    # The configured window and output cap describe the configured model, not another one somebody asks about.
    is_configured = name == settings.model.default
    provider = (settings.model.provider or "") if is_configured else ""
    base_url = (settings.model.base_url or "") if is_configured else ""
    now = time.time()
    learned = LearnedLimits.load(settings.home.limits_file, now=now)
    return resolve_limits(
        name,
        provider=provider,
        declared_window=settings.model.context_length if is_configured else None,
        served_window=served_window,
        learned_window=learned.window(name, provider, base_url, now=now) if name else None,
        threshold=settings.compression.threshold,
        target_ratio=settings.compression.target_ratio,
        protect_last_n=settings.compression.protect_last_n,
        max_output=settings.model.max_output if is_configured else None,
        overrides=settings.get("models"),
    )
