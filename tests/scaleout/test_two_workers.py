"""Two workers, one conversation: turns one after the other, folds once, no acknowledged message lost by kill -9."""

from __future__ import annotations

import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leporello.messages import role_of, text_of
from leporello.store import Store, open_store
from leporello.turns import validate
from tests.scaleout.plant import SUMMARIES, Plant, Talker, plant, until

WINDOW = 12_000


def said(store: Store, id: str) -> list[str]:
    """What users said, in the order of the log."""
    messages = [stored.message for stored in store.log.iterate(id)]
    return [text_of(message) for message in messages if role_of(message) == "user"]


def check(store: Store, id: str) -> None:
    """The log is a conversation, the store is sound, each generation was made once, and nobody holds anything."""
    assert validate([stored.message for stored in store.log.iterate(id)]) == []
    committed = [attempt.generation for attempt in store.views.attempts(id, 1_000) if attempt.report.committed]
    assert sorted(committed, key=lambda generation: generation or 0) == list(range(1, len(committed) + 1))
    assert store.conversations.resolve(id).generation == len(committed)
    assert store.inbox.waiting(id) == []
    assert store.care.checkup().clean
    until(lambda: store.turns.holder(id) is None, "the last turn is given back")


def padded(number: int) -> str:
    return f"Message number {number:03}. " + f"The value of item {number} is {number * 37}. " * 12


def test_turns_are_serialised_and_folds_happen_once(tmp_path: Path, database: str) -> None:
    """Many clients write to one conversation at two workers at the same time."""
    with plant(tmp_path, database, window=WINDOW) as made, open_store(database) as store:
        talker = Talker(made)
        id = talker.begin()
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda k: talker.say(id, padded(k), f"id-{k}", k), range(60)))
        for number, answer in enumerate(answers):
            assert answer["status"] == "done", answer
            assert answer["text"].startswith(f"You said: Message number {number:03}.")
        # One turn after the other: each message is followed by its own answer.
        log = [text_of(stored.message) for stored in store.log.iterate(id)]
        for asked, answered in zip(log[::2], log[1::2], strict=True):
            assert answered.startswith(f"You said: {asked[:20]}")
        assert sorted(said(store, id)) == sorted(padded(number) for number in range(60))
        until(lambda: store.conversations.resolve(id).generation > 0, "the conversation is folded")
        check(store, id)


def test_a_killed_worker_loses_nothing(tmp_path: Path, database: str) -> None:
    """100 turns, alternating between two workers; one of them is killed in the middle of a turn, again and again."""
    rng = random.Random(7)
    deaths = set(rng.sample(range(5, 95), 4))
    with plant(tmp_path, database, window=WINDOW) as made, open_store(database) as store:
        talker = Talker(made)
        id = talker.begin()
        for number in range(100):
            if number in deaths:
                answer = _with_a_death(made, talker, id, number)
            else:
                answer = talker.say(id, padded(number), f"id-{number}", number)
            assert answer["status"] == "done", answer
            assert answer["text"].startswith(f"You said: Message number {number:03}.")
        # Each acknowledged message once, in the order of acknowledgement.
        assert said(store, id) == [padded(number) for number in range(100)]
        until(lambda: store.conversations.resolve(id).generation > 1, "the conversation is folded")
        check(store, id)
        # Said again, each is known: nothing is answered twice.
        asked = [text for text in made.model.asked if text.startswith("Message number")]
        assert all(talker.say(id, padded(k), f"id-{k}", k)["status"] == "done" for k in range(100))
        # A summary may be asked for at any time: it is made in the background.
        assert [text for text in made.model.asked if text.startswith("Message number")] == asked


