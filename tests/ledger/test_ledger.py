"""The ledger: what it takes from messages, at what cost, and how it survives as bytes."""

from __future__ import annotations

import json
from collections import Counter
from math import fsum, log
from random import Random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.ledger import ledger as snapshot
from leporello.ledger.facts import extract
from leporello.ledger.importance import (
    FEATURES,
    Source,
    Vocabulary,
    explain,
    features_of,
    score_units,
    weights,
    words_of,
)
from leporello.ledger.ledger import Ledger
from leporello.ledger.ranking import RankedUnit, Ranking
from leporello.ledger.units import CUT_MARK, INTENT, clip, lines_of, sentences_of
from leporello.messages import ToolCall
from leporello.testing.sessions import generate


def ranked(ledger: Ledger) -> list[RankedUnit]:
    return list(Ranking(ledger, ledger.facts))


def announces_a_call(ledger: Ledger, number: int, text: str) -> bool:
    """What the assistant says it will do right before it does it is told by the call."""
    following = ledger.facts.get(number + 1)
    before_a_call = following is not None and following.role == "tool"
    return ledger.facts[number].role == "assistant" and before_a_call and bool(INTENT.search(text))


def is_an_aside(ledger: Ledger, number: int, text: str) -> bool:
    """A few plain words of the assistant, without a figure, a name or an identifier."""
    plain = all(c.isalpha() or c in " ,'’.!:-" for c in text) and text[1:] == text[1:].lower()
    return ledger.facts[number].role == "assistant" and plain and len(text) <= 33


@settings(max_examples=20)
@given(st.integers(0, 1_000), st.integers(1, 39))
def test_each_unit_comes_once(seed: int, first: int) -> None:
    ledger = Ledger()
    for number, message in enumerate(generate(seed=seed, messages=40).messages, 1):
        ledger.add(number, message)
    ranking = Ranking(ledger, range(first, ledger.last + 1))
    found = list(ranking)
    units = [(number, unit) for number, facts in ledger.facts.items() if number >= first for unit in facts.units]
    told = [
        unit for n, unit in units if not (announces_a_call(ledger, n, unit.text) or is_an_aside(ledger, n, unit.text))
    ]
    assert len(found) == len(told)
    assert list(ranking) == found


@settings(max_examples=5)
@given(st.integers(0, 1_000))
def test_in_work_the_next_unit_is_the_one_that_tells_most_beside_those_before(seed: int) -> None:
    ledger = Ledger()
    for number, message in enumerate(generate(seed=seed, messages=14).messages, 1):
        ledger.add(number, message)
    ledger.add(15, {"role": "tool", "tool_call_id": "c", "content": "ok  a/b  0.3s\nok  a/c  0.4s\nok  a/d  0.5s"})
    said = {(n, unit.position): unit.text for n, facts in ledger.facts.items() for unit in facts.units}
    heard: Counter[str] = Counter()

    def words_said(unit: RankedUnit) -> list[str]:
        """Without what a mark adds."""
        return list(dict.fromkeys(words_of(said[unit.number, unit.position])))

    anew = ledger.values.told_anew()

    def worth(unit: RankedUnit) -> float:
        if said[unit.number, unit.position] in anew.get(unit.number, ()):
            return unit.unit.score
        words = words_said(unit)
        alone = 0.1 + sum(map(ledger.vocabulary.rarity, words))
        left = 0.1 + sum(ledger.vocabulary.rarity(word) * 0.3 ** heard[word] for word in words)
        return unit.unit.score - 0.2 * log(alone / left)

    waiting = ranked(ledger)
    while waiting:
        unit = waiting.pop(0)
        assert all(worth(unit) >= worth(other) - 1e-9 for other in waiting)
        heard.update(words_said(unit))


def test_in_a_talk_units_come_by_their_scores_alone() -> None:
    ledger = Ledger()
    for number in range(1, 7):
        ledger.add(number, {"role": "user", "content": "The harbour in Porto was lovely. Ana rowed it twice."})
    scores = [unit.unit.score for unit in ranked(ledger)]
    assert scores == sorted(scores, reverse=True)


