"""Model names as people and routers write them, folded to the few forms under which the table knows a model.

`openrouter/anthropic/claude-opus-4.6:beta`, `bedrock/us.anthropic.claude-opus-4-6-v1:0`, `claude-opus-4-6@20260205` and
`claude-4.6-opus` are one model. The folding never guesses a version: it only drops routes, regions, dates and tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PROVIDERS = {
    "google": "gemini",
    "google-ai-studio": "gemini",
    "vertex": "vertex_ai",
    "vertexai": "vertex_ai",
    "google-vertex": "vertex_ai",
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "azure-openai": "azure",
    "together": "together_ai",
    "fireworks": "fireworks_ai",
    "fireworks-ai": "fireworks_ai",
    "z-ai": "zai",
    "zhipu": "zai",
    "moonshotai": "moonshot",
    "x-ai": "xai",
    "alibaba": "dashscope",
    "vercel": "vercel_ai_gateway",
}

_REGION = re.compile(r"^(?:us-gov|us|eu|apac|global|au|jp|ca|sa|me)\.(?=[a-z0-9-]+\.)")
_VENDOR = re.compile(r"^(?:anthropic|meta|mistral|amazon|cohere|ai21|deepseek|openai|qwen|writer|minimax|zai|google)\.")
_LONG_CONTEXT = re.compile(r"\[(\d{1,2})m\]$")
_BEDROCK_VERSION = re.compile(r"-v\d+$")
_DATE = re.compile(r"-(?:20\d{6}|20\d{2}-\d{2}-\d{2}|\d{4}|\d{2}-20\d{2}|\d{2}-\d{2})$")
_TAG = re.compile(r"-(?:latest|default|preview|beta|free|exp|experimental|thinking|think|instruct|hf|fp8)$")
_PACKAGING = re.compile(r"(?<=\d)-v\d+(?::\w+)*$")
_HAS_POINT = re.compile(r"-v\dp\d")
_POINT = re.compile(r"(?<=\d)p(?=\d)")
_V = re.compile(r"-v(?=\d-)")
_REVISION = re.compile(r"(-v\d+):\d+(?::\w+)?$")
_JOINTS = re.compile(r"[\s._@:]+")
_CLAUDE_ORDER = re.compile(r"^claude-(\d+(?:-\d+)?)-(opus|sonnet|haiku)(?=-|$)")


def provider_name(provider: str) -> str:
    folded = provider.strip().lower()
    return _PROVIDERS.get(folded, folded.replace("-", "_") if folded.replace("-", "_") in _UNDERSCORED else folded)


_UNDERSCORED = {"together_ai", "fireworks_ai", "vertex_ai", "azure_ai", "github_copilot", "vercel_ai_gateway"}


def region_of(name: str) -> str:
    """The region that a Bedrock name asks for (`us.anthropic.…`), which may cost more; empty when there is none."""
    found = _REGION.match(name.strip().lower().rpartition("/")[2])
    return found[0][:-1] if found else ""


def long_context(name: str) -> int | None:
    """The window that a name states itself: `claude-sonnet-4-5[1m]` asks for one million."""
    found = _LONG_CONTEXT.search(name.strip().lower())
    return int(found[1]) * 1_000_000 if found else None


def routes(name: str) -> tuple[str, ...]:
    """The routing parts before the model's own name, outermost first, as provider names."""
    parts = [part for part in name.strip().lower().split("/") if part]
    return tuple(provider_name(part) for part in parts[:-1])


def fold(name: str) -> str:
    """The model's own part of a name in one spelling: lower case, without route, region and vendor prefix."""
    own = _LONG_CONTEXT.sub("", name.strip().lower()).rstrip("/").rpartition("/")[2]
    bare = _VENDOR.sub("", _REGION.sub("", own))
    if bare != own:
        # A Bedrock name: its `-v1:0` is the packaging, unless nothing else tells the version (`claude-v2`).
        own = _PACKAGING.sub("", bare)
    own = _POINT.sub("-", own) if _HAS_POINT.search(own) else own
    own = _V.sub("-", own)
    own = _REVISION.sub(r"\1", own)
    own = _JOINTS.sub("-", own).strip("-")
    return _CLAUDE_ORDER.sub(_reorder, own)


def _reorder(found: re.Match[str]) -> str:
    # Since version 4 the vendor writes the size first; before, the version.
    major = int(found[1].partition("-")[0])
    return f"claude-{found[2]}-{found[1]}" if major >= 4 else found[0]


def candidates(name: str) -> Iterator[str]:
    """Names to look up, from the most to the least specific. All of them mean the same model."""
    current = fold(name)
    yield current
    while True:
        shorter = _BEDROCK_VERSION.sub("", current)
        if shorter == current:
            shorter = _DATE.sub("", current)
        if shorter == current:
            shorter = _TAG.sub("", current)
        if shorter == current or not shorter:
            return
        current = _CLAUDE_ORDER.sub(_reorder, shorter)
        yield current


def shorter_names(name: str) -> Iterator[str]:
    """The name with its last segments dropped one by one: nearest relatives, not the same model."""
    segments = fold(name).split("-")
    for stop in range(len(segments) - 1, 1, -1):
        yield "-".join(segments[:stop])


_VENDORS: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic"),
    (r"gpt|chatgpt|codex|^o[134](-|$)|davinci", "openai"),
    (r"gemini|gemma", "google"),
    (r"deepseek", "deepseek"),
    (r"mistral|mixtral|codestral|devstral|magistral|pixtral|ministral", "mistral"),
    (r"llama", "meta"),
    (r"qwen|qwq", "qwen"),
    (r"grok", "xai"),
    (r"glm", "zai"),
    (r"kimi|moonshot", "moonshot"),
    (r"minimax", "minimax"),
    (r"nova", "amazon"),
    (r"command|cohere", "cohere"),
)


def vendor_of(name: str) -> str:
    """Who made the model, whoever serves it; an empty string when the name doesn't say."""
    own = fold(name)
    for pattern, vendor in _VENDORS:
        if re.search(pattern, own):
            return vendor
    return ""
