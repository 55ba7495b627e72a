"""Secrets that one message asks for and another gives, bare: answers, and what a command prints.

what's the DB password?     ->   the next message is the answer
cat ~/.config/app/token     ->   what the tool returns
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.lazy_regex import lazy_regex
from leporello.redact.spans import SecretSpan
from leporello.redact.spoken_names import names_in
from leporello.redact.values import is_chosen, is_file_name, is_hex_or_id, is_opaque_literal
from leporello.text_features.rare import RarePattern, loosened

_ASKED_CHARS, _SHORT_QUESTION = 240, 40
_ANSWER_CHARS, _ANSWER_WORDS, _FEW_LINES, _LEAST_KEY = 300, 8, 3, 16
_CALL_CHARS, _OUTPUT_CHARS = 2_000, 65_536
_WANTS = lazy_regex(
    r"\b(?:what|which|send|give|provide|enter|share|tell|need|type|paste|supply|specify|wie|welche\w*|was|gib|schick|nenn|brauche|sag"
    r"|quel\w*|donne\w*|envoie\w*|dame|dime|env[ií]a\w*|cuál|qual|mande|manda|diga|dammi|dimmi|как\w*|пришли\w*|скажи\w*|введите|дай\w*"
    r"|podaj|jakie|ver|nedir)\b|请(?:您|你)?(?:再|先)?(?:提供|输入|发|给|填|把|粘贴)|告诉|什么|多少|教えて|何で|入力|ください|알려|뭐|무엇|입력",
    re.IGNORECASE,
)
_NO_CREDENTIAL = lazy_regex(
    r"\b(?:how[ ]many|number[ ]of|amount[ ]of|count[ ]of|wie[ ]viele|nombre[ ]de|combien[ ]de|cuántos|quantos|quanti"
    r"|сколько)[ ](?:[\w-]{1,20}[ ]){0,2}tokens?\b"
    r"|\b(?:max(?:imum)?|min(?:imum)?|colou?r|design|theme|spacing|css|context|input|output|prompt|completion|total"
    r"|cached|reasoning|thinking|stop|special|padding|mask|per|thousand|million|[kK])[ _-](?:[\w-]{1,20}[ ])?tokens?\b"
    r"|\btokens?[ _-]?(?:limits?|counts?|counter|counting|budgets?|windows?|size|usage|costs?|prices?|length|buckets?"
    r"|ring|s?[ ]per\b|anzahl|zahl)|\d[ ]tokens\b|\btokens[ ](?:should|does|do|are[ ](?:left|used)|fit|left|used)\b",
    re.IGNORECASE,
)
"""Tokens that are counted, and names of colours and sizes."""
_READING = RarePattern(
    lazy_regex(
        r"\b(?:pass|gopass|lpass|op|bw|secret-tool|security)\s{1,4}(?:-\S{1,24}\s)?(?:show|read|get|lookup|item|find-\w{1,40})\b"
        r"|\b(?:cat|base64|xxd|less|more|head|tail|bat|Get-Content|gpg\s{1,4}(?:-d|--decrypt))\s[^\n|;&]{0,120}?"
        r"(?:passw|secret|token|credential|api_?key|id_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|\.(?:pem|key|p12|pgpass|netrc)\b)"
        r"|\bkubectl\s[^\n]{0,80}?\bget\s{1,4}secrets?\b|\bvault\s{1,4}(?:kv\s{1,4}get|read)\b|\bsecrets\s{1,4}versions\s{1,4}access\b"
        r"|\bopenssl\s{1,4}rand\b|\b(?:pwgen|mkpasswd)\b|\bwg\s{1,4}gen(?:key|psk)\b|\btoken_(?:hex|urlsafe)\b"
        r"|get-secret-value|--with-decryption|\bauth\s{1,4}(?:token|print-\w{1,12}-token)\b|\bget-access-token\b"
        r"|\bkeyvault\s{1,4}secret\s{1,4}show\b|\b(?:echo|printenv)\s{1,4}[\"'\\]{0,3}\$?\{?\w{0,40}?(?:PASS|SECRET|TOKEN|_KEY)",
        re.IGNORECASE,
    )
)
_WHETHER = lazy_regex(
    r"\b(?:should|shall|may|can|could)[ ](?:i|we)\b|\b(?:soll(?:en|te[n]?)?|darf|dürfen)[ ](?:ich|wir)\b"
    r"|\bdois-je\b|\b(?:devo|debo|deber[ií]a)\b|要不要|是否|吗[?？]|(?:べき|ましょう)か|할까요",
    re.IGNORECASE,
)
"""Asks whether to do something with one: its answer is yes or no."""
_WORD = lazy_regex(r"""[^\s"'`“”„«»「」『』，。；、！？（）：<>]{4,65536}+""")
_BARE_LINE = lazy_regex(r"""(?m)^[ \t]{0,8}["'`]?([^\s"'`<>{}]{4,65536}+)["'`]?[ \t]{0,8}\r?$""")


