"""The demo's work: what the user asks in each turn, and what the scripted model does about it.

Every turn is about the project's own source, in a copy that nobody minds. The model's part is written down here, but
the tools it calls are real, and what it says it takes from their results.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Results: TypeAlias = Sequence[str]
"""The texts of the tool results that the model got last."""
Move: TypeAlias = Callable[[Results], "str | list[Wanted]"]
"""One answer of the model: words, or calls."""

RULES = (
    "Never change anything below src/leporello/store.",
    "Always answer in one sentence.",
    "Never add a new dependency.",
    "Do not rename public functions.",
)
_TEXT_FILE = re.compile(r"(/\S{1,400}\.txt)")
_LINE_COUNT = re.compile(r"in ([\d,]+) lines")
_PYTHON_HIT = re.compile(r"^\S+\.py:\d+", re.MULTILINE)
_BARE_NUMBER = re.compile(r"^[ \t]*+(\d++)$", re.MULTILINE)
PORT = "8443"
BATCH = "77"
CHECKSUM = "5f3a91"
CHECK = f"""\
#!/bin/sh
echo "checking 96 batches"
echo "error: checksum {CHECKSUM} of batch {BATCH} does not match" >&2
exit 3
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tool call."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says, and the model's moves until its answer."""

    ask: str
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Something said long ago: how it is asked for, how the answer looks, and what it must be."""

    text: str
    looks_like: str
    gold: str


def prepare(source: Path, work: Path) -> None:
    """Copy the source tree, and put a check beside it that fails."""
    for path in sorted(source.rglob("*")):
        if path.suffix in (".py", ".md") and path.is_file():
            copy = work / "src" / "leporello" / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (work / "check.sh").write_text(CHECK)


def questions(work: Path) -> tuple[Question, ...]:
    """What the agent is asked at the end; the answers were given in turns that are folded by then."""
    lines = {path: path.read_bytes().count(b"\n") for path in sorted((work / "src").rglob("*.py"))}
    longest = max(lines, key=lambda path: lines[path])
    name = longest.relative_to(work).as_posix()
    return (
        Question("Which port does the staging server listen on?", r"port (\d{4})", PORT),
        Question("What did the check say about the checksum of batch 77?", r"checksum (\w+) of batch", CHECKSUM),
        Question("Which file is the longest?", rf"{lines[longest]} (\S+\.py)", name),
    )


def turns(work: Path, count: int) -> Iterator[Turn]:
    """The whole session: ordinary work, with the special turns in their places."""
    ordinary = _ordinary(work)
    special = {place * count // 100: turn for place, turn in _special()}
    for number in range(count):
        yield special.get(number) or next(ordinary)


def recall(question: Question) -> Turn:
    """A question about the past: the model searches, opens the best place if that is not enough, and answers."""

    def seen(results: Results) -> re.Match[str] | None:
        return re.search(question.looks_like, results[0]) if results else None

    def search(_: Results) -> list[Wanted]:
        return [Wanted("lcm_grep", {"query": question.text, "max_tokens": 2_000})]

    def answer(results: Results) -> str:
        found = seen(results)
        return f"It is {found[1]}." if found else "I do not know."

    def open_best(results: Results) -> str | list[Wanted]:
        if seen(results):
            return answer(results)
        places = [int(hit["id"][1:]) for hit in json.loads(results[0])["results"] if hit["text"] != question.text]
        best = places[0] if places else 1
        return [Wanted("lcm_expand", {"id": f"m{best}-m{best + 3}", "max_tokens": 2_000})]

    return Turn(question.text, (search, open_best, answer))


def _special() -> list[tuple[int, Turn]]:
    """Turns that matter later, by the percentage of the session at which they come."""
    return [
        (0, Turn(f"We go through this project together. {RULES[0]} {RULES[1]}", (lambda _: "Understood.",))),
        (2, Turn(f"By the way, the staging server listens on port {PORT}.", (lambda _: "Noted.",))),
        (4, _run("Run the check.", "sh check.sh", "The check fails, see its output.")),
        (6, _run("Which files are the longest?", _LONGEST, "They are in the list, the longest one first.")),
        (12, Turn(RULES[2], (lambda _: "I will not.",))),
        (25, Turn("Print the whole source. What do its last lines say?", (_print_all, _read_end, _quote))),
        (45, Turn(RULES[3], (lambda _: "Their names stay.",))),
    ]


_FILES = "find src -name '*.py' | LC_ALL=C sort"
_LONGEST = f"wc -l $({_FILES}) | grep -v total | LC_ALL=C sort -k1,1nr -k2 | head -5"
_ALL = f"cat $({_FILES})"


def _run(ask: str, command: str, answer: str) -> Turn:
    return Turn(ask, (lambda _: [Wanted("terminal", {"command": command})], lambda _: answer))


def _print_all(_: Results) -> list[Wanted]:
    return [Wanted("terminal", {"command": _ALL})]


def _read_end(results: Results) -> list[Wanted]:
    """The result is only a preview; the block says where the whole output is and how long."""
    path = _TEXT_FILE.search(results[0])
    lines = _LINE_COUNT.search(results[0])
    last = int(lines[1].replace(",", "")) if lines else 1
    return [Wanted("read_file", {"path": path[1] if path else "", "offset": max(1, last - 4), "limit": 5})]


def _quote(results: Results) -> str:
    return f"They begin: {_opening(results[0])}"


def _ordinary(work: Path) -> Iterator[Turn]:
    """Reading, comparing, searching, counting and noting, module after module."""
    names = [path.relative_to(work).as_posix() for path in sorted((work / "src").rglob("*.py"))]
    files = itertools.cycle(name for name in names if not name.endswith("__init__.py"))
    kinds = itertools.cycle((_read, _compare, _usages, _count, _read, _note))
    for kind in kinds:
        yield kind(next(files), next(files))


def _read(file: str, _: str) -> Turn:
    call = Wanted("read_file", {"path": file, "limit": 70})
    return Turn(f"What is {file} for?", (lambda _: [call], lambda results: f"It says: {_opening(results[0])}"))


def _compare(file: str, other: str) -> Turn:
    calls = [Wanted("read_file", {"path": path, "limit": 40}) for path in (file, other)]

    def answer(results: Results) -> str:
        return f"The one says {_opening(results[0])!r}, the other {_opening(results[1])!r}."

    return Turn(f"Compare {file} and {other}.", (lambda _: calls, answer))


def _usages(file: str, _: str) -> Turn:
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    call = Wanted("search_files", {"pattern": f"from {module} import", "path": "src", "regex": False})

    def answer(results: Results) -> str:
        users = len(_PYTHON_HIT.findall(results[0]))
        return f"{module} is imported in {users} places that I can see."

    return Turn(f"Who uses {module}?", (lambda _: [call], answer))


def _count(file: str, _: str) -> Turn:
    folder = file.rpartition("/")[0]
    command = f"cat {folder}/*.py | wc -l && grep -c '^def ' {folder}/*.py | LC_ALL=C sort"

    def answer(results: Results) -> str:
        numbers = _BARE_NUMBER.findall(results[0])
        return f"{folder} has {numbers[0] if numbers else 'an unknown number of'} lines."

    return Turn(
        f"How large is {folder}, and how many functions are in it?",
        (lambda _: [Wanted("terminal", {"command": command})], answer),
    )


def _note(file: str, other: str) -> Turn:
    look = Wanted("search_files", {"pattern": "^class ", "path": file.rpartition("/")[0]})

    def write(results: Results) -> list[Wanted]:
        heading = f"# Classes beside {file}\n\n"
        note = "\n".join(line for line in results[0].splitlines()[:12])
        return [Wanted("write_file", {"path": f"notes/{file.replace('/', '_')}.md", "content": heading + note + "\n"})]

    return Turn(f"Write down which classes stand beside {file}.", (lambda _: [look], write, lambda _: "It is noted."))


def _opening(text: str) -> str:
    """The first sentence of a file that was read."""
    for line in text.splitlines():
        bare = line.rpartition("\t")[2].strip().strip('"').strip()
        if bare and not bare.startswith(("exit code", "{")):
            return bare[:110]
    return "nothing"


def as_message(wanted: Sequence[Wanted], number: int) -> dict[str, Any]:
    """An assistant message with these calls; `number` makes their ids unique."""
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for place, call in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}
