"""What the dashboard's pages cost the server: a conversation of 10,000 messages, its folds, and a store of 10,000
conversations. Requests over loopback to a real gateway in another process, one at a time; the slowest counts, too.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.table import seconds, table
from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.store import StoreOptions, open_store
from leporello.store.records import Metadata, ModelCall
from leporello.testing.sessions import generate
from leporello.usage import CanonicalUsage

MESSAGES = 10_000
CONVERSATIONS = 10_000
WINDOW = 128_000
TIMES = 30
STEP = 100
UP_SECONDS = 5
"""How long the gateway has been up when the first page is asked for."""
PART = {"X-Leporello-Part": "1"}


def run() -> str:
    """All pages at full size."""
    return measure(MESSAGES, CONVERSATIONS, TIMES)


def run_quick() -> str:
    """Small, to see that it works."""
    return measure(600, 300, 5)


def measure(messages: int, conversations: int, times: int) -> str:
    """First answer, median and slowest of the rest for each page."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store = folder / "store.db"
        folds = _fill(store, folder / "home", messages, conversations)
        with _serving(store, folder / "home") as url:
            newest = f"f{folds}"
            pages = [
                ("list of conversations, first page", "/", {}),
                ("list of conversations, a filter that few pass", "/?platform=rare", {}),
                (f"conversation of {messages:,} messages, {folds} folds", "/c/long", {}),
                (f"conversation of {messages:,} messages, never folded", "/c/flat", {}),
                ("unfold: the newest fold", f"/c/long/fold/{newest}", PART),
                ("unfold: an old fold", "/c/long/fold/f1", PART),
                ("unfold: 40 raw messages", f"/c/long/messages?first=1&last={messages}&from={messages // 2}", PART),
                ("where the window goes", "/c/long/window", PART),
                ("a compaction before and after", f"/c/long/compactions/{folds}", {}),
                ("search", "/search?q=failing+test", {}),
                ("insights of 30 days", "/insights", {}),
            ]
            rows = [[name, *_timed(url + path, headers, times)] for name, path, headers in pages]
    return table(["page", "first time", f"median of {times}", "slowest", "bytes"], rows)


def _fill(store: Path, home: Path, messages: int, conversations: int) -> int:
    """A long conversation twice, folded as it grew and not at all, among many short ones; how often it was folded."""
    session = generate(seed=5, messages=messages)
    settings = load_settings({}, environ={}, home=Home(home))
    with open_store(str(store), StoreOptions(synchronous="OFF")) as opened:
        for number in range(conversations):
            platform = "rare" if number % 500 == 0 else "crowd"
            about = Metadata(title=f"Conversation {number}", platform=platform, model="gpt-4o")
            id = opened.conversations.create(f"c{number}", about).id
            if number % 10 == 0:
                opened.log.append(id, [{"role": "user", "content": f"What about part {number}?"}])
                opened.usage.add(id, ModelCall(CanonicalUsage(100, 20, 300, 40, 0), "gpt-4o", cost=0.001))
        opened.conversations.create("flat", Metadata(title="Never folded", model="gpt-4o"))
        opened.log.append("flat", session.messages)
        about = Metadata(title="Folded as it grew", model="gpt-4o")
        with Conversation.open(
            "long", model="gpt-4o", window=WINDOW, store=opened, settings=settings, metadata=about
        ) as conversation:
            for start in range(0, len(session.messages), STEP):
                conversation.append(*session.messages[start : start + STEP])
                conversation.request(session.tools, session.system)
                opened.usage.add("long", ModelCall(CanonicalUsage(3_000, 300, 40_000, 1_500, 0), "gpt-4o", cost=0.02))
            folds = conversation.compressions
        opened.index.catch_up()
    return folds


@contextmanager
def _serving(store: Path, home: Path) -> Iterator[str]:
    command = [str(Path(sys.executable).parent / "leporello"), "--home", str(home)]
    command += ["serve", "--port", "0", "--store", f"sqlite:///{store}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        while "listens on" not in line:
            line = process.stderr.readline()
        time.sleep(UP_SECONDS)
        yield line.rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(60)


def _timed(url: str, headers: dict[str, str], times: int) -> list[str]:
    taken = []
    size = 0
    for _ in range(times + 1):
        begun = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            size = len(reply.read())
        taken.append(time.perf_counter() - begun)
    rest = taken[1:]
    return [seconds(taken[0]), seconds(statistics.median(rest)), seconds(max(rest)), f"{size:,}"]
