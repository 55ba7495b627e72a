"""Promise 14, resume is exact: the first request after a restart is, byte for byte, the one without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leporello.conversation import Conversation
from leporello.conversation.rendering import Request
from leporello.messages import encode_json, role_of
from leporello.providers.base import ModelReply
from leporello.recall.tools import openai_tools
from leporello.testing.sessions import SessionSpec, generate
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

SESSION = generate(SessionSpec(seed=141, messages=90, tokens=24_000, images=0)).messages
COUNTER = TokenCounter.for_model(None)


def sent(request: Request) -> bytes:
    """Everything of a request that goes over the wire, in two dialects."""
    return encode_json([request.openai_chat(), request.anthropic()])


def requests(url: str, restarted: bool, counts: float) -> list[bytes]:
    """All requests of a session. The provider counts so many times what we count."""
    out: list[bytes] = []
    conversation = Conversation.open("a", window=8_000, store=url, model="claude-sonnet-4-5")
    for message in SESSION:
        if role_of(message) != "assistant":
            conversation.append(message)
            continue
        if restarted:
            conversation.close()
            conversation = Conversation.open("a", window=8_000, store=url, model="claude-sonnet-4-5")
        request = conversation.request(openai_tools(), "You are a careful engineer.")
        out.append(sent(request))
        counted = round(COUNTER.messages(request.messages) * counts)
        conversation.record(ModelReply(message, CanonicalUsage(input_tokens=counted, output_tokens=9)))
    assert conversation.runtime.log.compactions >= 3
    conversation.close()
    return out


@pytest.mark.fault(
    "what the provider counted is forgotten",
    "conversation/sizes.py",
    old="        self._sizes.restore(kept)",
    new="        pass",
)
@pytest.mark.parametrize("counts", [1.3, 0.7])
def test_a_process_that_begins_anew_before_each_call_sends_the_same(tmp_path: Path, counts: float) -> None:
    kept = requests(f"sqlite:///{tmp_path}/kept.db", False, counts)
    assert requests(f"sqlite:///{tmp_path}/restarted.db", True, counts) == kept


@pytest.mark.fault(
    "an undone compaction is made again after a restart",
    "conversation/sizes.py",
    old="return undone(state, self._sizes.limits) if self._log.view.waits_for_hard_limit else state",
    new="return state",
)
def test_what_the_user_took_back_stays_so_after_a_restart(tmp_path: Path) -> None:
    """More than the threshold is shown; without a restart no compaction would come before the hard limit."""
    url = f"sqlite:///{tmp_path}/store.db"
    with Conversation.open("a", window=36_000, store=url) as conversation:
        conversation.append(*SESSION)
        assert conversation.compact().committed
        conversation.undo()
        going_on = sent(conversation.request(system="s"))
    with Conversation.open("a", window=36_000, store=url) as conversation:
        assert sent(conversation.request(system="s")) == going_on
        assert conversation.runtime.log.compactions == 0


@pytest.mark.fault(
    "the rules of earlier processes are forgotten",
    "conversation/log.py",
    old="self._ledger, self._kept = load_ledger(self._store, self._id, last, most)",
    new="self._ledger, self._kept = load_ledger(self._store, self._id, last, most); self._ledger.rules.clear()",
)
def test_the_compaction_after_a_restart_is_the_one_without_it(tmp_path: Path) -> None:
    """What was learned from folded messages (rules, tasks, files) is known to the next process."""
    folds = []
    for restarted in (False, True):
        url = f"sqlite:///{tmp_path}/{restarted}.db"
        conversation = Conversation.open("a", window=8_000, store=url)
        for start in range(0, 90, 30):
            conversation.append(*SESSION[start : start + 30])
            conversation.compact()
            if restarted:
                conversation.close()
                conversation = Conversation.open("a", window=8_000, store=url)
        folds.append(sent(conversation.request()))
        conversation.close()
    assert folds[0] == folds[1]