def test_asides_of_the_assistant_are_told_in_talks_alone() -> None:
    said = ["Good catch.", "This makes sense because:", "Rename it to Foo.", "It is 42.", "是的，改好了。"]
    asides = {"role": "assistant", "content": "\n".join(said)}
    ledger = Ledger()
    ledger.add(1, asides)
    assert sorted(c.text for c in Ranking(ledger, [1])) == sorted(said)
    ledger.add(2, {"role": "tool", "tool_call_id": "c", "content": "1 passed"})
    assert sorted(c.text for c in Ranking(ledger, [1])) == sorted(said[2:])


def test_actions_files_and_outcomes_come_from_calls_and_results() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": '{"path": "src/a.py"}'}}
    test = {"id": "d", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "pytest -q"}'}}
    ledger = Ledger()
    for number, message in enumerate(
        [
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "", "tool_calls": [call, test]},
            {"role": "tool", "tool_call_id": "d", "content": "exit_code: 1\nFAILED tests/test_a.py::test_x"},
            {"role": "tool", "tool_call_id": "c", "content": "patched"},
        ],
        1,
    ):
        ledger.add(number, message)
    assert [(a.call.work, a.failed) for a in ledger.actions] == [("check", True), ("edit", False)]
    assert ledger.files["src/a.py"].edits == 1
    lines = [c.text for c in Ranking(ledger, [3])]
    assert "FAILED tests/test_a.py::test_x" in lines


@settings(max_examples=10)
@given(st.integers(0, 1_000))
def test_a_ledger_read_back_from_bytes_is_the_same(seed: int) -> None:
    ledger = Ledger()
    for number, message in enumerate(generate(seed=seed, messages=40).messages, 1):
        ledger.add(number, message)
    back = snapshot.load(snapshot.save(ledger))
    assert back.facts == ledger.facts
    assert back.rules == ledger.rules
    assert ranked(back) == ranked(ledger)


def test_lone_surrogates_do_not_stop_a_snapshot() -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": "Never delete the \ud800 folder."})
    assert snapshot.load(snapshot.save(ledger)).rules[0].text == "Never delete the ? folder."


def test_adding_a_message_twice_changes_nothing() -> None:
    messages = generate(seed=3, messages=60).messages
    ledger = Ledger()
    for _ in range(2):
        for number, message in enumerate(messages, 1):
            ledger.add(number, message)
    once = Ledger()
    for number, message in enumerate(messages, 1):
        once.add(number, message)
    assert ledger.rules == once.rules
    assert ledger.actions == once.actions
    assert ledger.vocabulary == once.vocabulary


@given(st.text(max_size=600), st.integers(60, 200))
def test_a_clipped_text_is_its_beginning_and_end_around_a_mark(text: str, limit: int) -> None:
    shown = clip(text, limit)
    if len(text) <= limit:
        assert shown == text
    else:
        front, mark, back = shown.partition(CUT_MARK)
        assert mark
        assert text.startswith(front)
        assert text.endswith(back)


@given(st.text(max_size=400))
def test_units_are_verbatim_pieces(text: str) -> None:
    for line, _ in lines_of(text):
        assert line in text
    for sentence in sentences_of(text):
        assert sentence in text


def scores(texts: list[str], role: str = "assistant", work: str = "") -> list[float]:
    source = Source(role, sum(map(len, texts)), len(texts), work)
    return score_units(Vocabulary(), source, [(text, position) for position, text in enumerate(texts)])


def test_the_score_of_a_line_can_be_explained() -> None:
    unit = [("FAILED tests/test_a.py::test_x - assert 1 == 2", 40)]
    source = Source("tool", 4_000, 60, "check")
    (features,) = features_of(Vocabulary(), source, unit)
    shares = explain(features)
    assert abs(sum(share for _, share in shares) - score_units(Vocabulary(), source, unit)[0]) < 1e-9
    assert len(shares) > 3


def test_an_error_line_outweighs_a_plain_one() -> None:
    error, plain = scores(
        ["E   AttributeError: 'Port' object has no attribute 'bind'", "    def helper_of_the_port(self):"],
        "tool",
        "check",
    )
    assert error > plain


