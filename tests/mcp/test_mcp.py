"""`leporello mcp` as the SDK's own client sees it: in memory, over stdio and over HTTP, always over a real store."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters

from leporello.config import Home, load_settings
from leporello.mcp import RecallService, browser_checks, make_server
from leporello.store import Store, open_store
from leporello.store.records import Metadata
from leporello.testing.sessions import generate
from tests.conftest import RunCli

PROGRAM = str(Path(sys.executable).with_name("leporello"))
FACT = {"role": "user", "content": "The staging server listens on port 8443, never on 443."}
READING = ["describe", "expand", "search", "sessions"]


@pytest.fixture
def store(tmp_path: Path):
    with open_store(f"sqlite:///{tmp_path}/talk.db") as made:
        for name, seed in (("build-42", 1), ("odd id/ü", 2)):
            made.conversations.create(name, Metadata(title=f"Talk {name}", model="gpt-4o"))
            made.log.append(name, generate(seed=seed, messages=80, tokens=9_000, huge_outputs=0).messages)
        made.log.append("build-42", [FACT, {"role": "assistant", "content": "Understood."}])
        yield made


@pytest.fixture
def connect(store: Store, tmp_path: Path) -> Callable[..., Client]:
    """A client of a server in this process."""

    def make(**options: Any) -> Client:
        service = RecallService(store, load_settings(home=Home(tmp_path / "home")))
        return Client(make_server(service, **options))

    return make


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)


async def test_tools_say_what_they_do_and_what_they_change(connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == sorted([*READING, "compress", "import"])
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools.values())
        assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == set(READING)
        assert "search" in (client.instructions or "")
    async with connect(read_only=True) as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == READING


async def test_search_finds_it_in_all_conversations_or_in_one(connect) -> None:
    async with connect() as client:
        found = await ask(client, "search", query="which port does the staging server use?", max_tokens=600)
        best = found["results"][0]
        assert best["conversation"] == "build-42"
        assert "8443" in best["text"]
        opened = await ask(client, "expand", conversation=best["conversation"], id=best["id"])
        assert opened["messages"][0]["text"] == FACT["content"]
        about = await ask(client, "describe", conversation="build-42", id="m1-m20")
        assert about["span"] == "m1-m20"
        elsewhere = await ask(client, "search", query="staging server port 8443", conversation="odd id/ü")
        assert all(window["conversation"] == "odd id/ü" for window in elsewhere["results"])
        assert "8443" not in json.dumps(elsewhere["results"])


async def test_compress_folds_and_everything_is_still_there(connect, store: Store) -> None:
    before = [stored.message for stored in store.log.iterate("build-42")]
    async with connect() as client:
        done = await ask(client, "compress", conversation="build-42", focus="ports", window=8_000)
        assert done["outcome"] == "committed"
        assert done["tokens_after"] < done["tokens_before"]
        opened = await ask(client, "expand", conversation="build-42", id=done["fold"])
        assert opened["messages"]
        session = await client.read_resource("leporello://sessions/build-42")
        shown = json.loads(session.contents[0].text)
        assert [fold["id"] for fold in shown["folds"]] == [done["fold"]]
        assert shown["view"][-1]["text"] == "Understood."
    assert [stored.message for stored in store.log.iterate("build-42")] == before


async def test_import_adds_a_recording_once(connect, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps([FACT, {"role": "assistant", "content": "Yes."}]))
    async with connect() as client:
        (first,) = (await ask(client, "import", path=str(path)))["imported"]
        (again,) = (await ask(client, "import", path=str(path)))["imported"]
        assert (first["change"], first["added"], again["change"]) == ("new", 2, "unchanged")
        assert store.log.count(first["conversation"]) == 2


async def test_mistakes_are_answered_with_what_would_work(connect, tmp_path: Path) -> None:
    async with connect() as client:
        assert "m999" in await refusal(client, "expand", conversation="build-42", id="m999")
        assert "nowhere" in await refusal(client, "expand", conversation="nowhere", id="m1")
        assert "no id" in await refusal(client, "describe", conversation="build-42", id="third")
        assert "query is empty" in await refusal(client, "search", query="  ")
        assert "max_tokens must be" in await refusal(client, "search", query="port", max_tokens=1)
        assert "no such file" in await refusal(client, "import", path=str(tmp_path / "absent.json"))
        assert "conversation is missing" in await refusal(client, "compress", conversation="")


async def test_sessions_are_resources_whatever_their_ids(connect) -> None:
    async with connect() as client:
        listed = {resource.name: resource for resource in (await client.list_resources()).resources}
        assert {"sessions", "build-42", "odd id/ü"} <= set(listed)
        assert listed["odd id/ü"].title == "Talk odd id/ü"
        for name in ("build-42", "odd id/ü"):
            read = await client.read_resource(listed[name].uri)
            assert json.loads(read.contents[0].text)["id"] == name
        everything = await client.read_resource("leporello://sessions")
        assert {line["id"] for line in json.loads(everything.contents[0].text)} == {"build-42", "odd id/ü"}
        with pytest.raises(MCPError, match="nowhere"):
            await client.read_resource("leporello://sessions/nowhere")


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "LEPORELLO_HOME": str(tmp_path / "home")}


async def test_over_stdio(store: Store, tmp_path: Path) -> None:
    server = StdioServerParameters(command=PROGRAM, args=["mcp", "--store", store.url], env=environment(tmp_path))
    async with Client(server) as client:
        assert client.server_info.name == "leporello"
        found = await ask(client, "search", query="staging server port")
        assert "8443" in json.dumps(found)


async def test_over_http_on_this_machine(store: Store, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [PROGRAM, "mcp", "--http", "--port", str(port), "--store", store.url, "--read-only"]
    with subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(60):
                while not _answers(port):
                    await anyio.sleep(0.1)
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                assert sorted(tool.name for tool in (await client.list_tools()).tools) == READING
                found = await ask(client, "search", query="staging server port")
                assert "8443" in json.dumps(found)
        finally:
            process.terminate()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
async def test_pages_of_others_are_not_served(store: Store, host: str) -> None:
    """Neither of another site, nor of another port of this machine, nor under a name that was made to point here."""
    server = make_server(RecallService(store, load_settings({}, {})))
    app = server.streamable_http_app(host=host, transport_security=browser_checks(host, 8765))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    async def status(**headers: str) -> int:
        accepts = {"accept": "application/json, text/event-stream", "host": f"{host}:8765"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=f"http://{host}:8765") as client:
            return (await client.post("/mcp", json=hello, headers={**accepts, **headers})).status_code

    async with app.router.lifespan_context(app):
        assert await status(origin=f"http://{host}:8765") not in (403, 421)
        assert await status(origin="http://localhost:9999") == 403
        assert await status(origin="http://evil.example") == 403
        assert await status(host="evil.example:8765") == 421


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_other_machines_are_not_served(run_cli: RunCli) -> None:
    ran = run_cli("mcp", "--http", "--host", "0.0.0.0")
    assert ran.code == 2
    assert "this machine only" in ran.err
