"""Which vocabulary a model counts with, and what it charges beside the text.

Where splintr has the model's own vocabulary the count is exact. Everybody else is counted with o200k times a ratio for
the family and the kind of text; `Calibration` then learns the rest from real usage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from leporello.tokens.images import ImageRule
from leporello.tokens.kinds import Kind

O200K = "o200k_base"


@dataclass(frozen=True, slots=True)
class Framing:
    """Tokens that the wire format itself costs."""

    message: int = 4
    call: int = 8
    request: int = 3
    tools: int = 12
    tool: int = 8


@dataclass(frozen=True, slots=True)
class Family:
    """Models that count alike."""

    name: str
    vocabulary: str = O200K
    ratios: Mapping[Kind, float] = field(default_factory=lambda: MappingProxyType({}))
    framing: Framing = Framing()
    images: ImageRule = ImageRule.OPENAI

    @property
    def exact(self) -> bool:
        """Whether the vocabulary is the model's own."""
        return not self.ratios


def _ratios(prose: float, code: float, json: float, log: float, cjk: float) -> Mapping[Kind, float]:
    return MappingProxyType({Kind.PROSE: prose, Kind.CODE: code, Kind.JSON: json, Kind.LOG: log, Kind.CJK: cjk})


_CLAUDE_FRAMING = Framing(message=5, call=40, request=4, tools=320, tool=20)
CLAUDE_3 = Family("claude-3", O200K, _ratios(1.18, 1.22, 1.20, 1.18, 1.39), _CLAUDE_FRAMING, ImageRule.ANTHROPIC)
CLAUDE_48 = Family("claude-4.8", O200K, _ratios(1.55, 1.58, 1.50, 1.34, 1.40), _CLAUDE_FRAMING, ImageRule.ANTHROPIC)
GEMINI = Family("gemini", O200K, _ratios(1.02, 1.12, 1.15, 1.35, 1.0), Framing(), ImageRule.GOOGLE)
UNKNOWN = Family("unknown", O200K, _ratios(1.05, 1.08, 1.08, 1.10, 1.10))

# The first pattern found in the name wins; names come routed, dated and decorated, so patterns are searched for.
_PATTERNS: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"gpt-oss|gpt-?4o|gpt-?4\.[15]|gpt-?[5-9]|chatgpt|\bo[134](-|$)|codex", Family("o200k")),
        (r"gpt-?4|gpt-?3\.5|text-embedding", Family("cl100k", "cl100k_base")),
        (r"llama-?2|vicuna|tinyllama", Family("llama2", "llama2")),
        (r"llama", Family("llama3", "llama3")),
        (r"qwen|qwq", Family("qwen", "qwen3")),
        (r"deepseek", Family("deepseek", "deepseek_v3")),
        (r"glm|z-ai", Family("glm", "glm4")),
        (r"kimi|moonshot", Family("kimi", "kimi_k2")),
        (r"mixtral-8x22|codestral|mistral-7b.*v0\.3", Family("mistral2", "mistral_v2")),
        (r"mixtral|mistral-7b", Family("mistral1", "mistral_v1")),
        (r"mistral|ministral|pixtral|devstral|magistral", Family("mistral3", "mistral_v3")),
        (r"phi-?4", Family("phi4", "phi4")),
        (r"gemini", GEMINI),
    )
)

_CLAUDE_VERSION = re.compile(r"(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def family_of(model: str | None) -> Family:
    """The family of a model by any of its names; unknown ones get careful ratios."""
    name = (model or "").lower()
    if "claude" in name or "anthropic" in name:
        return _claude(name)
    for pattern, family in _PATTERNS:
        if pattern.search(name):
            return family
    return UNKNOWN if name else Family("o200k")


def _claude(name: str) -> Family:
    if re.search(r"fable|mythos", name):
        return CLAUDE_48
    found = _CLAUDE_VERSION.search(name.partition("claude")[2])
    if found is None:
        # "claude-latest" and the like: the newest counts highest, and too high is the safe side.
        return CLAUDE_48
    version = int(found[1]), int(found[2] or 0)
    return CLAUDE_48 if version >= (4, 7) else CLAUDE_3
