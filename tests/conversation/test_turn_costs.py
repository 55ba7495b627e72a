"""What a turn writes, counted by the database: the guard that a turn stays two transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leporello.conversation import Conversation
from leporello.providers.base import ModelReply
from leporello.store import open_store
from leporello.usage import CanonicalUsage
from tests.support.statements import listening_to_sqlite


def test_a_turn_is_two_commits(tmp_path: Path) -> None:
    """The user's message; then the answer with its usage and what was measured. Nothing is read back or deleted."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        conversation = Conversation.open("a", model="gpt-4o", store=store)
        for number in range(3):
            with listening_to_sqlite(store) as heard:
                conversation.append({"role": "user", "content": f"Question {number}"})
                request = conversation.request(system="Be brief.")
                answer = {"role": "assistant", "content": f"Answer {number}"}
                conversation.record(ModelReply(answer, CanonicalUsage(request.tokens, 5)))
        assert (heard.writes, heard.transactions) == (2, 2), "\n".join(heard.statements)
        assert len(heard.statements) == 3 + 5, "\n".join(heard.statements)
        assert not [said for said in heard.statements if said.startswith(("SELECT", "DELETE"))]


def test_what_another_process_did_goes_before_an_answer(tmp_path: Path) -> None:
    """It is noticed when the answer is written, without a question before: the view has both, in their order."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        conversation = Conversation.open("a", model="gpt-4o", store=store)
        conversation.append({"role": "user", "content": "Question"})
        request = conversation.request()
        store.log.append("a", [{"role": "user", "content": "From elsewhere"}])
        conversation.record(ModelReply({"role": "assistant", "content": "Answer"}, CanonicalUsage(request.tokens, 5)))
        shown = [line.message["content"] for line in conversation.runtime.log.view.lines]
        assert shown == ["Question", "From elsewhere", "Answer"]
        assert store.log.count("a") == 3
        assert conversation.usage.calls == 1


class Watched(dict[str, Any]):
    """A message that counts how often somebody looks into it."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        Watched.looks += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        Watched.looks += 1
        return super().__getitem__(key)


def test_a_turn_looks_no_more_into_old_messages_the_longer_the_conversation(tmp_path: Path) -> None:
    """Counted, rendered and read once; later turns are about what is new."""
    looks = []
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        for length in (40, 400):
            id = f"of {length}"
            conversation = Conversation.open(id, model="gpt-4o", window=1_000_000, store=store)
            roles = ("user", "assistant")
            conversation.append(*(Watched(role=roles[n % 2], content=f"Message {n}.") for n in range(length)))
            for number in range(3):
                Watched.looks = 0
                conversation.append({"role": "user", "content": f"Question {number}"})
                request = conversation.request(system="Be brief.")
                answer = {"role": "assistant", "content": f"Answer {number}"}
                conversation.record(ModelReply(answer, CanonicalUsage(request.tokens, 5)))
            looks.append(Watched.looks)
    assert looks[0] == looks[1]
