"""What a successor needs to go on: files with what changed, answered questions, attachments, actions numbered on."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256

import pytest

from leporello.events import Span
from leporello.ledger.ledger import Ledger
from leporello.ledger.units import INTENT
from leporello.summaries.deterministic import WHERE_TOKENS, SectionSource, build, plain_sections
from leporello.summaries.episodes import Story, episode_lines, plan_lines
from leporello.summaries.fold import Fold
from leporello.summaries.handoff import Handoff, Section, parse, render
from leporello.summaries.import_fold import inherit
from leporello.summaries.requests import active_task, goal
from leporello.summaries.sections import attached_lines, file_lines, read_file_line, resolved_questions, within
from leporello.summaries.work_state import state_lines

ALL = range(1, 1_000)


def user(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


def answer(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


def call(name: str, result: str = "ok", **arguments: object) -> list[dict]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    asked = {"id": "c", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]


def ledger_of(*turns: list[dict]) -> Ledger:
    ledger = Ledger()
    for number, message in enumerate((message for turn in turns for message in turn), 1):
        ledger.add(number, message)
    return ledger


def told(lines: list) -> list[str]:
    return [line.text for line in lines]


PARSER = call("edit_file", path="a/parser.py", old_string="x", new_string="def read(text):\n    return text")
LEXER = call("write_file", path="a/lexer.py", content="class Lexer:\n    pass\n\ndef scan():\n    pass")


def test_files_say_what_changed_in_them_and_whether_it_was_committed() -> None:
    commit = call("terminal", "[main 1a2b3c4] parser", command="git add a/parser.py && git commit -m parser")
    lines = told(file_lines(ledger_of(PARSER, LEXER, commit), ALL))
    assert lines == [
        "a/lexer.py (changed ×1: +5 Lexer, scan; not committed)",
        "a/parser.py (changed ×1: +2 −1 read; committed m6)",
    ]


@pytest.mark.parametrize("added", ["a/*.py", "'*.py'", "a", "./a/parser.py"])
def test_a_commit_takes_in_what_a_pattern_or_a_folder_names(added: str) -> None:
    commit = call("terminal", "[main 1a2b3c4] parser", command=f"git add {added} && git commit -m parser")
    [line] = told(file_lines(ledger_of(PARSER, commit), ALL))
    assert line == "a/parser.py (changed ×1: +2 −1 read; committed m4)"


def test_a_name_with_brackets_is_a_name_first() -> None:
    page = call("write_file", path="app/[id]/page.tsx", content="export default 1")
    commit = call("terminal", "[main 1a2b3c4] page", command="git add 'app/[id]/page.tsx' && git commit -m page")
    [line] = told(file_lines(ledger_of(page, commit), ALL))
    assert line.endswith("; committed m4)")


def test_a_pattern_takes_in_no_other_files() -> None:
    commit = call("terminal", "[main 1a2b3c4] pages", command="git add pages/*.py && git commit -m pages")
    assert told(file_lines(ledger_of(PARSER, commit), ALL)) == ["a/parser.py (changed ×1: +2 −1 read)"]


def test_a_file_moved_into_a_folder_is_committed_with_it() -> None:
    moved = call("terminal", "", command="mv todo/one.md done/")
    command = "git rm --cached todo/one.md; git add done/one.md && git commit -m one"
    commit = call("terminal", "[main 1a2b3c4] one", command=command)
    assert told(file_lines(ledger_of(moved, commit), ALL)) == [
        "todo/one.md (changed ×2: moved to done/, then deleted; committed m4)",
        "done/one.md (changed ×1: moved from todo/one.md; committed m4)",
    ]


def test_a_file_that_was_not_there_was_not_read() -> None:
    shown = call("terminal", "# Title\ncat: b/missing.md: No such file or directory", command="cat b/missing.md c/x.md")
    assert not told(file_lines(ledger_of(shown), ALL))
    other = call("terminal", "# Title\ncat: b/x.md: No such file or directory", command="cat x.md b/x.md")
    assert told(file_lines(ledger_of(other), ALL)) == ["x.md (read)"]


def test_a_check_whose_program_is_missing_did_not_go_well() -> None:
    result = '{"output": "/usr/bin/python: No module named pytest", "exit_code": 0}'
    checked = call("terminal", result, command="python -m pytest | tail")
    assert ledger_of(checked).actions[-1].outcome == "/usr/bin/python: No module named pytest"


def test_an_edit_after_a_commit_is_told_and_a_failed_commit_is_none() -> None:
    commit = call("terminal", "[main 1a2b3c4] all", command="git commit -am all")
    refused = call("terminal", "error: exit_code: 1", command="git commit -am all")
    assert told(file_lines(ledger_of(PARSER, commit, PARSER), ALL)) == [
        "a/parser.py (changed ×2: +2 −1 read; changed since the commit)"
    ]
    assert told(file_lines(ledger_of(PARSER, refused), ALL)) == ["a/parser.py (changed ×1: +2 −1 read)"]


def test_what_is_known_of_files_goes_from_fold_to_fold() -> None:
    commit = call("terminal", "[main 1a2b3c4] all", command="git commit -am all")
    before = file_lines(ledger_of(PARSER, commit, LEXER), ALL)
    later = Ledger()
    inherit(later, Fold(1, Span(1, 9), parse(render(Handoff({Section.FILES: tuple(before)})))))
    assert [line.partition(" m")[0] for line in told(file_lines(later, ALL))] == [
        line.partition(" m")[0] for line in told(before)
    ]


def test_answered_questions_stand_with_their_answer() -> None:
    ledger = ledger_of(
        user("Which port does the staging server listen on?"),
        answer("I looked it up for you just now.\nThe staging server has port 8443, behind the proxy."),
        user("Why is that so?"),
        user("Change it to 9443."),
        answer("Done."),
    )
    assert told(resolved_questions(ledger, ALL)) == [
        "“Which port does the staging server listen on?” → The staging server has port 8443, behind the proxy."
    ]


def test_a_heading_in_the_words_of_the_question_is_no_answer() -> None:
    ledger = ledger_of(
        user("How can I run the importer?"),
        answer("How to run the importer\n\nStart it with leporello import and a file."),
    )
    assert told(resolved_questions(ledger, ALL)) == [
        "“How can I run the importer?” → Start it with leporello import and a file."
    ]


def test_actions_keep_their_numbers_when_older_ones_give_way_and_in_later_folds() -> None:
    asks = [turn for k in range(4) for turn in (user(f"Please change part number {k} of it."), PARSER)]
    lines = episode_lines(ledger_of(*asks), range(5, 100))
    assert [line.ordinal for line in lines] == [2, 3, 4][-len(lines) :]
    text = render(Handoff({Section.COMPLETED: tuple(lines)}))
    assert f"\n{lines[-1].ordinal}. " in text
    later = Ledger()
    inherit(later, Fold(1, Span(1, 12), parse(text)))
    for number, message in enumerate([*user("And now write the manual for it."), *LEXER], 20):
        later.add(number, message)
    assert [line.ordinal for line in episode_lines(later, ALL)] == [*(line.ordinal for line in lines), 5]


def test_of_a_long_story_only_the_lines_that_fit_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = [turn for k in range(30) for turn in (user(f"Please change part number {k} of it."), PARSER)]
    written: list[int] = []
    line = Story._line
    monkeypatch.setattr(Story, "_line", lambda *of, **how: written.append(of[1]) or line(*of, **how))
    story = Story(ledger_of(*asks), range(1, 1_000))
    assert len(story) == 30
    fitting = within(story, 100, len, newest_first=True)
    assert fitting
    assert written == [30 - place for place in range(len(fitting) + 1)]


def test_attachments_are_told_by_kind_size_and_hash_and_carried_on() -> None:
    data = b64encode(b"x" * 2_048).decode()
    pdf = {"type": "file", "file": {"filename": "plan.pdf", "file_data": f"data:application/pdf;base64,{data}"}}
    sound = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    parts = [{"type": "text", "text": "Look at these, please, all of them."}, pdf, sound, picture]
    ledger = ledger_of([{"role": "user", "content": parts}])
    digest = sha256(b"x" * 2_048).hexdigest()[:12]
    lines = attached_lines(ledger, ALL)
    assert told(lines) == [
        f"Attached: file, “plan.pdf”, application/pdf, 2 KB, sha256 {digest}; the message holds it whole",
        f"Attached: audio, wav, 2 KB, sha256 {digest}; the message holds it whole",
        "Attached: image, at https://example.org/a.png; the message holds it whole",
    ]
    later = Ledger()
    inherit(later, Fold(1, Span(1, 1), parse(render(Handoff({Section.FILES: tuple(lines)})))))
    assert told(attached_lines(later, ALL)) == told(lines)


def test_where_we_are_is_short_however_large_the_budget() -> None:
    todo = call("todo_write", todos="")
    todo[0]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {"todos": [{"content": f"Step {k}: " + "and so on " * 15, "status": "pending"} for k in range(60)]}
    )
    ledger = ledger_of(user("Build it. " + "Long words follow here. " * 100), todo)
    made = plain_sections(SectionSource(ledger, ALL), 100_000, lambda text: len(text.split()))
    top = (Section.ACTIVE_TASK, Section.GOAL, Section.STATE, Section.BLOCKED, Section.REMAINING)
    assert 1_000 < sum(len(line.text.split()) for section in top for line in made[section]) <= WHERE_TOKENS


def test_the_goal_is_the_first_request_that_has_words() -> None:
    ledger = ledger_of(user("<command-args></command-args>"), user("Write a parser for the new format."))
    assert told(goal(ledger, ALL)) == ["Write a parser for the new format."]


def test_a_command_that_is_only_a_here_document_goes_by_its_tool() -> None:
    ledger = ledger_of(user("Please run the checks once."), call("terminal", "1 passed", command="<<'EOF' pytest\nEOF"))
    assert told(episode_lines(ledger, ALL)) == ["“Please run the checks once.”: terminal → 1 passed"]


def test_the_state_says_how_a_check_ended_not_how_much_it_printed() -> None:
    ledger = ledger_of(user("Please run the checks once."), call("terminal", "all\nfine", command="make lint"))
    assert told(state_lines(ledger)) == ["Last check: make lint → no error shown"]


@pytest.mark.parametrize(
    ("printed", "told_as"),
    [
        ("FAIL\tx/core [build failed]\nok  \tx/util\t(cached)", "FAIL x/core [build failed]"),
        ("core/a.go:7:2: undefined: cpkg\nok  \tx/util\t(cached)", "core/a.go:7:2: undefined: cpkg"),
        ("3 failed, 24 passed in 0.4s\nok x/util (cached)", "3 failed, 24 passed in 0.4s"),
        ("ValueError: wanted by a test\n25 passed in 0.4s", "25 passed in 0.4s"),
        ("The user doesn't want to proceed with this tool use. The tool use was rejected.", "refused by the user"),
    ],
    ids=["package", "compiler", "count", "log", "refused"],
)
def test_a_check_of_which_a_part_failed_failed(printed: str, told_as: str) -> None:
    """What went well besides says nothing."""
    command = "# all of them\nmake test"
    ledger = ledger_of(user("Please run the checks once."), call("terminal", printed, command=command))
    assert told(state_lines(ledger)) == [f"Last check: make test → {told_as}"]


def test_what_a_yes_agrees_to_is_told_where_nothing_was_asked() -> None:
    ledger = ledger_of(
        user("Please look at the machine profiles."),
        answer("Two gaps are left.\nThe chamber fan has no field.\nI can add fields for the fan and the camera light."),
        user("Yes, please do expand and add these."),
    )
    assert told(active_task(ledger, ALL))[-3:] == [
        "Two gaps are left.\nThe chamber fan has no field.",
        "I can add fields for the fan and the camera light.",
        "Yes, please do expand and add these.",
    ]


def test_of_a_check_that_passes_again_and_again_the_last_run_is_told() -> None:
    runs = [call("terminal", f"{n} passed in 0.{n} s", command="pytest -q") for n in (4, 6, 9, 11, 12)]
    broken = call("terminal", "FAILED tests/test_a.py::test_heron\n1 failed, 8 passed", command="pytest -q")
    ledger = ledger_of(user("Please test after each of the steps."), *runs[:3], broken, *runs[3:])
    index = told(build(ledger, ALL, 4_000, len)[Section.INDEX])
    assert [line.partition("\n")[2].partition(" ")[0] for line in index] == ["9", "FAILED", "12"]


def test_an_edit_that_the_user_refused_changed_nothing() -> None:
    refused = call("edit_file", "User rejected the edit.", path="a.py", old_string="x", new_string="y")
    assert file_lines(ledger_of(refused), ALL) == []
    (line,) = told(episode_lines(ledger_of(user("Please rename x in that file."), refused), ALL))
    assert line == "“Please rename x in that file.”: edit_file: a.py → refused by the user"


def test_files_changed_by_commands_are_told_with_their_commit() -> None:
    patch = "apply_patch <<'P'\n*** Begin Patch\n*** Update File: core/a.py\n-x\n+def run(): pass\n*** End Patch\nP"
    ledger = ledger_of(
        call("shell", "Success", command=patch),
        call("shell", "", command="sed -i 's/a/b/' core/b.py && cat > docs/c.md <<'E'\n# Title\nE"),
        call("shell", "", command="git add core/"),
        call("shell", "[main 1a2b3c4] core", command="git commit -m core"),
    )
    assert told(file_lines(ledger, ALL)) == [
        "core/b.py (changed ×1: sed; committed m8)",
        "docs/c.md (changed ×1: +1 Title; not committed)",
        "core/a.py (changed ×1: `x` → `def run(): pass`; committed m8)",
    ]


def test_a_file_that_is_still_being_worked_on_is_told() -> None:
    ledger = ledger_of(PARSER, LEXER, PARSER)
    assert [line.sources for line in file_lines(ledger, range(1, 5))] == [(2, 6), (4,)]


def test_a_command_to_the_program_is_no_goal() -> None:
    ledger = ledger_of(user("/mode"), answer("ok"), user("Port the importer to Rust, please."))
    assert told(goal(ledger, ALL)) == ["Port the importer to Rust, please."]


def test_a_request_in_the_form_of_a_question_is_no_resolved_question() -> None:
    """What it led to stands in the story; an answer that says yes or no goes before one with more of its words."""
    ledger = ledger_of(
        user("can you proofread this warning text?"),
        answer("The warning text of the session is fine."),
        user("Is the parser used by the importer when it reads sessions?"),
        answer("The importer reads sessions line by line. Yes, the parser is what it uses."),
    )
    assert told(resolved_questions(ledger, ALL)) == [
        "“Is the parser used by the importer when it reads sessions?” → Yes, the parser is what it uses."
    ]


def test_friends_who_talk_have_no_goal() -> None:
    """An advisor's client has one, without a single tool call, too."""
    chat = ledger_of(user("Hey Jo! Cooking gives me so much joy, I love it!"), answer("Wow!"), user("Thanks, Jo!"))
    assert goal(chat, ALL) == []
    asked = ledger_of(user("Write a budget for our harbour project."), answer("Gladly."), user("Add a table of costs."))
    assert told(goal(asked, ALL)) == ["Write a budget for our harbour project."]


