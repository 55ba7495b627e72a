"""Tokens and money a day, counted by key for all workers; and refusals that say what would do."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from leporello.dialects import OPENAI_CHAT
from leporello.gateway.api_errors import RequestRefused
from leporello.gateway.auth import Client, Key, Keys
from leporello.gateway.limits import DAY, HELD_SECONDS, RENEW_SECONDS, DailyBudget
from leporello.gateway.proxy.endpoints import most_used
from leporello.gateway.proxy.request import read_request
from leporello.gateway.proxy.rewrite import RequestRewriter
from leporello.providers.base import ModelReply
from leporello.providers.errors import CallCancelled
from leporello.providers.scripted import ScriptedProvider
from leporello.store import StoreOptions, open_store
from leporello.store.records import Metadata, ModelCall
from leporello.testing.stub_server import Cut, Fail, Hold, Say, Seen, Step
from leporello.usage import CanonicalUsage

from .house import House, opened

SAID = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
USED = CanonicalUsage(700, 300, 0, 0, 0)
NOON = 20_000 * DAY + DAY // 2


def with_key(**rights: Any) -> tuple[Keys, dict[str, str]]:
    keys, secret = Keys().add("laptop", **rights)
    return keys, {"authorization": f"Bearer {secret}"}


def used_today(house: House) -> int:
    return house.store.usage.of_day("laptop", time.time(), ("", "")).tokens


def test_a_key_that_used_up_its_day_hears_when_it_may_come_back(tmp_path: Path) -> None:
    """The proxy and the sessions alike; another key is not concerned."""
    keys, mine = with_key(tokens_per_day=1_500)
    keys, secret = keys.add("other")
    provider = ScriptedProvider(["hello"] * 3)
    with opened(tmp_path, [Say("hi", usage=USED)] * 4, keys=keys, provider=provider) as house:
        ask = lambda headers: httpx2.post(house.url + "/v1/chat/completions", headers=headers, json=SAID)  # noqa: E731
        for _ in range(2):
            assert ask(mine).status_code == 200
        deadline = time.monotonic() + 30
        while used_today(house) < 2_000:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        refused = ask(mine)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "daily_limit_exceeded"
        assert "1,500 tokens" in refused.json()["error"]["message"]
        assert "T00:00:00Z" in refused.json()["error"]["message"]
        assert 0 < int(refused.headers["retry-after"]) <= DAY
        made = httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()
        path = f"{house.url}/api/conversations/{made['id']}/messages"
        assert httpx2.post(path, headers=mine, json={"text": "hello"}).status_code == 429
        assert ask({"authorization": f"Bearer {secret}"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "said"),
    [("chat/completions", SAID), ("responses", {"model": "gpt-4o", "input": "hi", "previous_response_id": "r"})],
    ids=["ours", "kept by the provider"],
)
def test_what_is_not_yet_written_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, said: dict[str, Any]
) -> None:
    """A store that takes its time does not let a quick client past its bound."""

    def slowed(write: Callable[..., None]) -> Callable[..., None]:
        def late(*given: Any) -> None:
            threading.Event().wait(0.5)
            write(*given)

        return late

    monkeypatch.setattr(RequestRewriter, "count", slowed(RequestRewriter.count))
    monkeypatch.setattr(DailyBudget, "set_aside_calls", slowed(DailyBudget.set_aside_calls))
    keys, mine = with_key(tokens_per_day=900)
    with opened(tmp_path, [Say("hi", usage=USED)] * 3, keys=keys) as house:
        ask = lambda: httpx2.post(f"{house.url}/v1/{path}", headers=mine, json=said).status_code  # noqa: E731
        assert [ask() for _ in range(3)] == [200, 429, 429]


def client(**rights: Any) -> Client:
    return Client(Key("laptop", "", **rights), "digest")


@pytest.mark.parametrize("url", ["sqlite"])
def test_what_counts(tmp_path: Path, url: str) -> None:
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        store.conversations.create("c", Metadata(owner="laptop"))
        budget = DailyBudget(store, 1_000, 0.0, lambda: NOON)
        budget.check(client())
        # Yesterday's calls and those of others don't count; summaries do.
        store.usage.add("c", ModelCall(USED, "m", "chat", 0.5, at=NOON - DAY))
        budget.check(client())
        store.usage.add("c", ModelCall(USED, "m", "summary", 0.5, at=NOON))
        with pytest.raises(RequestRefused) as refused:
            budget.check(client())
        assert refused.value.error.retry_after == DAY // 2
        # A key's own numbers go first; 0 is any number; tomorrow is another day.
        budget.check(client(tokens_per_day=0))
        budget.check(client(tokens_per_day=5_000))
        replace(budget, clock=lambda: NOON + DAY).check(client())
        with pytest.raises(RequestRefused, match="daily_limit_exceeded"):
            replace(budget, tokens=0, dollars=0.4).check(client())
        replace(budget, tokens=0, dollars=0.6).check(client())
        with pytest.raises(RequestRefused):
            budget.check(client(tokens_per_day=5_000, dollars_per_day=0.1))


def test_deleting_gives_nothing_back(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        budget = DailyBudget(store, 1_000, 0.0, lambda: NOON)
        store.conversations.create("c", Metadata(owner="laptop"))
        store.usage.add("c", ModelCall(USED, "m", "chat", 0.5, at=NOON))
        budget.set_aside_conversation("laptop", "c")
        store.conversations.delete("c")
        with pytest.raises(RequestRefused):
            budget.check(client())
        # What no conversation keeps counts as well.
        budget.set_aside_calls("other", "gpt-4o", [USED])
        with pytest.raises(RequestRefused):
            budget.check(Client(Key("other", ""), "digest"))


PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "one " * 400}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "one " * 400}], "max_tokens": 50},
    "/v1/responses": {"input": [{"type": "message", "role": "user", "content": "one " * 400}]},
}


def body_for(path: str, **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5" if path == "/v1/messages" else "gpt-4o", **PATHS[path], **more}


def wait_until_counted(house: Any, tokens: int) -> None:
    """Until the key has used so many tokens today; that is written down after the answer was given."""
    for _ in range(2_000):
        try:
            DailyBudget(house.store, tokens, 0.0).check(client())
        except RequestRefused:
            return
        threading.Event().wait(0.01)
    raise AssertionError("it was not counted")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_answers_without_figures_are_counted_by_their_text(tmp_path: Path, path: str, stream: bool) -> None:
    keys, mine = with_key(tokens_per_day=600)
    with opened(tmp_path, [Say("two " * 300, usage=None)] * 2, keys=keys) as house:
        assert httpx2.post(house.url + path, headers=mine, json=body_for(path, stream=stream)).status_code == 200
        wait_until_counted(house, 600)
        assert httpx2.post(house.url + path, headers=mine, json=body_for(path, stream=stream)).status_code == 429


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("after", [None, 2])
def test_a_client_that_hangs_up_has_used_what_was_sent(tmp_path: Path, path: str, after: int | None) -> None:
    """While it reads the answer, and before the first word of it came."""
    keys, mine = with_key(tokens_per_day=300)
    release = threading.Event()
    with opened(tmp_path, [Hold(Say("hi " * 50, usage=USED), release, after)], keys=keys) as house:
        body = body_for(path, stream=True)
        line = http.client.HTTPConnection(*house.url.removeprefix("http://").split(":"))
        line.request("POST", path, json.dumps(body), {**mine, "content-type": "application/json"})
        while not house.model_calls:
            threading.Event().wait(0.01)
        if after is not None:
            line.getresponse().read(1)
        line.close()
        wait_until_counted(house, 300)
        release.set()
        assert httpx2.post(house.url + path, headers=mine, json=body).status_code == 429


def test_an_answer_that_breaks_off_is_counted(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=300)
    with opened(tmp_path, [Cut(Say("hi " * 50, usage=USED), 3)], keys=keys) as house:
        path = "/v1/chat/completions"
        httpx2.post(house.url + path, headers=mine, json=body_for(path, stream=True))
        wait_until_counted(house, 300)


def test_a_refused_request_costs_nothing(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=300)
    path = "/v1/chat/completions"
    with opened(tmp_path, [Fail(400, {"error": {"message": "no"}})] * 2 + [Say("hi", usage=USED)], keys=keys) as house:
        for _ in range(2):
            assert httpx2.post(house.url + path, headers=mine, json=body_for(path, stream=True)).status_code == 400
        assert httpx2.post(house.url + path, headers=mine, json=body_for(path)).status_code == 200


def test_requests_at_the_same_time_share_what_is_left(tmp_path: Path) -> None:
    """In this process and in others, each with a store of its own on the same file."""
    mine, other = client(tokens_per_day=2_500), Client(Key("other", "", tokens_per_day=2_500), "digest")
    with open_store(f"sqlite:///{tmp_path}/a.db") as store, open_store(f"sqlite:///{tmp_path}/a.db") as elsewhere:
        budget, same = (DailyBudget(each, 0, 0.0, lambda: NOON) for each in (store, elsewhere))
        with budget.under_way(mine, "gpt-4o", USED), same.under_way(mine, "gpt-4o", USED):
            for each in (budget, same):
                with pytest.raises(RequestRefused), each.under_way(mine, "gpt-4o", USED):
                    pass
                with each.under_way(other, "gpt-4o", USED):
                    pass
        with budget.under_way(mine, "gpt-4o", USED):
            pass
        dear = client(dollars_per_day=0.001)
        with budget.under_way(dear, "gpt-4o", USED), pytest.raises(RequestRefused):
            same.reserve(dear, "gpt-4o", USED)


def test_what_is_under_way_and_what_begins_stay_within_the_day_together(tmp_path: Path) -> None:
    """Not only what is under way: a request that begins uses something itself. One alone may always begin."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        budget = DailyBudget(store, 1_500, 0.0, lambda: NOON)
        with budget.under_way(client(), "gpt-4o", USED), pytest.raises(RequestRefused):
            budget.reserve(client(), "gpt-4o", USED)
        with replace(budget, tokens=10).under_way(client(), "gpt-4o", USED):
            pass


