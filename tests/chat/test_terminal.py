"""What a person sees and can do: the real program, a real pseudo-terminal, a real HTTP server."""

from __future__ import annotations

import json
import re
import signal
import stat
import termios
from itertools import repeat
from pathlib import Path

import pytest

from leporello.local import is_installed
from leporello.store import open_store
from leporello.testing.stub_server import Fail, Hold, Say, Seen
from leporello.usage import CanonicalUsage
from tests.chat.conftest import Desk
from tests.chat.terminal import KEY

STORY = """# Heading one

A paragraph with **bold** words and `code` in it.

1. first point
2. second point

```python
answer = 42
```

| left | right |
|---|---|
| 一 | two |

The last words.
"""


def run(command: str) -> Say:
    return Say(None, calls=(("terminal", json.dumps({"command": command})),))


def stored(desk: Desk) -> list[dict]:
    """Every message of the newest conversation."""
    with open_store(f"sqlite:///{desk.home}/leporello.db") as store:
        newest = store.conversations.page(limit=1).conversations[0]
        return [entry.message for entry in store.log.iterate(newest.id)]


def test_a_streamed_answer_is_shown_as_markdown_and_stays(desk: Desk) -> None:
    """Start to prompt; blocks are printed once each, formatted; the status line knows tokens, window and cache."""
    usage = CanonicalUsage(100, 50, 900, 0, 0)
    desk.serve(Say(STORY, usage=usage))
    seen = desk.chat()
    seen.say("tell me")
    seen.wait("The last words.")
    seen.wait_prompt()
    shown = seen.text
    for text in ("Heading one", "A paragraph with bold words and code in it.", "answer = 42", "The last words."):
        assert shown.count(text) == 1, f"{text!r} stands on the screen {shown.count(text)} times"
    assert "**" not in shown
    assert "```" not in shown
    assert "Writing" not in shown, "the live area left something behind"
    assert re.search(r"gpt-4o · .* 1% 1(\.\d)?K/128K · \$0\.\d+ · cache 90%", seen.display)
    assert seen.leave() == 0


def test_only_the_last_block_is_redrawn(desk: Desk) -> None:
    """What is finished is on the screen while the answer is still being written."""
    held = desk.hold()
    desk.serve(Hold(Say(STORY), held, after=8))
    seen = desk.chat()
    seen.say("tell me")
    seen.wait("Heading one", "Ctrl-C stops")
    assert "The last words." not in seen.text
    held.set()
    seen.wait("The last words.")
    seen.wait_prompt()
    assert seen.text.count("Heading one") == 1


def test_keys_typed_before_the_question_approve_nothing(desk: Desk) -> None:
    """Also those that the terminal hands over together with the line that was sent."""
    desk.serve(run("touch unseen"), Say("I was not allowed to."))
    seen = desk.chat()
    seen.wait_prompt()
    seen.key("go on\ryay")
    seen.wait_question("? run: touch unseen")
    seen.key("n")
    seen.wait("I was not allowed to.")
    assert not list(desk.work.iterdir())


def test_a_tool_runs_when_it_is_approved(desk: Desk) -> None:
    """One key decides; the call is one line with outcome and time; its long output is folded and can be opened."""
    desk.serve(run("seq 1 300"), Say("Three hundred lines."))
    seen = desk.chat()
    seen.say("count")
    seen.wait_question("? run: seq 1 300")
    seen.key("y")
    seen.wait("✓ terminal seq 1 300 · exit code 0 ·", "296 more lines · /expand m3", "Three hundred lines.")
    seen.wait_prompt()
    assert "│ 300" in seen.text
    assert "│ 250" not in seen.text
    seen.say("/expand m3")
    seen.wait("[m3] tool", "\n250\n")
    seen.wait_prompt()
    seen.key("\x0f")  # Ctrl-O opens the newest output
    seen.wait_count("\n251\n", 2)
    assert seen.leave() == 0