@pytest.mark.parametrize("work", ["read", "search", "list"])
def test_an_error_word_in_a_file_that_is_shown_is_no_error(work: str) -> None:
    error = 'return fmt.Errorf("failed to open the store: %w", err)'
    assert scores([error], "tool", work) < scores([error], "tool", "check")
    plain = error.replace("Errorf", "Printf").replace("failed", "wanted")
    assert scores([error], "tool", work) == scores([plain], "tool", work)


@pytest.mark.parametrize("place", ["{}→", "{}\t", "{}:", "src/heron.go:{}:", "src/heron.go-{}-"])
def test_the_number_of_a_line_in_a_file_is_no_word_of_it(place: str) -> None:
    numbered = [place.format(n) + text for n, text in enumerate(("", "}", "wadingDepth := 3"), 761)]
    bare, brace, told = (
        dict(zip(FEATURES, row, strict=True))
        for row in features_of(Vocabulary(), Source("tool", 900, 3, "read"), [(text, 0) for text in numbered])
    )
    assert bare["information"] == brace["information"] < told["information"]
    assert not bare["number_in_output"]


def test_of_an_edit_that_went_well_only_complaints_are_kept() -> None:
    call = ToolCall("c1", "Edit", '{"file_path": "/entire/heron.go", "old_string": "a", "new_string": "b"}', 0)
    well = 'The file /entire/heron.go has been updated.\n  12→return errors.New("no heron")'
    assert extract(result(well), Vocabulary(), call).units == ()
    units = extract(result(f"{well}\nwarning: gofmt failed on line 3"), Vocabulary(), call).units
    assert [unit.text for unit in units] == ["warning: gofmt failed on line 3"]
    failed = extract(result("<tool_use_error>Read it first.</tool_use_error>"), Vocabulary(), call)
    assert [unit.text for unit in failed.units] == ["<tool_use_error>Read it first.</tool_use_error>"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Read", '{"file_path": "/marsh/heron.py"}'),
        ("Bash", '{"command": "git log -p src"}'),
        ("Grep", '{"pattern": "x"}'),
        ("Bash", '{"command": "if [ -f a ]; then cat a; fi && find . -name x -exec grep -n reed {} +"}'),
        ("mcp__files__read_file", '{"path": "/marsh/heron.py"}'),
        ("Bash", '{"command": "cd /marsh && grep -rn \'reed; bed\' src | head -50; for f in *.py; do wc -l $f; done"}'),
    ],
)
def test_long_files_and_history_are_left_unread(name: str, arguments: str) -> None:
    line = "DB_PASSWORD=tarn-heron-42 stilts"
    short, long = (line_of_calls(name, arguments, f"{line} {size}\n" * size) for size in (4, 400))
    assert short.facts[2].units
    assert "stilts" in short.vocabulary.frequency
    assert long.facts[2].units == ()
    assert "stilts" not in long.vocabulary.frequency
    assert long.facts[2].answers == short.facts[2].answers
    assert long.facts[2].ended == "401 lines"
    assert b"tarn" not in zstandard.decompress(snapshot.save(long))


@pytest.mark.parametrize(
    ("name", "arguments", "opening"),
    [
        ("Bash", '{"command": "make test"}', "ok"),
        ("Read", '{"file_path": "/marsh/heron.py"}', "Error: the marsh is closed"),
        ("Bash", '{"command": "cat a.py b.py"}', "cat: b.py: No such file or directory"),
        *[
            ("Bash", json.dumps({"command": command}), "ok")
            for command in (
                "docker logs marsh | tail -100",
                "psql -c 'select * from herons' | head",
                "./run.sh && cat report.md",
                "curl -s http://127.0.0.1:8080/herons | grep grey",
                "tail -200 /var/log/marsh.log",
                "cat $(newest-report)",
                "gh pr view 12",
                "if ./bench.sh; then echo ok; fi; cat a.txt",
                "while read -r line; do ./measure $line; done; cat a.txt",
                "find . -name '*.sh' -exec ./bench.sh {} \\;",
                "cat list | awk -f measure.awk",
            )
        ],
        *[(name, '{"query": "heron"}', "ok") for name in ("web_search", "search_orders", "read_email", "list_orders")],
        ("read", '{"url": "https://marsh.example/herons"}', "ok"),
    ],
)
def test_what_was_run_and_what_went_wrong_is_read_however_long(name: str, arguments: str, opening: str) -> None:
    ledger = line_of_calls(name, arguments, opening + "\nstilts" * 400)
    assert ledger.facts[2].units
    assert "stilts" in ledger.vocabulary.frequency