def test_a_reservation_ends_with_its_process_and_lasts_while_it_is_renewed(tmp_path: Path) -> None:
    """A worker that was killed releases nothing and renews nothing."""
    moment = [float(NOON)]
    clock = StoreOptions(clock=lambda: moment[0])
    with open_store(f"sqlite:///{tmp_path}/a.db", clock) as store:
        dead, living = (DailyBudget(store, 1_500, 0.0, lambda: NOON) for _ in range(2))
        dead.reserve(client(), "gpt-4o", USED)
        with pytest.raises(RequestRefused):
            living.reserve(client(), "gpt-4o", USED)
        for _ in range(4):
            moment[0] += RENEW_SECONDS
            dead.renew()
        with pytest.raises(RequestRefused):
            living.reserve(client(), "gpt-4o", USED)
        moment[0] += HELD_SECONDS
        held = living.reserve(client(), "gpt-4o", USED)
        assert held is not None
        # What ended by itself is gone from the store.
        use = store.usage.of_day("laptop", NOON, ("", ""))
        assert use.reserved_tokens == USED.total_tokens
        living.release(held)
        moment[0] += RENEW_SECONDS
        living.renew()
        assert store.usage.of_day("laptop", NOON, ("", "")).reserved_tokens == 0


def test_many_that_reserve_at_once_share_a_day(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/a.db") as store, ThreadPoolExecutor(8) as threads:

        def attempt(_: int) -> bool:
            try:
                return DailyBudget(store, 5_500, 0.0, lambda: NOON).reserve(client(), "gpt-4o", USED) is not None
            except RequestRefused:
                return False

        assert sum(threads.map(attempt, range(24))) == 5


def reserved_today(house: House) -> int:
    return house.store.usage.of_day("laptop", time.time(), ("", "")).reserved_tokens


def wait_until_released(house: House) -> None:
    for _ in range(2_000):
        if not reserved_today(house):
            return
        threading.Event().wait(0.01)
    raise AssertionError("it is reserved still")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("end", ["whole", "stream", "cut", "refused", "unreachable", "garbage"])
def test_whatever_becomes_of_a_request_releases_what_it_reserved(tmp_path: Path, path: str, end: str) -> None:
    keys, mine = with_key(tokens_per_day=100_000)
    said = Say("hi " * 50, usage=USED)
    script = {"cut": Cut(said, 3), "refused": Fail(400, {"error": {"message": "no"}}), "garbage": Fail(500, b"<html>")}
    gone = "http://127.0.0.1:9" if end == "unreachable" else ""
    houses: list[House] = []
    while_asked: list[int] = []

    def answer(_: Seen) -> Step:
        while_asked.append(reserved_today(houses[0]))
        return script.get(end, said)

    with opened(tmp_path, [answer], keys=keys, upstream=gone) as house:
        houses.append(house)
        body = body_for(path, stream=end in ("stream", "cut"))
        assert httpx2.post(house.url + path, headers=mine, json=body).status_code
        assert gone or while_asked[0] > 0
        wait_until_released(house)


def test_a_client_that_hangs_up_releases_what_it_reserved(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=100_000)
    release = threading.Event()
    path = "/v1/chat/completions"
    with opened(tmp_path, [Hold(Say("hi", usage=USED), release, None)], keys=keys) as house:
        line = http.client.HTTPConnection(*house.url.removeprefix("http://").split(":"))
        line.request("POST", path, json.dumps(body_for(path)), {**mine, "content-type": "application/json"})
        while not house.model_calls:
            threading.Event().wait(0.01)
        assert reserved_today(house) > 0
        line.close()
        wait_until_released(house)
        release.set()


def test_an_answer_without_a_cap_reserves_what_answers_usually_have(tmp_path: Path) -> None:
    request = read_request(OPENAI_CHAT, json.dumps(SAID).encode())
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        budget = DailyBudget(store, 1_500, 0.0, lambda: NOON)
        budget.learn("laptop", "gpt-4o", 20_000)
        budget.learn("laptop", "gpt-4o", 10)
        assert most_used(request, budget.usual_output("laptop", "gpt-4o")).output_tokens > 15_000
        assert most_used(request, budget.usual_output("other", "gpt-4o")).output_tokens == 4_000
        for _ in range(100):
            budget.learn("laptop", "gpt-4o", 10)
        assert budget.usual_output("laptop", "gpt-4o") == 10


def test_several_answers_reserve_several_times_as_much() -> None:
    data = json.dumps({**SAID, "max_tokens": 500, "n": 4}).encode()
    assert most_used(read_request(OPENAI_CHAT, data)).output_tokens == 2_000


def test_parallel_requests_without_a_cap_stay_within_the_day(tmp_path: Path) -> None:
    """Twenty at once, each with a long answer: what passes the day is at most what one of them uses."""
    used = CanonicalUsage(100, 3_000)
    keys, mine = with_key(tokens_per_day=10_000)
    with opened(tmp_path, [Say("hi", usage=used)] * 21, keys=keys) as house:
        ask = lambda _: httpx2.post(house.url + "/v1/chat/completions", headers=mine, json=SAID, timeout=60)  # noqa: E731
        ask(0)
        with ThreadPoolExecutor(20) as threads:
            codes = [answer.status_code for answer in threads.map(ask, range(20))]
        assert set(codes) == {200, 429}
        assert used_today(house) <= 10_000 + used.total_tokens


def test_turns_of_agents_at_the_same_time_share_what_is_left(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=5_000)
    begun, release = threading.Event(), threading.Event()

    def slowly(_: Any) -> str:
        begun.set()
        release.wait(60)
        return "hello"

    with opened(tmp_path, keys=keys, provider=ScriptedProvider([slowly] * 2)) as house:
        ids = [httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()["id"] for _ in range(2)]
        first, second = (f"{house.url}/api/conversations/{id}/messages" for id in ids)
        assert httpx2.post(first, headers=mine, json={"text": "hello", "wait": False}).status_code == 202
        assert begun.wait(60)
        events = {**mine, "accept": "text/event-stream"}
        with httpx2.stream("POST", second, headers=events, json={"text": "and more"}, timeout=60) as answer:
            assert "daily_limit_exceeded" in answer.read().decode()
        release.set()


def test_money_is_not_spent_on_a_model_without_a_price(tmp_path: Path) -> None:
    """It would never be used up. The user's own entry says what it costs, or that it costs nothing."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        budget = DailyBudget(store, 0, 0.5, lambda: NOON)
        with pytest.raises(RequestRefused, match="model_without_price"):
            budget.check(client(), "my-own-model")
        budget.check(client(), "gpt-4o")
        budget.check(client(dollars_per_day=0.0), "my-own-model")
        priced = replace(budget, models={"my-own-model": {"prices": [1.0, 2.0]}})
        priced.check(client(), "my-own-model")
        priced.set_aside_calls("laptop", "my-own-model", [CanonicalUsage(1_000_000)])
        with pytest.raises(RequestRefused, match="daily_limit_exceeded"):
            priced.check(client(), "my-own-model")


def test_a_session_is_deleted_with_what_it_used_kept(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=10)
    with opened(tmp_path, keys=keys, provider=ScriptedProvider(["hello there"] * 3)) as house:
        made = httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()
        path = f"{house.url}/api/conversations/{made['id']}"
        assert httpx2.post(f"{path}/messages", headers=mine, json={"text": "hello " * 20}).status_code == 200
        assert httpx2.delete(path, headers=mine).status_code == 204
        again = httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()
        answer = httpx2.post(f"{house.url}/api/conversations/{again['id']}/messages", headers=mine, json={"text": "x"})
        assert answer.status_code == 429


def test_messages_that_wait_are_refused_when_those_before_them_used_up_the_day(tmp_path: Path) -> None:
    keys, mine = with_key(tokens_per_day=10)
    release = threading.Event()

    def slowly(_: Any) -> str:
        release.wait(60)
        return "hello"

    provider = ScriptedProvider([slowly] * 2)
    with opened(tmp_path, keys=keys, provider=provider) as house:
        made = httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()
        path = f"{house.url}/api/conversations/{made['id']}/messages"
        assert httpx2.post(path, headers=mine, json={"text": "hello " * 20, "wait": False}).status_code == 202
        events = {**mine, "accept": "text/event-stream"}
        with httpx2.stream("POST", path, headers=events, json={"text": "and more"}, timeout=60) as second:
            assert second.status_code == 200
            release.set()
            assert "daily_limit_exceeded" in second.read().decode()
        assert len(provider.requests) == 1


def test_turns_that_no_provider_counted_are_counted_by_their_size(tmp_path: Path) -> None:
    """Without figures, and given up while the model was asked; a compaction is work as well."""
    keys, mine = with_key(tokens_per_day=10)
    silent = ModelReply({"role": "assistant", "content": "hello"}, CanonicalUsage(), has_usage=False)
    for step in (silent, CallCancelled("given up")):
        with opened(tmp_path / type(step).__name__, keys=keys, provider=ScriptedProvider([step] * 2)) as house:
            made = httpx2.post(house.url + "/api/conversations", headers=mine, json={}).json()
            path = f"{house.url}/api/conversations/{made['id']}"
            assert httpx2.post(f"{path}/messages", headers=mine, json={"text": "hello " * 20}).status_code == 200
            assert httpx2.post(f"{path}/messages", headers=mine, json={"text": "hello"}).status_code == 429
            assert httpx2.post(f"{path}/compress", headers=mine, json={}).status_code == 429


@pytest.mark.parametrize(
    ("path", "headers", "allowed"),
    [
        ("/v1/chat/completions", {}, "POST"),
        ("/v1/messages", {"x-api-key": "k"}, "POST"),
        ("/api/conversations", {}, "GET, HEAD, POST"),
        ("/api/conversations/c", {}, "DELETE, GET, HEAD, PATCH"),
    ],
)
def test_a_wrong_method_is_the_clients_mistake(
    tmp_path: Path, path: str, headers: dict[str, str], allowed: str
) -> None:
    """No library takes it for a failure of the server and tries again."""
    with opened(tmp_path) as house:
        answer = httpx2.put(house.url + path, headers=headers)
        assert answer.status_code == 405
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert answer.headers["allow"] == allowed


class _Lists(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"data": [{"id": "small-one"}, {"id": "large-one"}]}' if self.path == "/v1/models" else b"{}"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_a_model_that_nobody_serves_is_refused_with_those_that_are(tmp_path: Path) -> None:
    """Asked of the endpoint itself; where no endpoint can be had, the configured model is named."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Lists) as lists:
        threading.Thread(target=lists.serve_forever, daemon=True).start()
        flags = {"model.default": "small-one", "model.base_url": f"http://127.0.0.1:{lists.server_address[1]}/v1"}
        with opened(tmp_path, flags=flags) as house:
            begin = lambda model: httpx2.post(house.url + "/api/conversations", json={"model": model})  # noqa: E731
            assert begin("large-one").status_code == 201
            refused = begin("none-such")
            assert refused.status_code == 400
            assert refused.json()["error"]["code"] == "model_not_found"
            assert "small-one, large-one" in refused.json()["error"]["message"]
        lists.shutdown()


@pytest.mark.parametrize("caps", [{"max_tokens": True}, {"max_tokens": 1, "max_completion_tokens": 5_000}])
def test_what_a_request_reserves_is_its_largest_cap(caps: dict[str, Any]) -> None:
    data = json.dumps({**SAID, **caps}).encode()
    assert most_used(read_request(OPENAI_CHAT, data)).output_tokens >= 1_000


def test_who_waits_for_requests_under_way_need_not_wait_for_tomorrow(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        budget = DailyBudget(store, 1_000, 0.0, lambda: NOON)
        first, second = (budget.under_way(client(), "m", USED) for _ in range(2))
        with first, pytest.raises(RequestRefused) as refused, second:
            pass
        assert refused.value.error.retry_after is not None
        assert refused.value.error.retry_after < 60


@pytest.mark.parametrize("stream", [False, True])
def test_figures_that_no_counter_can_hold_are_not_believed(tmp_path: Path, stream: bool) -> None:
    """The answer counts by its text then, as one without figures does."""
    keys, mine = with_key(tokens_per_day=40)
    huge = CanonicalUsage(10**26, 10**26)
    with opened(tmp_path, [Say("word " * 100, usage=huge)] * 3, keys=keys) as house:
        said = {**SAID, "stream": stream, **({"stream_options": {"include_usage": True}} if stream else {})}
        ask = lambda: httpx2.post(house.url + "/v1/chat/completions", headers=mine, json=said).status_code  # noqa: E731
        assert [ask() for _ in range(3)] == [200, 429, 429]
