"""Runs one store on orders from `benchmarks.store`: the same steps and the same clock for ours and for hermes-agent's.

Executed by the interpreter that has the store: `store_driver.py leporello|hermes FOLDER MESSAGES`. MESSAGES holds one
`[session, message]` a line. Orders and answers are lines of JSON on standard input and output.

The peer's store is driven through its public class as it is shipped: `append_message` for every message, which also
writes both of its indexes, merges them every thousand writes and checkpoints every fifty; `search_messages`, which also
reads the neighbours of every hit. Ours appends without indexing and catches up afterwards.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

Place = tuple[str, int]
"""A session and the index of a message in it."""


class Contestant(Protocol):
    """A store under test."""

    def append(self, session: str, message: dict[str, Any]) -> None: ...

    def catch_up(self) -> None: ...

    def search(self, query: str, limit: int) -> list[Place]: ...

    def close(self) -> None: ...


class Leporello:
    """Our store on SQLite."""

    def __init__(self, folder: Path) -> None:
        from leporello.store import StoreOptions, open_store

        self._store = open_store(str(folder / "leporello.db"), StoreOptions(synchronous="FULL"))
        self._known: set[str] = set()

    def append(self, session: str, message: dict[str, Any]) -> None:
        if session not in self._known:
            self._known.add(session)
            self._store.conversations.create(session)
        self._store.log.append(session, [message])

    def catch_up(self) -> None:
        self._store.index.catch_up()

    def search(self, query: str, limit: int) -> list[Place]:
        from leporello.store.records import SearchQuery

        hits = self._store.index.search(SearchQuery(query, limit=limit))
        # The peer makes its snippets on the way; ours are made when they are looked at.
        return [(hit.conversation, hit.number - 1) for hit in hits if hit.snippet]

    def close(self) -> None:
        self._store.close()


class Hermes:
    """The state store inside hermes-agent."""

    def __init__(self, folder: Path) -> None:
        os.environ["HERMES_HOME"] = str(folder)
        logging.disable(logging.CRITICAL)
        from hermes_state import SessionDB

        self._db = SessionDB(folder / "hermes.db")
        self._db._conn.execute("PRAGMA synchronous=FULL")
        self._counts: dict[str, int] = {}
        self._places: dict[int, Place] = {}

    def append(self, session: str, message: dict[str, Any]) -> None:
        if session not in self._counts:
            self._counts[session] = 0
            self._db.create_session(session, "cli")
        row = self._db.append_message(
            session,
            message["role"],
            content=message.get("content"),
            tool_name=message.get("name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
            reasoning_content=message.get("reasoning_content"),
        )
        self._places[row] = (session, self._counts[session])
        self._counts[session] += 1

    def catch_up(self) -> None:
        """Its triggers have indexed everything."""

    def search(self, query: str, limit: int) -> list[Place]:
        return [self._places[row["id"]] for row in self._db.search_messages(query, limit=limit)]

    def close(self) -> None:
        self._db.close()


def serve(contestant: Contestant, messages: list[tuple[str, dict[str, Any]]]) -> None:
    """Do what is asked, and say how long it took."""
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        begun, worked = time.perf_counter(), time.process_time()
        if order["do"] == "append":
            for session, message in messages[order["first"] : order["last"]]:
                contestant.append(session, message)
        elif order["do"] == "catch_up":
            contestant.catch_up()
        elif order["do"] == "search":
            answer["places"] = contestant.search(order["query"], order["limit"])
        elif order["do"] == "close":
            contestant.close()
        answer |= {"seconds": time.perf_counter() - begun, "processor": time.process_time() - worked}
        print(json.dumps(answer), flush=True)
        if order["do"] == "close":
            return


def main(name: str, folder: str, file: str) -> None:
    with open(file, encoding="utf-8") as lines:
        messages = [tuple(json.loads(line)) for line in lines]
    kind = Leporello if name == "leporello" else Hermes
    contestant: Contestant = kind(Path(folder))
    print(json.dumps({"ready": len(messages)}), flush=True)
    serve(contestant, messages)


if __name__ == "__main__":
    main(*sys.argv[1:4])