def test_a_list_that_nobody_kept_up_is_no_remaining_work() -> None:
    todo = call("update_plan", plan=[{"step": "Write docs", "status": "pending"}])
    asked = [[*user(f"Please do the other thing number {n} now."), *answer("Done.")] for n in range(4)]
    assert told(plan_lines(ledger_of(todo, *asked[:3]))[1]) == ["Write docs"]
    assert plan_lines(ledger_of(todo, *asked)) == ([], [])


def test_a_plan_kept_step_by_step_tells_what_is_under_way_and_what_is_left() -> None:
    """Steps that are done are gone; a whole list that is sent later takes the place of all of them."""
    steps = [call("TaskCreate", subject=subject) for subject in ("Add the DTO", "Add the endpoint", "Run the tests")]
    changes = [call("TaskUpdate", taskId=n, status=s) for n, s in (("1", "completed"), ("2", "in_progress"))]
    begun, waiting = plan_lines(ledger_of(*steps, *changes))
    assert (told(begun), told(waiting)) == (["Add the endpoint"], ["Run the tests"])
    made = build(ledger_of(*steps, *changes), ALL, 2_000, len)
    assert told(made[Section.IN_PROGRESS]) == ["Add the endpoint"]
    assert told(made[Section.REMAINING]) == ["Run the tests"]
    whole = call("TodoWrite", todos=[{"content": "Write docs", "status": "pending"}])
    assert plan_lines(ledger_of(*steps, *changes, whole))[0] == []


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        ("todo_write", {"merge": True, "todos": [{"id": "1", "status": "completed"}]}, ["Second"]),
        ("add_todo", {"labels": ["a", "b"]}, ["First", "Second"]),
        ("TaskUpdate", {"status": "completed"}, ["First", "Second"]),
        ("TaskUpdate", {"taskId": "9" * 5_000, "status": "completed"}, ["First", "Second"]),
        ("TodoWrite", {"todos": []}, []),
    ],
)
def test_a_plan_keeps_the_steps_that_a_call_does_not_speak_of(name: str, arguments: dict, left: list[str]) -> None:
    steps = [{"id": str(n), "content": text, "status": "pending"} for n, text in ((1, "First"), (2, "Second"))]
    ledger = ledger_of(call("TodoWrite", todos=steps), call(name, **arguments), call("TaskCreate", subject="Third"))
    assert told(plan_lines(ledger)[1]) == [*left, "Third"]


