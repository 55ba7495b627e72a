"""The crash campaign: a child works on a store and is killed at a random moment, again and again.

The child says what it is about to do, does it, and says that it is done. Whatever it said was done must be there after
the kill; what it was about to do must be there whole or not at all; nothing else may be there.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from leporello.errors import StoreUnavailable
from leporello.messages import Message
from leporello.store import Store, open_store
from leporello.store.records import ModelCall
from leporello.usage import CanonicalUsage
from tests.store.contract.base import contents, fold_all_but, user

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.store.crash", "leporello.store.sqlite", "leporello.store.postgres"])

CONVERSATIONS = ("one", "two")
_LEAST_APPENDS = 2
_MOST_WORDS = 20
_LONGEST_WAIT = 0.01
"""When a child is ended: after so many acknowledged appends, up to so many words more (two a step), and a wait."""


@dataclass
class Model:
    """What one conversation must look like."""

    log: list[str] = field(default_factory=list)
    states: list[tuple[list[str], int]] = field(default_factory=lambda: [([], 0)])
    generation: int = 0
    calls: int = 0
    artifacts: set[str] = field(default_factory=set)
    measured: str | None = None

    def view(self) -> list[str]:
        shown, base = self.states[-1]
        return shown + self.log[base:]

    def after(self, step: dict[str, Any]) -> Model:
        """The model once a step is done."""
        new = Model(list(self.log), list(self.states), self.generation, self.calls, set(self.artifacts), self.measured)
        match step["do"]:
            case "append":
                new.log += step["texts"]
            case "record":
                new.log.append(step["text"])
                new.calls += 1
                new.measured = step["text"]
            case "commit":
                new.states.append((step["shown"], step["base"]))
                new.generation += 1
            case "undo":
                new.states.pop()
                new.generation += 1
            case "usage":
                new.calls += 1
            case "artifact":
                new.artifacts.add(step["name"])
        return new


def work(url: str, seed: int, pipe: Connection) -> None:
    """The child: steps without end, or until the database is gone."""
    rng = random.Random(seed)
    with suppress(StoreUnavailable), open_store(url) as store:
        pipe.send({"do": "ready"})
        for number in range(1_000_000):
            id = rng.choice(CONVERSATIONS)
            step, run = plan(store, id, rng, f"{seed}.{number}")
            pipe.send({"do": "try", "id": id, "step": step})
            run()
            pipe.send({"do": "done"})


def plan(store: Store, id: str, rng: random.Random, name: str) -> tuple[dict[str, Any], Any]:
    """One step: what it is, and the function that does it."""
    kind = rng.choices(
        ["append", "record", "commit", "undo", "usage", "artifact", "index", "lease"], [10, 4, 4, 1, 2, 2, 2, 1]
    )[0]
    if kind == "append":
        texts = [f"{name}.{part} " + "word " * rng.choice((1, 10, 800)) for part in range(rng.randint(1, 4))]
        return {"do": "append", "texts": texts}, lambda: store.log.append(id, messages(texts))
    if kind == "record":
        text = f"{name} " + "word " * rng.choice((1, 800))
        call = ModelCall(CanonicalUsage(1, 1, 1, 1, 1), "m", cost=0.5)
        step = {"do": "record", "text": text}
        return step, lambda: store.log.record(id, user(text), call, {"measured": text, "attempts": None})
    if kind == "commit":
        view = store.views.view(id)
        compaction = fold_all_but(view, rng.randint(0, 3), f"fold {name} " + "detail " * rng.choice((1, 2000)))
        lines = {line.number: line.message["content"] for line in view.lines}
        shown = [entry.inline["content"] if entry.inline else lines[entry.ref] for entry in compaction.entries]
        return {"do": "commit", "shown": shown, "base": view.last}, lambda: store.views.commit(id, compaction)
    if kind == "undo" and store.views.generations(id)[-1].state:
        return {"do": "undo"}, lambda: store.views.undo(id)
    if kind == "usage":
        call = ModelCall(CanonicalUsage(1, 1, 1, 1, 1), "m", cost=0.5)
        return {"do": "usage"}, lambda: store.usage.add(id, call)
    if kind == "artifact":
        data = rng.randbytes(rng.choice((10, 100_000)))
        return {"do": "artifact", "name": name}, lambda: store.artifacts.put(id, data, name)
    if kind == "lease":
        return {"do": "nothing"}, lambda: store.leases.acquire(id, name, seconds=0.001)
    return {"do": "nothing"}, lambda: store.index.catch_up(limit=rng.choice((1, 20, None)))


def messages(texts: list[str]) -> list[Message]:
    return [user(text) for text in texts]


class Campaign:
    """A store, what must be in it, and the kills."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.rng = random.Random(seed)
        self.models = {id: Model() for id in CONVERSATIONS}
        self.in_flight = 0
        with open_store(url) as store:
            for id in CONVERSATIONS:
                store.conversations.create(id)

    def kill_once(self) -> None:
        """One life of a child, and the check of what it left behind."""
        self._live(lambda child: os.kill(child, signal.SIGKILL))

    def crash_once(self, crash: Callable[[], None], recover: Callable[[], None]) -> None:
        """The database dies under a working child, which is killed after it."""

        def end(child: int) -> None:
            crash()
            # It may have noticed and ended by itself.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            recover()

        self._live(end)

    def _live(self, end: Callable[[int], None]) -> None:
        ours, theirs = CONTEXT.Pipe(duplex=False)
        child = CONTEXT.Process(target=work, args=(self.url, self.rng.randrange(2**32), theirs), daemon=True)
        child.start()
        theirs.close()
        said = heard(ours)
        assert next(said, None) == {"do": "ready"}, "the child could not open the store"
        pending = self._follow(self._until_the_end_comes(said), None)
        assert child.pid is not None
        end(child.pid)
        child.join()
        pending = self._follow(said, pending)
        ours.close()
        self._check(pending)

    def _until_the_end_comes(self, said: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """What the child says before it is ended, at a moment that is drawn.

        It has got some appends done by then, however slow the machine is; so a campaign is never about empty stores.
        From there on it may do some more steps, and a fraction of one, since the draw does not wait for it to speak.
        """
        missing = _LEAST_APPENDS
        kind = ""
        while missing:
            word = next(said, None)
            assert word is not None, "the child ended by itself"
            if word["do"] == "try":
                kind = word["step"]["do"]
            elif kind == "append":
                missing -= 1
            yield word
        yield from itertools.islice(said, self.rng.randrange(_MOST_WORDS))
        time.sleep(self.rng.uniform(0.0, _LONGEST_WAIT))

    def _follow(
        self, said: Iterator[dict[str, Any]], pending: tuple[str, dict[str, Any]] | None
    ) -> tuple[str, dict[str, Any]] | None:
        """Take in what the child said it did; returns the step it is in."""
        for word in said:
            if word["do"] == "try":
                pending = word["id"], word["step"]
            elif pending is not None:
                id, step = pending
                self.models[id] = self.models[id].after(step)
                pending = None
        return pending

    def _check(self, pending: tuple[str, dict[str, Any]] | None) -> None:
        with open_store(self.url) as store:
            assert store.care.checkup().findings == ()
            for id in CONVERSATIONS:
                choices = [self.models[id]]
                if pending is not None and pending[0] == id:
                    choices.append(self.models[id].after(pending[1]))
                matching = [model for model in choices if matches(store, id, model)]
                assert matching, f"{id} is neither before nor after {pending and pending[1]['do']}"
                if matching[0] is not self.models[id]:
                    self.in_flight += 1
                self.models[id] = matching[0]


def matches(store: Store, id: str, model: Model) -> bool:
    """Whether a conversation is exactly what its model says."""
    return (
        [item.message["content"] for item in store.log.iterate(id)] == model.log
        and contents(store.views.view(id)) == model.view()
        and store.conversations.resolve(id).generation == model.generation
        and store.usage.totals(id).calls == model.calls
        and store.state.get(id, "measured") == model.measured
        and {info.name for info in store.artifacts.all(id)} == model.artifacts
    )


def heard(pipe: Connection) -> Iterator[Any]:
    """What came through a pipe, until it ends, cut off or not."""
    while True:
        try:
            yield pipe.recv()
        except (EOFError, OSError):
            return
