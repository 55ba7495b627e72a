"""The OpenAPI document is true: whatever it allows is answered as it says, and nothing ends in a server error."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks
from starlette.routing import Route

from leporello.gateway.sessions.openapi import document
from leporello.providers.scripted import ScriptedProvider

from .house import House, opened


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("openapi")
    with opened(folder, provider=ScriptedProvider(lambda _: "Yes.")) as made:
        yield made


@pytest.fixture(scope="module")
def conversation(house: House) -> str:
    reply = httpx2.post(house.url + "/api/conversations", json={})
    return str(reply.json()["id"])


SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS = [
    (path, method, mode)
    for path, entry in document()["paths"].items()
    for method, operation in entry.items()
    if method != "parameters"
    for mode in GenerationMode
    # Any text is an id: without a body or a query there is nothing to get wrong.
    if mode is GenerationMode.POSITIVE or "requestBody" in operation or "parameters" in operation
]


@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS, ids=str)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_operation(
    house: House, conversation: str, path: str, method: str, mode: GenerationMode, data: st.DataObject
) -> None:
    """Generated requests, good and bad: no 5xx, only documented statuses, bodies as described."""
    case = data.draw(SCHEMA[path][method].as_strategy(generation_mode=mode))
    if "id" in (case.path_parameters or {}) and method != "delete" and data.draw(st.booleans()):
        case.path_parameters["id"] = conversation
    case.call_and_validate(
        base_url=house.url,
        checks=[
            schemathesis.checks.not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )


def test_every_route_is_described(house: House) -> None:
    """No path of the session API is missing from the document, and none too many."""
    routes = {
        (route.path, method.lower())
        for route in house.gateway.app().routes
        if isinstance(route, Route) and route.path.startswith("/api/")
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(path, method) for path, entry in document()["paths"].items() for method in entry if method != "parameters"}
    assert told == routes
