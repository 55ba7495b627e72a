"""`PluginGuard`: other people's code ends in time, prints nowhere, and fails in words that name it."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest

from leporello.engines.guard import PluginGuard, accepted, captured_output, reason
from leporello.errors import EngineError


@pytest.fixture
def troubles() -> list[str]:
    return []


@pytest.fixture
def guard(troubles: list[str]) -> Iterator[PluginGuard]:
    made = PluginGuard("plugin notes", 30, troubles.append)
    yield made
    made.close()


@pytest.fixture
def held() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def fail(text: str = "no luck") -> None:
    raise ValueError(text)


def leave() -> None:
    sys.exit("I am leaving")


def loud(text: str) -> int:
    print(text)
    return 7


class TestCalls:
    def test_arguments_go_in_and_the_result_comes_out(self, guard: PluginGuard) -> None:
        assert guard.call("sum", lambda *args, **kwargs: (args, kwargs), 1, 2, x=3) == ((1, 2), {"x": 3})

    @pytest.mark.parametrize("function", [fail, leave], ids=["error", "exit"])
    def test_a_failure_names_plugin_and_method(self, guard: PluginGuard, function: Any) -> None:
        with pytest.raises(EngineError, match=r"^plugin notes: search failed: (ValueError: no luck|SystemExit: I am)"):
            guard.call("search", function)
        assert guard.call("other", lambda: 1) == 1

    def test_what_hangs_is_not_called_again(self, held: threading.Event) -> None:
        guard = PluginGuard("plugin slow", 0.01)
        assert guard.seconds == 0.05
        with pytest.raises(EngineError, match=r"plugin slow: think did not end within 0.05 s; it is not called again"):
            guard.call("think", held.wait)
        assert guard.hung == "think"
        for method in ("think", "other"):
            with pytest.raises(EngineError, match=r"plugin slow: think hung; the plugin is not called any more"):
                guard.call(method, fail)
        assert guard.ask("other", lambda: 1, 2) == 2

    def test_what_comes_back_late_changes_nothing_any_more(
        self, held: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the program did meanwhile stays: its streams, folder and environment are not those of the call."""
        guard = PluginGuard("plugin slow", seconds=0.05)
        monkeypatch.delenv("OF_THE_PLUGIN", raising=False)

        def hang() -> None:
            os.environ["OF_THE_PLUGIN"] = "1"
            held.wait(60)

        with pytest.raises(EngineError, match="did not end"):
            guard.call("think", hang)
        assert "OF_THE_PLUGIN" not in os.environ, "put back when nobody waits any longer"
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "leporello-plugin slow"]
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv("OF_THE_PROGRAM", "1")
        monkeypatch.chdir(tmp_path)
        held.set()
        thread.join(60)
        assert (sys.stdout, os.environ["OF_THE_PROGRAM"], Path.cwd()) == (stream, "1", tmp_path)

    def test_the_thread_of_what_hung_ends_when_it_comes_back(self, held: threading.Event) -> None:
        guard, threads = PluginGuard("plugin slow", 0.05), list[threading.Thread]()

        def hang() -> None:
            threads.append(threading.current_thread())
            held.wait(60)

        with pytest.raises(EngineError):
            guard.call("think", hang)
        held.set()
        threads[0].join(60)
        assert not threads[0].is_alive()
        assert guard.hung == "think"

    def test_a_call_may_be_given_longer_but_not_less(self, held: threading.Event) -> None:
        patient = PluginGuard("plugin slow", 60)
        threading.Timer(0.1, held.set).start()
        assert patient.call("think", held.wait, seconds=0.01) is True
        patient.close()
        quick = PluginGuard("plugin slow", 0.05)
        again = threading.Event()
        threading.Timer(0.2, again.set).start()
        assert quick.call("think", again.wait, seconds=60) is True
        quick.close()

    def test_all_calls_are_made_by_one_thread_that_ends_with_it(self, guard: PluginGuard) -> None:
        threads = {guard.call("who", threading.current_thread) for _ in range(3)}
        (thread,) = threads
        assert thread.daemon
        assert thread.name == "leporello-plugin notes"
        guard.close()
        thread.join(60)
        assert not thread.is_alive()
        assert guard.call("who", threading.current_thread) not in threads

    def test_a_guard_that_nobody_holds_ends_its_thread(self) -> None:
        guard = PluginGuard("plugin gone", 30)
        thread, gone = guard.call("who", threading.current_thread), weakref.ref(guard)
        del guard
        assert gone() is None
        thread.join(60)
        assert not thread.is_alive()