def test_refusals_and_reasons_reach_the_model(desk: Desk) -> None:
    """`n` refuses; `e` asks for a reason; `a` allows the same command from then on."""
    desk.serve(run("touch no"), run("touch why"), run("touch yes"), run("touch yes"), Say("Enough."))
    seen = desk.chat()
    seen.say("go")
    seen.wait_question("? run: touch no")
    seen.key("n")
    seen.wait_question("? run: touch why")
    seen.key("e")
    seen.wait("Tell it why:")
    seen.key("not today\r")
    seen.wait_question("? run: touch yes")
    seen.key("a")
    seen.wait("Enough.")
    seen.wait_prompt()
    assert sorted(path.name for path in desk.work.iterdir()) == ["yes"]
    results = [message["content"] for message in stored(desk) if message["role"] == "tool"]
    assert "the user declined" in results[0]
    assert "not today" in results[1]
    assert "exit code 0" in results[3]


def test_a_long_change_can_be_seen_whole(desk: Desk) -> None:
    """A diff of many lines is shown in part; `v` shows the rest before the answer."""
    lines = "".join(f"row {k}\n" for k in range(60))
    desk.serve(Say(None, calls=(("write_file", json.dumps({"path": "rows.txt", "content": lines})),)), Say("Kept."))
    seen = desk.chat()
    seen.say("write it")
    seen.wait_question("more lines: v shows them")
    assert "+row 59" not in seen.text
    seen.key("v")
    seen.wait("+row 59")
    seen.wait_question("+row 59")
    seen.key("y")
    seen.wait("✓ write_file rows.txt", "Kept.")
    assert (desk.work / "rows.txt").read_text() == lines


def test_leaving_with_the_keyboard(desk: Desk) -> None:
    """Ctrl-C clears a line, then says how to leave, then leaves."""
    desk.serve()
    seen = desk.chat()
    seen.wait_prompt()
    seen.key("half a thought")
    seen.wait("half a thought")
    seen.interrupt()
    seen.wait_prompt()
    assert "half a thought" not in seen.display
    seen.interrupt()
    seen.wait("Ctrl-D or /quit leaves.")
    seen.wait_prompt()
    seen.interrupt()
    assert seen.ended() == 0


def test_keys_typed_before_a_question_do_not_answer_it(desk: Desk) -> None:
    """Typing ahead must never approve anything."""
    held = desk.hold()
    desk.serve(Hold(run("touch danger"), held, after=1), Say("Well."))
    seen = desk.chat()
    seen.say("go")
    seen.wait("Ctrl-C stops")
    seen.key("yyy")
    held.set()
    seen.wait_question("? run: touch danger")
    seen.key("n")
    seen.wait("Well.")
    assert not (desk.work / "danger").exists()


def test_interrupting_a_stream(desk: Desk) -> None:
    """Ctrl-C stops the answer at once; the next request is valid and the chat goes on."""
    held = desk.hold()
    server = desk.serve(Hold(Say("Once upon a time there was a very long story."), held, after=4), Say("Good."))
    seen = desk.chat()
    seen.say("tell me a story")
    seen.wait("Once")
    seen.interrupt()
    seen.wait("Stopped.")
    seen.say("something else")
    seen.wait("Good.")
    bodies = server.bodies()
    assert [seen.violations for seen in server.requests if seen.dialect] == [(), ()]
    assert "something else" in json.dumps(bodies[-1]["messages"])
    assert seen.leave() == 0


def test_interrupting_a_tool(desk: Desk) -> None:
    """Ctrl-C ends the command; its call has a result that says so; the chat goes on."""
    server = desk.serve(run("echo began; sleep 600; touch never"), Say("Fine."))
    seen = desk.chat("--yes")
    seen.say("wait")
    seen.wait("│ began")
    seen.interrupt()
    seen.wait("interrupted and stopped", "Stopped.")
    seen.say("never mind")
    seen.wait("Fine.")
    assert all(not request.violations for request in server.requests if request.dialect)
    messages = server.bodies()[-1]["messages"]
    assert [m["role"] for m in messages[1:]] == ["user", "assistant", "tool", "user"]
    assert not (desk.work / "never").exists()


def test_interrupting_a_question(desk: Desk) -> None:
    """Ctrl-C instead of an answer ends the turn, and nothing was done."""
    desk.serve(run("touch nothing"), Say("All right."))
    seen = desk.chat()
    seen.say("go")
    seen.wait_question("? run: touch nothing")
    seen.interrupt()
    seen.wait("Stopped.")
    seen.say("and now")
    seen.wait("All right.")
    assert not (desk.work / "nothing").exists()


