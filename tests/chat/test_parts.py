"""The parts of the terminal that need none: blocks, the live area, the status line, pastes, completion, drawings."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rich.cells import cell_len

from leporello.agent.commands import COMMANDS, SlashCommand, help_text, run_command
from leporello.agent.events import TextDelta, ToolFinished
from leporello.cancel import CancelToken
from leporello.chat.prompt import ChatCompleter, Pastes, ProjectFiles
from leporello.chat.renderer import BlockStream, LiveArea, Renderer, ScreenLine, block_starts
from leporello.chat.repl import Lazy, soft_interrupts
from leporello.chat.terminal import TerminalTurn
from leporello.chat.ui import ChatStatus, fold_note, gauge, preview, short_outcome, status_line
from leporello.conversation import Conversation
from leporello.errors import InputError
from leporello.present.records import error_hint
from leporello.present.text import clean, duration, short_count
from leporello.present.window import WindowPart, WindowUse, bar, divide, draw, share_of, window_use
from leporello.providers.error_rules import ErrorKind
from leporello.providers.errors import CallFailed, ErrorVerdict
from leporello.tokens.meter import PromptSize

PIECES = """\
# Title
words and words

- item
  more of it
1. one
```
code
> said
| a | b |
|---|---|
<div>
***
    indented
漢字 🪗
[a]: b
---
"""
MARKDOWN = st.lists(st.sampled_from([*PIECES.splitlines(keepends=True), "half a line"]), max_size=24).map("".join)


# -- streaming Markdown


@given(MARKDOWN, st.lists(st.integers(1, 9), max_size=60))
def test_no_letter_is_lost_or_doubled_in_a_stream(text: str, cuts: list[int]) -> None:
    """However a text is cut into pieces, the blocks together are the text; blank ends aside."""
    stream = BlockStream()
    shown: list[str] = []
    position = 0
    for cut in [*cuts, len(text) + 1]:
        stream.feed(text[position : position + cut])
        position += cut
        shown += stream.finished()
    shown += stream.end()
    assert "".join(shown).rstrip() == text.rstrip()


@given(MARKDOWN)
def test_a_finished_block_is_one_block(text: str) -> None:
    """What is printed for good is a whole block of the text, never half of one."""
    stream = BlockStream()
    stream.feed(text)
    for block in stream.finished():
        assert len(block_starts(block)) <= 1


def test_raw_html_is_shown() -> None:
    """A tag in an answer is text: leaving it out would hide what the model said."""
    drawn = "\n".join(line.text for line in Renderer().markdown("<config>\n<port>80</port>\n</config>\n"))
    assert "<port>80</port>" in drawn


def test_a_long_growing_block_is_looked_at_in_part() -> None:
    """The cost of drawing does not grow with the answer."""
    stream = BlockStream()
    stream.feed("```python\n" + "".join(f"line_{k} = {k}\n" for k in range(5_000)))
    assert stream.finished() == []
    assert stream.preview().startswith("```python\n")
    assert stream.preview().count("\n") < 60
    assert "line_4999" in stream.preview()


# -- the live area


