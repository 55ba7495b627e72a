"""When things go wrong between the client and the model: clean errors in the provider's own shape, nothing leaked."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx2
import openai
import pytest

from leporello.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Dialect, Target
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.proxy import recall, relay
from leporello.gateway.proxy.relay import Outlet, Tally, WholeEvents, relay_stream
from leporello.testing.stub_server import Cut, Fail, Hold, Say, StreamError
from leporello.usage import CanonicalUsage

from .clerks import anthropic_client, openai_client
from .house import House, opened, recorded
from .recalls import fields, folded, history
from .rough import HEAD, rough

PATHS = {
    OPENAI_CHAT: "/v1/chat/completions",
    OPENAI_RESPONSES: "/v1/responses",
    ANTHROPIC: "/v1/messages",
}


def body(dialect: Dialect, stream: bool = False) -> dict[str, Any]:
    key = "input" if dialect is OPENAI_RESPONSES else "messages"
    said: dict[str, Any] = {"model": "m", key: [{"role": "user", "content": "Hello"}], "stream": stream}
    if dialect is ANTHROPIC:
        said["max_tokens"] = 100
    return said


def post(house: House, dialect: Dialect, stream: bool = False) -> httpx2.Response:
    return httpx2.post(house.url + PATHS[dialect], json=body(dialect, stream), timeout=30)


def is_error(dialect: Dialect, shape: Any) -> bool:
    """Whether a body is an error of this API."""
    if dialect is ANTHROPIC:
        return shape["type"] == "error" and {"type", "message"} <= set(shape["error"])
    return {"message", "type", "code", "param"} <= set(shape["error"])


def stream_of(dialect: Dialect) -> bytes:
    """A whole stream of the dialect, with a character of several bytes in it."""
    message = {"role": "assistant", "content": "Grüße, 世界. All is well."}
    usage = CanonicalUsage(10, 5, 90, 0, 0)
    reply = dialect.encode_reply(message, target=Target("", "m"), usage=usage)
    data = b""
    for event in dialect.reply_events(reply):
        name = b"" if dialect is OPENAI_CHAT else f"event: {event['type']}\n".encode()
        data += name + b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    return data + (b"data: [DONE]\n\n" if dialect is OPENAI_CHAT else b"")


class FakeBody:
    """Pieces as a client library hands them out; an exception among them is raised in its turn."""

    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self.pieces = pieces

    async def readany(self) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece


class FakeAnswer:
    """The head of an upstream's answer."""

    status = 200

    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self.headers = {"content-type": "text/event-stream"}
        self.content = FakeBody(pieces)


