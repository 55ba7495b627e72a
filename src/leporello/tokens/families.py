"""Which vocabulary a model counts with, exact or estimated, and what its wire format charges beside the text."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import orjson
from msgspec import Struct

from leporello.tokens.media import ImageRule, LargeTiles, Patches, Tiles

# Some are neighbours: a capital after a small letter (camelCase), a small letter after a mark, two blanks.
ASCII_KINDS = ("upper", "digit", "mark", "newline", "camel", "mark_lower", "blanks", "lower")
_ASCII_PATTERNS = (b"U", b"D", b"p", b"n", b"lU", b"pl", b"ss", b"l")

# By the first byte of their UTF-8 form, which names the script well enough.
SCRIPTS = (
    "latin", "greek", "cyrillic", "semitic", "indic", "latin_more", "symbol", "kana", "han", "hangul", "wide", "emoji",
)  # fmt: skip
_SCRIPT_PATTERNS = (b"L", b"G", b"R", b"A", b"I", b"V", b"Y", b"J", b"H", b"K", b"F", b"E")

KINDS = ASCII_KINDS + SCRIPTS


def _table() -> bytes:
    classes = bytearray(b"x" * 256)
    for members, mark in (
        (range(0x41, 0x5B), b"U"),
        (range(0x61, 0x7B), b"l"),
        (range(0x30, 0x3A), b"D"),
        (b" ", b"s"),
        (b"\n", b"n"),
        (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", b"p"),
        (range(0xC2, 0xCC), b"L"),
        (range(0xCE, 0xD0), b"G"),
        (range(0xD0, 0xD4), b"R"),
        ((0xCC, 0xCD, *range(0xD4, 0xDC)), b"A"),
        ((0xE0,), b"I"),
        ((0xE1,), b"V"),
        ((0xE2, 0xEE), b"Y"),
        ((0xE3,), b"J"),
        (range(0xE4, 0xEA), b"H"),
        (range(0xEA, 0xEE), b"K"),
        ((0xEF,), b"F"),
        (range(0xF0, 0xF5), b"E"),
    ):
        for member in members:
            classes[member] = mark[0]
    return bytes(classes)


_CLASSES = _table()


def kind_counts(text: str) -> list[int]:
    """How often each of KINDS occurs; the script entries are left out for plain ASCII."""
    ascii_only = text.isascii()
    classes = text.encode("utf-8", "replace").translate(_CLASSES)
    counts = [classes.count(pattern) for pattern in _ASCII_PATTERNS]
    if not ascii_only:
        counts += [classes.count(pattern) for pattern in _SCRIPT_PATTERNS]
    return counts


CHUNK = 1 << 20
"""Longer texts are counted in slices, which bounds the memory of the id list; a cut costs at most a token or two."""

_loading = threading.Lock()


@cache
def _load(name: str) -> tuple[Callable[[str], list[int]], int]:
    from splintr import Tokenizer  # noqa: PLC0415 - 20 MB of vocabulary, only for those who count

    tokenizer: Any = Tokenizer.from_pretrained(name)
    encode: Callable[[str], list[int]] = tokenizer.encode_ordinary
    # Some vocabularies put a begin-of-text token before everything; it belongs to the request, not to each text.
    return encode, len(encode(""))


def count(vocabulary: str, text: str) -> int:
    """The number of tokens of a text. Text that looks like a control token is counted as text."""
    if not text:
        return 0
    with _loading:
        encode, template = _load(vocabulary)
    if len(text) > CHUNK:
        return sum(count(vocabulary, text[start : start + CHUNK]) for start in range(0, len(text), CHUNK))
    try:
        return len(encode(text)) - template
    except UnicodeEncodeError:
        # A lone surrogate can't be sent by any provider either; it travels as the replacement mark.
        return len(encode(text.encode("utf-8", "replace").decode())) - template


O200K = "o200k_base"


_GPT_4O_TILES = Tiles(85, 170)


class Framing(Struct, frozen=True):
    """Tokens that the wire format costs, learned from recorded requests of each vendor."""

    message: int = 4
    call: int = 12
    param: int = 3
    """Per argument of a call: its quotes or tags. The argument's key and value are counted as text."""
    result: int = 6
    request: int = 3
    tools: int = 50
    """The instructions that come with the first tool."""
    tool: int = 8


class Family(Struct, frozen=True):
    """Models that count alike."""

    name: str
    vocabulary: str = O200K
    exact: bool = True
    """Whether the vocabulary is the model's own."""
    charges: str = ""
    """Name of the extra charges in `weights.json`; empty: none."""
    margin: float = 1.0
    framing: Framing = Framing()
    images: ImageRule = _GPT_4O_TILES
    page_tokens: int = 1_500
    """One page of a document, text and picture together."""
    audio_tokens_per_second: int = 10

    def text(self, text: str) -> float:
        if not text:
            return 0.0
        tokens = count(self.vocabulary, text)
        if not self.charges:
            return tokens * self.margin
        base, weights = _charges(self.charges)
        return tokens * base + sum(map(float.__mul__, weights, map(float, kind_counts(text))))


@cache
def _charges(name: str) -> tuple[float, tuple[float, ...]]:
    with open(os.path.join(os.path.dirname(__file__), "weights.json"), "rb") as file:
        fitted: Mapping[str, float] = orjson.loads(file.read())[name]
    return float(fitted["o200k"]), tuple(float(fitted.get(kind, 0.0)) for kind in KINDS)