def test_two_steps_of_one_id_are_two_steps() -> None:
    """A model may number its list as it likes: what is told of an id is told of the first that has it."""
    steps = [{"id": "1", "content": text, "status": "pending"} for text in ("First", "Second")]
    ledger = ledger_of(call("TodoWrite", todos=steps), call("TaskUpdate", taskId="1", status="in_progress"))
    begun, waiting = plan_lines(ledger)
    assert sorted([*told(begun), *told(waiting)]) == ["First", "Second"]


def test_of_lines_that_differ_in_figures_only_two_are_told() -> None:
    errors = "\n".join(
        f"../tui/test/editor.test.ts({n},19): error TS2554: Expected 1 arguments." for n in range(8, 90, 9)
    )
    ledger = ledger_of(user("Please run the check of the package."), call("terminal", errors, command="npm run check"))
    assert render(build(ledger, ALL, 4_000, len)).count("error TS2554") == 2


def test_keeping_a_plan_is_no_part_of_the_story() -> None:
    kept = [call("TaskCreate", subject="Add the DTO"), call("TaskUpdate", taskId="1", status="completed")]
    assert episode_lines(ledger_of(user("Add the new endpoint to the service."), *kept), ALL) == []


@pytest.mark.parametrize(
    ("closing", "waits"),
    [
        ("I found both. Which of the two accounts shall be closed?", True),
        ("Would you like the steps, or do you know how it is done? Tell me and I guide you.", True),
        ("The order is returned.", False),
        ("All returned. Is there anything else I can do for you?", False),
        ("Done. Do you want me to clean up the old files as well?", False),
    ],
)
def test_a_task_goes_on_while_the_user_is_asked_for_what_it_needs(closing: str, waits: bool) -> None:
    ledger = ledger_of(user("Please close my account at once."), call("find_user", "2 found"), answer(closing))
    lines = told(active_task(ledger, ALL))
    assert bool(lines) is waits
    if waits:
        assert lines[0] == "Please close my account at once."
        assert lines[1].endswith("? (asked of the user)")