@pytest.mark.parametrize("dialect", PATHS)
async def test_cut_at_every_byte(dialect: Dialect) -> None:
    """Whatever the pieces, the client gets the same bytes and the same usage is read; cut off anywhere, it is told."""
    whole = stream_of(dialect)

    async def relayed(pieces: list[bytes | Exception]) -> tuple[bytes, Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        tally = Tally(dialect)
        await relay_stream(Outlet(send, 5), FakeAnswer(pieces), tally, [])  # type: ignore[arg-type]
        return b"".join(message.get("body", b"") for message in sent), tally

    for cut in range(1, len(whole)):
        data, tally = await relayed([whole[:cut], whole[cut:]])
        assert data == whole
        assert tally.usage == CanonicalUsage(10, 5, 90, 0, 0)
    for cut in range(1, len(whole)):
        try:
            data, tally = await relayed([whole[:cut], aiohttp.ClientPayloadError("torn")])
        except (RequestRefused, aiohttp.ClientPayloadError):
            # Not one whole event: there is an error with a status instead of an answer.
            assert b"\n\n" not in whole[:cut] or dialect is not OPENAI_CHAT
            continue
        # Whole events as far as they came, then one that says that the rest is missing.
        events = [json.loads(event.rpartition(b"data: ")[2]) for event in data.strip().split(b"\n\n")]
        said = whole[: whole.rfind(b"\n\n", 0, cut) + 2]
        assert data.startswith(said)
        assert "error" in (events[-1].get("type"), *events[-1])


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_server_errors(tmp_path: Path, dialect: Dialect, status: int) -> None:
    """A page of HTML, or nothing at all, becomes an error of the API with the same status."""
    with opened(tmp_path, [Fail(status, "<html>secret-host-17</html>", {"content-type": "text/html"})]) as house:
        reply = post(house, dialect)
        assert reply.status_code == status
        assert is_error(dialect, reply.json())
        assert "secret-host" not in reply.text


@pytest.mark.parametrize("dialect", PATHS)
def test_garbage(tmp_path: Path, dialect: Dialect) -> None:
    """Something that is no answer, with status 200, is not handed on."""
    garbage = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\xff\xfe<not json"
    with rough([garbage], [HEAD, b"\x00\x01\x02"]) as bad, opened(tmp_path, upstream=bad.url) as house:
        for stream in (False, True):
            reply = post(house, dialect, stream)
            assert reply.status_code == 502
            assert is_error(dialect, reply.json())


@pytest.mark.parametrize("dialect", PATHS)
def test_resets(tmp_path: Path, dialect: Dialect) -> None:
    """A torn connection: before the answer an error with a status, inside a stream an error event."""
    half = stream_of(dialect)[:-60]
    with rough(["reset"], [HEAD, half, "reset"]) as bad, opened(tmp_path, upstream=bad.url) as house:
        reply = post(house, dialect)
        assert reply.status_code == 502
        assert is_error(dialect, reply.json())
        reply = post(house, dialect, stream=True)
        assert reply.status_code == 200
        assert reply.content.startswith(half[:100])
        last = json.loads(reply.text.strip().rpartition("data: ")[2])
        assert "error" in (last.get("type"), *last)


@pytest.mark.parametrize("dialect", PATHS)
def test_stalls(tmp_path: Path, dialect: Dialect) -> None:
    """A server that falls silent is given up after the configured time, before and inside an answer."""
    half = stream_of(dialect)[:-60]
    flags = {"gateway.idle_timeout": 0.3}
    with rough([None], [HEAD, half, None]) as bad, opened(tmp_path, upstream=bad.url, flags=flags) as house:
        reply = post(house, dialect)
        assert reply.status_code == 504
        assert is_error(dialect, reply.json())
        assert b"in time" in post(house, dialect, stream=True).content


def test_unreachable(tmp_path: Path) -> None:
    """Nobody listens: an error that names neither address nor port."""
    with opened(tmp_path, upstream="http://127.0.0.1:9") as house:
        for dialect in PATHS:
            reply = post(house, dialect)
            assert reply.status_code == 502
            assert is_error(dialect, reply.json())
            assert "127.0.0.1" not in reply.text


def test_libraries_see_a_broken_stream(tmp_path: Path) -> None:
    """The official clients raise when a stream breaks, with what was sent before it."""
    with opened(tmp_path, [Cut(Say("Half of an answer"), after=3), Cut(Say("Half of an answer"), after=4)]) as house:
        chat = openai_client(house.url)
        stream = chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}], stream=True)
        with pytest.raises(openai.APIError):
            list(stream)
        messages = anthropic_client(house.url).messages
        with (
            pytest.raises(anthropic.APIError),
            messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hello"}]) as events,
        ):
            list(events)


@pytest.mark.parametrize("dialect", PATHS)
def test_an_error_inside_a_stream(tmp_path: Path, dialect: Dialect) -> None:
    """The server itself says in the middle of an answer that it can't go on: those are the last words, and the only."""
    inner = {"type": "overloaded_error", "message": "Busy", "code": None, "param": None}
    told: dict[str, Any] = {"error": inner} if dialect is OPENAI_CHAT else {"type": "error", "error": inner}
    with opened(tmp_path, [StreamError(Say("Half of an answer. " * 5), 4, told)]) as house:
        text = post(house, dialect, stream=True).text
        assert "Half of" in text
        assert "upstream_broken" not in text
        assert json.loads(text.strip().rpartition("data: ")[2]) == told


