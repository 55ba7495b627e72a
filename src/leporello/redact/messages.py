"""Messages and settings as derived texts may read them: each text masked as a whole, before anybody cuts it.

    masked(message)   ->   the same message without secrets; the very same object when there are none

Half a key no longer looks like one, so that masking after clipping, splitting or joining comes too late. Whoever makes
something of a message (facts, summaries, one-liners, an index, a preview) therefore begins here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, Part, PartKind, ToolCall, calls_of, is_result, parse_json, parts_of, text_of
from leporello.redact import PLACEHOLDER, redact, redact_answer, redact_printed, redact_spans
from leporello.redact.given import asks, prints
from leporello.text_features.rare import RarePattern

_TEXT_KEYS = ("text", "refusal", "thinking", "content")
_BESIDE = ("reasoning_content", "reasoning", "refusal")


class Given(StrEnum):
    """What a message may give without a word about it, because of the one before."""

    NOTHING = ""
    ANSWER = "answer"
    """The secret that was asked for."""
    OUTPUT = "output"
    """The secret that a command was told to read."""


def given_after(message: Message, before: Given) -> Given:
    """What the next message may give, bare; `before` is what this one may."""
    if is_result(message):
        return before
    if any(prints(call.arguments) for call in calls_of(message)):
        return Given.OUTPUT
    return Given.ANSWER if asks(text_of(message)) else Given.NOTHING


def masked(message: Message, given: Given = Given.NOTHING) -> Message:
    """The message without secrets. For reading only: it is never sent, and never stored in the log."""
    changed: Message = {}
    clean = masker(message, given)
    content = message.get("content")
    if isinstance(content, str):
        changed["content"] = clean(content)
    elif isinstance(content, list):
        changed["content"] = _masked_parts(parts_of(message), clean)
    for key in _BESIDE:
        if isinstance(message.get(key), str):
            changed[key] = redact(message[key])
    if isinstance(message.get("tool_calls"), list) or isinstance(message.get("function_call"), dict):
        changed |= _masked_calls(message)
    return message if all(message.get(key) == value for key, value in changed.items()) else {**message, **changed}


def masker(message: Message, given: Given) -> Callable[[str], str]:
    """What masks the texts of a message."""
    if given is Given.OUTPUT and is_result(message):
        return redact_printed
    return redact_answer if given is Given.ANSWER and not is_result(message) else redact


def masked_call(call: ToolCall) -> ToolCall:
    arguments = masked_arguments(call.arguments)
    return call if arguments == call.arguments else replace(call, arguments=arguments)


_FIELD = frozenset(
    "selector element name label field locator target xpath css id ref placeholder description role type".split()
)
_TYPED = frozenset("text value content keys string input input_text".split())
_SECRET_FIELD = RarePattern(
    lazy_regex(
        r"passw|passcode|passphrase|(?<![a-z])(?:pwd|pass|pin|otp|cvv|cvc|2fa|totp)(?![a-z])|secret"
        r"|api[_ -]?key|token|one-time|kennwort|mot de passe|contraseñ|senha|парол|密码|密碼|パスワード|비밀번호",
        re.IGNORECASE,
    )
)


def masked_arguments(arguments: str) -> str:
    """A call's arguments without secrets, nor what they type into a field for one."""
    text = redact(arguments)
    if text != arguments and parse_json(text) is None and parse_json(arguments) is not None:
        text = _masked_tokens(arguments)
    if _SECRET_FIELD.search(text) is None:
        return text
    value = parse_json(text)
    changed = _without_typed(value)
    return text if changed == value else json.dumps(changed, ensure_ascii=False)


_TOKEN = lazy_regex(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?|[-+.\w]++')


def _masked_tokens(text: str) -> str:
    """JSON whose secrets are no part of one string: each name and value that they touch is masked as a whole."""
    before = ""
    while text != before and (spans := redact_spans(text)):
        before = text
        pieces, position = [], 0
        for token in _TOKEN.finditer(text):
            if any(span.start < token.end() and token.start() < span.end for span in spans):
                pieces += [text[position : token.start()], _masked_token(token)]
                position = token.end()
        text = "".join(pieces) + text[position:]
    return text


def _masked_token(token: re.Match[str]) -> str:
    if token[2] is None:
        return json.dumps(PLACEHOLDER)
    return json.dumps(redact(json.loads(token[1])), ensure_ascii=False) + token[2]


def _without_typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_typed(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    secret = any(
        key.lower() in _FIELD and isinstance(item, str) and _SECRET_FIELD.search(item) for key, item in value.items()
    )
    return {
        key: PLACEHOLDER
        if secret and key.lower() in _TYPED and isinstance(item, str) and item
        else _without_typed(item)
        for key, item in value.items()
    }


def _masked_parts(parts: Sequence[Part], mask: Callable[[str], str]) -> list[Any]:
    clean = [_masked_part(part, mask) for part in parts]
    said = [index for index, part in enumerate(parts) if part.kind is PartKind.TEXT and part.text]
    if len(said) < 2:
        return clean
    joined = "\n".join(_text_in(clean[index]) for index in said)
    whole = mask(joined)
    if whole != joined:
        # A secret goes through several parts: the first takes the text of all.
        clean[said[0]] = {"type": "text", "text": whole}
        clean = [part for index, part in enumerate(clean) if index not in said[1:]]
    return clean


def _masked_part(part: Part, mask: Callable[[str], str]) -> Any:
    if part.kind not in (PartKind.TEXT, PartKind.THINKING) or not part.text:
        return part.raw
    text = mask(part.text)
    if text == part.text:
        return part.raw
    return text if isinstance(part.raw, str) else {**part.raw, _text_key(part.raw): text}


def _text_in(raw: Any) -> str:
    return raw if isinstance(raw, str) else str(raw[_text_key(raw)])


def _text_key(raw: Any) -> str:
    return next(key for key in _TEXT_KEYS if isinstance(raw.get(key), str))


def _masked_calls(message: Message) -> Message:
    calls = calls_of(message)
    clean = tuple(map(masked_call, calls))
    if clean == calls:
        return {}
    written = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in clean
    ]
    if isinstance(message.get("tool_calls"), list):
        return {"tool_calls": written}
    return {"function_call": written[0]["function"]}


def masked_value(name: str, value: Any) -> Any:
    """The value of a setting with all secrets masked; its name tells what its text is."""
    if isinstance(value, dict):
        return {key: masked_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(masked_value(name, inner) for inner in value)
    if not isinstance(value, str):
        return value
    opening = f'{name}: "'
    shown = redact(f'{opening}{value}"')
    return shown[len(opening) : -1] if shown.startswith(opening) and shown.endswith('"') else PLACEHOLDER