def test_what_is_at_hand_is_not_pending_too() -> None:
    ledger = ledger_of(
        user("Apply the changes to this branch, they belong together."),
        call("read_file", path="a.py"),
        user("you good there?"),
    )
    made = build(ledger, ALL, 2_000, len)
    assert "Apply the changes to this branch, they belong together." in told(made[Section.ACTIVE_TASK])
    assert made[Section.PENDING] == ()


def test_a_request_that_ended_with_words_is_in_the_story() -> None:
    ledger = ledger_of(
        user("Please look into the hook that does not run."),
        call("read_file", "def hook(): ...", path="hook.py"),
        answer("Here is what I found:\n\nThe hook skips the main branch on purpose."),
    )
    (line,) = episode_lines(ledger, ALL)
    assert line.text.endswith("answered: The hook skips the main branch on purpose.")


def test_a_line_that_took_the_place_of_another_is_told() -> None:
    one = call(
        "edit_file", path="a.ts", old_string="a()\nlet x = 'User' (old);", new_string="a()\nlet x = email || 'User';"
    )
    (line,) = file_lines(ledger_of(one), ALL)
    assert line.text == "a.ts (changed ×1: `let x = 'User' (old);` → `let x = email || 'User';`)"
    assert read_file_line(line, "").path == "a.ts"


