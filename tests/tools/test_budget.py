"""The output budget: always within its limits, never a byte lost, and what is shown is what was there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leporello.errors import StoreUnavailable
from leporello.messages import ToolCall
from leporello.tools.base import OutputLimits, SavedOutput, Tool, ToolResult
from leporello.tools.budget import CLOSING, OPENING, Budgeted, OutputBudget, output_name, preview_of
from leporello.tools.schema import foreign_tool

MARK = re.compile(r"\n\[… [\d,]+ (?:characters|bytes) .*? …\]\n")
PLAIN = foreign_tool({"name": "plain"}, lambda context, arguments: "")
READ = Tool("read_file", "", {}, dict, lambda context, arguments: "", threshold=None)
BLOCK_OVERHEAD = 700


class Shelf:
    """A store for artifacts that keeps what it is given."""

    def __init__(self, fails: bool = False) -> None:
        self.kept: dict[str, bytes] = {}
        self.fails = fails

    def put(self, data: bytes) -> str:
        if self.fails:
            raise StoreUnavailable("disk full")
        handle = f"b2:{len(self.kept)}"
        self.kept[handle] = data
        return handle


def call(call_id: str = "call_1", name: str = "plain") -> ToolCall:
    return ToolCall(call_id, name, "{}", 0)


def is_subsequence(part: str, whole: str) -> bool:
    remaining = iter(whole)
    return all(char in remaining for char in part)


def preview_in(text: str) -> str:
    """What a block shows of the original, without the mark."""
    assert text.startswith(OPENING)
    assert text.endswith(CLOSING)
    body = text.split("Its head and tail:\n", 1)[1].removesuffix("\n" + CLOSING)
    shown, marks = MARK.subn("", body)
    assert marks <= 1
    return shown


@given(
    text=st.text(st.characters(exclude_characters="…"), max_size=400) | st.integers(1, 60).map("row of it\n".__mul__),
    chars=st.integers(0, 200),
)
def test_a_preview_is_head_and_tail_of_the_text_within_its_size(text: str, chars: int) -> None:
    shown, marks = MARK.subn("", preview_of(text, chars, "not shown here"))
    assert is_subsequence(shown, text)
    assert len(shown) <= max(chars, 0) or len(text) <= chars
    if len(text) > chars:
        assert marks == 1
        hidden = re.search(r"\[… ([\d,]+) characters", preview_of(text, chars, "x"))
        assert hidden is not None
        assert int(hidden[1].replace(",", "")) == len(text) - len(shown)
        middle = preview_of(text, chars, "x").split("\n[… ")[0]
        assert text.startswith(middle)
    else:
        assert shown == text


RESULTS = st.lists(
    st.tuples(
        st.integers(0, 4_000),
        st.sampled_from(["plain", "read_file"]),
        st.booleans(),
        st.text(max_size=6),
    ),
    min_size=1,
    max_size=12,
)


@given(results=RESULTS, window=st.integers(2_000, 20_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_turn_stays_within_its_limits_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, results: list[tuple[int, str, bool, str]], window: int
) -> None:
    folder = tmp_path_factory.mktemp("outputs")
    limits = OutputLimits.for_window(window)
    given_results = [
        (
            call(call_id, name),
            READ if name == "read_file" else PLAIN,
            ToolResult(f"{k}-" + f"line {k}\n" * (size // 7), exempt=exempt, status="" if exempt else "exit code 0"),
        )
        for k, (size, name, exempt, call_id) in enumerate(results)
    ]
    shelf = Shelf()
    shown = OutputBudget(folder, limits, ("read_file",), shelf).turn(given_results)
    assert [entry.call for entry in shown] == [entry[0] for entry in given_results]
    bound = max(limits.turn_chars, len(shown) * (BLOCK_OVERHEAD + 2 * len(str(folder))))
    assert sum(len(entry.text) for entry in shown) <= bound
    for entry, (_, tool, result) in zip(shown, given_results, strict=True):
        _check_entry(entry, tool, result, limits, shelf)


def _check_entry(entry: Budgeted, tool: Tool, result: ToolResult, limits: OutputLimits, shelf: Shelf) -> None:
    if entry.saved is None:
        assert entry.text.endswith(result.text)
        if tool is PLAIN and not result.exempt:
            assert len(entry.text) <= limits.result_chars
        return
    if result.exempt:
        assert "make the same call again" in entry.text
        assert not entry.saved.path.name
        return
    assert entry.saved.path.read_text() == result.text
    assert shelf.kept[entry.saved.artifact] == result.text.encode()
    assert entry.text.startswith(f"{OPENING}\n{result.status}\n")
    assert str(entry.saved.path) in entry.text
    if "Its head and tail" in entry.text:
        assert is_subsequence(preview_in(entry.text), result.text)
        assert len(preview_in(entry.text)) <= limits.preview_chars


def test_one_result_over_100000_characters_is_saved(tmp_path: Path) -> None:
    budget = OutputBudget(tmp_path, OutputLimits())
    at_limit = budget.one(call(), PLAIN, ToolResult("x" * 100_000))
    assert at_limit.saved is None
    over = budget.one(call(), PLAIN, ToolResult("a" * 60_000 + "MIDDLE" + "z" * 60_000))
    assert over.saved is not None
    assert over.saved.path.read_text() == "a" * 60_000 + "MIDDLE" + "z" * 60_000
    assert preview_in(over.text) == "a" * 750 + "z" * 750
    assert "120,006 bytes" in over.text
    assert f'read_file(path="{over.saved.path}", offset=<first line>, limit=<number of lines>)' in over.text
    assert over.message() == {"role": "tool", "tool_call_id": "call_1", "content": over.text}


def test_a_tool_may_have_a_lower_threshold_and_read_file_has_none(tmp_path: Path) -> None:
    budget = OutputBudget(tmp_path, OutputLimits())
    strict = Tool("strict", "", {}, dict, lambda context, arguments: "", threshold=1_000)
    assert budget.one(call(), strict, ToolResult("x" * 1_001)).saved is not None
    assert budget.one(call(), READ, ToolResult("x" * 150_000)).saved is None
    assert budget.one(call(), None, ToolResult("x" * 100_001)).saved is not None


def test_the_largest_results_of_a_turn_go_first(tmp_path: Path) -> None:
    results = [ToolResult(chr(97 + k) * size) for k, size in enumerate([90_000, 40_000, 80_000, 30_000])]
    shown = OutputBudget(tmp_path, OutputLimits()).turn([(call(f"c{k}"), PLAIN, r) for k, r in enumerate(results)])
    assert [entry.saved is not None for entry in shown] == [True, False, False, False]
    assert sum(len(entry.text) for entry in shown) <= 200_000


def test_an_output_its_tool_has_saved_is_not_saved_in_part(tmp_path: Path) -> None:
    """The block of a flood keeps pointing to the whole of it, however full the turn is."""
    whole = tmp_path / "whole.txt"
    whole.write_text("w" * 5_000_000)
    flood = ToolResult("w" * 90_000, saved=SavedOutput(whole, 5_000_000, 0))
    others = [(call(f"c{k}"), PLAIN, ToolResult(f"{k:05}\n" * 10_000)) for k in range(60)]
    shown = OutputBudget(tmp_path / "outputs", OutputLimits()).turn([(call("flood"), PLAIN, flood), *others])
    assert f"path: {whole}" in shown[0].text
    assert "5,000,000 bytes" in shown[0].text
    assert sum(len(entry.text) for entry in shown) <= 200_000


def test_ordinary_reads_can_be_saved_by_their_turn_but_reads_of_saved_outputs_never(tmp_path: Path) -> None:
    reads = [(call(f"c{k}"), READ, ToolResult("r" * 49_000)) for k in range(5)]
    shown = OutputBudget(tmp_path, OutputLimits()).turn(reads)
    assert sum(entry.saved is not None for entry in shown) == 1
    before = sorted(tmp_path.iterdir())
    again = [
        (call(f"d{k}"), READ, ToolResult("s" * 49_000, exempt=True, details={"path": str(before[0])})) for k in range(5)
    ]
    shown = OutputBudget(tmp_path, OutputLimits()).turn(again)
    pointed = [entry for entry in shown if entry.saved is not None]
    assert len(pointed) == 1
    assert f"This read of {before[0]} does not fit" in pointed[0].text
    assert sorted(tmp_path.iterdir()) == before


def test_what_was_used_before_in_the_turn_counts(tmp_path: Path) -> None:
    budget = OutputBudget(tmp_path, OutputLimits())
    assert budget.one(call(), PLAIN, ToolResult("x" * 50_000), used=140_000).saved is None
    assert budget.one(call(), PLAIN, ToolResult("x" * 50_000), used=160_000).saved is not None


def test_many_small_previews_shrink_together(tmp_path: Path) -> None:
    results = [(call(f"c{k}"), PLAIN, ToolResult(f"{k:05}\n" * 1_000)) for k in range(150)]
    shown = OutputBudget(tmp_path, OutputLimits()).turn(results)
    assert sum(len(entry.text) for entry in shown) <= 200_000
    for entry in shown:
        assert entry.saved is None or entry.saved.path.read_text() == entry.result.text


def test_limits_follow_the_window() -> None:
    assert OutputLimits.for_window(200_000) == OutputLimits() == OutputLimits.for_window(1_000_000)
    assert OutputLimits.for_window(0) == OutputLimits()
    small = OutputLimits.for_window(8_000)
    assert (small.result_chars, small.turn_chars, small.read_chars, small.preview_chars) == (4_000, 8_000, 4_000, 1_000)


@given(st.integers(1, 2_000_000), st.integers(0, 100_000))
def test_a_larger_window_never_gets_less(window: int, more: int) -> None:
    smaller, larger = OutputLimits.for_window(window), OutputLimits.for_window(window + more)
    for name in ("result_chars", "turn_chars", "read_chars", "preview_chars"):
        assert getattr(smaller, name) <= getattr(larger, name)
    assert smaller.preview_chars < smaller.result_chars <= smaller.turn_chars
    assert smaller.read_chars <= smaller.turn_chars


@given(call_id=st.text(max_size=300), digest=st.from_regex(r"[0-9a-f]{12}", fullmatch=True))
def test_no_call_id_leads_out_of_the_folder(call_id: str, digest: str) -> None:
    name = output_name(call_id, digest)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,90}\.txt", name)
    assert Path("/folder", name).resolve().parent == Path("/folder")


@pytest.mark.parametrize(
    "call_id", ["../../etc/passwd", "/etc/passwd", "", "..", "a\x00b", "a|b c", "\ud800", "x" * 999]
)
def test_odd_call_ids_are_saved_like_others(tmp_path: Path, call_id: str) -> None:
    folder = tmp_path / "outputs"
    entry = OutputBudget(folder, OutputLimits()).one(call(call_id), PLAIN, ToolResult("x" * 100_001))
    assert entry.saved is not None
    assert entry.saved.path.parent == folder
    assert entry.call.id == call_id


def test_a_reused_id_does_not_overwrite(tmp_path: Path) -> None:
    budget = OutputBudget(tmp_path, OutputLimits())
    one, two = (budget.one(call("same"), PLAIN, ToolResult(char * 100_001)) for char in "ab")
    assert one.saved is not None
    assert two.saved is not None
    assert one.saved.path.read_text()[0] == "a"
    assert two.saved.path.read_text()[0] == "b"


@given(st.text(min_size=801, max_size=1_200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_text_comes_back_byte_for_byte(tmp_path: Path, text: str) -> None:
    """Half characters, control characters and all."""
    assume(len(text) > 800)
    shelf = Shelf()
    entry = OutputBudget(tmp_path, OutputLimits.for_window(1_000), (), shelf).one(call(), PLAIN, ToolResult(text))
    assert entry.saved is not None
    raw = text.encode("utf-8", "surrogatepass")
    assert entry.saved.path.read_bytes() == raw == shelf.kept[entry.saved.artifact]


def test_a_block_only_names_tools_that_can_be_called(tmp_path: Path) -> None:
    long = ToolResult("x" * 100_001)
    both = OutputBudget(tmp_path, OutputLimits(), ("terminal", "read_file")).one(call(), PLAIN, long).text
    assert "read_file(" in both
    by_command = OutputBudget(tmp_path, OutputLimits(), ("terminal",)).one(call(), PLAIN, long).text
    assert "read_file" not in by_command
    assert "sed -n" in by_command
    neither = OutputBudget(tmp_path, OutputLimits(), ()).one(call(), PLAIN, long).text
    assert "Read parts" not in neither
    assert "path: " in neither


def test_a_store_that_fails_does_not_lose_the_file(tmp_path: Path) -> None:
    entry = OutputBudget(tmp_path, OutputLimits(), (), Shelf(fails=True)).one(call(), PLAIN, ToolResult("x" * 100_001))
    assert entry.saved is not None
    assert entry.saved.path.stat().st_size == 100_001
    assert "artifact" not in entry.text


def test_a_folder_that_fails_leaves_it_to_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    shelf = Shelf()
    entry = OutputBudget(tmp_path / "file", OutputLimits(), (), shelf).one(call(), PLAIN, ToolResult("x" * 100_001))
    assert entry.saved is not None
    assert f"artifact: {entry.saved.artifact}" in entry.text
    assert "path:" not in entry.text
    assert shelf.kept[entry.saved.artifact] == b"x" * 100_001


def test_when_nothing_can_be_saved_nothing_is_cut_that_a_turn_can_hold(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    budget = OutputBudget(tmp_path / "file", OutputLimits(), (), Shelf(fails=True))
    assert budget.one(call(), PLAIN, ToolResult("x" * 150_000)).text == "x" * 150_000
    cut = budget.one(call(), PLAIN, ToolResult("x" * 300_000))
    assert "what is missing here is lost" in cut.text
    assert len(cut.text) <= 200_000


def test_a_flood_is_shown_as_a_block_and_can_be_read_to_its_end(workshop: Any) -> None:
    """The whole way: command, capture, budget, and reading the saved file with the tool the block names."""
    budget = OutputBudget(workshop.context.outputs, workshop.context.limits, workshop.box.names)
    result = workshop.run("terminal", command="seq 1 400000")
    entry = budget.one(call("call_9", "terminal"), workshop.box.get("terminal"), result)
    assert entry.saved is not None
    assert entry.text.startswith(f"{OPENING}\nexit code 0\n")
    assert preview_in(entry.text).startswith("1\n2\n3\n")
    assert preview_in(entry.text).endswith("399999\n400000\n")
    path = re.search(r'read_file\(path="(.*?)", offset', entry.text)[1]  # type: ignore[index]
    tail = workshop.run("read_file", path=path, offset=399_999)
    assert tail.text == "399999\t399999\n400000\t400000"
    assert tail.exempt


def test_printing_a_saved_output_again_makes_no_second_copy(workshop: Any) -> None:
    budget = OutputBudget(workshop.context.outputs, workshop.context.limits, workshop.box.names)
    tool = workshop.box.get("terminal")
    first = budget.one(call("a", "terminal"), tool, workshop.run("terminal", command="seq 1 60000"))
    assert first.saved is not None
    second = budget.one(call("b", "terminal"), tool, workshop.run("terminal", command=f"cat {first.saved.path}"))
    assert second.saved is not None
    assert second.saved.path == first.saved.path