def asks(text: str) -> bool:
    """Whether a message ends by asking for a secret."""
    tail = _NO_CREDENTIAL.sub(" ", text.rstrip()[-_ASKED_CHARS:])
    if all(name == "pass" for name in names_in(tail)):
        return False
    if _WANTS.search(tail) is not None:
        return True
    return len(tail) < _SHORT_QUESTION and tail.endswith(("?", "？", ":", "：")) and not _WHETHER.search(tail)


def reading() -> str:
    """What `prints` looks for, for an automaton."""
    return loosened(_READING.pattern)


def prints(arguments: str) -> bool:
    """Whether a call reads a secret, so that its result is one."""
    return _READING.search(arguments, _CALL_CHARS) is not None


def answer_spans(text: str) -> Iterator[SecretSpan]:
    """What a short answer gives."""
    if len(text) > _ANSWER_CHARS:
        return
    found = list(_WORD.finditer(text))
    for word in found:
        value = word[0].strip(".,;:!?()[]*_")
        alone = len(found) == 1
        if is_file_name(value) or not (is_chosen(value) or (alone and is_pin(value))):
            continue
        if alone or (len(found) <= _ANSWER_WORDS and not is_hex_or_id(value)):
            start = word.start() + word[0].find(value)
            yield SecretSpan(start, start + len(value), "answer")


def is_pin(value: str) -> bool:
    return value.isdigit() and 4 <= len(value) <= 12


def printed_spans(text: str) -> Iterator[SecretSpan]:
    """Values that stand alone on a line of what a reading command printed."""
    few = text.strip().count("\n") < _FEW_LINES
    for line in _BARE_LINE.finditer(text, 0, _OUTPUT_CHARS):
        value = line[1]
        if is_file_name(value):
            continue
        if (few and is_chosen(value)) or (len(value) >= _LEAST_KEY and is_opaque_literal(value)):
            yield SecretSpan(*line.span(1), "printed")


def shown_spans(text: str) -> Iterator[SecretSpan]:
    """A command that reads a secret, and what it printed, in one text."""
    for begin in _commands(text):
        end = text.find("\n", begin, begin + _CALL_CHARS)
        line = _BARE_LINE.match(text, end + 1) if end > 0 and prints(text[begin:end]) else None
        if line is not None and not is_file_name(line[1]) and (is_chosen(line[1]) or is_opaque_literal(line[1])):
            yield SecretSpan(*line.span(1), "printed")


def _commands(text: str) -> Iterator[int]:
    """Where the first line begins, and each that a shell's prompt stands before."""
    yield 0
    for sign in ("$ ", "# "):
        place = text.find(sign, 1)
        while place > 0:
            if sign == "$ " or text[place - 1] in "~)]/:":  # others begin a comment or a heading
                yield place
            place = text.find(sign, place + 2)