@pytest.mark.parametrize("dialect", PATHS)
def test_overflow_inside_a_stream(tmp_path: Path, dialect: Dialect) -> None:
    """A refusal that comes as the first event of a stream is mended like any other, before the client sees a byte."""
    said = [{"role": "user", "content": "Look at the next file, please."}]
    for number in range(60):
        said.append({"role": "assistant", "content": f"File {number} is fine. " * 30})
        said.append({"role": "user", "content": f"Go on with file {number + 1}. " * 30})
    message = "This model's maximum context length is 9000 tokens. However, your messages resulted in 20000 tokens."
    inner = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": message, "param": None}
    errors: dict[Dialect, Any] = {
        OPENAI_CHAT: (0, {"error": inner}),
        OPENAI_RESPONSES: (1, {"type": "error", **inner, "sequence_number": 1}),
        ANTHROPIC: (0, {"type": "error", "error": inner}),
    }
    after, error = errors[dialect]
    with opened(tmp_path, [StreamError(Say("x"), after, error), Say("All is well.")], window=100_000) as house:
        asked = body(dialect, stream=True)
        asked["input" if dialect is OPENAI_RESPONSES else "messages"] = said
        reply = httpx2.post(house.url + PATHS[dialect], json=asked, timeout=60)
        assert reply.headers["x-leporello"] == "recovered"
        assert "context_length" not in reply.text
        assert "well" in reply.text
        assert [seen.violations for seen in house.model_calls] == [(), ()]
        assert len(house.model_calls[1].raw) < len(house.model_calls[0].raw) / 2


def test_a_vanished_client(tmp_path: Path) -> None:
    """When the client hangs up, the call to the model ends, and the client's place is free again."""
    with (
        rough([HEAD, stream_of(OPENAI_CHAT)[:200], None], [HEAD, stream_of(OPENAI_CHAT)]) as bad,
        opened(tmp_path, upstream=bad.url, flags={"gateway.streams": 1}) as house,
    ):
        with httpx2.stream("POST", house.url + PATHS[OPENAI_CHAT], json=body(OPENAI_CHAT, True)) as reply:
            pieces = reply.iter_bytes()
            next(pieces)
            busy = post(house, OPENAI_CHAT)
            assert busy.status_code == 429
        assert bad.gone.wait(10)
        while (again := post(house, OPENAI_CHAT, stream=True)).status_code == 429:
            threading.Event().wait(0.02)
        assert again.status_code == 200


def test_a_client_that_leaves_with_the_last_event(tmp_path: Path) -> None:
    """A client hangs up when it has read the end, while the server's line is still open: what was used is counted."""
    dialect = ANTHROPIC
    with rough([HEAD, stream_of(dialect), None]) as bad, opened(tmp_path, upstream=bad.url) as house:
        with httpx2.stream("POST", house.url + PATHS[dialect], json=body(dialect, True)) as reply:
            text = ""
            for piece in reply.iter_text():
                text += piece
                if "message_stop" in text:
                    break
        assert bad.gone.wait(60)
        (record,) = house.store.conversations.page().conversations
        assert recorded(house, record.id, 1).calls == 1


