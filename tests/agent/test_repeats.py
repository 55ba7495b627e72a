"""A model that goes round in circles is told once and then stopped; one that works is left alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from leporello.agent.agent import CIRCLING
from leporello.agent.events import Notice
from leporello.agent.repeats import MOST_SEEN, STOP_AFTER, TELL_AFTER, WAITED_SECONDS, Repeats
from leporello.messages import ToolCall, is_result, text_of
from leporello.providers.base import ModelReply
from leporello.tools.base import ToolResult
from leporello.usage import CanonicalUsage
from tests.agent.conftest import Bench, call, calls
from tests.agent.test_run_tools import stored
from tests.agent.workflows import HONEST, LOOPS
from tests.agent.workflows import endless as endless_rows

MOST = 1 + TELL_AFTER + STOP_AFTER


def endless(*commands: str) -> Iterator[Any]:
    """A model that asks for the same commands for ever."""
    for number, command in enumerate(itertools.cycle(commands)):
        yield call("terminal", id=f"c{number}", command=command)


def first(count: int, *commands: str) -> list[Any]:
    return list(itertools.islice(endless(*commands), count))


@pytest.mark.parametrize(
    "commands", [("cat missing",), ("false",), ("cat missing", "ls none"), ("pwd", "uname", "umask")]
)
def test_circles_end_after_a_few_calls(bench: Bench, commands: tuple[str, ...]) -> None:
    """Failing or not, one call, two in turn or three: 200 requests become a handful."""
    agent = bench.agent(first(30, *commands))
    said: list[str] = []
    ended = agent.turn("go", lambda event: said.append(event.text) if isinstance(event, Notice) else None)
    results = [text_of(message) for message in stored(agent) if is_result(message)]
    assert ended.reason == "repeats"
    assert len(results) == len(commands) + TELL_AFTER + STOP_AFTER
    assert sum("Repeating them will not help" in text for text in results) == 1
    assert sum("repeats calls" in text for text in said) == 1


@pytest.mark.parametrize(
    "commands",
    [
        [f"echo 'I think about step {word}'" for word in "abcdefghijkl"],
        [f"X={word} true" for word in "abcdefghijkl"],
        [f"echo {word} && echo {word}{word}; true" for word in "abcdefghijkl"],
        [f": {word}" for word in "abcdefghijkl"],
        [step for word in "abcdefghijkl" for step in ("false", f"echo {word}")],
    ],
    ids=["echo", "variables", "several", "colon", "beside a failure"],
)
def test_doing_nothing_in_new_words_is_a_circle(bench: Bench, commands: list[str]) -> None:
    agent = bench.agent(first(len(commands), *commands))
    assert agent.turn("go").reason == "repeats"


def test_saying_something_into_a_file_is_no_circle(bench: Bench) -> None:
    assert bench.agent([*first(8, *(f"echo {word} >> a.txt" for word in "abcdefgh")), "done"]).turn("go").text == "done"


def test_the_other_calls_of_that_reply_are_answered_but_not_run(bench: Bench) -> None:
    same = [(f"d{number}", "terminal", {"command": "false"}) for number in range(MOST)]
    agent = bench.agent([calls(*same, ("last", "terminal", {"command": "touch made"}))])
    assert agent.turn("go").reason == "repeats"
    assert text_of(stored(agent)[-1]) == f"Error: {CIRCLING}"
    assert not (bench.workdir / "made").exists()


def test_the_model_that_listens_goes_on(bench: Bench) -> None:
    agent = bench.agent(
        [*first(MOST - 1, "false"), call("terminal", id="new", command="echo else"), *first(3, "false"), "done"]
    )
    assert agent.turn("go").text == "done"


def test_trying_again_after_a_change_is_no_circle(bench: Bench) -> None:
    """Edit, test, edit, test: the same failure, but something new in between."""
    script: list[Any] = []
    for number in range(12):
        script.append(call("write_file", id=f"w{number}", path="a.txt", content=f"try {number}"))
        script.append(call("terminal", id=f"t{number}", command="false"))
    assert bench.agent([*script, "done"]).turn("go").text == "done"


def test_the_count_survives_a_restart_in_the_middle_of_the_turn(bench: Bench) -> None:
    """Taking a turn up again is no fresh start; a new message is."""
    agent = bench.agent([*first(MOST - 1, "false"), RuntimeError("the program dies here")])
    with pytest.raises(RuntimeError):
        agent.turn("go")
    agent.conversation.close()
    again = bench.agent(first(30, "false"))
    assert again.go_on().reason == "repeats"
    asked = [message for message in stored(again) if is_result(message)]
    assert len(asked) == MOST
    fresh = bench.agent([*first(MOST - 1, "false"), "done"])
    assert fresh.turn("try once more").text == "done"


def test_the_count_survives_a_compaction(bench: Bench) -> None:
    agent = bench.agent(first(30, "false"), window=16_000)
    agent.conversation.append({"role": "user", "content": "x " * 6_000}, {"role": "assistant", "content": "y " * 4_000})
    seen = 0

    def fold(event: Any) -> None:
        nonlocal seen
        if type(event).__name__ == "ToolFinished":
            seen += 1
            if seen == 3:
                agent.conversation.runtime.compactor.shrink("by hand")

    assert agent.turn("go", fold).reason == "repeats"
    assert agent.conversation.runtime.log.compactions >= 1
    assert seen == MOST


def made(text: str = "", **arguments: Any) -> tuple[ToolCall, ToolResult]:
    return ToolCall("c", "terminal", str(arguments.pop("raw", '{"command": "make"}')), 0), ToolResult(text, **arguments)


def test_what_counts_as_the_same() -> None:
    """Blanks and the order of arguments don't matter; in failures, times and counts don't either."""
    same = [
        (made(is_error=True, text="failed at 12:01"), made(is_error=True, text="failed at 12:02")),
        (made(details={"exit_code": 2}, text="took 1.2s"), made(details={"exit_code": 2}, text="took 3.4s")),
        (made(raw='{"a": 1, "b": "x  y"}'), made(raw='{"b":"x y ","a":1}')),
        (made(raw="not json"), made(raw="not json")),
        (made(raw='{"command": "cat x # 1"}', is_error=True), made(raw='{"command": "cat x # 2"}', is_error=True)),
    ]
    other = [
        (made(text="10% done"), made(text="20% done")),
        (made(raw='{"command": "make"}'), made(raw='{"command": "make all"}')),
        (made(text="one", is_error=True), made(text="two", is_error=True)),
    ]
    for pairs, expected in ((same, True), (other, False)):
        for earlier, later in pairs:
            repeats = Repeats()
            assert not repeats.note(*earlier, 0.0)
            assert repeats.note(*later, 0.0) is expected


NOISE = [
    "2026-11-16T19:03:{n:02d}.123Z ok",
    "Mon Nov 16 19:{n:02d}:36 UTC 2026",
    "finished in {n}.{n}7s",
    "took {n} ms",
    "request id 3f2504e0-4f89-41d3-9a0c-0305e82c{n:04d}",
    "trace 9f8e7d6c5b4a3928{n:04d}",
    "req_01HZXK{n:04d}abcdefgh failed to start",
    "<object at 0x7f55228c{n:04x}>",
    "wrote /tmp/tmp{t}/out.txt",
    "listening, pid {n}",
    "at 17319{n:05d}: nothing to do",
]


def circled(rows: Iterator[tuple[ToolCall, ToolResult]]) -> int:
    """After how many calls the turn is stopped; 200 when it is not."""
    repeats = Repeats()
    for number, (asked, result) in enumerate(itertools.islice(rows, 200), start=1):
        repeats.note(asked, result, 0.1)
        repeats.advice()
        if repeats.too_many:
            assert repeats.told
            return number
    return 200


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("form", NOISE)
def test_what_clocks_and_counters_add_makes_no_new_result(form: str, failed: bool) -> None:
    shown = (form.format(n=number, t="abcdefghij"[number % 7 :] + "xyz") for number in itertools.count())
    assert circled(made(text, is_error=failed) for text in shown) == MOST


def test_lines_in_another_order_make_no_new_result() -> None:
    lines = [f"row {letter}" for letter in "abcdef"]
    assert circled(made("\n".join(lines[n % 6 :] + lines[: n % 6])) for n in itertools.count()) == MOST


def test_a_bare_counter_takes_longer() -> None:
    """It may be a sign of progress, for a while."""
    assert 8 <= circled(made(f"call {number}: the queue is empty") for number in itertools.count()) <= 12


@pytest.mark.parametrize(
    "form",
    ["cat ./missing.txt #{t}", "cat 'missing.txt' {t}", "{t}=1 cat missing.txt", "cat {t}.txt"],
)
def test_the_same_failure_with_other_arguments_is_a_circle(form: str) -> None:
    def rows() -> Iterator[tuple[ToolCall, ToolResult]]:
        for number in itertools.count():
            name = form.format(n=number, t="".join(chr(97 + (number * k) % 26) for k in (3, 5, 7)))
            text = f"cat: {name.split()[-1]}: No such file or directory"
            yield made(text, raw=json.dumps({"command": name}), details={"exit_code": 1}, status="exit code 1")

    assert circled(rows()) <= 12


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("read_file", "missing_{t}.txt", "Error: there is no file missing_{t}.txt."),
        ("tool_{t}", "a.txt", "Error: there is no tool named 'tool_{t}'. Available: read_file, patch, terminal."),
    ],
)
def test_what_is_not_there_under_ever_new_names_is_a_circle(name: str, path: str, text: str) -> None:
    def rows() -> Iterator[tuple[ToolCall, ToolResult]]:
        for number in itertools.count():
            t = "".join(chr(97 + (number * k) % 26) for k in (3, 5, 7))
            call = ToolCall("c", name.format(t=t), json.dumps({"path": path.format(t=t)}), 0)
            yield call, ToolResult(text.format(t=t), is_error=True)

    assert circled(rows()) <= 12


@pytest.mark.parametrize(
    "form", ["X={} false", "A=1 X={} false", "X='{}' false", 'X="{}" make all', "cd src && X={} false"]
)
def test_the_same_failure_with_other_variables_is_a_circle(form: str) -> None:
    words = "amber birch cedar delta ember fable grove heron inlet jolly kayak lemon mango noble".split()
    repeats = Repeats()
    for word in words:
        arguments = json.dumps({"command": form.format(word)})
        failed = ToolResult("(no output)", status="exit code 1", details={"exit_code": 1})
        repeats.note(ToolCall("c", "terminal", arguments, 0), failed, 0.1)
    assert repeats.too_many


def test_other_variables_that_bring_something_else_are_no_circle() -> None:
    repeats = Repeats()
    for word in ("amber", "birch", "cedar", "delta", "ember", "fable", "grove", "heron", "inlet", "jolly"):
        arguments = json.dumps({"command": f"X={word} make"})
        failed = ToolResult(f"no rule for {word}: {word[::-1]}", status="exit code 2", details={"exit_code": 2})
        repeats.note(ToolCall("c", "terminal", arguments, 0), failed, 0.1)
    assert not repeats.too_many


def test_a_call_that_fails_again_is_a_circle_whatever_it_says() -> None:
    """Random words in an output, or another comment behind the command, are no news."""
    words = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")
    said = (made(f"broken near {word}", is_error=True) for word in itertools.cycle(words))
    assert circled(said) == 1 + 2 * (TELL_AFTER + STOP_AFTER)
    noted = (made(raw=json.dumps({"command": f"false  # {word} now"}), is_error=True) for word in words)
    assert circled(noted) == MOST


def test_looking_around_is_no_circle() -> None:
    """Searches that find nothing, sizes of many files, failures of different kinds."""
    for form, text, code in (
        ("grep -r {t} src", "(no output)", 1),
        ("wc -l chapter{n}.txt", "{n}2 chapter{n}.txt", 0),
        ("pytest tests/test_{t}.py", "FAILED test_{t} - {t}{t} is not what {t} {t}x said", 1),
        ("head -n {n} a.txt", "line {t}", 0),
    ):
        values = [{"n": n, "t": "".join(chr(97 + (n * k) % 26) for k in (1, 3, 5, 7))} for n in range(26)]
        rows = (
            made(
                text.format(**value),
                raw=json.dumps({"command": form.format(**value)}),
                details={"exit_code": code},
                status=f"exit code {code}",
            )
            for value in values
        )
        assert circled(rows) == 200, form


def written(number: int, content: str, path: str = "a.txt") -> tuple[ToolCall, ToolResult]:
    arguments = json.dumps({"path": path, "content": content})
    return ToolCall("c", "write_file", arguments, 0), ToolResult(f"Wrote {path}.", details={"bytes": number})


def word(number: int) -> str:
    return "".join(chr(97 + (number * k + k) % 26) for k in (1, 3, 5, 7, 11)) + chr(97 + number // 26 % 26)


def ran(command: str, text: str = "(no output)", code: int = 0) -> tuple[ToolCall, ToolResult]:
    return made(text, raw=json.dumps({"command": command}), details={"exit_code": code}, status=f"exit code {code}")


STALE = {
    "pages behind the last one": lambda n: made(
        "(the file ends before)", raw=json.dumps({"path": "a", "offset": n * 99})
    ),
    "empty pages": lambda n: ran(f"curl -s x/items?page={n}", json.dumps({"items": [], "next": n + 1})),
    "searches without a hit": lambda n: ran(f"grep -rn {word(n)} src", code=1),
    "the same hit for every question": lambda n: made("m12: the port is 8080", raw=json.dumps({"query": word(n)})),
    "numbered copies": lambda n: ran(f"cp a.py a_v{n}.py"),
    "thoughts printed": lambda n: ran(f"python3 -c \"print('{word(n)} {word(n + 9)}')\"", f"{word(n)} {word(n + 9)}"),
    "words that change nothing": lambda n: ran(f"make {'x' * n}", "make: nothing to be done"),
    "a counter in a file": lambda n: written(n, f"attempt {n}"),
    "the same text in ever new files": lambda n: written(4, "TODO", f"out_{n}.txt"),
    "a file written anew without end": lambda n: written(9, f"def {word(n)}(): return {word(n + 4)}"),
    "changes that change nothing": lambda n: (
        ran("pytest -q", "1 failed", 1) if n % 2 else written(9, f"{word(n)} = {word(n + 4)}")
    ),
    "failures that name something else": lambda n: ran(f"q {word(n)}", f"timed out (request {word(n * 3 + 1)})", 1),
    "one failing call between ever new readings": lambda n: (
        made(f"{word(n)} {word(n + 3)} {word(n + 8)}", raw=json.dumps({"path": f"{word(n)}.md"}))
        if n % 3
        else ran("deploy all", "Error: no credentials for the target", 2)
    ),
    "one failing test between ever new thoughts": lambda n: (
        ran(f"python -c 'print({word(n)})'", f"{word(n + 4)} {word(n + 9)}")
        if n % 2
        else ran("pytest -q t.py", "1 failed: the total is wrong", 1)
    ),
    "one call that brings something else each time": lambda n: ran("fortune", f"{word(n)} {word(n + 5)} {word(n + 8)}"),
}


@pytest.mark.parametrize("kind", STALE)
def test_calls_that_bring_nothing_new_end(kind: str) -> None:
    """Whatever they are: what counts is whether anything comes that was not known."""
    assert circled(map(STALE[kind], itertools.count())) <= 150


def test_waiting_for_ever_ends() -> None:
    repeats, polls = Repeats(), 0
    while not repeats.too_many and polls < 200:
        repeats.note(*made("pending", raw='{"command": "sleep 30; cat status"}'), 30.0)
        polls += 1
    assert 50 < polls < 100


WORKS: dict[str, list[tuple[ToolCall, ToolResult]]] = {
    "files": [written(n, f"def {word(n)}(): ...", f"{word(n)}.py") for n in range(60)],
    "folders": [ran(f"mkdir -p out/{word(n)}") for n in range(50)],
    "rows": [ran(f"psql -c \"insert into t values ('{word(n)}')\"", "INSERT 0 1") for n in range(50)],
    "sizes": [ran(f"wc -w chapter{n}.txt", f"{n * 7919 % 4001} chapter{n}.txt") for n in range(90)],
    "a log": [
        made(f"request {word(n)} served {word(n + 3)}", raw=json.dumps({"path": "a.log", "offset": n * 200}))
        for n in range(150)
    ],
    "numbers tuned until the test passes": [
        step for n in range(20) for step in (written(9, f"rate = {n}"), ran("pytest -q", "1 failed", 1))
    ],
    "edits, each with all tests": [
        step
        for n in range(60)
        for step in (written(9, f"{word(n)} = {word(n + 2)}"), ran("pytest -q", f"120 passed in {n % 9}.1s"))
    ],
    "ports": [
        ran(f"curl localhost:{8000 + n}", "curl: (7) Failed to connect: Connection refused", 7) for n in range(9)
    ],
    "tests after each change, and the same one fails for long": [
        step
        for n in range(25)
        for step in (written(9, f"{word(n)} = {word(n + 2)}"), ran("pytest -q", "1 failed, 3 passed", 1))
    ],
    "a failure that is looked into, changed and met again": [
        step
        for n in range(20)
        for step in (
            ran("cargo build", "error[E0432]: unresolved import", 101),
            made(f"{word(n)} {word(n + 2)} {word(n + 4)}", raw=json.dumps({"path": f"{word(n)}.rs"})),
            ran(f"sed -i s/{word(n)}/{word(n + 1)}/ {word(n)}.rs"),
        )
    ],
    "a failure that is looked into for long": [
        step
        for n in range(10)
        for step in (
            ran("pytest -q t.py", "1 failed: KeyError", 1),
            made(f"{word(n)} {word(n + 3)}", raw=json.dumps({"path": f"{word(n)}.py"})),
            made(f"{word(n + 20)} {word(n + 23)}", raw=json.dumps({"path": f"{word(n + 20)}.py"})),
        )
    ],
    "pictures of one form converted": [ran(f"convert img{n}.png img{n}.webp") for n in range(60)],
    "scrolling down": [made(f"paragraph {word(n)}", raw='{"direction": "down"}') for n in range(60)],
}


@pytest.mark.parametrize("kind", WORKS)
def test_long_work_is_left_alone(kind: str) -> None:
    assert circled(iter(WORKS[kind])) == 200


@pytest.mark.parametrize("kind", HONEST)
def test_honest_work_that_repeats_itself_goes_on(kind: str) -> None:
    """Sweeps of numbers that all fail, polls without a wait: breaks where such calls count as much as a repeat."""
    repeats = Repeats()
    for number, row in enumerate(HONEST[kind], start=1):
        repeats.note(*row)
        assert not repeats.too_many, number


@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_ends(kind: str) -> None:
    """Each is told first. What goes on in small steps takes longest: a file that is written anew each time."""
    repeats, told = Repeats(), 0
    for number, row in enumerate(itertools.islice(endless_rows(LOOPS[kind]), 200), start=1):
        repeats.note(*row)
        told = told or (number if repeats.advice() else 0)
        if repeats.too_many:
            break
    assert repeats.too_many
    assert 0 < told < number <= (150 if kind == "edits that change nothing" else 80)


def test_who_looks_again_and_again_is_told_to_wait() -> None:
    repeats = Repeats()
    said = ""
    for _ in range(20):
        repeats.note(*made("pending", raw='{"command": "cat status"}'), 0.1)
        said = said or repeats.advice()
    assert "Wait between two looks" in said


def test_a_circle_is_seen_after_a_long_turn_too() -> None:
    """What was seen first is forgotten, not what comes last."""
    repeats = Repeats()
    for number in range(MOST_SEEN):
        repeats.note(*ran(f"cat {word(number)}{number}", f"{word(number)} {number} {word(number * 7)}"), 0.1)
    for _ in range(MOST):
        repeats.note(*ran("false", code=1), 0.1)
    assert repeats.too_many


def test_waiting_is_no_circle() -> None:
    """A call that took its time and succeeded was a wait; one that fails slowly is a circle all the same."""
    repeats = Repeats()
    for _ in range(50):
        repeats.note(*made("running"), 0.1)
        repeats.note(*made("", raw='{"command": "sleep 30"}'), WAITED_SECONDS)
        assert not repeats.too_many
    for _ in range(MOST):
        repeats.note(*made("stopped", is_error=True), 120.0)
    assert repeats.too_many


def test_waiting_for_a_service_between_failing_calls_ends_no_turn() -> None:
    repeats = Repeats()
    for number in range(40):
        repeats.note(*made("refused", is_error=True), 0.1)
        repeats.note(*made(f"line {number} of the build", raw='{"command": "tail build.log"}'), 0.1)
        repeats.note(*made("", raw='{"command": "sleep 60"}'), WAITED_SECONDS)
        assert not repeats.too_many


def test_the_state_is_read_back_or_begun_afresh() -> None:
    repeats = Repeats()
    for _ in range(3):
        repeats.note(*made("x"), 0.0)
    assert Repeats.from_dict(repeats.as_dict()) == repeats
    for broken in (None, [], {"seen": 3}, {"in_a_row": 2}, "x"):
        assert Repeats.from_dict(broken) == Repeats()


@pytest.mark.parametrize("ending", ["stop", "end_turn", "tool_calls", "tool_use", "", "eos", "refusal", "unknown"])
@pytest.mark.parametrize("said", ["", None, "  \n", "\u200b\ufeff", "<think>hm\n</think>\n", "<think>cut off", []])
def test_an_empty_answer_is_said(bench: Bench, ending: str, said: Any) -> None:
    """Not taken for an answer, whatever the provider calls it: whoever asked is told that there was none."""
    reply = ModelReply({"role": "assistant", "content": said}, CanonicalUsage(9, 0), ending)
    assert bench.agent([reply]).turn("go").reason == "empty"


@pytest.mark.parametrize("ending", ["length", "content_filter"])
def test_an_empty_answer_with_a_reason_keeps_it(bench: Bench, ending: str) -> None:
    reply = ModelReply({"role": "assistant", "content": ""}, CanonicalUsage(9, 0), ending)
    assert bench.agent([reply]).turn("go").reason == ending


def test_an_answer_is_no_empty_one(bench: Bench) -> None:
    assert bench.agent(["words"], id="c").turn("go").reason == "stop"
    refusal = ModelReply({"role": "assistant", "content": None, "refusal": "I can't."}, CanonicalUsage(9, 3), "stop")
    ended = bench.agent([refusal], id="d").turn("go")
    assert (ended.text, ended.reason) == ("I can't.", "stop")
