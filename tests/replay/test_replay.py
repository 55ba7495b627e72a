"""`leporello replay`: the bill of a recorded session, call by call."""

from __future__ import annotations

import itertools
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
from leporello.bench.bill import WHOLE, RecordedFile, ReplayRun, bill_report, bill_session, simulated
from leporello.bench.bill import recorded as recorded_words
from leporello.bench.replay import ReplaySetup, fixed_text, replay_session, steps_of
from leporello.bench.report import Point, dollars, report_page, scatter
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


def _runs(file: RecordedFile, *setups: ReplaySetup) -> tuple[ReplayRun, ...]:
    return tuple(ReplayRun(setup.engine, [bill_session(file, setup)]) for setup in setups)


def test_the_sentence_compares_two_simulations_and_tells_the_recorded_cost_apart(session: ImportedSession) -> None:
    bank = Bank("one", (ExamQuestion("q1", "rule", "?", "no such text anywhere"),))
    setup = replace(SMALL, flags={"compression.policy": "balanced"})
    file = RecordedFile("one", _used(session, 9_000), bank)
    run, whole = _runs(file, setup, replace(setup, engine=WHOLE))
    row = bill_report(run.billed, whole.billed)["total"]
    said = simulated(run, row)
    without = bill_report(whole.billed)["total"]["cost"]
    assert said.startswith(f"This session costs ${without:.2f} without compaction, with Leporello (balanced) $")
    assert "and 0% of what the questions ask was still there (0% with one search)." in said
    assert recorded_words(row).startswith(f"${row['recorded']['cost']:.2f} by the usage in the file")
    assert row["without_compaction"]["over_window"] > 0
    bare = RecordedFile("bare", session)
    run, whole = _runs(bare, SMALL, replace(SMALL, engine=WHOLE))
    assert recorded_words(bill_report(run.billed, whole.billed)["total"]) == ""


def test_other_rules_are_not_called_leporello(session: ImportedSession) -> None:
    codex, whole = _runs(RecordedFile("one", session), replace(SMALL, engine="codex"), replace(SMALL, engine=WHOLE))
    assert ", with codex $" in simulated(codex, bill_report(codex.billed, whole.billed)["total"])
    assert simulated(whole, bill_report(whole.billed, whole.billed)["total"]).startswith("Without compaction this")


def test_where_nothing_was_compacted_the_sentence_says_so(session: ImportedSession) -> None:
    setup = ReplaySetup(window=1_000_000, base=2_000, flags={"compression.policy": "memory"})
    short = replace(session, messages=session.messages[:9])
    run, whole = _runs(RecordedFile("one", short), setup, replace(setup, engine=WHOLE))
    assert simulated(run, bill_report(run.billed, whole.billed)["total"]).startswith("Nothing had to be compacted: ")


def test_the_page_stands_alone(session: ImportedSession) -> None:
    file = RecordedFile("<one>", _used(session, 9_000), Bank("one", (ExamQuestion("q1", "rule", "?", "nowhere"),)))
    idle = replace(SMALL, engine="claude-code", window=1_000_000)
    *runs, whole = _runs(file, SMALL, replace(SMALL, engine="codex"), idle, replace(SMALL, engine=WHOLE))
    page = report_page(runs, whole, made_by_rule=False)
    assert "http" not in page
    assert "<one>" not in page, "names are escaped"
    assert "&lt;one&gt;" in page
    assert page.count('role="img"') == 3
    assert "prefers-color-scheme: dark" in page
    assert "This session costs" in page
    for words in ("as recorded", "no compaction", "codex", "window 24,000 tokens (as given)", "Recorded: "):
        assert words in page
    assert "Still there: of 1 question of the banks" in page
    assert "<td>(0.0%)</td>" in page, "what a compaction would leave where there was none"
    assert "never compacted: claude-code." in page
    ElementTree.fromstring(_chart(page))


def test_the_terminal_shows_the_conditions_and_how_recall_is_measured(
    run_cli: Any, tmp_path: Path, session: ImportedSession
) -> None:
    file = tmp_path / f"first-{'x' * 60}-last.json"
    file.write_bytes(orjson.dumps({"messages": session.messages}))
    ran = run_cli("replay", file, "--window", "900000", "--engine", "codex", "--engine", "whole")
    assert "window 900,000 tokens (as given)" in ran.out
    assert "after one more compaction at the end, which is not billed" in ran.out
    assert "In brackets: nothing was compacted" in ran.out
    assert "still there" in ran.out
    assert "Leporello" not in ran.out
    ran = run_cli("replay", file, file, "--model", "gpt-4.1")
    assert "the model's" in ran.out
    assert "first-xxxxxxxxxxxxxx…xxxxxxxxx-last.json" in ran.out


def _claude_line(number: int, **usage: object) -> dict[str, Any]:
    role = "assistant" if usage else "user"
    message = {"id": f"msg_{number}", "role": role, "content": f"Words {number}", "model": "claude-opus-4-6"}
    message |= {"usage": usage} if usage else {}
    when = f"2026-01-01T10:{number:02}:00Z"
    return {"type": role, "sessionId": "s", "uuid": f"u{number}", "timestamp": when, "message": message}


