"""Commands that read or change what the store and the settings hold: usage, pins, conversations, engines, settings."""

from __future__ import annotations

import time
from typing import Any

from leporello.config import Settings
from leporello.conversation import Conversation
from leporello.ledger import user_text
from leporello.messages import text_of
from leporello.plugins.host import PluginStatus
from leporello.present.numbers import moment, percent, plural
from leporello.present.records import cost_text, usage_line
from leporello.redact import redact
from leporello.store import Store
from leporello.store.records import ConversationFilter, ConversationRecord, InsightsQuery

SHOWN_CHARS = 60
TITLE_CHARS = 40
ID_CHARS = 20
LINE_CHARS = 78
"""A row of a list fits on a terminal of the usual width; the beginning of an id is enough to resume by."""
LISTED = 10
DAYS = 30
MOST_LOOKED_AT = 200
_SECONDS_PER_DAY = 86_400


def usage(talk: Conversation, _: str) -> str:
    return f"{usage_line(talk.usage)}, folded {plural(talk.runtime.log.compactions, 'time')}"


def insights(talk: Conversation, argument: str) -> str:
    days = int(argument) if argument.isdecimal() and int(argument) else DAYS
    found = talk.runtime.log.store.usage.insights(InsightsQuery(since=time.time() - days * _SECONDS_PER_DAY))
    lines = [
        f"Last {plural(days, 'day')}: {plural(found.conversations, 'conversation')}, "
        f"{plural(found.messages, 'message')}",
        usage_line(found.totals),
    ]
    models = sorted(found.by_model.items(), key=lambda item: -item[1].usage.total_tokens)
    for name, totals in models[:LISTED]:
        tokens = totals.usage.total_tokens
        lines.append(f"  {_short(name or '(no name)', 28):28} {tokens:>12,} tokens, cost {cost_text(totals)}")
    tools = sorted(found.by_tool.items(), key=lambda item: -item[1].calls)
    if tools:
        lines.append("tools: " + ", ".join(f"{name} {use.calls:,}" for name, use in tools[:LISTED]))
    folds = found.compactions
    done = folds.attempts.get("committed", 0)
    if done:
        saved = 1 - folds.tokens_after / max(1, folds.tokens_before)
        lines.append(f"folded {plural(done, 'time')}, {percent(saved)} smaller on average, {folds.undone:,} undone")
    return "\n".join(lines)


# -- pins


def pin(talk: Conversation, argument: str) -> str:
    if not argument:
        pins = talk.pins.all()
        if not pins:
            return "Nothing is pinned. Pin a message by its id: /pin m12"
        return "\n".join(f"m{held.number}  {held.note or _opening(talk, held.number)}" for held in pins)
    id, _, note = argument.partition(" ")
    size = talk.pins.add(id, note.strip())
    later = "" if _is_shown(talk, id) else " It is folded now; from the next folding on it is shown again."
    return f"Pinned {id} ({size:,} tokens).{later}"


def unpin(talk: Conversation, argument: str) -> str:
    if not argument:
        return "Name a message: /unpin m12"
    return f"{argument} is no longer pinned." if talk.pins.remove(argument) else f"{argument} was not pinned."


def _is_shown(talk: Conversation, id: str) -> bool:
    shown = talk.runtime.log.view.lines
    return any(f"m{line.number}" == id.strip("[]").lower() for line in shown if not line.shortened)


def _opening(talk: Conversation, number: int) -> str:
    return _short(text_of(talk.runtime.log.store.log.message(talk.id, number).message), SHOWN_CHARS)


# -- conversations


def sessions(talk: Conversation, argument: str) -> str:
    """The newest conversations, numbered for `/resume`."""
    count = int(argument) if argument.isdecimal() and int(argument) else LISTED
    records = recent(talk.runtime.log.store, count)
    if not records:
        return "There are no conversations yet."
    wide = min(ID_CHARS, max(len(record.id) for record in records))
    lines = [f"  #  {'id':{wide}}  {'active':16}  {'messages':>8}  title"]
    for place, record in enumerate(records, 1):
        here = "*" if record.id == talk.id else " "
        about = title_of(record.metadata.title) or first_words(talk.runtime.log.store, record)
        active = moment(record.updated_at)
        row = f"{here}{place:>2}  {_short(record.id, wide):{wide}}  {active:16}  {record.messages:>8,}  "
        lines.append(row + _short(about, max(8, LINE_CHARS - len(row))))
    return "\n".join(lines)


def recent(store: Store, count: int, platform: str | None = None) -> list[ConversationRecord]:
    """Conversations with at least one message, newest activity first; all, or those of one platform."""
    where = ConversationFilter(platform=platform)
    found: list[ConversationRecord] = []
    cursor: str | None = None
    looked_at = 0
    while len(found) < count and looked_at < MOST_LOOKED_AT + count:
        page = store.conversations.page(where, limit=50, cursor=cursor)
        looked_at += len(page.conversations)
        found += [record for record in page.conversations if record.messages]
        cursor = page.cursor
        if cursor is None:
            break
    return found[:count]


def first_words(store: Store, record: ConversationRecord) -> str:
    """The beginning of the first message, secrets masked."""
    return title_of(text_of(store.log.message(record.id, 1).message)) if record.messages else ""


def title_of(text: str) -> str:
    """A few words to know a conversation by: the user's own, secrets masked."""
    return user_text.title_of(text, most=TITLE_CHARS)


# -- engines and settings


def plugins(talk: Conversation, _: str) -> str:
    listed = talk.runtime.plugins.host.listing()
    width = max(len(line.name) for line in listed)
    lines = []
    for line in listed:
        mark = "*" if line.status in (PluginStatus.IN_USE, PluginStatus.ENABLED) else " "
        about = line.why or line.description or line.where
        lines.append(f"{mark} {line.name:{width}}  {line.status:9}  {_short(about, 50)}".rstrip())
    return "\n".join([*lines, *talk.runtime.plugins.troubles])


def config(talk: Conversation, argument: str) -> str:
    settings = talk.runtime.settings
    if argument:
        return _setting(settings, argument)
    changed = [key for key in settings if settings.source(key).origin.value != "default"]
    lines = [_setting(settings, key) for key in changed] or ["All settings are the defaults."]
    return "\n".join([*lines, f"home: {settings.home.path}", "All of them: leporello config"])


def _setting(settings: Settings, key: str) -> str:
    return f"{key} = {_masked(key, settings.get(key))}  ({settings.source(key)})"


def _masked(key: str, value: Any) -> str:
    opening = f'{key}: "'
    return redact(f'{opening}{value}"')[len(opening) : -1]


def _short(text: str, most: int) -> str:
    return user_text.one_line(text, most)