SUMMARY = "## Active Task\n\nNone.\n\n## Goal\n\n- Answer questions about harbours.\n"


def harbour_master(seen: Seen) -> Say:
    """Answers `question N` at length, and writes a summary when it is asked for one."""
    if not seen.body.get("tools"):
        return Say(SUMMARY, usage=None)
    asked = [message["content"] for message in seen.body["messages"] if message["role"] == "user"][-1]
    number = re.findall(r"question (\d+)", asked)[-1]
    return Say(f"Answer {number}. " + f"Pier {number} has port {9000 + int(number)}. " * 60, usage=None)


HARBOUR = ("--set", "model.context_length=16000", "--set", "compression.protect_last_n=4")


def test_folding_by_hand_with_a_topic(desk: Desk) -> None:
    """`/compress topic` folds and says what came of it, `/undo` takes it back; from the second on, how often it was."""
    desk.serve(*repeat(harbour_master, 40))
    seen = desk.start(*HARBOUR, "--set", "compression.enabled=false", "chat")
    for number in range(8):
        seen.say(f"question {number} about harbours")
        seen.wait(f"Answer {number}.")
    seen.say("/compress harbours")
    seen.wait("Folded m", "% less)")
    seen.wait_prompt()
    assert "folded 1×" in seen.display
    seen.say("/undo")
    seen.wait("compaction is undone")
    seen.wait_prompt()
    assert "folded" not in seen.display.splitlines()[-1], "what was taken back is not counted"
    seen.say("/compress")
    seen.wait_count("Folded m", 2)
    seen.wait_prompt()
    assert "starts a new conversation" not in seen.text
    for number in range(8, 12):
        seen.say(f"question {number} about harbours")
        seen.wait(f"Answer {number}.")
    seen.say("/compress")
    seen.wait("folded 2 times so far", "a new conversation.")
    seen.say("/expand f1")
    seen.wait("[m7] user", "[m8] assistant")
    seen.say("/search port of pier 3")
    seen.wait_count("9003", 61)
    assert seen.leave() == 0


def test_a_pinned_message_stays_word_for_word(desk: Desk) -> None:
    """What was pinned is in the next request after a fold, whole; `/context` shows its place."""
    server = desk.serve(*repeat(harbour_master, 40))
    seen = desk.start(*HARBOUR, "--set", "compression.enabled=false", "chat")
    for number in range(8):
        seen.say(f"question {number}")
        seen.wait(f"Answer {number}.")
    seen.say("/pin m6")
    seen.wait("Pinned m6 (")
    seen.say("/compress")
    seen.wait("Folded m")
    seen.say("/context")
    seen.wait("pins", "word for word")
    seen.say("question 9")
    seen.wait("Answer 9.")
    sent = json.dumps(server.bodies()[-1]["messages"])
    assert "Pier 2 has port 9002. " * 59 in sent
    assert "Pier 3 has port 9003. " * 20 not in sent


def test_folding_when_it_is_due(desk: Desk) -> None:
    """Automatic compaction shows one line of result; `/context` shows where the window goes."""
    desk.serve(*repeat(harbour_master, 40))
    seen = desk.start(*HARBOUR, "chat")
    for number in range(12):
        seen.say(f"question {number}: never touch the harbour")
        seen.wait(f"Answer {number}.")
    # It is made beside the conversation: the status line shows it once it is done, the line about it the next turn.
    seen.wait("folded ")
    seen.say("question 12: never touch the harbour")
    seen.wait("Answer 12.")
    seen.wait_prompt()
    assert re.search(r"Folded m\d+-m\d+: [\d,]+ → [\d,]+ tokens", seen.text)
    seen.say("/context")
    seen.wait("of 16,000 tokens", "system", "tools", "rules", "summary", "tail", "free")
    seen.say("/context --explain")
    seen.wait("threshold_tokens", "declared by the user")


def test_a_compaction_that_ends_while_the_prompt_waits_is_seen(desk: Desk) -> None:
    """Nobody has to type for the status line to tell it."""
    held = desk.hold()

    def master(seen: Seen) -> Say | Hold:
        said = harbour_master(seen)
        return said if seen.body.get("tools") else Hold(said, held, after=None)

    desk.serve(*repeat(master, 40))
    seen = desk.start(*HARBOUR, "chat")
    for number in range(10):
        seen.say(f"question {number}")
        seen.wait(f"Answer {number}.")
        seen.wait_prompt()
    assert "preparing a compaction" in seen.display
    assert "folded" not in seen.display
    held.set()
    seen.wait("folded 1×")


