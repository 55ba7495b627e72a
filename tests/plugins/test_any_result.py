"""Whatever list a foreign engine returns, what is shown afterwards is valid, complete at its end, and refers truly."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leporello.compaction.pipeline import CompactionTask
from leporello.compaction.view import number_messages
from leporello.engines.base import ContextEngine
from leporello.engines.guard import PluginGuard
from leporello.engines.plugin_engine import HostedEngine, PluginEngine
from leporello.ledger.ledger import Ledger
from leporello.messages import Message, encode_json, is_instruction, role_of
from leporello.models import Limits
from leporello.tokens import TokenCounter
from leporello.turns import open_group, validate
from tests.support.strategies import conversations

WINDOW = 6_000
COUNTER = TokenCounter.for_model(None)
PADDING = [{"role": "assistant", "content": "All of this is known. " * 60}, {"role": "user", "content": "Go on."}]

KINDS = ["from a user", "from a user", "without a turn", "drop", "swap", "repeat", "insert", "shorten"]
edits = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10_000)), min_size=1, max_size=4)


def _users(messages: list[Message]) -> list[int]:
    return [k for k, message in enumerate(messages) if role_of(message) == "user"]


class Editor(ContextEngine):
    """Returns its input with some edits, sensible or not."""

    name = "editor"

    def __init__(self, wanted: list[tuple[str, int]]) -> None:
        super().__init__(WINDOW)
        self.wanted = wanted

    def update_from_response(self, usage: dict[str, Any]) -> None:
        pass

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return True

    def compress(self, messages: list[Message], *args: Any, **kwargs: Any) -> list[Message]:
        made = list(messages)
        for kind, where in self.wanted:
            if not made:
                break
            k = where % len(made)
            if kind == "drop":
                del made[k]
            elif kind == "swap":
                made[k], made[-1] = made[-1], made[k]
            elif kind == "repeat":
                made.insert(k, made[k])
            elif kind == "insert":
                role = "user" if where % 2 else "assistant"
                made.insert(k, {"role": role, "content": "A summary of all that."})
            elif kind == "from a user":
                kept = _users(made)[where % len(_users(made))] if _users(made) else 0
                made = [m for k, m in enumerate(made) if k >= kept or is_instruction(m)]
            elif kind == "without a turn" and len(_users(made)) > 1:
                turn = where % (len(_users(made)) - 1)
                del made[_users(made)[turn] : _users(made)[turn + 1]]
            else:
                made[k] = {**made[k], "content": "shorter"}
        return made


@given(conversations(), edits, st.booleans())
def test_any_edited_list(messages: list[Message], wanted: list[tuple[str, int]], late: bool) -> None:
    messages = [*messages, *(PADDING * 6 if open_group(messages) is None else [])]
    guard = PluginGuard("engine editor", 20)
    engine = PluginEngine(HostedEngine(Editor(wanted), guard, "editor"))
    items = number_messages(messages)
    before = encode_json(messages)
    task = CompactionTask(
        items=items,
        limits=Limits.for_window(WINDOW),
        counter=COUNTER,
        measure=COUNTER.message,
        ledger=Ledger(),
        trigger="overflow" if late else "manual",
    )
    done = engine.compact(task)
    guard.close()
    assert encode_json(messages) == before
    shown = done.messages if done.report.committed else messages
    if done.report.committed:
        assert validate(shown) == []
        assert done.report.tokens_after < done.report.tokens_before
    newest = next((message for message in reversed(messages) if role_of(message) == "user"), None)
    if newest is not None and not validate(messages):
        assert any(str(newest.get("content")) in str(message.get("content")) for message in shown)
    assert [m for m in messages if is_instruction(m)] == [m for m in shown if is_instruction(m)]
    group = open_group(messages)
    if group is not None:
        assert shown[-len(group) :] == messages[group.start :]
    for line in done.shown:
        if line.entry.ref is not None and line.entry.inline is None:
            assert line.message == messages[line.entry.ref - 1], "a reference to another message"
    if done.report.committed and done.report.engine == "editor" and done.fold is not None:
        refs = {line.entry.ref for line in done.shown}
        hidden = {item.number for item in items} - refs
        assert all(number in done.fold.span for number in hidden), "a hidden message that no fold covers"
    assert done.report.committed or done.report.reason
    assert len(done.report.warnings) <= 2
