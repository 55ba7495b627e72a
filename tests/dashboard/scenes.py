"""Conversations to look at."""

from __future__ import annotations

from typing import Any

from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.events import CompactionReport, Outcome, Span, Verification, ViewEntry
from leporello.messages import Message
from leporello.store import Store
from leporello.store.records import CompactionRecord, Metadata, ModelCall, StoredFold
from leporello.testing.sessions import generate
from leporello.usage import CanonicalUsage

USAGE = CanonicalUsage(1_200, 300, 9_000, 800, 0)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def folded(store: Store, home: Home, id: str = "build-42", **about: Any) -> None:
    """A coding session of 130 messages in a small window, folded by the engine itself, with usage."""
    session = generate(seed=11, messages=130)
    settings = load_settings({}, environ={}, home=home)
    metadata = Metadata(**{"title": "Mend the build", "platform": "chat", "model": "gpt-4o", **about})
    with Conversation.open(
        id, model="gpt-4o", window=24_000, store=store, settings=settings, metadata=metadata
    ) as conversation:
        for start in range(0, len(session.messages), 10):
            conversation.append(*session.messages[start : start + 10])
            conversation.request(session.tools, session.system)
            store.usage.add(id, ModelCall(USAGE, "gpt-4o", "chat", 0.0125))
        assert conversation.runtime.log.compactions >= 2


def short(store: Store, id: str, texts: list[str], **about: Any) -> None:
    """A few messages, nothing folded."""
    store.conversations.create(id, Metadata(**about))
    store.log.append(id, [user(text) if place % 2 == 0 else assistant(text) for place, text in enumerate(texts)])


def long(store: Store, id: str = "long", count: int = 10_000) -> None:
    """Ten thousand messages, folded three times; each fold takes the one before it in."""
    store.conversations.create(id, Metadata(title="Ten thousand messages", platform="import", model="gpt-4o"))
    messages = [user(f"message number {n} of the long one") for n in range(1, count + 1)]
    store.log.append(id, messages)
    for number, end in enumerate((count // 3, count // 3 * 2, count - 60), 1):
        view = store.views.view(id)
        fold = f"f{number}"
        covered = Span(4, end)
        report = CompactionReport(
            Outcome.COMMITTED, fold=fold, covered=covered, tokens_before=50_000, tokens_after=9_000, engine="compressor"
        )
        lines = [{"text": f"Everything up to m{end} was read", "sources": [end], "origin": "assistant"}]
        store.views.commit(
            id,
            CompactionRecord(
                base_generation=view.generation,
                base_last=view.last,
                entries=[
                    *(ViewEntry(ref=n) for n in range(1, 4)),
                    ViewEntry(inline=assistant(f"summary {number}"), fold=fold),
                    *(ViewEntry(ref=n) for n in range(end + 1, count + 1)),
                ],
                report=report,
                folds=[
                    StoredFold(
                        fold,
                        covered,
                        f"summary {number}",
                        {"Completed Actions": lines},
                        (f"f{number - 1}",) if number > 1 else (),
                    )
                ],
            ),
        )


def shortened(store: Store, id: str) -> None:
    """A compaction that shows one of the newest messages, m9, shortened to a stub."""
    store.conversations.create(id, Metadata(title="With a stub", platform="chat", model="gpt-4o"))
    texts = [f"step {n}" for n in range(1, 9)] + ["a very long output " * 300, "and the newest"]
    store.log.append(id, [user(text) if n % 2 else assistant(text) for n, text in enumerate(texts)])
    view = store.views.view(id)
    entries = [
        ViewEntry(inline=assistant("summary"), fold="f1"),
        ViewEntry(ref=9, inline=assistant("[5,700 characters of output were left out here]")),
        ViewEntry(ref=10),
    ]
    report = CompactionReport(Outcome.COMMITTED, fold="f1", covered=Span(1, 8), tokens_before=900, tokens_after=90)
    store.views.commit(
        id,
        CompactionRecord(view.generation, view.last, entries, report, folds=[StoredFold("f1", Span(1, 8), "summary")]),
    )


def verified(store: Store, id: str) -> None:
    """A compaction whose summary a model wrote, with lines that were quoted and dropped."""
    store.conversations.create(id, Metadata(title="Checked line by line", platform="chat", model="gpt-4o"))
    store.log.append(id, [user(f"step {n}") for n in range(1, 41)])
    view = store.views.view(id)
    checked = Verification(
        lines_checked=12,
        lines_dropped=2,
        rules_added=1,
        identifiers_added=3,
        dropped=("The port is 9999", "<b>All tests passed</b>"),
        lines_quoted=3,
    )
    report = CompactionReport(
        Outcome.COMMITTED,
        fold="f1",
        covered=Span(1, 30),
        summariser="model:gpt-4o-mini",
        engine="compressor",
        focus="the release",
        tokens_before=9_000,
        tokens_after=3_000,
        messages_before=40,
        messages_after=11,
        verification=checked,
        warnings=("The summary was shortened.",),
    )
    entries = [ViewEntry(inline=assistant("summary"), fold="f1"), *(ViewEntry(ref=n) for n in range(31, 41))]
    store.views.commit(
        id,
        CompactionRecord(view.generation, view.last, entries, report, folds=[StoredFold("f1", Span(1, 30), "summary")]),
    )
    store.views.record_attempt(id, CompactionReport(Outcome.NO_GAIN, "It would have saved 2% only."))