@pytest.mark.parametrize("end", ["2026-01-04 12:00:01 FATAL no room left", "Traceback (most recent call last):"])
def test_what_ends_badly_is_read_whatever_shows_it(end: str) -> None:
    ledger = line_of_calls("Read", '{"file_path": "/marsh/output"}', "stilts\n" * 400 + end)
    assert any(end in unit.text for unit in ledger.facts[2].units)


def line_of_calls(name: str, arguments: str, output: str) -> Ledger:
    """A ledger of one call and its output."""
    ledger = Ledger()
    function = {"name": name, "arguments": arguments}
    ledger.add(1, {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
    ledger.add(2, result(output))
    return ledger


def result(text: str) -> dict:
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def test_what_was_said_before_tells_less_when_it_is_said_again() -> None:
    vocabulary = Vocabulary()
    source = Source("user", 40, 1)
    first, again = (score_units(vocabulary, source, [("The cat is called Mauricius.", 0)])[0] for _ in range(2))
    assert first > again


def test_courtesies_come_after_facts() -> None:
    ledger = Ledger()
    said = ["Thanks, you are great!", "My sister Ines moved to Porto on 4 May.", "Wow, that sounds awesome!"]
    for number, text in enumerate(said, 1):
        ledger.add(number, {"role": "user", "content": text})
    assert ranked(ledger)[0].number == 2


def test_languages_without_spaces_have_words() -> None:
    assert words_of("服务器在八月迁移 to db-22") == ["服务", "器在", "八月", "迁移", "to", "db", "22"]


@given(st.lists(st.text(max_size=80), min_size=1, max_size=8), st.randoms())
def test_scores_do_not_depend_on_the_layout_of_sets(texts: list[str], random: Random) -> None:
    """Words reach a sum in whatever order a set hands them out; the score is the same to the last bit."""
    vocabulary = Vocabulary()
    rarity = vocabulary.add(sorted({word for text in texts for word in words_of(text)}))
    for text in texts:
        words = sorted(set(words_of(text)))
        mixed = random.sample(words, len(words))
        assert fsum(rarity[word] for word in words) == fsum(rarity[word] for word in mixed)
    assert scores(texts) == scores(texts)


def test_there_is_a_weight_for_every_feature() -> None:
    (features,) = features_of(Vocabulary(), Source("user", 5, 1), [("hello", 0)])
    assert len(weights()) == len(features)


def test_what_a_host_adds_to_an_output_is_no_part_of_it() -> None:
    added = "<system-reminder>\nYou MUST refuse to improve the code in parser.py.\n</system-reminder>"
    message = {"role": "tool", "tool_call_id": "c", "content": f"def parse_header(line): ...\n\n{added}\n"}
    facts = extract(message, Vocabulary())
    assert [unit.text for unit in facts.units] == ["def parse_header(line): ..."]


@pytest.mark.parametrize("text", ["<div>", "<br/>", "</p>", "<div></div>", "<a href='x'>", "<div>\n</div>\n<my-card>"])
def test_a_message_of_nothing_but_a_tag_is_what_the_user_said(text: str) -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": text})
    assert [ask.text for ask in ledger.asks] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>",
        "<system-reminder>\nThe file changed.\n</system-reminder>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "<local-command-stdout></local-command-stdout>",
        "<user_query>\n</user_query>",
        "<task></task>",
    ],
)
def test_what_only_a_host_put_there_is_not(text: str) -> None:
    ledger = Ledger()
    ledger.add(1, {"role": "user", "content": text})
    assert ledger.asks == []


def test_what_a_client_says_before_typed_commands_is_nobodys_request() -> None:
    ledger = Ledger()
    said = "Caveat: The messages below were generated by the user while running local commands. Reply to none of them."
    ledger.add(1, {"role": "user", "content": said})
    assert not ledger.asks
    assert not ledger.facts[1].units
