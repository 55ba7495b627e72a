"""The buttons: compress, undo, pin. Each is a form with the session's token and answers with a sentence."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.routing import BaseRoute

from leporello.agent.commands import describe_report
from leporello.errors import InputError, NotFound
from leporello.gateway.dashboard.frame import Frame, Visit
from leporello.gateway.dashboard.hands import Hands
from leporello.gateway.faults import refuse
from leporello.redact import redact
from leporello.store.records import ConversationRecord

LONGEST_FOCUS = 500


def actions(frame: Frame, hands: Hands) -> list[BaseRoute]:
    """All paths that change something."""

    async def compress(visit: Visit) -> Response:
        record = await _writable(visit)
        report = await hands.compress(record, redact(visit.form.get("focus", "").strip())[:LONGEST_FOCUS])
        return _said(visit, record, redact(describe_report(report)), good=report.committed)

    async def undo(visit: Visit) -> Response:
        record = await _writable(visit)
        try:
            shown = await asyncio.to_thread(hands.undo, record)
        except NotFound:
            raise refuse(409, "nothing_to_undo", "There is no folding that could be taken back.") from None
        return _said(visit, record, f"The last folding is taken back; {shown:,} messages are shown again.")

    async def pin(visit: Visit) -> Response:
        record = await _writable(visit)
        number = _number(visit, record)
        try:
            size = await asyncio.to_thread(hands.pin, record, number)
        except InputError as error:
            return _said(visit, record, str(error), good=False)
        return _said(visit, record, f"m{number} is pinned ({size:,} tokens); every fold will quote it.")

    async def unpin(visit: Visit) -> Response:
        record = await _writable(visit)
        number = _number(visit, record)
        was = await asyncio.to_thread(hands.unpin, record, number)
        return _said(visit, record, f"m{number} is no longer pinned." if was else f"m{number} was not pinned.")

    one = "/c/{slug}"
    return [
        frame.route(f"{one}/compress", compress, change=True),
        frame.route(f"{one}/undo", undo, change=True),
        frame.route(f"{one}/pin", pin, change=True),
        frame.route(f"{one}/unpin", unpin, change=True),
    ]


async def _writable(visit: Visit) -> ConversationRecord:
    if visit.frame.reader.store.read_only:
        raise refuse(409, "read_only", "This store can only be read.")
    return await asyncio.to_thread(visit.record)


def _number(visit: Visit, record: ConversationRecord) -> int:
    text = visit.form.get("number", "")
    if not text.isascii() or not text.isdecimal() or len(text) > 12 or not 1 <= int(text) <= record.messages:
        raise refuse(404, "no_such_message", "This conversation has no such message.")
    return int(text)


def _said(visit: Visit, record: ConversationRecord, text: str, *, good: bool = True) -> Response:
    return visit.render("said.html", record=record, text=text, good=good)
