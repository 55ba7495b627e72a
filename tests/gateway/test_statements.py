"""How often a message talks to the database, counted by the database: a guard that needs no clock.

Begin and commit are not counted as statements; transactions are counted beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from leporello.gateway.background import ThreadQueue
from leporello.providers.scripted import ScriptedProvider
from leporello.testing.stub_server import Say
from leporello.usage import CanonicalUsage
from tests.support.statements import Heard, listening_to_sqlite

from .house import House, opened
from .test_sessions import begun, client, parrot, say

Listen = Callable[[House], AbstractContextManager[Heard]]


def on_sqlite(house: House) -> AbstractContextManager[Heard]:
    return listening_to_sqlite(house.store)


def agent_message(folder: Path, listen: Listen) -> Heard:
    """The third message of an agent session, up to the end of its turn."""
    with opened(folder, provider=ScriptedProvider(parrot), queue=ThreadQueue()) as house, client(house) as web:
        at = begun(web)
        for text in ("one", "two", "three"):
            with listen(house) as heard:
                assert say(web, at, text)["text"] == f"You said: {text}"
                heard.wait_for("UPDATE turns SET expires = 0")
    return heard


def passed_request(
    folder: Path, listen: Listen, flags: Mapping[str, object] | None = None, last: str = "INSERT INTO usage"
) -> Heard:
    """The third request of a proxied conversation, with the usage of its answer, up to a statement."""
    answers = [Say(f"Answer {number}", usage=CanonicalUsage(30, 5)) for number in range(3)]
    with opened(folder, answers, flags=flags, queue=ThreadQueue()) as house, client(house, "key") as web:
        said = [{"role": "system", "content": "Be brief."}]
        for number in range(3):
            said.append({"role": "user", "content": f"Question {number}"})
            with listen(house) as heard:
                reply = web.post("/v1/chat/completions", json={"model": "gpt-4o", "messages": said})
                heard.wait_for(last)
            said.append(reply.json()["choices"][0]["message"])
    return heard


def check_agent_message(folder: Path, listen: Listen) -> None:
    heard = agent_message(folder, listen)
    assert len(heard.statements) <= 25, "\n".join(heard.statements)
    assert (heard.writes, heard.transactions) == (6, 8), "\n".join(heard.statements)


def check_passed_request(folder: Path, listen: Listen) -> None:
    heard = passed_request(folder, listen)
    assert len(heard.statements) <= 6, "\n".join(heard.statements)
    assert (heard.writes, heard.transactions) == (2, 3), "\n".join(heard.statements)


def check_budgeted_request(folder: Path, listen: Listen) -> None:
    """What a budget costs: two transactions, in which its owner's day is looked at, reserved and released."""
    heard = passed_request(folder, listen, {"gateway.tokens_per_day": 10**6}, "DELETE FROM reservations")
    assert len(heard.statements) <= 12, "\n".join(heard.statements)
    assert heard.transactions == 5, "\n".join(heard.statements)


def test_an_agent_message(tmp_path: Path) -> None:
    """Taken in, its turn taken, begun, logged, answered, ended with its turn: each once, and nothing twice."""
    check_agent_message(tmp_path, on_sqlite)


def test_a_passed_request(tmp_path: Path) -> None:
    """Recognised by one question; its messages, and later its usage, written at once."""
    check_passed_request(tmp_path, on_sqlite)


def test_a_request_of_a_key_with_a_budget(tmp_path: Path) -> None:
    check_budgeted_request(tmp_path, on_sqlite)
