"""One compaction as a whole: SPEC's worked example, roles, repair, refusals that change nothing."""

from __future__ import annotations

import copy

import pytest

from leporello.api import compress
from leporello.compaction.assemble import choose_role
from leporello.engines.compressor import ContextCompressor
from leporello.engines.lcm import LcmEngine
from leporello.events import Outcome
from leporello.summaries.fold import read_fold
from leporello.turns import validate


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


def step(k: int, words: int, command: str = "ls") -> list[dict]:
    call = {
        "id": f"c{k}",
        "type": "function",
        "function": {"name": "terminal", "arguments": f'{{"command": "{command}"}}'},
    }
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{k}", "content": f"run {k}: " + "word " * words},
    ]


def worked_example() -> list[dict]:
    messages = [{"role": "system", "content": "You write software."}, user("Create a FastAPI project")]
    messages += [m for k in range(10) for m in step(k, 8_000)]
    messages += step(20, 900, "pytest")
    messages += [assistant("8 passed and 2 failed.")]
    messages += [user("Fix the failing tests"), *(m for k in range(30, 39) for m in step(k, 1_200, "cat tests/a.py"))]
    messages += [assistant("Both are fixed.")]
    messages += [user("Great, also add error handling")]
    return messages


def test_the_worked_example_keeps_its_shape() -> None:
    """[system, first user message, summary by the assistant, tail verbatim from the last requests on]"""
    messages = worked_example()
    done = compress(messages, window=200_000)
    assert done.report.outcome is Outcome.COMMITTED
    assert 90_000 < done.report.tokens_before < 100_000
    assert done.report.tokens_after < 45_000
    folds = [k for k, message in enumerate(done) if read_fold(message)]
    assert len(folds) == 1
    assert done[0] == messages[0]
    assert done[1] == messages[1]
    tail = done[folds[0] + 1 :]
    assert tail == messages[-len(tail) :]
    assert user("Fix the failing tests") in tail
    assert done[-1] == user("Great, also add error handling")
    assert validate(done) == []


@pytest.mark.parametrize(
    ("before", "after", "role"),
    [
        ("user", "user", "assistant"),
        ("tool", "user", "assistant"),
        ("tool", "assistant", "user"),
        ("assistant", "assistant", "user"),
        ("user", "assistant", ""),
        ("assistant", "user", ""),
        ("", "assistant", "user"),
        ("", "user", ""),
    ],
)
def test_the_fold_shares_its_role_with_no_neighbour(before: str, after: str, role: str) -> None:
    assert choose_role(before, after) == role


def test_the_input_is_never_changed() -> None:
    messages = worked_example()
    copied = copy.deepcopy(messages)
    compress(messages, window=100_000)
    assert messages == copied


def test_a_short_list_is_returned_as_it_was() -> None:
    messages = [user("hello"), assistant("hi")]
    done = compress(messages, window=128_000)
    assert done.report.outcome is Outcome.NOTHING_TO_DO
    assert done.messages == messages


def test_a_fixed_part_beyond_the_window_is_one_clear_refusal_with_a_breakdown() -> None:
    messages = [{"role": "system", "content": "word " * 9_000}, *worked_example()[1:]]
    done = compress(messages, window=8_000)
    assert done.report.outcome is Outcome.BLOCKED
    assert "system" in done.report.reason
    assert done.messages == messages


def test_repeated_compaction_without_memory_keeps_rules_and_ids() -> None:
    """Each time a fresh engine sees only the list: what its key signed is taken over, ids go on counting."""
    messages = [user("Never push to main. Use tabs, not spaces."), assistant("Understood.")]
    for turn in range(10):
        messages += [m for k in range(20) for m in step(turn * 100 + k, 400)]
        messages += [assistant(f"Step {turn} is done, commit abc{turn}def."), user(f"go on with part {turn}")]
        done = compress(messages, window=16_000, key=b"of the caller")
        assert done.report.committed, done.report.reason
        assert validate(done) == []
        messages = done.messages
    fold = next(found for message in messages if (found := read_fold(message)))
    text = str(messages)
    assert fold.span.last > 300
    assert "Never push to main." in text
    assert "Use tabs, not spaces." in text


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
def test_what_a_result_in_the_head_says_is_told_in_every_fold(engine: str) -> None:
    """It is a pointer from the first compaction on; engines without memory find its lines in the fold before."""
    first = step(0, 60)
    first[1]["content"] += "\nFAILED tests/test_heron.py::test_wading_depth\n" + "ok\n" * 40
    messages = [user("Run the tests."), *first]
    for turn in range(1, 4):
        messages += [m for k in range(20) for m in step(turn * 100 + k, 400)] + [user(f"go on with part {turn}")]
        done = compress(messages, window=16_000, key=b"of the caller", engine=engine)
        assert done.report.committed, done.report.reason
        messages = done.messages
        assert messages[2]["content"].endswith("output cleared here, kept as m3]")
        assert "test_wading_depth" in str(messages[3])


