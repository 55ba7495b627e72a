"""What a conversation says about things is kept as rows: with each compaction, and when somebody reads them."""

from __future__ import annotations

from pathlib import Path

from leporello.conversation import Conversation
from leporello.conversation.log import stated_values
from leporello.messages import Message, decode_json
from leporello.store import StoreOptions, open_store
from leporello.testing.sessions import generate
from tests.conftest import RunCli

OLD = "The deposit for the cabin comes to 240 euros, which we split four ways."
NEW = "The deposit for the cabin is 310 euros now."


def say(text: str) -> Message:
    return {"role": "user", "content": text}


def folded(folder: Path) -> str:
    """A store with a conversation in which a value changed before it was folded."""
    url = f"sqlite:///{folder}/a.db"
    filler = generate(seed=31, messages=120, tokens=40_000).messages
    with Conversation.open("a", window=16_000, store=url) as conversation:
        conversation.append(say(OLD), *filler[:60], say(NEW), *filler[60:])
        assert conversation.compact().committed
    return url


def told(url: str) -> dict[str, int | None]:
    with open_store(url) as store:
        return {said.value: said.replaced_by for said in store.values.all("a") if said.text in (OLD, NEW)}


def test_a_compaction_writes_what_was_said_and_what_replaced_it(tmp_path: Path) -> None:
    assert told(folded(tmp_path)) == {"240 euros": 62, "310 euros": None}


def test_a_fold_says_what_holds_now(tmp_path: Path) -> None:
    url = folded(tmp_path)
    with Conversation.open("a", window=16_000, store=url) as conversation:
        shown = "\n".join(str(message["content"]) for message in conversation.messages)
        described = conversation.describe("m1-m80")["values"]
    assert "now 310 euros [m62], was 240 euros until then" in shown
    assert f"{OLD} [m1]" not in shown
    kept = [said for said in described if said["text"] == OLD]
    assert [(said["id"], said["value"], said["replaced_by"]) for said in kept] == [("m1", "240 euros", "m62")]


def test_reading_brings_the_rows_up_to_date(tmp_path: Path) -> None:
    url = folded(tmp_path)
    with Conversation.open("a", window=16_000, store=url) as conversation:
        (last,) = conversation.append(say("Change of plan: the deposit for the cabin is 350 euros."))
    with open_store(url) as store:
        before = {said.value for said in store.values.all("a")}
        after = {said.value: said.replaced_by for said in stated_values(store, "a")}
        assert "350 euros" not in before
        assert after["310 euros"] == int(last[1:])
        assert after["350 euros"] is None
        assert {said.value for said in store.values.all("a")} == set(after)
    with open_store(url, StoreOptions(read_only=True)) as store:
        assert {said.value for said in stated_values(store, "a")} == set(after)


def test_a_row_gives_the_figure_rather_than_the_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with Conversation.open("a", window=16_000, store=url) as conversation:
        conversation.append(say("The flight to Oslo takes off at 9:15."))
    with open_store(url) as store:
        assert [said.value for said in stated_values(store, "a")] == ["9:15"]


def test_secrets_are_masked_in_rows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    secret = "sk-ant-" + "api03-" + "Zx9" * 20
    with Conversation.open("a", window=16_000, store=url) as conversation:
        conversation.append(say(f"The token of the billing robot is {secret} for port 8080."))
    with open_store(url) as store:
        assert stated_values(store, "a")
        assert secret not in str(store.values.all("a"))


def test_show_state_lists_values_for_people_and_programs(tmp_path: Path, run_cli: RunCli) -> None:
    url = folded(tmp_path)
    holding, _, replaced = run_cli("sessions", "show", "a", "--state", "--store", url).out.partition("Replaced values")
    assert "310 euros" in holding
    assert "240 euros" in replaced
    listed = decode_json(run_cli("sessions", "show", "a", "--state", "--json", "--store", url).out.encode())
    rows = {said["value"]: said for said in listed["values"]}
    assert rows["240 euros"]["replaced_by"] == "m62"
    assert rows["310 euros"]["since"]
    assert "values" not in decode_json(run_cli("sessions", "show", "a", "--json", "--store", url).out.encode())