class _Screen:
    """A terminal of a size, as an emulator sees it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=5_000)
        self.screen.set_mode(pyte.modes.LNM)
        self.stream = pyte.Stream(self.screen)
        self.area = LiveArea(self.stream.feed, lambda: (columns, rows))

    @property
    def lines(self) -> list[str]:
        old = ["".join(line[k].data for k in range(self.screen.columns)) for line in self.screen.history.top]
        shown = [line.rstrip() for line in [*old, *self.screen.display]]
        while shown and not shown[-1]:
            shown.pop()
        return shown


TEXTS = st.lists(st.text("abc", min_size=1, max_size=19), max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["print", "print then", "update", "clear"]), TEXTS), max_size=20))
def test_the_live_area_leaves_the_printed_lines_alone(steps: list[tuple[str, list[str]]]) -> None:
    """Whatever is redrawn, the screen is always: all printed lines, then the newest live lines that fit."""
    screen = _Screen(20, 8)
    printed: list[str] = []
    live: list[str] = []
    for step, texts in steps:
        if step == "print":
            screen.area.print("".join(f"{text}\n" for text in texts))
            printed += texts
        elif step == "print then":
            screen.area.print("".join(f"{text}\n" for text in texts), [ScreenLine(text, len(text)) for text in texts])
            printed += texts
            live = texts[-7:]
        elif step == "update":
            screen.area.update([ScreenLine(text, len(text)) for text in texts])
            live = texts[-7:]
        else:
            screen.area.clear()
            live = []
        assert screen.lines == [*printed, *live]


def test_a_block_that_is_finished_never_stands_twice() -> None:
    """Not for a moment: what was live is printed and taken out of the area in one frame."""
    screen = _Screen(60, 30)
    frames: list[str] = []

    def write(text: str) -> None:
        screen.stream.feed(text)
        frames.append("\n".join(screen.lines))

    turn = TerminalTurn(LiveArea(write, lambda: (60, 30)), Renderer())
    for word in re.split(r"(?<=[ \n])", "Intro here.\n\n1. alpha item\n2. beta item\n\nThe end of it.\n\nLast words."):
        turn(TextDelta(word))
        turn._draw()
    assert any("alpha" in frame for frame in frames)
    assert all(frame.count(word) <= 1 for frame in frames for word in ("Intro", "alpha", "beta", "end"))


def test_a_hidden_area_stays_away() -> None:
    """While a question is on the screen nothing is drawn over it."""
    screen = _Screen(20, 8)
    screen.area.update([ScreenLine("working", 7)])
    screen.area.hide()
    screen.area.update([ScreenLine("still working", 13)])
    assert screen.lines == []
    screen.area.show()
    screen.area.update([ScreenLine("again", 5)])
    assert screen.lines == ["again"]


# -- the status line


@given(
    st.text("abcdefgh-", min_size=1, max_size=60),
    st.integers(0, 3_000_000),
    st.integers(1, 2_000_000),
    st.one_of(st.none(), st.floats(0, 500)),
    st.integers(20, 140),
)
def test_the_status_line_fits(model: str, used: int, window: int, cost: float | None, width: int) -> None:
    """It never runs over the edge, and always says something."""
    line = status_line(ChatStatus(model, used, window, cost, 0.5, 3), width)
    assert 0 < cell_len(line) <= width


def test_the_status_line_says_it_all() -> None:
    """Model, gauge, tokens of window, cost, cache, folds."""
    line = status_line(ChatStatus("gpt-4o", 64_000, 128_000, 0.0123, 0.87, 2), 100)
    assert line == "gpt-4o · █████░░░░░ 50% 64K/128K · $0.0123 · cache 87% · folded 2×"
    told = ("next fold 37% paid", "saved $0.04")
    assert status_line(ChatStatus("gpt-4o", 64_000, 128_000, folds=2, outlook=told), 100).endswith(
        "folded 2× · next fold 37% paid · saved $0.04"
    )
    assert status_line(ChatStatus("a-very-long-model-name-indeed", 64_000, 128_000, 0.0123, 0.87, 2), 60).startswith(
        "a-very"
    )
    assert [short_count(n) for n in (0, 999, 1_000, 12_345, 999_999, 1_050_000)] == [
        "0",
        "999",
        "1K",
        "12.3K",
        "1M",
        "1.05M",
    ]
    assert gauge(0) == "░" * 10
    assert gauge(0.001)[0] == "▏"
    assert gauge(2) == "█" * 10


# -- input


def test_pastes_come_back_whole() -> None:
    """Two long pastes in one message keep their places; a short one is not touched."""
    pastes = Pastes()
    first, second = "a\n" * 100, "x" * 5_000
    line = f"see {pastes.shorten(first)} and {pastes.shorten(second)} and {pastes.shorten('short')}"
    assert len(line) < 120
    assert pastes.expand(line) == f"see {first} and {second} and short"
    quoted = pastes.shorten("[pasted text 1: 101 lines]\n" * 50)
    assert pastes.expand(quoted) == "[pasted text 1: 101 lines]\n" * 50


def test_completion(tmp_path: Path) -> None:
    """Commands by their beginning, arguments behind them, files anywhere below, hidden and generated ones not."""
    for name in ("src/harbour/pier.py", "README.md", ".secret/key", "node_modules/pier.js"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    names = {"compress": "fold", "context": "window", "quit": "leave"}
    arguments = {"context": {"--explain": ""}}
    completer = ChatCompleter(lambda: names, lambda name: arguments.get(name, {}), ProjectFiles(tmp_path))

    def complete(text: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]

    assert complete("/co") == ["compress", "context"]
    assert complete("/context --") == ["--explain"]
    assert complete("/quit now") == []
    assert complete("look at @pie") == ["src/harbour/pier.py"]
    assert complete("@src") == ["src/", "src/harbour/", "src/harbour/pier.py"]
    assert complete("@key") == []
    assert complete("mail me at a@b") == []
    assert complete("no command") == []


# -- words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("one\r\ntwo", "one\ntwo"),
    ],
)
def test_nothing_drives_the_terminal(text: str, shown: str) -> None:
    """Colours are taken out, other control codes are shown as escapes."""
    assert clean(text) == shown


def finished(name: str, output: str, ok: bool = True, outcome: str = "") -> ToolFinished:
    return ToolFinished("c1", name, ok, len(output), outcome=outcome, message="m7", output=output)


def test_what_is_shown_of_an_output() -> None:
    """Short ones whole, long ones in part with the way to open them, what is for the model only as a count."""
    assert preview(finished("terminal", "one\ntwo")).lines == ("one", "two")
    long = finished("terminal", "\n".join(map(str, range(100))))
    assert preview(long).lines == ("96", "97", "98", "99")
    assert fold_note(long, preview(long)) == "… 96 more lines · /expand m7"
    head = preview(finished("search_files", "\n".join(map(str, range(100)))))
    assert head.lines == ("0", "1", "2", "3")
    read = finished("read_file", "a\nb\nc")
    assert fold_note(read, preview(read)) == "3 lines · /expand m7"
    assert preview(finished("terminal", "(no output)")).lines == ()
    refused = "Error: terminal was not allowed: the user declined. Nothing was done."
    assert short_outcome(refused) == "not allowed"
    assert preview(finished("terminal", refused, ok=False, outcome=refused)).lines == ()


def test_durations() -> None:
    """Tenths while they matter."""
    assert [duration(seconds) for seconds in (0.04, 3.21, 42.4, 125)] == ["0.0 s", "3.2 s", "42 s", "2 m 5 s"]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (ErrorVerdict(ErrorKind.AUTH, status=401), ("refused the key", "leporello setup")),
        (ErrorVerdict(ErrorKind.TRANSIENT, "connection"), ("no connection", "network", "kept")),
        (ErrorVerdict(ErrorKind.TRANSIENT, "timeout"), ("did not answer in time", "kept")),
        (ErrorVerdict(ErrorKind.QUOTA, status=402), ("no credit", "/model")),
        (ErrorVerdict(ErrorKind.RATE_LIMIT, status=429), ("too often", "Wait")),
        (ErrorVerdict(ErrorKind.MALFORMED, status=404), ("does not know the model m", "/model")),
        (ErrorVerdict(ErrorKind.TRANSIENT, status=503), ("is temporarily failing", "kept")),
        (ErrorVerdict(ErrorKind.CONTENT_POLICY), ("content policy",)),
    ],
)
def test_every_trouble_has_its_sentence(verdict: ErrorVerdict, words: tuple[str, ...]) -> None:
    """What happened, and what to do."""
    said = error_hint(CallFailed(verdict, "acme", "m"), "m", "acme")
    for word in words:
        assert word in said


# -- behind the prompt


def test_an_opening_tells_of_its_failure_once_it_is_known() -> None:
    """The prompt hears of it, and so does whoever asks for the thing."""
    told: list[BaseException] = []

    def fail() -> str:
        raise InputError("no such thing")

    opening: Lazy[str] = Lazy(fail, lambda _: None, told.append)
    opening.start()
    with pytest.raises(InputError, match="no such thing"):
        opening.result()
    assert [str(error) for error in told] == ["no such thing"]


def test_the_first_interrupt_asks_and_the_second_insists() -> None:
    """Ctrl-C once cancels; twice raises; where nothing can be cancelled it raises at once."""
    token = CancelToken()
    cancelled = threading.Event()
    token.on_cancel(cancelled.set)
    with soft_interrupts(token, lambda: False):
        signal.raise_signal(signal.SIGINT)
        assert cancelled.wait(30)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    fresh = CancelToken()
    with soft_interrupts(fresh, lambda: True), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not fresh.cancelled


# -- commands


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    made = Conversation.open("t", model="gpt-4o", window=8_000, store=f"sqlite:///{tmp_path}/t.db")
    made.append({"role": "user", "content": "Look at every module."})
    for number in range(60):
        if number == 20:
            made.append({"role": "user", "content": "Never touch the public API."})
        made.append({"role": "assistant", "content": f"Looked at module {number}: " + "nothing unusual. " * 30})
    made.append({"role": "user", "content": "Go on."})
    return made


def test_the_window_adds_up(talk: Conversation) -> None:
    """Parts and free space together are the window; after a fold there are rules and a summary."""
    talk.runtime.sizes.measure_fixed(
        [{"type": "function", "function": {"name": "t", "parameters": {}}}], "Be kind. " * 50
    )
    before = window_use(talk)
    assert before.parts[WindowPart.SUMMARY] == 0
    assert before.parts[WindowPart.ANSWERS] > before.parts[WindowPart.TAIL] > 0
    assert talk.compact().committed
    after = window_use(talk)
    assert abs(sum(after.parts.values()) - after.window) <= len(WindowPart)
    for part in (
        WindowPart.SYSTEM,
        WindowPart.TOOLS,
        WindowPart.RULES,
        WindowPart.SUMMARY,
        WindowPart.TAIL,
        WindowPart.FREE,
    ):
        assert after.parts[part] > 0, part
    assert all(part.value in draw(after, 76) for part in (WindowPart.SYSTEM, WindowPart.SUMMARY, WindowPart.FREE))
    assert share_of(after, after.window) == "100%"
    talk.close()


@pytest.mark.parametrize("counted", [1, 300, 40_000])
def test_no_part_of_the_window_is_negative(talk: Conversation, counted: int) -> None:
    """Whether a provider counted more or less than we did, the parts add up to what it counted."""
    talk.runtime.sizes.measure_fixed([{"type": "function", "function": {"name": "t", "parameters": {}}}], "Be kind.")
    runtime = talk.runtime
    use = divide(runtime.log.view.lines, runtime.sizes, PromptSize(counted, counted, 0), 0, 8_000)
    used = {part: tokens for part, tokens in use.parts.items() if part is not WindowPart.FREE}
    assert min(use.parts.values()) >= 0
    assert sum(used.values()) == counted
    assert "-" not in "".join(line[12:30] for line in draw(use, 76).splitlines()[1:])
    talk.close()


@given(st.dictionaries(st.sampled_from(list(WindowPart)), st.integers(0, 200_000)), st.integers(len(WindowPart), 120))
def test_the_bar_fills_its_width(parts: dict[WindowPart, int], width: int) -> None:
    """Every part that is there can be seen, and the bar is as long as it should be."""
    use = WindowUse(parts, 200_000, 0, 0, 0, 0, 0, 0, False)
    cells = dict(bar(use, width))
    assert set(cells) == {part for part, tokens in parts.items() if tokens}
    assert not cells or sum(cells.values()) == width
    assert all(count >= 1 for count in cells.values())


def test_pins_are_capped_and_named(talk: Conversation) -> None:
    """A pin is kept with its note; one that does not fit, or does not exist, is refused with the reason."""
    assert "Pinned m1" in str(run_command(talk, "/pin m1 the rule"))
    assert "m1  the rule" in str(run_command(talk, "/pin"))
    talk.append({"role": "user", "content": "word " * 3_000})
    newest = f"m{talk.runtime.log.view.last}"
    assert "5% of the window" in str(run_command(talk, f"/pin {newest}"))
    assert "there is no message m999" in str(run_command(talk, "/pin m999"))
    assert "is no id" in str(run_command(talk, "/pin nonsense"))
    assert [pin.number for pin in talk.pins.all()] == [1]
    assert "no longer" in str(run_command(talk, "/unpin m1"))
    assert talk.pins.all() == []
    talk.close()


def test_a_face_adds_its_own_commands(talk: Conversation) -> None:
    """Help lists them, a near miss is named, and something to say is not taken for a command."""
    more = {"quit": SlashCommand("leave", lambda _, __: "bye")}
    assert run_command(talk, "/quit", more) == "bye"
    assert "/quit" in str(run_command(talk, "/help", more))
    assert "Did you mean /quit?" in str(run_command(talk, "/quti", more))
    assert run_command(talk, "/tmp is full", more) is None
    assert len(help_text(COMMANDS).splitlines()) == len(COMMANDS)
    talk.close()