def _with_a_death(made: Plant, talker: Talker, id: str, number: int) -> dict[str, object]:
    """Say something; kill the worker while it waits for the model, and let another finish."""
    place = number % 2
    asked = len(made.model.asked)
    made.model.held.set()
    with ThreadPoolExecutor(1) as client:
        saying = client.submit(talker.say, id, padded(number), f"id-{number}", place)
        until(lambda: len(made.model.asked) > asked, "the model is asked")
        made.workers[place].kill()
        made.model.held.clear()
        made.replace(place)
        return saying.result()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_was_acknowledged_is_answered_without_its_client(tmp_path: Path, database: str, kind: str) -> None:
    """Messages that a worker took in and never answered are answered by another one, in order, though nobody asks."""
    url = database if kind == "postgres" else f"sqlite:///{tmp_path}/shared.db"
    with plant(tmp_path, url, workers=1) as made, open_store(url) as store:
        talker = Talker(made)
        id = talker.begin()
        made.model.held.set()
        for number in range(8):
            assert talker.say(id, padded(number), f"id-{number}", 0, wait=False)["status"] == "waiting"
        until(lambda: made.model.asked, "the first turn is under way")
        made.workers[0].kill()
        made.model.held.clear()
        assert len(store.inbox.waiting(id)) == 8
        made.replace(0)
        until(lambda: not store.inbox.waiting(id), "all messages are answered")
        assert said(store, id) == [padded(number) for number in range(8)]
        assert all(talker.say(id, padded(k), f"id-{k}", 0)["status"] == "done" for k in range(8))
        check(store, id)


def test_a_worker_that_stops_hands_over(tmp_path: Path, database: str) -> None:
    """A rolling restart: each worker is stopped by SIGTERM and replaced while clients go on; none sees an error."""
    with plant(tmp_path, database) as made, open_store(database) as store:
        talker = Talker(made)
        ids = [talker.begin() for _ in range(3)]
        with ThreadPoolExecutor(3) as clients:

            def talk(id: str) -> list[str]:
                return [talker.say(id, padded(k), f"id-{k}", k)["status"] for k in range(40)]

            talking = [clients.submit(talk, id) for id in ids]
            for place in (0, 1):
                until(lambda place=place: len(made.model.asked) > 20 * (place + 1), "clients talk")
                assert made.workers[place].stop() in (0, -signal.SIGTERM)
                made.replace(place)
            assert [task.result() for task in talking] == [["done"] * 40] * 3
        for id in ids:
            assert said(store, id) == [padded(number) for number in range(40)]
            check(store, id)


def test_a_message_can_be_cancelled_at_any_worker(tmp_path: Path, database: str) -> None:
    """The worker that is asked to stop a turn need not be the one that runs it."""
    with plant(tmp_path, database) as made, open_store(database) as store:
        talker = Talker(made)
        id = talker.begin()
        made.model.held.set()
        talker.say(id, "Something long.", "id-1", 0, wait=False)
        talker.say(id, "And something after it.", "id-2", 0, wait=False)
        until(lambda: made.model.asked, "the turn is under way")
        assert talker.ask("POST", f"/api/conversations/{id}/cancel", 1, {})["cancelled"] == 2
        until(lambda: not store.inbox.waiting(id), "both messages have ended")
        made.model.held.clear()
        assert talker.say(id, "And something after it.", "id-2", 1)["status"] == "interrupted"
        assert store.inbox.get(id, "id-1").outcome["status"] == "interrupted"  # type: ignore[index]
        assert said(store, id) == ["Something long."]


def test_a_worker_killed_in_the_middle_of_a_fold(tmp_path: Path, database: str) -> None:
    """The conversation goes on meanwhile; the fold is made by another worker, once, and nothing is lost."""
    flags = {"auxiliary.compression.model": SUMMARIES, "auxiliary.compression.provider": "main"}
    with plant(tmp_path, database, workers=1, window=WINDOW, flags=flags) as made, open_store(database) as store:
        talker = Talker(made)
        id = talker.begin()
        made.model.hold_summaries.set()
        number = 0
        # The queue looks for work once a second: turns come no faster than people and models make them.
        while not made.model.summarising.wait(0.2):
            assert number < 60, "a fold was never begun"
            assert talker.say(id, padded(number), f"id-{number}", 0)["status"] == "done"
            number += 1
        # Nobody waits for the fold: turns go on while it is under way.
        for _ in range(3):
            assert talker.say(id, padded(number), f"id-{number}", 0)["status"] == "done"
            number += 1
        assert made.model.summarising.is_set()
        made.workers[0].kill()
        assert store.conversations.resolve(id).generation == 0
        made.model.hold_summaries.clear()
        made.replace(0)
        until(lambda: store.conversations.resolve(id).generation == 1, "another worker folds")
        assert talker.say(id, padded(number), f"id-{number}", 0)["status"] == "done"
        assert said(store, id) == [padded(k) for k in range(number + 1)]
        check(store, id)
