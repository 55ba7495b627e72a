"""The store behind a command: opening it, and finding what a person means by an id."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Concatenate

import click

from leporello.cli.context import CommandContext, P, R, pass_context
from leporello.errors import InputError, NotFound, StoreUnavailable
from leporello.present.output import json_option, progress, warn
from leporello.present.text import ELLIPSIS, plural, short
from leporello.store import Store, StoreOptions, open_store, sqlite_path
from leporello.store.records import ConversationRecord

_LOOKED_AT = 2000
_STEP = 1000
_NEAREST = 3
_SHOWN = 8
_LEAST_BEGINNING = 4  # a shorter beginning matches the wrong conversation too easily
_LONGEST_ID = 200
NONE_YET = (
    "There are no conversations yet. `leporello chat` starts one, `leporello import` reads those of other agents, "
    "`leporello serve` keeps those of programs."
)


store_option = click.option("--store", "url", metavar="URL", help="The store, instead of the configured one.")


def pass_store_options(function: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """What commands about the store take: `--store` as `url`, `--json` as `as_json`, and the context before them."""
    return store_option(json_option(pass_context(function)))


def open_existing(context: CommandContext, url: str | None = None, read_only: bool = False) -> Store:
    """Open a store that must be there: a mistyped name is an error, not a new empty store."""
    address = url or context.settings.store_url
    path = file_of(address)
    if path is not None and not path.exists():
        raise InputError(
            "There is no store here yet. `leporello chat`, `leporello import` and `leporello serve` make one.",
            str(path),
        )
    return open_store(address, StoreOptions(read_only=read_only))


@contextmanager
def open_for_listing(context: CommandContext, url: str | None) -> Iterator[Store]:
    """The store for a command that lists what there is.

    Before the first conversation the configured store has no file: then it is an empty one, which leaves no trace. A
    store that was named must be there.
    """
    path = file_of(context.settings.store_url)
    if url is None and path is not None and not path.exists():
        with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/empty.db") as store:
            yield store
        return
    with open_existing(context, url) as store:
        yield store


def nothing_found(store: Store, text: str) -> str:
    """What to say when a list is empty: that there are no conversations at all, or else the text."""
    return text if store.conversations.page(limit=1).conversations else NONE_YET


def file_of(address: str) -> Path | None:
    """The file of a SQLite store; None for a server."""
    scheme, separator, _ = address.partition("://")
    return Path(sqlite_path(address)) if not separator or scheme == "sqlite" else None


def find(store: Store, id: str) -> ConversationRecord:
    """The conversation an id of its chain belongs to, or the only one whose id begins so.

    An unknown id is answered with those that look like it.
    """
    found = store.conversations.find(id)
    if found is not None:
        return found
    begin, _, end = id.partition(ELLIPSIS)
    begun = _beginning_with(store, begin, end)
    if len(begun) == 1:
        return begun[0]
    if begun:
        some = ", ".join(short(record.id, 80) for record in begun[:_SHOWN])
        more = f" and {len(begun) - _SHOWN:,} more" if len(begun) > _SHOWN else ""
        raise NotFound(f'"{short(id, 80)}" is the beginning of {len(begun):,} ids: {some}{more}. Type more of it.')
    near = _nearest(store, id)
    hint = f"The nearest: {', '.join(near)}." if near else "`leporello sessions list` shows what there is."
    raise NotFound(f'No conversation has the id "{short(id, 80)}". {hint}')


def _beginning_with(store: Store, begin: str, end: str) -> list[ConversationRecord]:
    """Conversations of which an id begins and ends so, its platform (`codex:`) included or not."""
    if not _LEAST_BEGINNING <= len(begin) <= _LONGEST_ID:
        return []
    return [
        record
        for record in store.conversations.each()
        if any(
            name.startswith(begin) and name.endswith(end)
            for id in (record.id, record.tip.id)
            for name in (id, id.partition(":")[2])
        )
    ]


def _nearest(store: Store, id: str) -> list[str]:
    if len(id) > _LONGEST_ID:
        return []
    known: dict[str, str] = {}
    by_title: list[str] = []
    for record in islice(store.conversations.each(), _LOOKED_AT):
        for candidate in (record.id, record.tip.id):
            if len(candidate) <= _LONGEST_ID:
                known.setdefault(candidate.casefold(), candidate)
        if id.casefold() == record.metadata.title.strip().casefold():
            by_title.append(record.id)
    wanted = id.casefold()
    beginnings = [key for key in known if wanted and key.startswith(wanted)]
    close = get_close_matches(wanted, list(known), n=_NEAREST, cutoff=0.6)
    found = dict.fromkeys([*by_title, *(known[key] for key in (*beginnings, *close))])
    return [short(candidate, 80) for candidate in found][:_NEAREST]


def bring_index_up_to_date(store: Store) -> None:
    """Index what is not indexed yet, with a progress line.

    A store that can't be written can't be indexed either; then it is said what is missing.
    """
    behind = store.index.pending()
    done, written = 0, not store.read_only
    try:
        with progress("Messages indexed:") as line:
            while written and (step := store.index.catch_up(_STEP)):
                done += step
                line.update(done, max(behind, done))
    except StoreUnavailable:
        # The disk is full, or the server is away: then the next question says so.
        written = False
    if behind > done and not written:
        warn(f"{plural(behind - done, 'message')} left out: not indexed yet, and the store can't be written.")
