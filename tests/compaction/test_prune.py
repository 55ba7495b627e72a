"""What is shown of old work: one informative line, valid arguments, nothing a model could copy into a file."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.compaction.prune import (
    LONG_ARGUMENT_CHARS,
    OMITTED_KEY,
    clipped,
    is_shortened,
    pointer,
    repair_arguments,
    result_bodies,
    shorten_arguments,
    without_images,
)
from leporello.ledger.units import CUT_MARK
from leporello.messages import ToolCall
from leporello.redact import redact
from leporello.redact.messages import masked_arguments


def result(text: str) -> dict:
    return {"role": "tool", "tool_call_id": "c1", "content": text}


@pytest.mark.parametrize(
    ("name", "arguments", "text", "expected"),
    [
        ("terminal", {"command": "npm test"}, "exit_code: 1\n" + "x\n" * 46, ("npm test", "exit 1", "48 lines")),
        ("read_file", {"path": "src/a.py", "offset": 10, "limit": 5}, "x\n" * 300, ("src/a.py:10-14", "301 lines")),
        ("write_file", {"path": "src/a.py", "content": "x" * 900}, "ok " * 100, ("write_file: src/a.py",)),
        ("patch", {"path": "b.py", "patch": "y"}, "done " * 100, ("b.py",)),
        ("search_files", {"pattern": "port", "path": "src"}, "a:1\n" * 100, ("port in src", "101 lines")),
        ("web_search", {"query": "sqlite wal"}, "z " * 200, ("sqlite wal",)),
        ("mystery", {}, "q" * 300, ("mystery", "1 line")),
    ],
)
def test_a_pruned_result_says_what_ran_on_what_and_how_it_ended(
    name: str, arguments: dict, text: str, expected: tuple[str, ...]
) -> None:
    line = pointer(result(text), ToolCall("c1", name, json.dumps(arguments), 0), 45)["content"]
    assert "\n" not in line
    assert "m45" in line
    assert all(piece in line for piece in expected), line


def test_a_result_of_an_unknown_call_is_a_plain_note() -> None:
    assert (
        pointer({"role": "tool", "tool_call_id": "x", "content": ""}, None, 3)["content"] == "[old tool output cleared]"
    )


@pytest.mark.parametrize(
    ("text", "call", "same_as", "line"),
    [
        ("x", None, None, "[tool → 1 line; output cleared here, kept as m3]"),
        ("", None, None, "[old tool output cleared]"),
        ("x", None, 9, "[tool → same output as m9]"),
        ("", ToolCall("c", "mystery", "{}", 0), None, "[mystery: {} → no output; output cleared here, kept as m3]"),
        ("", ToolCall("c", "mystery", "{}", 0), 9, "[mystery: {} → same output as m9]"),
    ],
)
def test_the_line_instead_of_a_result(text: str, call: ToolCall | None, same_as: int | None, line: str) -> None:
    shown = pointer(result(text), call, 3, same_as)
    assert (shown["role"], shown["tool_call_id"]) == ("tool", "c1")
    assert shown["content"] == line


def test_a_long_result_that_comes_again_points_to_the_last_of_them() -> None:
    once, other = "a" * 201, "a" * 200
    again = [result(once), result(other), result(once), {"role": "user", "content": once}, result(other), result(once)]
    assert result_bodies(again) == {0: 5, 2: 5}
    assert result_bodies([result(once)]) == {}
    assert result_bodies([result(once), result(once)]) == {0: 1}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"path": "a", "content": "x" * 1_300}, {"path": "a", OMITTED_KEY: {"content": "1,300"}}),
        ({"a": "x" * 300, "b": "y" * 301, "c": "z" * 900}, {"a": "x" * 300, OMITTED_KEY: {"b": "301", "c": "900"}}),
        ({"n": 2**70, "l": [1] * 700}, {"n": 2**70, OMITTED_KEY: {"l": "1,401"}}),
        ({"a": {"b": "x" * 1_300}}, {OMITTED_KEY: {"a": "1,308"}}),
    ],
)
def test_what_is_left_of_long_arguments(arguments: dict, shown: dict) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps(arguments)}}
    short = shorten_arguments({"role": "assistant", "tool_calls": [call]})["tool_calls"][0]
    left_out = {key: f"{size} characters" for key, size in shown.pop(OMITTED_KEY).items()}
    assert json.loads(short["function"]["arguments"]) == {**shown, OMITTED_KEY: left_out}
    assert (short["id"], short["function"]["name"]) == ("1", "f")


@pytest.mark.parametrize(("size", "changed"), [(1_200, False), (1_201, True)])
def test_arguments_are_long_from_twelve_hundred_characters(size: int, changed: bool) -> None:
    text = json.dumps({"a": "x" * (size - len('{"a": ""}'))})
    assert len(text) == size
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": text}}
    message = {"role": "assistant", "tool_calls": [call]}
    assert (shorten_arguments(message) is not message) is changed


@pytest.mark.parametrize("text", ["[" * 700 + "1" * 600, '["' + "x" * 1_300 + '"]', "x" * 1_300])
def test_long_arguments_that_are_no_object_are_named_as_a_whole(text: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": text}}
    short = shorten_arguments({"role": "assistant", "tool_calls": [call]})["tool_calls"][0]
    assert json.loads(short["function"]["arguments"]) == {OMITTED_KEY: f"{len(text):,} characters of arguments"}


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        ('{"x": ', '{"invalid_json":"{\\"x\\": "}'),
        ({"a": 1}, '{"a":1}'),
        ("\ud83d", '{"invalid_json":"\\ud83d"}'),
        ("", ""),
        (" ", " "),
        ("null", "null"),
        ("[1]", "[1]"),
    ],
)
def test_how_arguments_are_mended(raw: object, mended: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": raw}}
    message = {"role": "assistant", "tool_calls": [call, {"id": "2"}]}
    shown = repair_arguments(message)
    assert shown["tool_calls"] == [{**call, "function": {"name": "f", "arguments": mended}}, {"id": "2"}]
    assert (shown is message) is (raw == mended)


def test_a_cut_text_keeps_two_thirds_at_its_beginning() -> None:
    shown = clipped({"role": "user", "content": "a" * 60 + "b" * 60}, 30)["content"]
    assert shown == "a" * 20 + f"\n{CUT_MARK.strip()}\n" + "b" * 10
    assert clipped({"role": "user", "content": "a" * 30}, 30)["content"] == "a" * 30


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


def test_only_what_was_cut_counts_as_shortened() -> None:
    """Not a text in which its writer left something out; the one cut is known again in a list from a host too."""
    texts = [f"Part {k} of the survey, with " + "many words and " * k for k in range(40, 90)]
    for text in texts:
        for room in (200, 598, 599, 600, 1_201):
            if len(text) <= room:
                continue
            cut = clipped(assistant(text), room)
            assert is_shortened(cut, 4)
            assert is_shortened(assistant(cut["content"].strip()), 4)
            picture = {"type": "image_url", "image_url": {"url": "data:x"}}
            parts = [{"type": "text", "text": text}, picture]
            assert is_shortened(clipped({"role": "assistant", "content": parts}, room), 4)
            assert is_shortened(clipped(cut, room // 2), 4)
            assert not is_shortened({**cut, "role": "user"}, 4)
    quoted = [
        "The file begins so:\n\n    import os\n[…]\nand ends with `main()`.",
        f"{texts[0]}\n[…]\n{texts[1]}",
        f"{texts[0]}\n[…]\n{texts[1]}\n[…]\n{texts[2]}",
        "[…]\nas I said",
        "\n[…]\n",
        "as I said\n[…]\n",
        f"Short.\n[…]\n{texts[3]}",
        f"{texts[3]}\n[…]\nThat is all.",
    ]
    assert not any(is_shortened(assistant(text), 4) for text in quoted)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"password: Tr0ub4dor-{n}-{'x' * 40}" for n in range(30)),
        "\n".join(f"password: Tr0ub4dor-{n}-{'x' * 90}" for n in range(30)),
    ],
    ids=["masked", "masked, shorter"],
)
@pytest.mark.parametrize("room", [600, 1_400])
def test_a_cut_is_known_again_whatever_masking_and_hosts_took(text: str, room: int) -> None:
    cut = clipped(assistant(text), room)
    shown = cut["content"]
    for brought in (shown, shown.strip()):
        assert is_shortened(assistant(brought), 4)
    assert len(shown) <= room + len(f"\n{CUT_MARK.strip()}\n")
    assert is_subsequence(shown.replace(f"\n{CUT_MARK.strip()}\n", ""), redact(text))


@pytest.mark.parametrize("blank", [" ", "\n", "\t\n"])
def test_a_text_of_blanks_is_cut_too(blank: str) -> None:
    assert CUT_MARK.strip() in clipped(assistant(blank * 900), 600)["content"]


def test_a_cut_message_keeps_its_other_parts() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:x"}}
    odd = {"type": "from_the_future"}
    parts = [{"type": "text", "text": "a" * 99}, picture, odd]
    shown = clipped({"role": "user", "content": parts}, 30)["content"]
    assert [part["type"] for part in shown] == ["text", "text", "from_the_future"]
    assert shown[1]["text"].startswith("[image of an earlier turn: image, ")
    only_odd = {"role": "user", "content": [odd]}
    assert without_images(only_odd) is only_odd
    assert without_images({"role": "user", "content": "x"}) == {"role": "user", "content": "x"}


def test_identical_results_are_kept_once() -> None:
    messages = [result("a" * 300), result("b" * 300), result("a" * 300), result("short"), result("short")]
    assert result_bodies(messages) == {0: 2}


VALUES = st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))


@given(st.dictionaries(st.text(max_size=8), VALUES | st.text(min_size=400, max_size=3_000), max_size=5))
def test_shortened_arguments_are_json_and_no_value_is_a_fragment(arguments: dict) -> None:
    """Every value is whole, masked as a secret, or gone; what is gone is named beside the arguments.

    Short arguments stay as they are: nothing is derived from them.
    """
    call = {"id": "1", "type": "function", "function": {"name": "write_file", "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    shown = json.loads(shorten_arguments(message)["tool_calls"][0]["function"]["arguments"])
    whole = json.dumps(arguments)
    clean = json.loads(masked_arguments(whole) if len(whole) > LONG_ARGUMENT_CHARS else whole)
    for key, value in shown.items():
        if key != OMITTED_KEY:
            assert value == clean[key]
    assert set(clean) <= set(shown) | set(shown.get(OMITTED_KEY, {}))


@pytest.mark.parametrize("raw", ['{"x": ', "not json", "{'a': 1}", {"a": 1}, ["x"], 7])
def test_arguments_that_are_not_json_text_become_it(raw: object) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": raw}}
    shown = repair_arguments({"role": "assistant", "tool_calls": [call]})["tool_calls"][0]["function"]["arguments"]
    json.loads(shown)


def test_good_messages_are_not_touched() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "x", "tool_calls": [call]}
    assert repair_arguments(message) is message
    assert shorten_arguments(message) is message


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(character in rest for character in short)


@given(st.text(min_size=50, max_size=400), st.integers(10, 40))
def test_clipped_text_is_a_subsequence_with_a_visible_mark(text: str, room: int) -> None:
    shown = clipped({"role": "assistant", "content": text}, room)["content"]
    assert CUT_MARK.strip() in shown
    assert is_subsequence(shown.replace(f"\n{CUT_MARK.strip()}\n", ""), redact(text))


def test_thinking_goes_whole_when_a_message_is_clipped() -> None:
    shown = clipped({"role": "assistant", "content": "x" * 99, "reasoning_content": "secret thought"}, 20)
    assert "reasoning_content" not in shown


def test_images_of_old_turns_become_notes_and_other_parts_stay() -> None:
    odd = {"type": "from_the_future"}
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}, odd]}
    parts = without_images(message)["content"]
    assert "data:x" not in str(parts)
    assert parts[1] is odd


def test_the_note_for_an_image_tells_what_it_was() -> None:
    url = "data:image/png;base64," + b64encode(b"x" * 4_096).decode()
    shown = without_images({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
    digest = sha256(b"x" * 4_096).hexdigest()[:12]
    note = f"[image of an earlier turn: image, image/png, 4 KB, sha256 {digest}]"
    assert shown["content"] == [{"type": "text", "text": note}]


@pytest.mark.parametrize("answered", [True, False])
def test_thinking_stays_with_calls_the_model_has_not_gone_on_from(answered: bool) -> None:
    message = {"role": "assistant", "content": "x" * 9_000, "reasoning_content": "because", "tool_calls": []}
    short = clipped(message, 900, answered=answered)
    assert ("reasoning_content" in short) is not answered
    assert len(short["content"]) < 1_000