class TestTroubles:
    def test_asking_goes_on_without_it_and_says_so_once_for_each_method(
        self, guard: PluginGuard, troubles: list[str]
    ) -> None:
        assert [guard.ask("search", fail, "nothing") for _ in range(3)] == ["nothing"] * 3
        assert guard.ask("title", fail, None, "other words") is None
        assert guard.ask("title", str.upper, None, "fine") == "FINE"
        assert troubles == [
            "plugin notes: search failed: ValueError: no luck. Leporello goes on without it.",
            "plugin notes: title failed: ValueError: other words. Leporello goes on without it.",
        ]

    def test_a_note_is_made_once_and_needs_no_listener(self, caplog: pytest.LogCaptureFixture) -> None:
        guard = PluginGuard("plugin notes")
        with caplog.at_level(logging.WARNING):
            for text, once in (("a", ""), ("a", ""), ("b", "kind"), ("c", "kind"), ("d", "")):
                guard.note(text, once)
        assert [record.message for record in caplog.records] == ["a", "b", "d"]
        assert guard.seconds == 20


class TestOutput:
    def test_what_a_plugin_prints_goes_to_the_log(
        self,
        guard: PluginGuard,
        troubles: list[str],
        capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        with caplog.at_level(logging.INFO):
            assert guard.call("search", loud, "token ghp_" + "a1B2" * 9) == 7
            assert guard.call("search", loud, "again") == 7
        assert capsys.readouterr().out == ""
        assert "plugin notes: search printed: again" in caplog.messages
        assert not any("a1B2a1B2" in message for message in caplog.messages)
        (told,) = troubles
        assert told.startswith("plugin notes: search printed 'token ")
        assert told.endswith("; standard output is the program's.")
        assert "a1B2a1B2" not in told

    @pytest.fixture
    def own_stream(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A plugin that hangs in another test of this process still holds its own."""
        monkeypatch.setattr("leporello.engines.guard._captured", {})
        monkeypatch.setattr(sys, "stdout", getattr(sys.stdout, "real", sys.stdout))

    @pytest.mark.usefixtures("own_stream")
    def test_text_and_bytes_are_captured_and_the_stream_is_put_back(self) -> None:
        before = sys.stdout
        with captured_output() as outer:
            print("one é")
            with captured_output() as inner:
                sys.stdout.buffer.write(b"\xff two")
                assert inner.getvalue() == b"\xff two"
            sys.stdout.write("\ud800 three")
            assert outer.getvalue().decode() == "one é\n? three"
        assert sys.stdout is before

    def test_other_threads_keep_their_stream(self, capsys: pytest.CaptureFixture[str]) -> None:
        with captured_output() as printed:
            thread = threading.Thread(target=print, args=("from elsewhere",))
            thread.start()
            thread.join()
            assert printed.getvalue() == b""
        assert capsys.readouterr().out == "from elsewhere\n"

    @pytest.mark.usefixtures("own_stream")
    def test_two_threads_may_leave_in_any_order(self) -> None:
        before, entered, leave = sys.stdout, threading.Event(), threading.Event()
        seen: list[bytes] = []

        def stay() -> None:
            with captured_output() as printed:
                entered.set()
                leave.wait(60)
                print("late")
                seen.append(printed.getvalue())

        thread = threading.Thread(target=stay)
        with captured_output():
            thread.start()
            entered.wait(60)
        assert sys.stdout is not before
        leave.set()
        thread.join()
        assert seen == [b"late\n"]
        assert sys.stdout is before

    def test_a_stream_that_somebody_else_put_in_place_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        other = sys.stderr
        with captured_output():
            monkeypatch.setattr(sys, "stdout", other)
        assert sys.stdout is other


class TestReasons:
    @pytest.mark.parametrize(("length", "shown"), [(287, 287), (288, 288), (289, 287)])
    def test_a_reason_has_at_most_three_hundred_characters(self, length: int, shown: int) -> None:
        text = reason(ValueError("x" * length))
        assert len(text) <= 300
        assert text == "ValueError: " + "x" * shown + ("…" if shown < length else "")

    def test_it_is_one_line_without_secrets(self) -> None:
        secret = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))
        text = reason(ValueError(f"no\n  way with {secret}"))
        assert text.startswith("ValueError: no way with ")
        assert secret not in text


class TestAccepted:
    OPTIONAL = {"a": 1, "b": 2}  # noqa: RUF012 - never changed

    @pytest.mark.parametrize(
        ("function", "names"),
        [
            (lambda a: a, {"a"}),
            (lambda *, b: b, {"b"}),
            (lambda a, /, b: b, {"b"}),
            (lambda *a: a, set()),
            (lambda **kwargs: kwargs, {"a", "b"}),
            (lambda c=0: c, set()),
            (dict.fromkeys, set()),
            (7, set()),
        ],
    )
    def test_only_what_a_function_takes_is_given(self, function: Any, names: set[str]) -> None:
        assert accepted(function, self.OPTIONAL) == {name: self.OPTIONAL[name] for name in names}
