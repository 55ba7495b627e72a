"""The demo's session: what the user asks, what the scripted model does about it, with real tools and a real store."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from leporello.agent.agent import Agent
from leporello.agent.endpoints import Chosen
from leporello.agent.events import AgentEvent, Compacted, Notice, ToolFinished
from leporello.agent.session import open_agent
from leporello.billing import SHORT, CacheBlock, CacheSim, blocks_of
from leporello.config import Home, load_settings
from leporello.events import CompactionReport
from leporello.lazy_regex import lazy_regex
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.models import model_facts
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider, Step
from leporello.store import Store, open_store
from leporello.summaries.model import ModelSummariser
from leporello.tokens import TokenCounter
from leporello.usage import CanonicalUsage

ID, WORK = "demo", "work"
FIRST, SECOND = "claude-sonnet-4-5", "claude-haiku-4-5"
SERVED, SMALLER = 49_152, 32_768
SECONDS_PER_CALL = 15.0
TAIL_MARKS = 3
MOST_OPENED = 5
WIDEST = 240  # bytes of a line in files that are looked at
FOLD, SAVED, OVERFLOW, RESTART, SWITCH = "fold", "saved", "overflow", "restart", "switch"

RULES = (
    "Never change anything below src/leporello/store.",
    "Always answer in one sentence.",
    "Never add a new dependency.",
    "Do not rename public functions.",
)
STAGING_PORT, BATCH, CHECKSUM = "8443", "77", "5f3a91"
CHECK = f"""\
#!/bin/sh
echo "checking 96 batches"
echo "error: checksum {CHECKSUM} of batch {BATCH} does not match" >&2
exit 3
"""
_TEXT_FILE = lazy_regex(r"(/\S{1,400}\.txt)")
_LINE_COUNT = lazy_regex(r"in ([\d,]+) lines")
_HIT = lazy_regex(r'"id": ?"m(\d{1,9})"')
_PYTHON_HIT = lazy_regex(r"^\S+\.py:\d+", re.MULTILINE)
_BARE_NUMBER = lazy_regex(r"^[ \t]*+(\d++)$", re.MULTILINE)
_FILES = "find src -name '*.py' | LC_ALL=C sort"
_LONGEST = f"wc -l $({_FILES}) | grep -v total | LC_ALL=C sort -k1,1nr -k2 | head -5"

DemoCall: TypeAlias = tuple[str, dict[str, Any]]  # a tool and its arguments
Said: TypeAlias = str | list[DemoCall]
Results: TypeAlias = Sequence[str]  # the texts of the tool results that the model got last
Move: TypeAlias = Said | Callable[[Results], Said]
"""One answer of the model: words, or calls, or what it makes of the results."""


class DemoTurn:
    """What the user says, and the model's moves until its answer."""

    def __init__(self, ask: str, *moves: Move) -> None:
        self.ask = ask
        self.moves = moves


@dataclass(frozen=True, slots=True)
class DemoQuestion:
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


def questions(work: Path) -> tuple[DemoQuestion, ...]:
    """What the agent is asked at the end; the answers were given in turns that are folded by then."""
    lines = {path: path.read_bytes().count(b"\n") for path in sorted((work / "src").rglob("*.py"))}
    longest = max(lines, key=lambda path: lines[path])
    name = longest.relative_to(work).as_posix()
    return (
        DemoQuestion("Which port does the staging server listen on?", r"port (\d{4})", STAGING_PORT),
        DemoQuestion("What did the check say about the checksum of batch 77?", r"checksum (\w+) of batch", CHECKSUM),
        DemoQuestion("Which file is the longest?", rf"{lines[longest]} (\S+\.py)", name),
    )