def test_a_narrow_terminal_and_wide_characters(desk: Desk) -> None:
    """At 60 columns nothing runs over the edge, and letters that take two columns are counted as two."""
    wide = "漢字かな混じり文の長い段落です。" * 8
    desk.serve(Say(f"{wide}\n\nEnd of it 🪗."), run("printf '漢字%.0s' $(seq 60)"), Say("Done."))
    seen = desk.chat("--yes", columns=60, rows=24)
    seen.say("日本語で")
    seen.wait("End of it")
    seen.say("run it")
    seen.wait("Done.")
    seen.wait_prompt()
    assert wide in re.sub(r"\s+", "", seen.text)
    assert "gpt-4o" in seen.display
    assert all(len(line) <= 60 for line in seen.screen.display)


def test_resizing_while_an_answer_grows(desk: Desk) -> None:
    """A narrower and a wider window leave no torn lines behind."""
    words = " ".join(f"word{k}" for k in range(80))
    held, later = desk.hold(), desk.hold()
    desk.serve(Hold(Say(f"Start.\n\n{words}\n\nThe end."), held, after=30), Hold(Say(f"{words}\n\nStop."), later, 30))
    seen = desk.chat(columns=100, rows=30)
    seen.say("go")
    seen.wait("Start.", "Ctrl-C stops")
    seen.resize(60, 30)
    held.set()
    seen.wait("The end.")
    seen.wait_prompt()
    seen.say("again")
    seen.wait("Ctrl-C stops")
    seen.resize(110, 30)
    later.set()
    seen.wait("Stop.")
    seen.wait_prompt()
    assert "Ctrl-C stops" not in seen.display
    assert "word79" in seen.text


def test_pasting_five_thousand_lines(desk: Desk) -> None:
    """A long paste is one short word at the prompt and arrives whole."""
    pasted = "\n".join(f"line {k} of the log" for k in range(5_000))
    server = desk.serve(Say("Read."))
    seen = desk.chat()
    seen.wait_prompt()
    seen.paste(pasted)
    seen.wait("[pasted text 1: 5,000 lines]")
    seen.key(" what is this?\r")
    seen.wait("Read.")
    assert server.bodies()[0]["messages"][-1]["content"] == f"{pasted} what is this?"


def test_several_lines_at_the_prompt(desk: Desk) -> None:
    """Alt-Enter and a backslash begin a new line; Enter sends all of them. A short paste stays as it is."""
    server = desk.serve(Say("Ok."))
    seen = desk.chat()
    seen.wait_prompt()
    seen.key("one\x1b\rtwo\\\rthree ")
    seen.paste("four\nfive")
    seen.wait("five")
    seen.key("\r")
    seen.wait("Ok.")
    assert server.bodies()[0]["messages"][-1]["content"] == "one\ntwo\nthree four\nfive"


def test_history_is_kept_and_private(desk: Desk) -> None:
    """The arrow key brings back what an earlier run sent; nobody else can read the file."""
    desk.serve(Say("One."), Say("Two."))
    seen = desk.chat()
    seen.say("remember me")
    seen.wait("One.")
    assert seen.leave() == 0
    assert stat.S_IMODE((desk.home / "history").stat().st_mode) == 0o600
    again = desk.chat()
    again.wait_prompt()
    again.key("\x1b[A\x1b[A")
    again.wait("› remember me")
    again.key("\r")
    again.wait("Two.")


def test_completion_of_commands_and_files(desk: Desk) -> None:
    """Tab completes commands, their arguments and files after an @."""
    (desk.work / "harbour.py").write_text("")
    desk.serve(Say("Seen."))
    seen = desk.chat()
    seen.wait_prompt()
    seen.key("/comp")
    seen.wait("fold older messages")
    seen.key("\x03@harb")
    seen.wait("  harbour.py")
    seen.key("\t please\r")
    seen.wait("› @harbour.py please", "Seen.")


