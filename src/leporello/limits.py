"""The limits that the settings give for a model: what every command and every conversation goes by."""

from __future__ import annotations

import time

from leporello.config import Settings
from leporello.models import LearnedLimits, Limits, resolve_limits


def limits_of(
    settings: Settings, model: str | None = None, *, served_window: int | None = None, largest_turn: int = 0
) -> Limits:
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
        largest_turn=largest_turn,
        overrides=settings.model_overrides,
    )