def turns(work: Path, count: int) -> Iterator[DemoTurn]:
    """The whole session: module after module, with the special turns in their places."""
    modules = [path for path in sorted((work / "src").rglob("*.py")) if path.name != "__init__.py"]
    # A table of long lines would be an output too long to show; there is one on purpose.
    readable = [path for path in modules if max(map(len, path.read_bytes().splitlines())) <= WIDEST]
    files = itertools.cycle(path.relative_to(work).as_posix() for path in readable)
    kinds = itertools.cycle((_read, _compare, _usages, _count, _read, _note))
    special = {place * count // 100: turn for place, turn in _special().items()}
    for number in range(count):
        yield special.get(number) or next(kinds)(next(files), next(files))


def _special() -> dict[int, DemoTurn]:
    """Turns that matter later, by the percentage of the session at which they come."""
    longest = "They are in the list, the longest one first."
    print_all = _terminal(f"cat $({_FILES})")
    return {
        0: DemoTurn(f"We go through this project together. {RULES[0]} {RULES[1]}", "Understood."),
        2: DemoTurn(f"By the way, the staging server listens on port {STAGING_PORT}.", "Noted."),
        4: DemoTurn("Run the check.", _terminal("sh check.sh"), "The check fails, see its output."),
        6: DemoTurn("Which files are the longest?", _terminal(_LONGEST), longest),
        12: DemoTurn(RULES[2], "I will not."),
        25: DemoTurn("Print the whole source. What do its last lines say?", print_all, _read_end, _quote),
        45: DemoTurn(RULES[3], "Their names stay."),
    }


def _terminal(command: str) -> list[DemoCall]:
    return [("terminal", {"command": command})]


def _read_end(results: Results) -> Said:
    """The result is only a preview; the block says where the whole output is and how long."""
    path = _TEXT_FILE.search(results[0])
    lines = _LINE_COUNT.search(results[0])
    last = int(lines[1].replace(",", "")) if lines else 1
    return [("read_file", {"path": path[1] if path else "", "offset": max(1, last - 4), "limit": 5})]


def _quote(results: Results) -> Said:
    return f"They begin: {_opening(results[0])}"


def _opening(text: str) -> str:
    for line in text.splitlines():
        bare = line.rpartition("\t")[2].strip().strip('"').strip()
        if bare and not bare.startswith(("exit code", "{")):
            return bare[:110]
    return "nothing"


def _read(file: str, _: str) -> DemoTurn:
    calls: Said = [("read_file", {"path": file, "limit": 70})]
    return DemoTurn(f"What is {file} for?", calls, lambda results: f"It says: {_opening(results[0])}")


def _compare(file: str, other: str) -> DemoTurn:
    calls: Said = [("read_file", {"path": path, "limit": 40}) for path in (file, other)]

    def answer(results: Results) -> Said:
        return f"The one says {_opening(results[0])!r}, the other {_opening(results[1])!r}."

    return DemoTurn(f"Compare {file} and {other}.", calls, answer)


def _usages(file: str, _: str) -> DemoTurn:
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    calls: Said = [("search_files", {"pattern": f"from {module} import", "path": "src", "regex": False})]

    def answer(results: Results) -> Said:
        return f"{module} is imported in {len(_PYTHON_HIT.findall(results[0]))} places that I can see."

    return DemoTurn(f"Who uses {module}?", calls, answer)


def _count(file: str, _: str) -> DemoTurn:
    folder = file.rpartition("/")[0]
    calls = _terminal(f"cat {folder}/*.py | wc -l && grep -c '^def ' {folder}/*.py | LC_ALL=C sort")

    def answer(results: Results) -> Said:
        number = _BARE_NUMBER.search(results[0])
        return f"{folder} has {number[1] if number else 'an unknown number of'} lines."

    return DemoTurn(f"How large is {folder}, and how many functions are in it?", calls, answer)


def _note(file: str, _: str) -> DemoTurn:
    calls: Said = [("search_files", {"pattern": "^class ", "path": file.rpartition("/")[0]})]

    def write(results: Results) -> Said:
        lines = "\n".join(results[0].splitlines()[:12])
        text = f"# Classes beside {file}\n\n{lines}\n"
        return [("write_file", {"path": f"notes/{file.replace('/', '_')}.md", "content": text})]

    return DemoTurn(f"Write down which classes stand beside {file}.", calls, write, "It is noted.")


def recall(question: DemoQuestion) -> DemoTurn:
    """A question about the past: the model searches, opens the best places if that is not enough, and answers."""

    def seen(results: Results) -> re.Match[str] | None:
        return re.search(question.looks_like, results[0]) if results else None

    def answer(results: Results) -> Said:
        found = seen(results)
        return f"It is {found[1]}." if found else "I do not know."

    places: list[int] = []

    def read_hits(results: Results) -> Said:
        places.extend(map(int, _HIT.findall(results[0])))
        return open_next(results)

    def open_next(results: Results) -> Said:
        if seen(results) or not places:
            return answer(results)
        best = places.pop(0)
        # An answer that was found often says only what the output before it holds.
        return [("lcm_expand", {"id": f"m{max(1, best - 2)}-m{best + 2}", "max_tokens": 2_000})]

    search: Said = [("lcm_grep", {"query": question.text, "max_tokens": 2_000})]
    return DemoTurn(question.text, search, read_hits, *[open_next] * MOST_OPENED, answer)


class DemoModel:
    """The scripted model: does what the turn says, at simulated times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0
        self.moves: Iterator[Move] = iter(())

    def __call__(self, request: ModelRequest) -> Step:
        self.now += SECONDS_PER_CALL
        self.calls += 1
        move = next(self.moves)
        newest = list(itertools.takewhile(is_result, reversed(request.messages)))
        said = move([text_of(message) for message in reversed(newest)]) if callable(move) else move
        return said if isinstance(said, str) else self._message(said)

    def _message(self, wanted: Sequence[DemoCall]) -> Message:
        calls = [
            {
                "id": f"call_{self.calls}_{place}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for place, (tool, arguments) in enumerate(wanted)
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}


@dataclass(slots=True)
class Meter:
    """What calls with a growing history cost; cache marks stand on the system prompt and the last three messages."""

    model: str
    total: CanonicalUsage = field(default_factory=CanonicalUsage)
    calls: int = 0
    largest: int = 0
    counter: TokenCounter = field(init=False)
    sim: CacheSim = field(init=False)
    history: list[list[CacheBlock]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counter = TokenCounter.for_model(self.model)
        self.sim = CacheSim(model_facts(self.model).cache)

    def add(self, message: Message) -> None:
        self.history.append(blocks_of(ModelRequest(self.model, [message]), self.counter))

    def call(self, now: float) -> None:
        marked = (0, *range(len(self.history) - TAIL_MARKS, len(self.history)))
        blocks: list[CacheBlock] = []
        for index, own in enumerate(self.history):
            blocks += [*own[:-1], replace(own[-1], mark=SHORT) if index in marked else own[-1]]
        usage = self.sim.bill(blocks, now).usage()
        self.total += usage
        self.calls += 1
        self.largest = max(self.largest, usage.prompt_tokens)


@dataclass(frozen=True, slots=True)
class Moment:
    """Something worth telling: in which turn, what kind of thing, in words."""

    turn: int
    kind: str
    text: str
    report: CompactionReport | None = None


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    question: DemoQuestion
    said: str
    tool: str
    """The tool whose result the answer was taken from."""
    found_in: str
    """That result."""

    @property
    def right(self) -> bool:
        return self.question.gold in self.said


class Play:
    """One run of the demo in a folder of its own. After `run`, everything in it is as it happened."""

    def __init__(self, folder: Path, source: Path, count: int, served: int = SERVED, smaller: int = SMALLER) -> None:
        self.count = count
        self.served = served
        """What the first model's server really holds; the agent believes the model table until it is told."""
        self.smaller = smaller
        """The window of the second model."""
        self.home = Home(folder)
        self.work = folder / WORK
        self.model = DemoModel()
        self.moments: list[Moment] = []
        self.answers: list[DemoAnswer] = []
        self._switched_at = 0  # the newest message when the second model took over
        self._number = 0
        self.work.mkdir(parents=True)
        prepare(source, self.work)
        self.store: Store = open_store(self.home.store_url)
        self.agent = self._open(None)

    @property
    def newest(self) -> int:
        return self.agent.conversation.runtime.log.view.last

    def run(self, told: Callable[[Moment], None], progress: Callable[[int], None]) -> None:
        """Play everything; `told` hears of each moment as it comes."""
        asked = questions(self.work)
        heard = 0

        def tell() -> None:
            nonlocal heard
            for moment in self.moments[heard:]:
                told(moment)
            heard = len(self.moments)

        for number, turn in enumerate(turns(self.work, self.count), 1):
            self._number = number
            if number == self.count * 50 // 100:
                self._restart()
            if number == self.count * 65 // 100:
                self._switch()
            self._one(turn)
            tell()
            progress(number)
        for question in asked:
            self._number += 1
            said = self._one(recall(question))
            tell()
            call, result = list(self.store.log.iterate(ID, self.newest - 2))[:2]
            self.answers.append(DemoAnswer(question, said, calls_of(call.message)[0].name, text_of(result.message)))

    def never_folded(self) -> list[Meter]:
        """The bill of the same calls, the whole history in each, as if a window could hold it; one for each model."""
        first, second = meters = [Meter(FIRST), Meter(SECOND)]
        history = (entry.message for entry in self.store.log.iterate(ID))
        opening: Message = {"role": "system", "content": f"{self.agent.prompt.text}{self.agent.toolbox.schemas()}"}
        for number, message in enumerate((opening, *history)):
            if role_of(message) == "assistant":
                meter = second if number > self._switched_at > 0 else first
                meter.call((first.calls + second.calls) * SECONDS_PER_CALL)
            for each in meters:
                each.add(message)
        return meters

    def close(self) -> None:
        self.store.close()

    def _one(self, turn: DemoTurn) -> str:
        self.model.moves = iter(turn.moves)
        return self.agent.turn(turn.ask).text

    def _provider(self, window: int) -> ScriptedProvider:
        return ScriptedProvider(self.model, window=window, clock=lambda: self.model.now)

    def _open(self, believed: int | None) -> Agent:
        agent = open_agent(
            load_settings({"tools.approval": "auto"}, environ={}, home=self.home),
            Chosen(FIRST, self._provider(self.served), "anthropic", served_window=believed),
            store=self.store,
            id=ID,
            workdir=self.work,
            summariser=ModelSummariser([], TokenCounter.for_model(FIRST)),
            platform="demo",
            today=date(2026, 1, 2),
            background=False,
        )
        agent.watchers.append(self._watch)
        return agent

    def _restart(self) -> None:
        """Everything in memory is given up; the store and the remembered window are all that is left."""
        window = self.agent.conversation.runtime.sizes.limits.window
        self.store.close()
        self.store = open_store(self.home.store_url)
        self.agent = self._open(window)
        self._tell(RESTART, f"the program was ended and started again; it goes on from m{self.newest}")

    def _switch(self) -> None:
        self._switched_at = self.newest
        self.agent.use_model(Chosen(SECOND, self._provider(self.smaller), "anthropic", served_window=self.smaller))
        self._tell(SWITCH, f"from {FIRST} to {SECOND}, whose window is {self.smaller:,}")

    def _tell(self, kind: str, text: str, report: CompactionReport | None = None) -> None:
        self.moments.append(Moment(self._number, kind, text, report))

    def _watch(self, event: AgentEvent) -> None:
        if isinstance(event, Compacted) and event.event.report.committed:
            self._tell(FOLD, str(event.event.report.covered), event.event.report)
        elif isinstance(event, Notice) and "window is" in event.text:
            self._tell(OVERFLOW, "the model refused the request as too long; folded, sent again, answered")
        elif isinstance(event, ToolFinished) and event.saved:
            size = Path(event.saved).stat().st_size
            self._tell(SAVED, f"an output of {size:,} bytes, kept whole; {event.characters:,} characters were shown")