def test_a_client_that_does_not_read(tmp_path: Path) -> None:
    """A client that asks for much and reads nothing is given up after the configured time."""
    piece = b'data: {"choices":[{"delta":{"content":"' + b"x" * 60_000 + b'"}}]}\n\n'
    with (
        rough([HEAD, *[piece] * 400]) as bad,
        opened(tmp_path, upstream=bad.url, flags={"gateway.idle_timeout": 0.5, "gateway.streams": 1}) as house,
    ):
        host, port = house.url.removeprefix("http://").split(":")
        said = json.dumps(body(OPENAI_CHAT, stream=True)).encode()
        with socket.create_connection((host, int(port))) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(said)}\r\n\r\n"
            line.sendall(head.encode() + said)
            page = ""
            while 'status="200"' not in page:
                threading.Event().wait(0.05)
                page = httpx2.get(house.url + "/metrics").text
            assert "leporello_active_requests 0.0" in page


async def test_a_slow_client_gets_everything(tmp_path: Path) -> None:
    """A client that reads slowly holds the model's server back instead of filling our memory, and misses nothing."""
    release = threading.Event()
    with opened(tmp_path, [Hold(Say("word " * 400), release, after=5)]) as house:
        async with httpx2.AsyncClient() as web:
            said = body(OPENAI_CHAT, stream=True)
            async with web.stream("POST", house.url + PATHS[OPENAI_CHAT], json=said) as reply:
                text = ""
                async for piece in reply.aiter_text():
                    text += piece
                    release.set()
                    await asyncio.sleep(0.001)
        assert text.rstrip().endswith("[DONE]")


@pytest.mark.parametrize("dialect", PATHS)
def test_a_last_event_without_its_blank_line_is_an_event(tmp_path: Path, dialect: Dialect) -> None:
    """What is whole is passed on; half an event is not."""
    stream = stream_of(dialect)
    with (
        rough([HEAD, stream.rstrip()], [HEAD, stream.rstrip()[:-4]]) as bad,
        opened(tmp_path, upstream=bad.url) as house,
    ):
        ask = lambda: httpx2.post(house.url + PATHS[dialect], json=body(dialect, stream=True)).content  # noqa: E731
        assert ask() == stream
        assert b"before it was whole" in ask()


@pytest.mark.parametrize(
    "odd", ['{"choices": ["delta"]}', '{"choices": [null], "delta": 1}', '["delta"]', '{"delta": {"a": [[1]]}}']
)
def test_events_of_no_known_form_do_not_break_a_stream(tmp_path: Path, odd: str) -> None:
    stream = f"data: {odd}\n\n".encode() + stream_of(OPENAI_CHAT)
    with rough([HEAD, stream]) as bad, opened(tmp_path, upstream=bad.url) as house:
        assert httpx2.post(house.url + PATHS[OPENAI_CHAT], json=body(OPENAI_CHAT, stream=True)).content == stream


