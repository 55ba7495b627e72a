"""Schemas come from type hints and docstrings, and arguments are checked against the same hints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

from leporello.errors import ToolError
from leporello.tools.base import ToolContext
from leporello.tools.schema import foreign_tool, parse_docstring, tool_from
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import builtin_toolbox


class Point(msgspec.Struct, forbid_unknown_fields=True):
    x: int
    label: str = ""


def sample(
    context: ToolContext,
    name: str,
    count: Annotated[int, Meta(ge=1, le=9)] = 3,
    ratio: float = 0.5,
    kind: Literal["a", "b"] = "a",
    tags: list[str] | None = None,
    points: list[Point] | None = None,
    extra: dict[str, int] | None = None,
    flag: bool = False,
) -> dict[str, Any]:
    """Do something.

    A second paragraph, which is
    wrapped in the source.

    Args:
        name: What to call it,
            explained on two lines.
        count: How many.
        ratio: How much.
        kind: Which one.
        tags: Words.
        points: Places.
        extra: More.
        flag: Whether.
    """
    return {"name": name, "count": count}


TOOL = tool_from(sample)


def test_schema_is_openai_tool_format_with_texts_from_the_docstring() -> None:
    schema = TOOL.schema()
    assert schema["type"] == "function"
    function = schema["function"]
    assert function["name"] == "sample"
    assert function["description"] == "Do something.\nA second paragraph, which is wrapped in the source."
    properties = function["parameters"]["properties"]
    assert "context" not in properties
    assert properties["name"] == {"type": "string", "description": "What to call it, explained on two lines."}
    assert properties["count"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 3,
        "description": "How many.",
    }
    assert properties["kind"]["enum"] == ["a", "b"]
    assert properties["points"]["items"]["properties"]["x"] == {"type": "integer"}
    assert function["parameters"]["required"] == ["name"]
    assert function["parameters"]["additionalProperties"] is False


def test_every_built_in_schema_is_valid_and_self_contained(tmp_path: Path) -> None:
    for schema in builtin_toolbox(tmp_path, BackgroundJobs()).schemas():
        parameters = schema["function"]["parameters"]
        Draft202012Validator.check_schema(parameters)
        assert "$ref" not in str(parameters)
        assert all(part.get("description") and part.get("type") for part in parameters["properties"].values())
        assert schema["function"]["description"]


def test_a_parameter_without_description_is_refused_when_the_tool_is_made() -> None:
    def bare(context: ToolContext, path: str) -> str:
        """Read."""
        return path

    with pytest.raises(TypeError, match="path"):
        tool_from(bare)


def test_a_description_without_parameter_is_refused_when_the_tool_is_made() -> None:
    def stale(context: ToolContext) -> str:
        """Read.

        Args:
            path: Gone.
        """
        return ""

    with pytest.raises(TypeError, match="path"):
        tool_from(stale)


def test_docstring_without_arguments_is_all_description() -> None:
    assert parse_docstring("One.\n\nTwo.") == ("One.\nTwo.", {})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({}, "'name' is missing"),
        ({"name": "a", "cuont": 1}, "unknown 'cuont' (did you mean 'count'?)"),
        ({"nmae": "a", "zzz": 1}, "'name' is missing"),
        ({"name": 5}, "name: expected str, got int"),
        ({"name": None}, "name: expected str, got null"),
        ({"name": "a", "count": 0}, "count: expected int >= 1"),
        ({"name": "a", "count": "many"}, "count: expected int, got str"),
        ({"name": "a", "kind": "c"}, "kind: invalid enum value"),
        ({"name": "a", "tags": "x"}, "tags: expected array"),
        ({"name": "a", "points": [{"x": 1, "y": 2}]}, "points[0]"),
        ({"name": "a", "points": [{"label": "q"}]}, "points[0]"),
    ],
)
def test_wrong_arguments_are_named(raw: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError) as caught:
        TOOL.check(raw)
    assert reason in str(caught.value)
    assert "sample" in str(caught.value)


def test_all_wrong_names_are_reported_at_once() -> None:
    with pytest.raises(ToolError) as caught:
        TOOL.check({"nmae": "a", "zzz": 1})
    assert "'nmae'" in str(caught.value)
    assert "'zzz'" in str(caught.value)
    assert "It takes: name, count" in str(caught.value)


def test_what_models_often_do_is_understood() -> None:
    """Numbers and booleans as text, lists as JSON text, null for "left out"."""
    checked = TOOL.check({"name": "a", "count": "4", "flag": "true", "tags": '["x", "y"]', "points": None})
    assert checked["count"] == 4
    assert checked["flag"] is True
    assert checked["tags"] == ["x", "y"]
    assert checked["points"] is None


@given(
    st.dictionaries(
        st.sampled_from(["name", "count", "ratio", "kind", "tags", "points", "extra", "flag", "other", "", "context"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_any_json_object_is_either_checked_or_refused_with_words(raw: dict[str, Any]) -> None:
    """Arguments the schema allows are taken; the only exception for others is `ToolError`."""
    allowed = Draft202012Validator(dict(TOOL.parameters)).is_valid(raw)
    try:
        checked = TOOL.check(raw)
    except ToolError as error:
        refusal = str(error)
    else:
        assert set(checked) == {"name", "count", "ratio", "kind", "tags", "points", "extra", "flag"}
        return
    assert refusal.startswith("bad arguments for sample")
    assert not allowed


def test_a_foreign_tool_keeps_its_schema_and_gets_its_arguments_as_they_came(workshop: Any) -> None:
    schema = {"name": "tiny_grep", "description": "Search", "parameters": {"type": "object", "properties": {}}}
    tool = foreign_tool(schema, lambda context, arguments: arguments)
    assert tool.schema()["function"] == schema
    assert tool.check({"anything": [1]}) == {"anything": [1]}
    assert foreign_tool({"type": "function", "function": schema}, tool.run).name == "tiny_grep"


def test_a_foreign_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ToolError, match="without a name"):
        foreign_tool({"description": "x"}, lambda context, arguments: "")
