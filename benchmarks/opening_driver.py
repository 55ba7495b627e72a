"""Opening a stored conversation and sending its first request, in a process of its own.

`opening_driver.py FOLDER LENGTH ...`, run by an interpreter that has the version to measure on its path. For each
length a conversation is stored, once as it is and once folded, then opened some times; prints one line of JSON:
processor seconds by kind and length. Imports, the tokeniser and the store are there before the clock starts.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from leporello.config import Home, load_settings
from leporello.conversation import Conversation
from leporello.store import open_store
from leporello.testing.sessions import generate

RUNS = 5
KNOWN = 6_000
"""So many different messages; longer conversations have them again with another number in front."""


def main(folder: Path, lengths: list[int]) -> None:
    settings = load_settings({"compression.enabled": False}, {}, Home(folder / "home"))
    known = generate(seed=7, messages=KNOWN, tokens=KNOWN * 100, images=0, huge_outputs=0).messages[:KNOWN]
    found: dict[str, dict[int, float]] = {"folded": {}, "unfolded": {}}
    for kind, times in found.items():
        for length in lengths:
            # What fills the tokeniser's table.
            for warm in (10, length):
                with open_store(str(folder / f"{kind}-{warm}-{length}.db")) as store:
                    store.conversations.create("c")
                    for start in range(0, warm, KNOWN):
                        some = known[: min(KNOWN, warm - start)]
                        store.log.append("c", [{**said, "name": f"part{start}"} for said in some])
                    window = 64_000 if kind == "folded" else 400 * length
                    if kind == "folded" and warm == length:
                        with Conversation.open("c", model="gpt-4o", window=window, store=store) as conversation:
                            conversation.compact()
                    measured = [_open(store, window, settings, number) for number in range(RUNS)]
                    times[length] = statistics.median(measured)
    print(json.dumps(found))


def _open(store: object, window: int, settings: object, number: int) -> float:
    begun = time.process_time()
    conversation = Conversation.open("c", model="gpt-4o", window=window, store=store, settings=settings)  # type: ignore[arg-type]
    conversation.append({"role": "user", "content": f"What next, for the {number}th time?"})
    conversation.request(system="Be brief.").marked()
    took = time.process_time() - begun
    conversation.close()
    return took


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