def test_no_colour(desk: Desk) -> None:
    """With NO_COLOR there is bold at most, never a colour."""
    desk.serve(Say(STORY), run("ls"), Say("Done."))
    seen = desk.chat("--yes", env={"NO_COLOR": "1"})
    seen.say("tell me")
    seen.wait("The last words.")
    seen.say("list")
    seen.wait("Done.")
    seen.say("/context")
    seen.wait("free")
    codes = {code for group in re.findall(r"\x1b\[([0-9;]*)m", seen.raw) for code in group.split(";") if code}
    assert not {code for code in codes if 30 <= int(code) <= 49 or 90 <= int(code) <= 107}, codes


def test_a_model_cannot_drive_the_terminal(desk: Desk) -> None:
    """Escape sequences in answers and outputs are shown, not obeyed."""
    desk.serve(Say("before \x1b]0;owned\x07 \x1b[2J after"), run("printf '\\033[2J\\033[31mred\\033[0m'"), Say("End."))
    seen = desk.chat("--yes")
    seen.say("go")
    seen.wait("after")
    seen.say("again")
    seen.wait("End.")
    assert "]0;owned" not in seen.raw.replace("\\x1b]0;owned", "")
    assert "before" in seen.text


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Fail(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}), "refused the key"),
        (
            Fail(404, {"error": {"message": "no such model", "code": "model_not_found"}}),
            "does not know the model gpt-4o",
        ),
    ],
    ids=["wrong-key", "unknown-model"],
)
def test_one_sentence_and_what_to_do(desk: Desk, step: Fail, said: str) -> None:
    """A refused key and an unknown model: what happened, what to do, and the chat goes on."""
    desk.serve(step, Say("Now it works."))
    seen = desk.chat()
    seen.say("hello")
    seen.wait(said)
    shown = " ".join(seen.text.split())
    assert "leporello setup" in shown or "/model NAME" in shown
    assert "Traceback" not in seen.text
    assert KEY not in seen.text
    seen.say("go on")
    seen.wait("Now it works.")


def test_no_network(desk: Desk) -> None:
    """An address where nobody listens is named, and the message is kept."""
    desk.url = "http://127.0.0.1:9/v1"
    seen = desk.chat()
    seen.say("hello")
    seen.wait("There is no connection to", "127.0.0.1:9", "Your message is kept")
    assert seen.leave() == 0
    assert [message["content"] for message in stored(desk)] == ["hello"]


def test_no_key(desk: Desk) -> None:
    """Without a key the three ways to a model are told."""
    seen = desk.start("chat", env={"OPENAI_API_KEY": ""})
    seen.wait("Three ways to get a model", "leporello setup --local", "scripted:demo")
    assert seen.ended() == 2


def test_switching_conversations(desk: Desk) -> None:
    """/new begins afresh, /sessions lists, /resume goes back and shows where it was; an empty one leaves no trace."""
    server = desk.serve(Say("Blue it is."), Say("Hello again."), Say("Blue, as you said."))
    seen = desk.chat()
    seen.say("my colour is blue")
    seen.wait("Blue it is.")
    seen.say("/new")
    seen.wait("A new conversation")
    seen.say("good day")
    seen.wait("Hello again.")
    seen.say("/sessions")
    seen.wait("my colour is blue")
    seen.say("/resume 2")
    seen.wait_count("Blue it is.", 2)
    seen.say("which colour?")
    seen.wait("Blue, as you said.")
    assert "my colour is blue" in json.dumps(server.bodies()[-1]["messages"])
    seen.say("/new")
    seen.wait_count("A new conversation", 2)
    assert seen.leave() == 0
    with open_store(f"sqlite:///{desk.home}/leporello.db") as store:
        assert len(store.conversations.page().conversations) == 2