@pytest.mark.parametrize("dialect", PATHS)
def test_comments_that_keep_a_line_alive_reach_the_client_before_the_answer(
    tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that gives up a silent line must see that the model is only slow."""
    monkeypatch.setattr(relay, "HOLD_SECONDS", 0.2)
    first = [HEAD, b": processing\n\n", None]
    with (
        rough(first) as slow,
        opened(tmp_path, upstream=slow.url) as house,
        httpx2.stream("POST", house.url + PATHS[dialect], json=body(dialect, stream=True), timeout=20) as answer,
    ):
        assert next(answer.iter_bytes()) == b": processing\n\n"
        slow.release.set()


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_whole_events_come_out_whole_however_they_are_cut(end: bytes) -> None:
    stream = b"".join(b"data: " + text + end for text in (b"a", b"bc", b"d" * 50))
    for size in range(1, len(stream) + 1):
        events = WholeEvents()
        told = b""
        for start in range(0, len(stream), size):
            piece = stream[start : start + size]
            told += events.feed(piece)
            assert not told or told.endswith(end)
            # What could be told is told, but for the line feed that may still come.
            assert len(stream[: start + size]) - len(told) <= len(b"data: " + b"d" * 50 + end)
        assert told + events.rest == stream
        assert not events.rest.strip(b"\n")


def test_a_large_event_in_small_pieces_is_looked_at_once() -> None:
    """A picture comes in one event of megabytes: what is held is not copied with each piece of it."""

    class Counted(bytes):
        looked = 0

        def rfind(self, *given: Any) -> int:
            Counted.looked += len(self)
            return super().rfind(*given)

        def __radd__(self, other: bytes) -> Counted:
            return Counted(other + bytes(self))

    events = WholeEvents()
    pieces = [Counted(b"x" * 100) for _ in range(2_000)]
    assert not any(events.feed(piece) for piece in pieces)
    assert Counted.looked <= 4 * 200_000
    assert events.feed(b"\n\n") == b"x" * 200_000 + b"\n\n"


REFUSALS = [
    (1002, "rate limit", 429),
    (1004, "login fail: please carry the secret key", 401),
    (1008, "insufficient balance", 402),
    (1026, "input new_sensitive", 400),
    (2013, "invalid params", 400),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("code", "said", "status"), REFUSALS)
def test_a_refusal_that_came_as_a_success_is_an_error(
    tmp_path: Path, code: int, said: str, status: int, stream: bool
) -> None:
    """MiniMax answers 200 without a choice; no OpenAI client looks into its field. Breaks where `is_refused` is not
    asked of a whole answer."""
    told = {"id": "1", "choices": None, "base_resp": {"status_code": code, "status_msg": said}}
    with opened(tmp_path, [Fail(200, told)]) as house:
        reply = post(house, OPENAI_CHAT, stream)
    assert reply.status_code == status, reply.text
    assert is_error(OPENAI_CHAT, reply.json())
    assert said in reply.json()["error"]["message"]
    assert reply.headers["x-leporello"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("recall", [False, True], ids=["alone", "with recall"])
def test_a_request_that_was_too_long_in_a_success_is_folded_and_sent_again(
    tmp_path: Path, stream: bool, recall: bool
) -> None:
    told = {"id": "1", "choices": None, "base_resp": {"status_code": 1039, "status_msg": "token limit"}}
    script: list[Any] = [Fail(200, told), Say("It is folded.")]
    with folded(tmp_path, script, {"gateway.recall": recall}) as house:
        ask = {**fields(OPENAI_CHAT, [*history(), {"role": "user", "content": "And?"}]), "stream": stream}
        reply = httpx2.post(house.url + PATHS[OPENAI_CHAT], json=ask, timeout=60)
        assert reply.status_code == 200
        assert "folded" in reply.text
        first, second = house.model_calls
        assert len(str(second.body)) < len(str(first.body))


@pytest.mark.parametrize("dialect", PATHS)
def test_comments_reach_the_client_also_where_recall_is_offered(
    tmp_path: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks where what is merged for the client is made of events alone."""
    monkeypatch.setattr(recall, "HOLD_SECONDS", 0.2)
    first = [HEAD, b": processing\n\n", None]
    with (
        rough(first) as slow,
        folded(tmp_path, [], upstream=slow.url) as house,
        httpx2.stream(
            "POST", house.url + PATHS[dialect], json=fields(dialect, history(), stream=True), timeout=20
        ) as answer,
    ):
        assert next(answer.iter_bytes()) == b": processing\n\n"
        slow.release.set()


def test_comments_inside_an_answer_are_kept_where_recall_is_offered(tmp_path: Path) -> None:
    stream = stream_of(OPENAI_CHAT)
    cut = stream.index(b"data: ", 10)
    told = [HEAD, stream[:cut], b":\n\n: keep-alive\r\n\r\n", stream[cut:]]
    with rough(told) as kept, folded(tmp_path, [], upstream=kept.url) as house:
        ask = fields(OPENAI_CHAT, history(), stream=True)
        reply = httpx2.post(house.url + PATHS[OPENAI_CHAT], json=ask, timeout=20)
    assert reply.content.count(b": keep-alive\n\n") == 1
    assert reply.text.endswith("data: [DONE]\n\n")
