"""The demo's play: the real agent with real tools and a real store, driven by a scripted model in a small window.

The model's server holds less than the agent believes at first, so that it refuses a request once. Half way the program
is started anew, and later the conversation goes on with a smaller model. The clock is simulated: every call takes
fifteen seconds, so that cache entries live and die as they would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from leporello.agent.agent import Agent
from leporello.agent.events import AgentEvent, Compacted, Notice, ToolFinished
from leporello.agent.session import Chosen, open_agent
from leporello.config import Home, load_settings
from leporello.events import CompactionReport
from leporello.messages import Message, calls_of, is_result, role_of, text_of
from leporello.providers.base import ModelRequest
from leporello.providers.scripted import ScriptedProvider, Step
from leporello.store import open_store
from leporello.store.base import Store
from leporello.summaries.model import ModelSummariser
from leporello.testing.bill import Meter
from leporello.testing.demo_work import Question, Turn, as_message, prepare, questions, recall, turns
from leporello.tokens import TokenCounter

ID = "demo"
WORK = "work"
FIRST = "claude-sonnet-4-5"
SECOND = "claude-haiku-4-5"
SERVED = 49_152
SMALLER = 32_768
SECONDS_PER_CALL = 15.0
SAVED = "saved"
OVERFLOW = "overflow"
RESTART = "restart"
SWITCH = "switch"
FOLD = "fold"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something worth telling: in which turn, what kind of thing, in words."""

    turn: int
    kind: str
    text: str
    report: CompactionReport | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A question about the past and what the agent said."""

    question: Question
    said: str
    tool: str
    """The tool whose result the answer was taken from."""
    found_in: str
    """That result."""

    @property
    def right(self) -> bool:
        """Whether the answer is the one that was given long ago."""
        return self.question.gold in self.said


class DemoModel:
    """The scripted model: does what the turn says, at simulated times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0
        self._turn: Turn | None = None
        self._move = 0

    def begin(self, turn: Turn) -> None:
        """The next user message is this one."""
        self._turn, self._move = turn, 0

    def __call__(self, request: ModelRequest) -> Step:
        assert self._turn is not None
        self.now += SECONDS_PER_CALL
        self.calls += 1
        said = self._turn.moves[self._move](_last_results(request))
        self._move += 1
        return said if isinstance(said, str) else as_message(said, self.calls)


def _last_results(request: ModelRequest) -> list[str]:
    found: list[str] = []
    for message in reversed(request.messages):
        if not is_result(message):
            break
        found.insert(0, text_of(message))
    return found


@dataclass(slots=True)
class Play:
    """One run of the demo in a folder of its own. After `run`, everything in it is as it happened."""

    folder: Path
    source: Path
    count: int
    served: int = SERVED
    """What the first model's server really holds; the agent believes the model table until it is told."""
    smaller: int = SMALLER
    """The window of the second model."""
    store: Store = field(init=False)
    agent: Agent = field(init=False)
    model: DemoModel = field(default_factory=DemoModel)
    moments: list[Moment] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    switched_at: int = 0
    """The newest message when the second model took over."""
    _number: int = 0

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True)
        prepare(self.source, self.work)
        self.store = open_store(self.home.store_url)
        self.agent = self._open(FIRST, None)

    @property
    def work(self) -> Path:
        """The copy of the source."""
        return self.folder / WORK

    @property
    def home(self) -> Home:
        """Where the store is."""
        return Home(self.folder)

    def run(self, told: Callable[[Moment], None], progress: Callable[[int], None]) -> None:
        """Play everything; `told` hears of each moment as it comes."""
        asked = questions(self.work)
        for number, turn in enumerate(turns(self.work, self.count), 1):
            self._number = number
            heard = len(self.moments)
            if number == self.count * 50 // 100:
                self._restart()
            if number == self.count * 65 // 100:
                self._switch()
            self._one(turn)
            for moment in self.moments[heard:]:
                told(moment)
            progress(number)
        for question in asked:
            self._number += 1
            said = self._one(recall(question))
            call, result = list(self.store.log.iterate(ID, self.agent.talk.view.last - 2))[:2]
            self.answers.append(Answer(question, said, calls_of(call.message)[0].name, text_of(result.message)))

    def never_folded(self) -> list[Meter]:
        """The bill of the same calls, the whole history in each, as if a window could hold it; one for each model."""
        system: Message = {"role": "system", "content": f"{self.agent.prompt.text}{self.agent.toolbox.schemas()}"}
        first, second = Meter(FIRST), Meter(SECOND)
        history: list[Message] = [system]
        for entry in self.store.log.iterate(ID):
            if role_of(entry.message) == "assistant":
                meter = second if entry.number > self.switched_at > 0 else first
                meter.call(history, (first.calls + second.calls) * SECONDS_PER_CALL)
            history.append(entry.message)
        return [first, second]

    def close(self) -> None:
        """Release the store."""
        self.store.close()

    def _one(self, turn: Turn) -> str:
        self.model.begin(turn)
        return self.agent.turn(turn.ask).text

    def _open(self, model: str, believed: int | None) -> Agent:
        provider = ScriptedProvider(self.model, window=self.served, clock=lambda: self.model.now)
        agent = open_agent(
            load_settings({"tools.approval": "auto"}, environ={}, home=self.home),
            Chosen(model, provider, "anthropic", served_window=believed),
            store=self.store,
            id=ID,
            workdir=self.work,
            summariser=ModelSummariser([], TokenCounter.for_model(model)),
            platform="demo",
            today=date(2026, 1, 2),
        )
        agent.watchers.append(self._watch)
        return agent

    def _restart(self) -> None:
        """Everything in memory is given up; the store and the remembered window are all that is left."""
        window = self.agent.talk.limits.window
        self.store.close()
        self.store = open_store(self.home.store_url)
        self.agent = self._open(FIRST, window)
        self._tell(RESTART, f"the program was ended and started again; it goes on from m{self.agent.talk.view.last}")

    def _switch(self) -> None:
        provider = ScriptedProvider(self.model, window=self.smaller, clock=lambda: self.model.now)
        self.switched_at = self.agent.talk.view.last
        self.agent.use_model(SECOND, provider, "anthropic", self.smaller)
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
