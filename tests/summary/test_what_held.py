"""What was said and did not hold is told as no fact; what was settled is told with its reason."""

from __future__ import annotations

import json

import pytest

from leporello.ledger.calls import one_line
from leporello.ledger.ledger import Ledger
from leporello.summaries.answers import closing_words, is_open, unsettled
from leporello.summaries.decisions import decisions_among
from leporello.summaries.deterministic import build
from leporello.summaries.episodes import episode_lines
from leporello.summaries.handoff import Handoff, Section, render
from leporello.summaries.requests import active_task, goal, pending_asks
from leporello.summaries.sections import resolved_questions
from leporello.summaries.work_state import at_work, state_lines

ALL = range(1, 1_000)


def user(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


def answer(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


def call(name: str, result: str = "ok", said: str = "", **arguments: object) -> list[dict]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = {"id": "c", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": said, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]


def ledger_of(*turns: list[dict]) -> Ledger:
    ledger = Ledger()
    for number, message in enumerate((message for turn in turns for message in turn), 1):
        ledger.add(number, message)
    return ledger


def told(lines: list) -> list[str]:
    return [line.text for line in lines]


def fold(ledger: Ledger) -> Handoff:
    return build(ledger, [*range(1, ledger.last + 1)], 4_000, lambda text: len(text) // 4)


EDIT = call("edit_file", path="barn/door.py", old_string="x", new_string="def close():\n    pass")
TEST = call("terminal", "12 passed in 2s", command="cd /barn && pytest -q 2>&1 | tail -3")
WHERE = "Where does the latch of the barn door get its spring from?"
LATCH = "The latch of the barn door takes its spring from `gate.toml`."


def test_a_check_older_than_an_edit_says_so() -> None:
    assert told(state_lines(ledger_of(EDIT, TEST))) == ["Last check: pytest -q → 12 passed in 2s"]
    (line,) = state_lines(ledger_of(TEST, EDIT))
    assert line.text == "Last check: pytest -q → 12 passed in 2s; older than the edits of barn/door.py"
    assert line.sources == (2, 4)


def test_a_check_that_says_nothing_stands_before_one_that_does() -> None:
    lint = call("terminal", "a\nb", command="make lint")
    asked = user("Please check the whole barn before we paint it.")
    assert told(state_lines(ledger_of(asked, TEST, lint))) == [
        "Last check: make lint → no error shown",
        "Before it: pytest -q → 12 passed in 2s",
    ]


@pytest.mark.parametrize(
    "objection",
    ["No, that spring was removed in spring.", "But gate.toml is empty since May.", "Nein, die Datei ist leer."],
)
def test_an_answer_the_user_objects_to_resolves_nothing(objection: str) -> None:
    ledger = ledger_of(EDIT, user(WHERE), answer(LATCH), user(objection), answer("It comes from `spring.toml`."))
    assert unsettled(ledger) == {4: 5}
    assert told(resolved_questions(ledger, ALL)) == []
    (line,) = [line for line in fold(ledger)[Section.INDEX] if line.sources == (4,)]
    assert line.text.startswith(LATCH)
    assert "(later m5" in line.text


@pytest.mark.parametrize(
    "reply",
    [
        "Then oil the hinges of the door as well please.",
        "No problem, thanks. Now please oil the hinges of the door as well.",
        "No need to change it, please oil the hinges of the door.",
        "But first, please oil the hinges of the door as well.",
    ],
)
def test_an_answer_that_was_accepted_is_resolved(reply: str) -> None:
    ledger = ledger_of(EDIT, user(WHERE), answer(LATCH), user(reply))
    assert unsettled(ledger) == {}
    assert told(resolved_questions(ledger, ALL)) == [f"“{WHERE}” → {LATCH}"]


@pytest.mark.parametrize(
    ("message", "reply", "held"),
    [
        ("The spring is not in that file.", "You're right, it moved to the shed.", False),
        ("Maybe we paint the door green then.", "You're right, green looks best.", True),
        ("Look at the shed once more please.", "I misread the file: the spring is in the shed.", False),
    ],
)
def test_what_the_assistant_takes_back_did_not_hold(message: str, reply: str, *, held: bool) -> None:
    ledger = ledger_of(user(WHERE), answer(LATCH), user(message), answer(reply))
    assert (unsettled(ledger) == {}) is held


def test_a_no_to_what_was_asked_refutes_nothing() -> None:
    ledger = ledger_of(user(WHERE), answer(f"{LATCH} Shall I change it?"), user("no"))
    assert unsettled(ledger) == {}


def decided(ledger: Ledger) -> list[str]:
    return told(list(fold(ledger)[Section.DECISIONS]))


OPTIONS = (
    "There are two ways.\n- **Option 1**: keep the spring in the gate.\n- **Option 2**: move the spring to the hinge.\n"
    "We would use the hinge instead of the gate since it rusts less. Which one would you like?"
)


def test_an_option_is_a_decision_when_it_is_taken() -> None:
    asked = user("How could we stop the rust on the spring of the gate?")
    open_still = decided(ledger_of(EDIT, asked, answer(OPTIONS), user("Show me the hinge first, from all its sides.")))
    assert open_still == []
    taken = decided(ledger_of(EDIT, asked, answer(OPTIONS), user("Do option 2 then, but keep the old bolts for now.")))
    assert any("(“Option 2**: move the spring to the hinge.”)" in line for line in taken)


def test_a_decision_has_the_reason_that_stands_behind_it() -> None:
    said = "I chose rivets over screws for planks in `hinge.py`. This keeps the plank from splitting. It is dry."
    (line,) = decided(ledger_of(user("Please mend the hinge of the barn door."), EDIT, answer(said)))
    assert line == "I chose rivets over screws for planks in `hinge.py`. This keeps the plank from splitting."


@pytest.mark.parametrize(
    "said",
    [
        "Actually, we use rivets in the hinge instead of screws now.",
        "I think we use rivets in the hinge instead of screws here.",
        "- rivets in the hinge rather than screws in the plank",
    ],
)
def test_thinking_aloud_and_lists_of_ways_settle_nothing(said: str) -> None:
    assert decided(ledger_of(user("Please mend the hinge of the barn door."), EDIT, answer(said))) == []


@pytest.mark.parametrize(
    "said",
    [
        "The issue is that the latch of the gate has 9 rivets instead of 8.",
        "The hinge of the gate still has the old rivets instead of the new ones.",
        "The gate is hitting the old post instead of the new one.",
        "The latch of the gate is shut by now, so we can't get the spring out.",
        "Here `rivets == 0` is false, so we skip the whole plank.",
        "So we go to the second branch, and `plank` becomes the one of the door.",
        "With two rivets in each plank we could use the hinge instead of the latch.",
        "Another possible fix: put rivets into the plank instead of screws.",
        "Taking rivets rather than screws would require another plank for the gate.",
    ],
)
def test_faults_steps_through_code_and_ways_settle_nothing(said: str) -> None:
    assert decided(ledger_of(user("Please mend the hinge of the barn door."), EDIT, answer(said))) == []


@pytest.mark.parametrize(
    "said",
    [
        "The problem was that screws split the plank, so we use rivets in the hinge.",
        "We could have taken screws for the planks, but I chose rivets for the hinge.",
        "The latch was wearing out, so we decided on rivets in the plank of the gate.",
    ],
)
def test_what_was_settled_about_a_fault_is_a_decision(said: str) -> None:
    closing = answer(f"The hinge of the barn door in `door.py` is mended now. {said}")
    assert decided(ledger_of(user("Please mend the hinge of the barn door."), EDIT, closing)) == [said]


def test_what_is_found_between_two_calls_is_no_decision() -> None:
    found = call("read_file", "...", said="The hinge has rivets instead of screws in this plank.", path="hinge.py")
    assert decisions_among([], ledger_of(found)) == []
    assert decided(ledger_of(user("Please mend the hinge of the barn door."), found, EDIT)) == []


def test_a_request_that_goes_on_after_words_is_active() -> None:
    asked = "Mend the hinge, then paint the door, then oil the lock."
    ledger = ledger_of(user(asked), answer("I mend the hinge first."), EDIT)
    assert told(active_task(ledger)) == [asked]
    assert told(active_task(ledger_of(user(asked), answer("All three parts are done.")))) == []


@pytest.mark.parametrize(
    ("closing", "still"),
    [
        ("The hinge is mended. Next I'll paint the door.", True),
        ("The hinge is mended. Next I'll paint the door if you want.", False),
        ("The hinge is mended, the door is painted.", False),
    ],
)
def test_a_turn_that_ends_with_one_of_several_parts_leaves_its_task(closing: str, *, still: bool) -> None:
    ledger = ledger_of(user("Mend the hinge and paint the door."), EDIT, answer(closing))
    assert is_open(ledger, ledger.asks[-1]) is still


def test_open_steps_of_the_plan_keep_a_task() -> None:
    asked = user("Mend the hinge and paint the door.")
    plan = call("update_plan", plan=[{"step": "Paint", "status": "pending"}, {"step": "Mend", "status": "completed"}])
    ledger = ledger_of(asked, plan, EDIT, answer("The hinge is mended."))
    assert told(active_task(ledger)) == ["Mend the hinge and paint the door."]


def test_in_progress_says_what_was_about_to_be_done() -> None:
    ledger = ledger_of(
        user("Mend the hinge."), call("read_file", "a\nb", said="Let me look at the hinge:", path="h.py")
    )
    assert told(at_work(ledger)) == ["Let me look at the hinge", "Last call: read_file: h.py → 2 lines"]


def test_in_progress_tells_calls_made_side_by_side_and_results_of_one_line() -> None:
    """Whoever goes on must not book the second board again, and needs the figure rather than how many lines it had."""
    names = ("a", "b", "c")
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": "book", "arguments": json.dumps({"board": f"BOARD-{name}"})},
        }
        for name in names
    ]
    results = [{"role": "tool", "tool_call_id": name, "content": f'{{"price": 1{name}}}'} for name in names]
    ledger = ledger_of(user("Book three boards."), [{"role": "assistant", "content": "", "tool_calls": calls}], results)
    assert [line for line in told(at_work(ledger)) if line.startswith("Last call")] == [
        f'Last call: book: board=BOARD-{name} → {{"price": 1{name}}}' for name in names
    ]


def test_an_id_is_told_whole_or_not_at_all() -> None:
    ids = ",".join(str(number) for number in range(4_000_000_001, 4_000_000_020))
    cut = one_line(ids, 40)
    assert cut.endswith("…")
    assert set(cut.rstrip("…").strip(",").split(",")) <= set(ids.split(","))


def test_the_story_ends_with_what_was_said_to_be_done() -> None:
    closing = "Great! The door of the barn closes by itself now, see `door.py`. Anything else?"
    ledger = ledger_of(user("Make the door of the barn close by itself."), EDIT, TEST, answer(closing))
    assert closing_words(ledger, ledger.asks[0]) == "The door of the barn closes by itself now, see `door.py`."
    (line,) = episode_lines(ledger, ALL)
    assert line.text.endswith(
        "pytest -q → 12 passed in 2s; “The door of the barn closes by itself now, see `door.py`.”"
    )


def test_long_work_is_told_in_parts_that_stay() -> None:
    asked = user("Mend every plank of the barn, one after the other.")
    planks = [call("write_file", path=f"barn/plank_{n}.py", content="x") for n in range(30)]
    early = told(episode_lines(ledger_of(asked, *planks[:24], user("And paint them, all of them please."), EDIT), ALL))
    late = told(episode_lines(ledger_of(asked, *planks), ALL))
    assert len(late) == 3
    assert [line.partition(": ")[0] for line in late][1:] == [
        "“Mend every plank of the barn,…”, part 2",
        "“Mend every plank of the barn,…”, part 3",
    ]
    assert early[0] == late[0]


def test_a_goal_reached_long_ago_is_none() -> None:
    first = [*user("Please switch to the branch of the barn."), *answer("On the branch of the barn.")]
    later = [
        part for n in range(6) for part in (user(f"Now mend the plank number {n}."), EDIT, answer("It is mended."))
    ]
    assert told(goal(ledger_of(first, EDIT), ALL)) == ["Please switch to the branch of the barn."]
    assert goal(ledger_of(first, *later), ALL) == []


def test_what_was_begun_and_left_long_ago_is_not_pending() -> None:
    others = [
        part for n in range(9) for part in (user(f"Now look at the beam number {n}."), answer(f"Beam {n} holds."))
    ]
    begun = ledger_of(user("Count all nails of the roof with care."), call("count", "9"), *others)
    assert pending_asks(begun, ALL) == []


def test_files_of_instructions_ask_for_nothing() -> None:
    text = "<user_instructions>\n# Barn\n\nNever use nails in the barn door.\n</user_instructions>"
    ledger = ledger_of(user(text), user("Mend the hinge of the door."))
    assert [ask.text for ask in ledger.asks] == ["Mend the hinge of the door."]
    assert [rule.text for rule in ledger.rules] == ["Never use nails in the barn door."]


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("cat > notes.md <<'EOF'\nrun make test and pytest\nEOF", "edit"),
        ("cat > a.py <<'EOF'\nx = 1\nEOF\npytest -q", "check"),
        ("find test -name '*.yml'", "list"),
        ("git checkout -b barn", "git_write"),
        ("git stash list", "git_read"),
    ],
)
def test_a_command_is_what_it_does(command: str, work: str) -> None:
    answers = ledger_of(call("terminal", command=command)).facts[2].answers
    assert answers is not None
    assert answers.work == work


def test_a_fold_with_these_lines_reads_back() -> None:
    ledger = ledger_of(EDIT, user(WHERE), answer(LATCH), user("No, that is wrong."), TEST, EDIT)
    text = render(fold(ledger))
    assert "older than the edits of barn/door.py" in text