@pytest.mark.parametrize("engine", [ContextCompressor, LcmEngine])
def test_after_clearing_outputs_only_nothing_that_follows_is_lost(engine: type[ContextCompressor]) -> None:
    """One long turn has no middle: its outputs become pointers. What comes next has numbers and facts of its own."""
    folder = engine(16_000)
    live = folder.compress([user("Do the work."), *(m for k in range(9) for m in step(k, 900))], force=True)
    assert folder.last_report is not None
    assert (folder.last_report.pruned > 0, folder.last_report.fold) == (True, "")
    rule = "Never delete the table customers_2024."
    live += [assistant("Done."), user(rule), assistant("OK."), user("Go on with the next part.")]
    live = folder.compress([*live, *(m for k in range(20, 40) for m in step(k, 700))], force=True)
    assert [(found.number, found.text) for found in folder.ledger.rules] == [(21, rule)]
    assert any(rule in str(message["content"]) for message in live)


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
def test_what_is_shortened_in_the_tail_is_told_in_the_fold(engine: str) -> None:
    """The result is a pointer, the long text clipped, both behind the fold; engines without memory keep their lines."""
    long = " ".join(f"Part {k} was read from top to bottom." for k in range(60))
    told = "The heron keeps 17 cm of wading depth because the gauge drifts."
    shown = [m for k in range(40) for m in step(k, 400)]
    late = step(100, 60)
    late[1]["content"] += "\nFAILED tests/test_heron.py::test_wading_depth\n" + "ok\n" * 40
    messages = [user("Run the tests."), *shown, *late, assistant(f"{long} {told} {long}"), user("Go on.")]
    messages += [m for k in range(200, 207) for m in step(k, 300)]
    for turn in range(2):
        done = compress(messages, window=16_000, key=b"of the caller", engine=engine)
        assert done.report.committed, done.report.reason
        fold = str(next(message for message in done.messages if read_fold(message)))
        behind = str([message for message in done.messages if not read_fold(message)])
        if not turn:
            assert "wading" not in behind
            assert "output cleared here, kept as m83]" in behind
        assert "test_wading_depth" in fold
        assert told in fold
        messages = [*done.messages, *(m for k in range(300, 315) for m in step(k, 400))]


def test_what_stands_in_the_tail_is_not_told_in_the_fold_too() -> None:
    line = "gauge 17 of the heron pond drifts by 4 mm a day"
    early, late = step(1, 400, "./gauges"), step(90, 20, "./gauges")
    for _, result in (early, late):
        result["content"] += f"\n{line}"
    between = [m for k in range(10, 50) for m in step(k, 400)]
    messages = [user("Read the gauges."), assistant("ok"), user("Go on."), *step(2, 400), *early, *between]
    without = str(compress([*messages, user("And now?")], window=16_000).messages)
    done = compress([*messages, *late, user("And now?")], window=16_000)
    assert (without.count(line), str(done.messages).count(line)) == (1, 1)
    assert line in str(done.messages[-2:])


def test_focus_brings_what_is_about_the_topic() -> None:
    messages = [user("Start"), assistant("ok")]
    for k in range(150):
        about = "The billing gateway timeout was raised" if k % 10 == 0 else "Some other module was looked at"
        messages += [*step(k, 150), assistant(f"{about}, note number {k * 7919 % 100000}.")]
    messages += [user("now")]
    plain = str(compress(messages, window=8_000).messages)
    focused = str(compress(messages, window=8_000, focus="billing").messages)
    assert focused.count("billing gateway") >= plain.count("billing gateway")
    assert focused.count("billing gateway") >= 12


def test_orphans_go_and_lost_results_get_a_stub() -> None:
    messages = worked_example()
    messages[-3:-3] = [{"role": "tool", "tool_call_id": "ghost", "content": "boo"}]
    lost = {"id": "lost", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    messages[-1:-1] = [{"role": "assistant", "content": "", "tool_calls": [lost]}]
    done = compress(messages, window=100_000)
    assert done.report.committed
    assert validate(done) == []
    assert "boo" not in str([m for m in done if m["role"] == "tool"])
    assert any(m.get("tool_call_id") == "lost" for m in done)


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
@pytest.mark.parametrize("results", [1, 3])
def test_the_result_the_model_waits_for_is_cut_and_not_cleared(engine: str, results: int) -> None:
    """Cleared, it would be asked for again, and again be too long."""
    text = "\n".join(f"line {number}: value {number * 7919}" for number in range(9_000))
    calls = [
        {"id": f"c{k}", "type": "function", "function": {"name": "read_file", "arguments": f'{{"path": "{k}"}}'}}
        for k in range(results)
    ]
    messages = [user("Start"), assistant("ok"), *(m for k in range(20) for m in step(k, 150)), user("read them")]
    messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": f"c{k}", "content": f"file {k}\n{text}"} for k in range(results)]
    done = compress(messages, window=12_000, engine=engine)
    assert done.report.committed, done.report.reason
    assert done.report.tokens_after <= 12_000
    for k, shown in enumerate(done.messages[-results:]):
        assert shown["content"].startswith(f"file {k}\nline 0: value 0\n")
        assert shown["content"].endswith(f"value {8_999 * 7919}")