_OPENAI = Framing(message=4, call=4, param=2, result=0, request=3, tools=10, tool=8)
_CLAUDE = Framing(message=3, call=20, param=13, result=24, request=4, tools=308, tool=12)
_DEEPSEEK = Framing(message=2, call=20, param=14, result=15, request=2, tools=150, tool=12)
_TEMPLATE = Framing(message=5, call=12, param=3, result=6, request=3, tools=120, tool=6)

CLAUDE_OLD = Family(
    "claude-3", O200K, False, "claude-3", framing=_CLAUDE, images=Patches(28, 1_568, 1_568), page_tokens=3_000
)
CLAUDE_NEW = Family(
    "claude-4.7", O200K, False, "claude-4.7", framing=_CLAUDE, images=Patches(28, 4_784, 2_576), page_tokens=4_500
)
GEMINI = Family(
    "gemini", O200K, False, "gemini", framing=Framing(message=3), images=LargeTiles(), page_tokens=560,
    audio_tokens_per_second=32,
)  # fmt: skip
UNKNOWN = Family("unknown", O200K, False, margin=1.1)
PLAIN = Family("o200k", framing=_OPENAI)


def _openai(name: str, images: ImageRule, vocabulary: str = O200K) -> Family:
    return Family(name, vocabulary, framing=_OPENAI, images=images)


def _open(name: str, vocabulary: str, *, exact: bool = True, framing: Framing = _TEMPLATE) -> Family:
    return Family(name, vocabulary, exact, framing=framing, images=Patches(28, 16_384, 4_096))


# The first pattern found in the name wins; names come routed, dated and decorated, so patterns are searched for.
# They are compiled when they are tried: most programs ask for one model.
_PATTERNS: tuple[tuple[str, Family], ...] = (
    # No model at all: the vocabulary that is loaded quickest will do.
    (r"^scripted\b", Family("scripted", "llama2", False)),
    (r"gpt-oss", _openai("gpt-oss", _GPT_4O_TILES)),
    (r"gpt-?4o-mini", _openai("gpt-4o-mini", Tiles(2_833, 5_667))),
    (r"gpt-?(4[.-]1|5[\d.]*)-?nano", _openai("gpt-nano", Patches(32, 1_536, 8_192, 2.46))),
    (r"gpt-?(4[.-]1|5[\d.]*)-?mini", _openai("gpt-mini", Patches(32, 1_536, 8_192, 1.62))),
    (r"\bo4-mini", _openai("o4-mini", Patches(32, 1_536, 8_192, 1.72))),
    (r"\bo[13](-|$)", _openai("o-series", Tiles(75, 150))),
    (r"gpt-?(5[.-][4-9]|[6-9])", _openai("gpt-5.4", Patches(32, 2_500, 2_048, 1.0, 10_000))),
    (r"gpt-?5", _openai("gpt-5", Tiles(70, 140))),
    (r"gpt-?4o|gpt-?4[.-][15]|chatgpt|codex", _openai("gpt-4o", _GPT_4O_TILES)),
    (r"gpt-?4|gpt-?3[.-]?5|text-embedding", _openai("cl100k", _GPT_4O_TILES, "cl100k_base")),
    (r"llama-?2|vicuna|tinyllama", _open("llama2", "llama2")),
    (r"llama-?4|maverick|scout", _open("llama4", O200K, exact=False)),
    (r"llama", _open("llama3", "llama3")),
    (r"qwen-?3[.-][5-9]|qwen-?[4-9]", _open("qwen3.5", "qwen3", exact=False)),
    (r"qwen|qwq", _open("qwen", "qwen3")),
    (r"deepseek-?v?[4-9]", _open("deepseek4", "deepseek_v3", exact=False, framing=_DEEPSEEK)),
    (r"deepseek", _open("deepseek", "deepseek_v3", framing=_DEEPSEEK)),
    (r"glm-?[5-9]", _open("glm5", "glm4", exact=False)),
    (r"glm", _open("glm", "glm4")),
    (r"kimi|moonshot", _open("kimi", "kimi_k2")),
    (r"mixtral-8x22|codestral|mistral-7b.{0,64}v0[.-]3", _open("mistral2", "mistral_v2")),
    (r"mixtral|mistral-7b", _open("mistral1", "mistral_v1")),
    (r"mistral|ministral|pixtral|devstral|magistral", _open("mistral3", "mistral_v3")),
    (r"phi-?4", _open("phi4", "phi4")),
    (r"gemini|gemma", GEMINI),
)

_CLAUDE_NEWEST = r"fable|mythos"
_CLAUDE_VERSION = r"(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)"


@cache
def family_of(model: str | None) -> Family:
    """The family of a model by any of its names; an unknown model gets a margin, no model at all counts plainly."""
    name = (model or "").strip().lower()
    if not name:
        return PLAIN
    if "claude" in name or "anthropic" in name:
        return _claude(name)
    return next((family for pattern, family in _PATTERNS if re.search(pattern, name)), UNKNOWN)


def _claude(name: str) -> Family:
    if re.search(_CLAUDE_NEWEST, name):
        return CLAUDE_NEW
    found = re.search(_CLAUDE_VERSION, name.rpartition("claude")[2])
    if found is None:
        # "claude-latest" and the like: the newest counts highest, and too high is the safe side.
        return CLAUDE_NEW
    return CLAUDE_NEW if (int(found[1]), int(found[2] or 0)) >= (4, 7) else CLAUDE_OLD
