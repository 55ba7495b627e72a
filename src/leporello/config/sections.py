"""Settings that belong together, typed: what a component is given instead of the whole `Settings`.

Where the file says `auto`, the field here is None.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """`compression.*`: when and how much the built-in compressor folds."""

    enabled: bool = True
    threshold: float = 0.50
    target_ratio: float = 0.20
    protect_last_n: int = 20
    deadline: float = 20.0


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`model.*`: the main model."""

    default: str | None = None
    provider: str | None = None
    base_url: str | None = None
    context_length: int | None = None
    max_output: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryModelSettings:
    """`auxiliary.compression.*`: the model that writes summaries."""

    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    context_length: int | None = None


@dataclass(frozen=True, slots=True)
class CachingSettings:
    """`prompt_caching.*`."""

    cache_ttl: str = "5m"
    layout: str = "system_and_3"


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """`agent.tools` and `tools.*`."""

    names: tuple[str, ...] | None = None
    approval: str = "ask"
    allow: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """`providers.<name>.*`: one API to talk to."""

    name: str
    base_url: str | None = None
    api_mode: str = "openai_chat"
    key_env: str | None = None
