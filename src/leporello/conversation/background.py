"""Compactions beside a conversation: a job that was put off is done by another `Conversation` on the same store.

What it makes is committed by compare-and-swap and merged with what came since, so that nobody has to wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from leporello.cancel import CancelToken
from leporello.config import Settings
from leporello.conversation.compact import CompactionJob
from leporello.conversation.conversation import Conversation
from leporello.errors import Cancelled, LeporelloError
from leporello.plugins.host import PluginHost
from leporello.store import Store
from leporello.store.records import ConversationRecord
from leporello.summaries.base import LivePrefix, Summariser

CLOSING_SECONDS = 2.0
"""How long the end of a program waits for a compaction that it cancelled."""
_log = logging.getLogger("leporello.compaction")


def run_job(
    store: Store,
    settings: Settings,
    job: CompactionJob,
    summariser: Callable[[ConversationRecord], Summariser | None],
    plugins: PluginHost,
    cancel: CancelToken | None = None,
    live: Callable[[], LivePrefix | None] | None = None,
) -> None:
    """Do what was put off, unless the conversation is gone or somebody did so already."""
    record = store.conversations.find(job.conversation)
    if record is None or record.generation != job.generation:
        return
    with Conversation(
        store,
        record,
        settings,
        model=job.model,
        window=job.window,
        summariser=summariser(record),
        plugins=plugins,
        beside=True,
    ) as conversation:
        hooks = conversation.runtime.hooks
        hooks.cancel, hooks.live = cancel, live
        conversation.runtime.compactor.do(job)


class BackgroundCompactions:
    """Compacts one conversation in a thread of this process, one compaction at a time.

    `ended` is called in that thread after each, whether it changed anything or not.
    """

    def __init__(self, run: Callable[[CompactionJob, CancelToken], None]) -> None:
        self._run = run
        self.ended: Callable[[], None] = lambda: None
        self._cancel = CancelToken()
        self._thread: threading.Thread | None = None

    def later(self, job: CompactionJob) -> bool:
        """Begin a compaction, unless one is under way. Always taken."""
        if not self.busy:
            # A daemon: a summary that never comes must not keep the program alive.
            self._thread = threading.Thread(target=self._do, args=(job,), name="leporello-compaction", daemon=True)
            self._thread.start()
        return True

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the compaction that is under way."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Cancel what is under way; nothing is changed then."""
        self._cancel.cancel()
        self.join(CLOSING_SECONDS)

    def _do(self, job: CompactionJob) -> None:
        try:
            self._run(job, self._cancel)
        except Cancelled:
            return
        except LeporelloError as error:
            _log.warning("a compaction of %s beside the conversation failed: %s", job.conversation, error)
        finally:
            self.ended()
