"""`leporello replay`: the bill of a recorded session, call by call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest

from leporello.bench.bank import Bank, ExamQuestion
from leporello.bench.baselines import RULES
from leporello.bench.bill import RecordedFile, ReplayRun, bill_report, bill_session, sentence
from leporello.bench.replay import ReplaySetup, fixed_text, replay_session, steps_of
from leporello.bench.report import report_page
from leporello.billing import PromptReader
from leporello.importers import CallUsage, ImportedSession
from leporello.messages import Message
from leporello.policy.decision import Action, Decision, Situation
from leporello.testing.sessions import generate
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage
from tests.exam.sample import QUESTIONS, write_bank, write_session

FIELDS = (
    "calls units summary_units cost read written fresh compactions cache_breaks waits mean_context kept_tokens".split()
)
SMALL = ReplaySetup(window=24_000, base=2_000)


def recorded(messages: Sequence[Message], step: float = 20.0) -> ImportedSession:
    """A session whose messages came at a steady pace."""
    return ImportedSession(list(messages), "test", times=tuple(step * place for place in range(len(messages))))


@pytest.fixture(scope="module")
def session() -> ImportedSession:
    return recorded(generate(seed=3, messages=120, tokens=60_000, images=0).messages)


def test_every_answer_is_one_call(session: ImportedSession) -> None:
    done = replay_session(session, SMALL)
    assert len(done.calls) == sum(message["role"] == "assistant" for message in session.messages)
    assert done.compactions, "the session is larger than its window"
    assert all(call.bill.prompt <= 24_000 for call in done.calls)
    assert all(call.bill.units >= 0 for call in done.calls)


def test_the_report_has_the_fields_it_is_read_by(session: ImportedSession) -> None:
    report = bill_report([bill_session(RecordedFile(name, session), SMALL) for name in ("one", "two")])
    for row in (*report["sessions"], report["total"]):
        assert set(FIELDS) <= set(row)
        short = row["written"] - row["written_1h"]
        assert row["units"] == pytest.approx(
            row["fresh"] + 1.25 * short + 2 * row["written_1h"] + 0.1 * row["read"], abs=2
        )
    assert report["total"]["units"] == pytest.approx(2 * report["sessions"][0]["units"], abs=2)


def test_a_policy_of_ones_own_decides(session: ImportedSession) -> None:
    asked: list[Situation] = []

    def never(situation: Situation) -> Decision:
        asked.append(situation)
        return Decision(Action.WAIT, "no")

    done = replay_session(session, ReplaySetup(window=1_000_000, policy=never))
    assert asked
    assert not done.compactions


def test_idle_times_let_the_cache_run_out(session: ImportedSession) -> None:
    whole = ReplaySetup("whole", window=1_000_000)
    slow = recorded(session.messages, step=400.0)
    assert replay_session(session, whole).bill.units < replay_session(slow, whole).bill.units
    paused = ReplaySetup("whole", window=1_000_000, pauses=False)
    assert not any(call.broke_cache for call in replay_session(slow, paused).calls)


def test_the_fixed_part_has_the_size_that_was_asked_for() -> None:
    counter = TokenCounter.for_model("claude-sonnet-4-5")
    for tokens in (100, 20_000):
        assert counter.message({"role": "system", "content": fixed_text(tokens, counter)}) == pytest.approx(
            tokens, abs=3
        )
    assert fixed_text(0, counter) == ""


def test_reading_only_what_is_new_gives_the_same_prompt(session: ImportedSession) -> None:
    counter = TokenCounter.for_model("claude-sonnet-4-5")
    follower = PromptReader(counter)
    messages: list[Message] = []
    for step in steps_of(session):
        messages = [*messages[: -len(messages) // 3], *step.heard] if len(messages) > 40 else [*messages, *step.heard]
        if not messages:
            continue
        prompt, afresh = follower.read(messages), PromptReader(counter).read(messages)
        assert list(prompt.prefixes) == list(afresh.prefixes)
        assert list(prompt.totals) == list(afresh.totals)
        messages.append(step.answer)


def test_the_command_prints_json(run_cli: Any, tmp_path: Path, session: ImportedSession) -> None:
    file = tmp_path / "session.json"
    file.write_bytes(orjson.dumps({"messages": session.messages}))
    ran = run_cli("replay", file, "--window", "24000", "--base", "2000", "--json")
    assert ran.code == 0
    report = orjson.loads(ran.out)
    assert set(FIELDS) <= set(report["total"])
    assert len(report["sessions"]) == 1


def test_without_pauses_and_compactions_the_bill_is_the_bound(session: ImportedSession) -> None:
    """Each request repeats the one before: all of it is read, and what is new is written once."""
    for layout in ("anchored", "system_and_3"):
        flags = {"prompt_caching.layout": layout}
        done = replay_session(session, ReplaySetup("whole", window=1_000_000, base=2_000, pauses=False, flags=flags))
        long = 0.75 * done.bill.long_write
        assert done.bill.units - long == pytest.approx(sum(call.bound for call in done.calls))


def _used(session: ImportedSession, prompt: int) -> ImportedSession:
    """The session with recorded usage: each prompt larger than the one before, all but the first mostly cached."""
    answers = [index for index, message in enumerate(session.messages) if message["role"] == "assistant"]
    usage = [
        CallUsage(index, CanonicalUsage(100, 50, prompt + 200 * place if place else 0, 200), "claude-sonnet-4-5")
        for place, index in enumerate(answers)
    ]
    return replace(session, usage=tuple(usage))


def test_model_and_fixed_part_are_the_recorded_ones(session: ImportedSession) -> None:
    file = RecordedFile("one", _used(session, 9_000))
    assert file.model == "claude-sonnet-4-5"
    first = file.session.usage[0].usage.prompt_tokens
    shown = TokenCounter.for_model(file.model).request(next(steps_of(session)).heard)
    assert file.base(file.model) == max(0, first - shown)
    assert RecordedFile("bare", session).base("claude-sonnet-4-5") == 0


def test_the_sentence_says_what_it_cost_and_what_was_known(session: ImportedSession) -> None:
    bank = Bank("one", (ExamQuestion("q1", "rule", "?", "no such text anywhere"),))
    billed = bill_session(RecordedFile("one", _used(session, 9_000), bank), SMALL)
    assert billed.recorded is not None
    said = sentence(billed)
    assert said.startswith("This session cost $")
    assert ", with Leporello $" in said
    assert "0% of what mattered was still there" in said
    assert sentence(bill_session(RecordedFile("bare", session), SMALL)) == ""


def test_the_page_stands_alone(session: ImportedSession) -> None:
    file = RecordedFile("<one>", _used(session, 9_000), Bank("one", (ExamQuestion("q1", "rule", "?", "nowhere"),)))
    setups = {"compressor": SMALL, "whole": replace(SMALL, engine="whole"), "codex": replace(SMALL, engine="codex")}
    page = report_page([ReplayRun(name, [bill_session(file, setup)]) for name, setup in setups.items()])
    assert "http" not in page
    assert "<one>" not in page, "names are escaped"
    assert "&lt;one&gt;" in page
    assert page.count('role="img"') == 3
    assert "prefers-color-scheme: dark" in page
    assert "This session cost" in page
    for name in ("as recorded", "no compaction", "codex"):
        assert name in page
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


@pytest.mark.parametrize("engine", sorted(RULES))
def test_the_rules_of_others_keep_lists_within_the_window(engine: str, session: ImportedSession) -> None:
    done = replay_session(session, ReplaySetup(engine, window=40_000, base=2_000))
    assert done.compactions
    assert all(call.bill.prompt <= 40_000 for call in done.calls)


def test_a_summary_call_is_billed_and_shown_apart(session: ImportedSession) -> None:
    setup = ReplaySetup("deepagents", window=40_000, base=2_000)
    total = bill_report([bill_session(RecordedFile("one", session), setup)])["total"]
    assert total["summary_units"] > 30_000 * total["compactions"]
    calls = replay_session(session, setup).bill.units
    assert total["units"] == pytest.approx(calls + total["summary_units"], abs=2)


def test_banks_of_both_kinds_are_asked(run_cli: Any, tmp_path: Path) -> None:
    write_session(tmp_path)
    banks = tmp_path / "banks"
    banks.mkdir()
    write_bank(tmp_path).rename(banks / "bank.json")
    session = orjson.loads((banks / "bank.json").read_bytes())["session"]
    state = {"session": session, "lines": 10_000, "active_task": ["nothing of the kind"], "files": ["no/such/file.py"]}
    (banks / "state.json").write_bytes(orjson.dumps(state))
    ran = run_cli("replay", tmp_path / session, "--banks", banks, "--engine", "whole", "--json")
    assert ran.code == 0, ran.err
    total = orjson.loads(ran.out)["total"]
    assert total["questions"] == len(QUESTIONS)
    assert total["closed"] == 1.0
    assert total["state"]["files"] == {"found": 0, "of": 1, "share": 0.0}


def test_a_report_never_replaces_its_session(run_cli: Any, tmp_path: Path, session: ImportedSession) -> None:
    file = tmp_path / "session.json"
    file.write_bytes(orjson.dumps({"messages": session.messages[:20]}))
    ran = run_cli("replay", file, "--html", file)
    assert ran.code == 2
    assert orjson.loads(file.read_bytes())["messages"]
    page = tmp_path / "page.html"
    assert run_cli("replay", file, "--html", page, "--model", "gpt-4.1").code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("parallel", [1, 12, 30])
def test_anchored_misses_nothing_that_stands_in_the_cache(parallel: int) -> None:
    """Not after many parallel calls, and not after a compaction."""
    messages: list[Message] = [{"role": "user", "content": "Begin. " * 600}]
    for number in range(24):
        ids = [f"c{number}_{place}" for place in range(parallel)]
        calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": id, "content": f"{id} " * (900 // parallel)} for id in ids]
        messages += [{"role": "assistant", "content": f"Done {number}."}, {"role": "user", "content": f"Next {number}"}]
    setup = ReplaySetup(window=40_000, base=2_000, flags={"prompt_caching.layout": "anchored"})
    done = replay_session(recorded(messages, step=2.0), setup)
    assert done.compactions
    assert [call.missed for call in done.calls if call.missed] == []


def test_a_steady_session_never_waits_for_a_compaction(session: ImportedSession) -> None:
    """What can wait is compacted between two requests, as the gateway and the agent do it."""
    done = replay_session(session, ReplaySetup(window=60_000, base=2_000, pauses=False))
    assert done.compactions
    assert not any(made.waited for made in done.compactions)


def test_marks_go_only_to_models_that_take_them(session: ImportedSession) -> None:
    keyed = replay_session(session, ReplaySetup(model="gpt-5.6-sol", window=60_000, pauses=False))
    assert keyed.bill.read > keyed.bill.write > 0
    automatic = replay_session(session, ReplaySetup(model="gpt-4.1", window=60_000, pauses=False))
    assert automatic.bill.write == 0
    assert automatic.bill.read > automatic.bill.uncached


def test_tools_never_called_leave_the_bill_and_a_late_one_is_looked_for(session: ImportedSession) -> None:
    """Of the same fixed part 4,000 tokens are tools: prompts are smaller, and the first call of a hidden one is two."""
    late = {"id": "late", "type": "function", "function": {"name": "late_tool", "arguments": "{}"}}
    ending = [{"role": "assistant", "content": None, "tool_calls": [late]}]
    longer = recorded([*session.messages, {"role": "user", "content": "Once more."}, *ending])
    setup = replace(SMALL, base=6_000, tools=4_000)
    stay = replay_session(longer, replace(setup, flags={"tools.schema_share": 1}))
    hidden = replay_session(longer, setup)
    assert len(hidden.calls) > len(stay.calls)
    assert fmean(call.bill.prompt for call in hidden.calls) < fmean(call.bill.prompt for call in stay.calls) - 1_000
    assert hidden.calls[-1].broke_cache
    assert not hidden.calls[-2].broke_cache