CHAT = [
    user("I walked by the lake with my sister on Sunday and we talked for hours about our old school."),
    answer("Crazy stuff has been happening to me since we last talked. The bread is now my own recipe, by the way."),
    user("Tell me more about the bread that you bake at the weekends, please."),
    answer("I use rye flour instead of wheat flour because the loaf keeps for a week then."),
]


def test_a_talk_decides_nothing() -> None:
    """ "Since" and "because" settle nothing among people, and advice changes nothing; the words stay in the index."""
    made = build(ledger_of(*CHAT), range(1, 5), 600, len)
    assert not made[Section.DECISIONS]
    assert not made[Section.CRITICAL]
    assert "rye flour instead of wheat" in "\n".join(told(made[Section.INDEX]))
    worked = build(ledger_of(*CHAT, call("bake", "done")), range(1, 7), 900, len)
    assert "rye flour instead of wheat" in "\n".join(told(worked[Section.DECISIONS]))


@pytest.mark.parametrize(
    ("said", "decides"),
    [
        ("We keep the old parser because two customers still send the first format.", True),
        ("The issue is that the port was taken, so we use 8081 instead of the old one.", True),
        ("The issue is that the sed command did not match the lines in both files.", False),
        ("The terminal probably has a light background, because the cyan looks darker there.", False),
    ],
)
def test_what_was_found_or_guessed_on_the_way_is_no_decision(said: str, decides: bool) -> None:
    """Much of it is refuted later; the words stay, in the index unless another section tells them."""
    made = build(ledger_of(user("Mend the colours."), answer(said), call("ls", "a.py")), range(1, 5), 600, len)
    assert (said in told(made[Section.DECISIONS])) == decides
    assert said in render(made)


