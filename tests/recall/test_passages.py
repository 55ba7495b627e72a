"""Messages as passages of short lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leporello.recall.chunks import LONGEST_LINE, chunks_of, lines_of

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=800)


def test_a_message_gives_its_text_and_each_call() -> None:
    """Text and calls are passages of their own; arguments are shown as names and values, not as JSON."""
    message = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "a", "function": {"name": "grep", "arguments": '{"pattern": "x\\ny", "flags": ["-n", "-i"]}'}},
            {"id": "b", "function": {"name": "now", "arguments": ""}},
        ],
    }
    text, grep, now = chunks_of(message)
    assert (text.lines, text.is_call, text.role) == (("I look.",), False, "assistant")
    assert (grep.tool, grep.call, grep.lines) == ("grep", 0, ("pattern: x", "y", "flags: -n", "flags: -i"))
    assert (now.tool, now.call, now.lines) == ("now", 1, ("now",))


def test_a_result_that_is_json_is_read() -> None:
    """Texts inside a JSON result are lines like any other."""
    (passage,) = chunks_of({"role": "tool", "tool_call_id": "a", "content": '{"output": "one\\ntwo", "code": 0}'}, "sh")
    assert passage.lines == ("output: one", "two", "code: 0")
    assert passage.tool == "sh"


def test_plain_json_stays_as_it_was_written() -> None:
    """JSON that packs no text is readable as it is, and can be quoted."""
    (passage,) = chunks_of({"role": "tool", "content": '{\n  "total": 12,\n  "ok": true\n}'})
    assert passage.lines == ("{", '"total": 12,', '"ok": true', "}")


def test_long_paragraphs_are_cut_at_sentences() -> None:
    """A line never grows beyond what can be shown alone, and sentences stay whole."""
    sentences = [f"This is sentence number {number} of a long paragraph." for number in range(20)]
    lines = list(lines_of(" ".join(sentences)))
    assert max(map(len, lines)) <= LONGEST_LINE
    assert all(line.startswith("This is") and line.endswith(".") for line in lines)


def test_embedded_files_are_left_out() -> None:
    """An encoded picture gives no lines; what stands beside it does."""
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 200
    assert list(lines_of(f"before {picture} after")) == ["before   after"]
    assert list(lines_of("x" * 5000)) == []


def test_odd_messages_give_what_they_have() -> None:
    """Missing, empty and unknown content is no reason to fail."""
    assert chunks_of({}) == []
    assert chunks_of({"role": "user", "content": None}) == []
    assert chunks_of({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}) == []
    assert chunks_of({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{broken"}}]})[
        0
    ].lines == ("{broken",)


@given(TEXT)
def test_lines_are_short_and_lose_no_letter(text: str) -> None:
    """Cutting drops only white space (and encoded files, which this text has not)."""
    lines = list(lines_of(text))
    assert all(0 < len(line) <= LONGEST_LINE for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