def test_lifetimes_the_warm_start_and_the_window_are_the_recorded_ones(run_cli: Any, tmp_path: Path) -> None:
    """The client wrote for an hour, found its system prompt in the cache, and compacted near the end of 200K."""
    hour = {"cache_creation": {"ephemeral_1h_input_tokens": 5_000}, "cache_creation_input_tokens": 5_000}
    compacted = {"trigger": "auto", "preTokens": 167_000}
    lines = [
        _claude_line(1),
        _claude_line(2, cache_read_input_tokens=30_000, input_tokens=3, **hour),
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s", "compactMetadata": compacted},
        _claude_line(3),
        _claude_line(4, cache_read_input_tokens=35_000, input_tokens=3, **hour),
    ]
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    total = orjson.loads(run_cli("replay", file, "--json").out)["total"]
    assert (total["window"], total["window_source"]) == (200_000, "recorded")
    assert total["recorded"]["written_1h"] == total["recorded"]["written"] == 10_000
    assert total["recorded"]["units"] == 6 + 2 * 10_000 + 6_500
    assert total["written_1h"] == total["written"], "for an hour, as recorded"
    assert total["read"] >= 30_000 + 35_000
    assert total["without_compaction"]["units"] == pytest.approx(total["units"], rel=0.01)
    mine = orjson.loads(run_cli("--set", "prompt_caching.cache_ttl=5m", "replay", file, "--base", "9000", "--json").out)
    assert mine["total"]["written_1h"] < mine["total"]["written"], "what is set counts"
    assert mine["total"]["read"] < 10_000, "another fixed part is not in the cache"


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


def test_the_same_requests_cost_the_same(session: ImportedSession) -> None:
    """Nothing had to be compacted, and the user said things one after the other: they go out as one message."""
    said = [{"role": "user", "content": "One thing."}, {"role": "user", "content": "And another."}]
    short = replace(session, messages=[*said, *session.messages[:8], *said, {"role": "assistant", "content": "Done."}])
    setup = ReplaySetup(window=1_000_000)
    ours, whole = _runs(RecordedFile("one", short), setup, replace(setup, engine=WHOLE))
    assert bill_report(ours.billed)["total"]["cost"] == bill_report(whole.billed)["total"]["cost"]


def test_labels_stand_on_no_dot_and_no_other_label() -> None:
    """As in a chart with many rules side by side: names at the right edge are written to the left of their dots."""
    points = [Point(f"rule {number}", "other", 9.0 + number / 10, 0.9) for number in range(8)]
    drawn = ElementTree.fromstring(_chart(scatter(points, dollars, "Recall")))
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in drawn.iter("circle")]
    labels = []
    for text in drawn.iter("text"):
        if text.attrib["class"] == "value":
            long, at = 6.5 * len(text.text or ""), float(text.attrib["x"])
            start = at - long if text.attrib["text-anchor"] == "end" else at
            labels.append((start, start + long, float(text.attrib["y"]) - 4))
    assert len(labels) == len(dots) == 8
    for start, end, line in labels:
        assert not [dot for dot in dots if start < dot[0] < end and abs(dot[1] - line) < 9]
    for one, two in itertools.combinations(labels, 2):
        assert one[1] <= two[0] or two[1] <= one[0] or abs(one[2] - two[2]) >= 12


def _chart(html: str) -> str:
    return html[html.index("<svg") : html.index("</svg>") + 6]


def test_a_session_without_answers_has_nothing_to_replay(run_cli: Any, tmp_path: Path) -> None:
    """One sentence and exit code 3, with a report asked for and without; another file is replayed all the same."""
    silent, answered, page = tmp_path / "silent.json", tmp_path / "answered.json", tmp_path / "page.html"
    question = {"role": "user", "content": "Is anybody there?"}
    silent.write_bytes(orjson.dumps([question, question]))
    answered.write_bytes(orjson.dumps([question, {"role": "assistant", "content": "Yes."}]))
    for arguments in ((silent, "--html", page), (silent,), (silent, "--json")):
        ran = run_cli("replay", *arguments)
        assert (ran.code, ran.out) == (3, "")
        assert "silent.json: nothing to replay, no model answers in it." in ran.err
    assert not page.exists()
    assert run_cli("replay", silent, answered).code == 0


def test_without_compaction_everything_is_still_there(tmp_path: Path) -> None:
    """What came in behind the last answer counts as well: the next request would have carried it."""
    messages = [
        {"role": "user", "content": "What is the port?"},
        {"role": "assistant", "content": "It is 8080."},
        {"role": "user", "content": "Then take 9191 from now on."},
    ]
    bank = Bank("one", (ExamQuestion("q1", "rule", "Which port?", "take 9191"),))
    for engine in (WHOLE, "compressor"):
        (answer,) = bill_session(RecordedFile("one", recorded(messages), bank), ReplaySetup(engine)).answers
        assert answer.closed


def test_an_assumed_model_is_told(run_cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_bytes(orjson.dumps([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}]))
    assert "of claude-sonnet-4-5 (assumed: the file names none)" in run_cli("replay", file).out
    assert "assumed" not in run_cli("replay", file, "--model", "gpt-4.1").out
    odd = replace(_used(recorded(orjson.loads(file.read_bytes())), 50), models=())
    odd = replace(odd, usage=tuple(replace(call, model="odd-1") for call in odd.usage))
    assert RecordedFile("odd", odd).model_assumed == "the prices of odd-1 are not known"


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