def test_what_only_leads_to_something_left_out_is_not_told() -> None:
    """ "The steps are:" without the steps says nothing; with them it stays."""
    said = answer("The ferry leaves Hanstholm at noon.\nHere are the three options for Hanstholm:\n" + "x y z " * 60)
    ledger = ledger_of(user("Which ferry is it from Hanstholm to the islands?"), said, call("look", "done"))
    short = build(ledger, range(1, 4), 110, lambda text: len(text.split()))
    assert "Here are the three options" not in render(short)
    assert "leaves Hanstholm at noon" in render(short)


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("Let me move the gauge so it can be shared.", True),
        ("I'll move the gauge instead of the lamp.", True),
        ("Now let me move the gauge by the lamp.", False),
    ],
)
def test_why_something_is_done_is_told_and_that_it_is_is_not(said: str, stays: bool) -> None:
    """The call itself tells what it does, and no call tells why."""
    asked, result = call("ls", "a.py")
    worked = ledger_of(user("Mend the lamps of the pier."), [asked | {"content": said}, result], user("And paint?"))
    made = build(worked, range(1, 4), 600, len)
    assert (said in render(made)) == stays


@pytest.mark.parametrize(
    "text", ["I’m going to add the tests.", "I'll add the tests.", "Then I’ll run them.", "Let’s see."]
)
def test_what_a_call_is_announced_with_is_told_by_the_call(text: str) -> None:
    """With either apostrophe."""
    assert INTENT.search(text)