def test_the_other_commands_answer(desk: Desk) -> None:
    """Help names every command; usage, insights, pins, engines, settings, model and export work at the prompt."""
    desk.serve(Say("Noted."))
    seen = desk.chat()
    seen.say("the door code is in the safe")
    seen.wait("Noted.")
    seen.say("/help")
    names = "help new reset resume sessions compress undo usage insights context search expand model pin plugins config"
    seen.wait(*(f"/{name}" for name in [*names.split(), "export", "quit"]))
    seen.say("/pin m1 the code")
    seen.wait("Pinned m1")
    seen.say("/pin")
    seen.wait("m1  the code")
    seen.say("/usage")
    seen.wait("1 call, ")
    seen.say("/insights")
    seen.wait("Last 30 days: 1 conversation, ")
    seen.say("/plugins")
    seen.wait("* compressor")
    seen.say("/config model.default")
    seen.wait("model.default = gpt-4o")
    seen.say("/model")
    seen.wait("gpt-4o (127.0.0.1")
    seen.say("/export talk.md")
    seen.wait("Written to talk.md")
    assert "door code" in (desk.work / "talk.md").read_text()
    seen.say("/unpin m1")
    seen.wait("no longer pinned")
    seen.say("/nonsense")
    seen.wait("There is no command /nonsense")
    assert seen.leave() == 0


def test_going_on_with_another_model(desk: Desk) -> None:
    """/model changes who answers; the conversation goes along."""
    server = desk.serve(Say("First."), Say("Second."))
    seen = desk.chat()
    seen.say("one")
    seen.wait("First.")
    seen.say("/model gpt-4o-mini")
    seen.wait("Continuing with gpt-4o-mini")
    seen.say("two")
    seen.wait("Second.")
    assert [body["model"] for body in server.bodies()] == ["gpt-4o", "gpt-4o-mini"]
    assert "First." in json.dumps(server.bodies()[1]["messages"])


def test_the_prompt_cache_is_told_at_the_start(desk: Desk) -> None:
    """With a model whose cache takes marks, the start says so, with the provider and the time it lives."""
    server = desk.serve(Say("Cached."))
    desk.url = server.url
    claude = {"LEPORELLO_MODEL__PROVIDER": "anthropic", "LEPORELLO_MODEL__DEFAULT": "claude-sonnet-4-5"}
    seen = desk.chat(env={**claude, "ANTHROPIC_API_KEY": KEY})
    seen.wait("anthropic · window", "prompt cache on (5m)")
    seen.say("hello")
    seen.wait("Cached.")
    assert "cache_control" in json.dumps(server.bodies()[0])
    assert seen.leave() == 0


def test_an_assumed_window_is_called_so(desk: Desk) -> None:
    """At the start, in the status line, in `/context` and `/model`; for a model that is known, nowhere."""
    desk.serve(Say("Hello."), Say("Hello again."))
    seen = desk.chat("--model", "mystery-7b")
    seen.wait("window 128,000 (assumed)", "model.context_length")
    seen.say("hi")
    seen.wait("Hello.", "/128K assumed")
    seen.say("/context")
    seen.wait("of an assumed 128,000 tokens")
    seen.say("/model")
    seen.wait("mystery-7b (127.0.0.1")
    seen.wait_count("128,000 (assumed)", 2)
    assert seen.leave() == 0
    known = desk.chat()
    known.say("/context")
    known.wait("of 128,000 tokens")
    assert "assumed" not in known.text


def test_the_scripted_demo_needs_nothing(desk: Desk) -> None:
    """`--model scripted:demo` talks without a key and a network."""
    seen = desk.chat("--model", "scripted:demo", env={"OPENAI_API_KEY": ""})
    seen.say("hello")
    seen.wait("scripted model")
    assert seen.leave() == 0


def test_interrupting_a_compaction(desk: Desk) -> None:
    """Ctrl-C while the summary is being written: nothing is folded, and the chat goes on."""
    held = desk.hold()

    def master(seen: Seen) -> Say | Hold:
        said = harbour_master(seen)
        return said if seen.body.get("tools") else Hold(said, held, after=None)

    desk.serve(*repeat(master, 40))
    seen = desk.start(*HARBOUR, "--set", "compression.enabled=false", "chat")
    for number in range(8):
        seen.say(f"question {number}")
        seen.wait(f"Answer {number}.")
    seen.say("/compress")
    seen.wait("Folding the conversation", "Ctrl-C stops")
    seen.interrupt()
    seen.wait("Stopped; nothing was changed.")
    held.set()
    seen.say("question 9")
    seen.wait("Answer 9.")
    seen.wait_prompt()
    assert "folded" not in seen.display.splitlines()[-1]
    assert seen.leave() == 0


def test_typing_ahead(desk: Desk) -> None:
    """What is typed while an answer is written is not echoed into it and stands at the next prompt."""
    held = desk.hold()
    desk.serve(Hold(Say("The first answer."), held, after=2), Say("The second answer."))
    seen = desk.chat()
    seen.say("one")
    seen.wait("Ctrl-C stops")
    seen.key("typed ahead")
    held.set()
    seen.wait("The first answer.", "› typed ahead")
    assert seen.text.count("typed ahead") == 1
    seen.key("\r")
    seen.wait("The second answer.")


def test_an_interrupt_keeps_what_was_typed(desk: Desk) -> None:
    """Ctrl-C stops the answer; what was typed meanwhile stands in the input line, not sent."""
    held = desk.hold()
    server = desk.serve(Hold(Say("Beginning of the first answer."), held, after=4), Say("The second answer."))
    seen = desk.chat()
    seen.say("one")
    seen.wait("Beg", "Ctrl-C stops")
    seen.key("rather do this")
    seen.interrupt()
    seen.wait("Stopped.", "› rather do this")
    assert len(server.bodies()) == 1
    seen.key("\r")
    seen.wait("The second answer.")
    assert "rather do this" in json.dumps(server.bodies()[-1]["messages"])


def test_leaving_at_once(desk: Desk) -> None:
    """Ctrl-D before anything has loaded ends cleanly and quietly."""
    desk.serve()
    seen = desk.chat()
    seen.wait("›")
    seen.key("\x04")
    assert seen.ended() == 0
    assert "Traceback" not in seen.raw
    assert "Error" not in seen.raw


def test_a_very_long_answer(desk: Desk) -> None:
    """Two thousand lines of code in one block arrive whole, each line once."""
    code = "".join(f"value_{k:04} = {k}\n" for k in range(2_000))
    desk.serve(Say(f"Here:\n\n```python\n{code}```\n\nThat was all."))
    seen = desk.chat()
    seen.say("write it all")
    seen.wait("That was all.")
    seen.wait_prompt()
    shown = seen.text
    assert [shown.count(f"value_{k:04} ") for k in range(0, 2_000, 7)] == [1] * len(range(0, 2_000, 7))


def test_background_commands_end_with_the_conversation(desk: Desk) -> None:
    """What the agent started in the background survives another model, and is stopped and named on leaving."""
    begin = json.dumps({"command": "sleep 600", "background": True})
    desk.serve(
        Say(None, calls=(("terminal", begin),)), Say("Started."), Say(None, calls=(("jobs", "{}"),)), Say("Runs.")
    )
    seen = desk.chat("--yes")
    seen.say("start a server")
    seen.wait("Started.")
    seen.say("/model gpt-4o-mini")
    seen.wait("Continuing with")
    seen.say("is it there?")
    seen.wait("Runs.", "│ j1")
    assert seen.leave() == 0
    assert "Stopped the background command j1: sleep 600" in seen.text


def test_told_to_end_in_the_middle_of_a_turn(desk: Desk) -> None:
    """SIGTERM gives the terminal back as it was: echo and line editing work again."""
    desk.serve(Hold(Say("A long answer."), desk.hold(), after=3))
    seen = desk.chat()
    before = termios.tcgetattr(seen.child.child_fd)[3]
    seen.say("go")
    seen.wait("A ", "Ctrl-C stops")
    assert not termios.tcgetattr(seen.child.child_fd)[3] & termios.ECHO
    seen.child.kill(signal.SIGTERM)
    held = True
    while held and seen.read():
        held = not termios.tcgetattr(seen.child.child_fd)[3] & termios.ECHO
    assert not held
    assert before & termios.ECHO
    assert seen.ended() == 143


def test_the_model_on_this_machine(desk: Desk) -> None:
    """`--model local` answers with nothing but what `setup --local` fetched."""
    models = Path(__file__).resolve().parents[2] / "build" / "local" / "models"
    if not is_installed(models):
        pytest.skip("the local model is not in build/ (tests/local fetches it)")
    (desk.home / "models").symlink_to(models)
    seen = desk.chat("--model", "local", env={"OPENAI_API_KEY": ""})
    seen.say("What is the capital of France?")
    seen.wait("Paris")
    seen.wait_prompt()
    assert "/8.2K" in seen.display
    assert seen.leave() == 0
