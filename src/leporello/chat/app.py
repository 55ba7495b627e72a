"""`Chat`: the agent behind the prompt. Takes what was typed, runs it as a command or as a turn, keeps the status."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from leporello import caching
from leporello.agent.agent import Agent
from leporello.agent.commands import (
    COMMANDS,
    SlashCommand,
    aliases,
    help_text,
    parse_known,
    plugin_commands,
    recent,
    run_command,
    title_of,
)
from leporello.agent.endpoints import choose_model
from leporello.agent.events import ENDINGS, AgentEvent, Notice, ToolFinished
from leporello.agent.session import open_agent
from leporello.cancel import CancelToken
from leporello.chat.repl import soft_interrupts
from leporello.chat.ui import ChatOptions, ChatStatus, Ui
from leporello.conversation import Conversation
from leporello.dialects import DIALECTS
from leporello.errors import Cancelled, InputError, LeporelloError, NotFound
from leporello.events import Span
from leporello.files import must_be_new, open_atomically
from leporello.local import LocalProvider
from leporello.messages import calls_of, is_result, role_of, text_of
from leporello.present.conversation import json_lines, markdown
from leporello.present.records import error_hint
from leporello.present.text import one_line, plural, safe
from leporello.present.window import window_use
from leporello.redact import redact
from leporello.store import Store, open_store
from leporello.tools.approval import ApprovalAnswer
from leporello.tools.base import ApprovalRequest
from leporello.tools.terminal import BackgroundJobs

LISTED = 20
PLATFORM = "cli"  # where these conversations come from; imported ones have names of their own
WITHOUT_SLASH = {"exit": "/quit", "quit": "/quit", ":q": "/quit", ":wq": "/quit", "?": "/help"}
"""What people type at a prompt by habit; it is never meant for the model."""
WINDOW_HINT = "This model's window is not known: model.context_length in config.yaml sets it."


SHOWN_ASK = 200
SHOWN_ANSWER = 1_200


class ResumeSummary(Struct, frozen=True):
    """The newest request, its answer when there is one, and how the conversation stands."""

    ask: str
    answer: str
    unanswered: bool
    line: str


def resume_summary(talk: Conversation) -> ResumeSummary:
    stored = talk.runtime.log
    ask = ""
    answer = ""
    for line in reversed(stored.view.lines):
        if line.fold:
            continue
        role = role_of(line.message)
        if role == "assistant" and not answer and not ask and not calls_of(line.message):
            answer = text_of(line.message).strip()
        elif role == "user":
            ask = text_of(line.message)
            break
    folded = f", folded {stored.compactions}×" if stored.compactions else ""
    return ResumeSummary(
        _cut(one_line(redact(ask)), SHOWN_ASK),
        _cut(redact(answer), SHOWN_ANSWER),
        bool(ask) and not answer,
        f"{talk.id} · {plural(stored.view.last, 'message')}{folded}",
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"


def newest_conversation(store: Store, advice: str) -> str:
    """The id of the conversation that `chat` or `run` was last used for."""
    newest = recent(store, 1, PLATFORM)
    if not newest:
        raise InputError(f"There is no conversation to continue yet. {advice}")
    return newest[0].id


def end_conversation(
    agent: Agent, store: Store, note: Callable[[str], None], *, begun: bool, reason: str = "exit"
) -> None:
    """Stop what runs and end the conversation; an empty one that was started here is deleted."""
    conversation = agent.conversation
    running = agent.jobs.running()
    agent.jobs.close()
    for job in running:
        note(f"Stopped the background command {job.id}: {job.command}")
    conversation.runtime.leave(reason)
    conversation.close()
    if begun and not store.log.count(conversation.id):
        store.conversations.delete(conversation.id)
    else:
        store.conversations.end(conversation.id, reason)


def export(talk: Conversation, argument: str) -> str:
    path = Path(argument or f"leporello-{talk.id}.md").expanduser()
    write = {".md": markdown, ".jsonl": json_lines}.get(path.suffix)
    if write is None:
        raise InputError(f"{path.name} must end with .md (to read) or .jsonl (for programs).")
    must_be_new(path, "Name another file.")
    record = talk.runtime.log.store.conversations.resolve(talk.id)
    with open_atomically(path, private=True) as file:
        for piece in write(talk.runtime.log.store, record, False):
            file.write(piece.encode())
    return f"Written to {safe(str(path))}: {record.messages:,} messages."


FILE_COMMANDS = {
    "export": SlashCommand("write the whole conversation to a .md or .jsonl file", export, "[file]", ("save",))
}
"""Commands of `chat` and `run` that write files where the user is; a server has none of them."""


class Chat:
    def __init__(
        self, options: ChatOptions, ui: Ui, ask: Callable[[ApprovalRequest], ApprovalAnswer] | None, store: Store
    ) -> None:
        self._options = options
        self._ui = ui
        self._ask = ask
        self._store = store
        self._chosen = choose_model(options.settings)
        first = newest_conversation(store, "Start one with: leporello chat") if options.go_on else None
        if options.resume is not None:
            first = self._find(options.resume)
        self._begun = first is None  # whether the current conversation was started here, not resumed
        self._agent = self._opened(first)
        self._in_turn = False
        self._leaving = False
        self._newest_output = ""
        self.failed = False
        """Whether the last turn ended with an error."""
        self._own: Mapping[str, SlashCommand] = {**FILE_COMMANDS, **self._own_commands()}
        self.redraw: Callable[[], None] = lambda: None
        """Shows the status again where one stands on the screen; called from any thread."""
        self._outdated = False
        self._status = self._measured()

    @classmethod
    def open(cls, options: ChatOptions, ui: Ui, ask: Callable[[ApprovalRequest], ApprovalAnswer] | None = None) -> Chat:
        store = open_store(options.settings.store_url)
        try:
            return cls(options, ui, ask, store)
        except BaseException:
            store.close()
            raise

    @property
    def agent(self) -> Agent:
        return self._agent

    @property
    def status(self) -> ChatStatus:
        """As the last turn left it, or a compaction that ended while the prompt waited."""
        if self._outdated:
            self._outdated = False
            # What goes wrong here goes wrong again with the next message, and is told there.
            with contextlib.suppress(LeporelloError):
                self._agent.conversation.runtime.log.refresh()
                self._status = self._measured()
        return self._status

    def _compacted_beside(self) -> None:
        self._outdated = True
        self.redraw()

    @property
    def commands(self) -> dict[str, SlashCommand]:
        """Every command; those of plugins change with the conversation."""
        return {**COMMANDS, **plugin_commands(self._agent.conversation), **self._own}

    # -- conversations

    def _opened(self, id: str | None, jobs: BackgroundJobs | None = None) -> Agent:
        agent = open_agent(
            self._options.settings,
            self._chosen,
            store=self._store,
            id=id,
            workdir=self._options.workdir,
            ask=self._ask,
            platform=PLATFORM,
            jobs=jobs,
        )
        if id is not None:
            self._store.conversations.reopen(agent.conversation.id)
        agent.watchers.append(self._watch)
        if agent.beside is not None:
            agent.beside.ended = self._compacted_beside
        return agent

    def _find(self, wanted: str) -> str:
        """A conversation by id, by the beginning of one, or by its number in `/sessions`."""
        with contextlib.suppress(NotFound):
            return self._store.conversations.resolve(wanted).id
        records = recent(self._store, 200)
        if wanted.isdecimal() and 1 <= int(wanted) <= len(records):
            return records[int(wanted) - 1].id
        begin = wanted.rstrip("…")  # as /sessions shows a long one
        near = [record.id for record in records if begin and record.id.startswith(begin)]
        if len(near) == 1:
            return near[0]
        hint = f"It could be {', '.join(near[:4])}." if near else "/sessions shows what there is."
        raise InputError(f"No conversation has the id {wanted!r}. {hint}")

    def close(self) -> None:
        self._end("exit")
        self._store.close()

    def _end(self, reason: str) -> None:
        end_conversation(self._agent, self._store, self._ui.note, begun=self._begun, reason=reason)

    def _switch(self, id: str | None, reason: str) -> None:
        self._end(reason)
        self._begun = id is None
        self._agent = self._opened(id)
        self._newest_output = ""
        self._status = self._measured()

    # -- what is shown at the beginning

    def greeting(self) -> str:
        """Who answers, and whether its cache is used."""
        use = caching.cache_use(
            self._chosen.model, self._chosen.provider_name, self._chosen.base_url, self._chosen.dialect
        )
        ttl = self._options.settings.prompt_caching.cache_ttl
        limits = self._agent.conversation.runtime.sizes.limits
        parts = [self._chosen.provider_name, f"window {limits.window_text}"]
        if use.marks:
            parts.append(f"prompt cache on ({ttl})")
        hints = [WINDOW_HINT] if limits.window_assumed else []
        return "\n".join([" · ".join(parts), *hints, *self._agent.conversation.runtime.plugins.troubles])

    def show_resume_summary(self) -> None:
        found = resume_summary(self._agent.conversation)
        self._ui.note(found.line)
        if found.ask:
            self._ui.note(f"› {found.ask}")
        if found.answer:
            self._ui.answer(found.answer)
        elif found.unanswered:
            self._ui.note("That was not answered yet. It goes along with your next message.")

    def warm_up(self) -> None:
        """Load what the first call needs: the vendor's client takes longer to import than all the rest."""
        if isinstance(self._chosen.provider, LocalProvider):
            # What goes wrong here goes wrong again at the first call, and is told there.
            with contextlib.suppress(LeporelloError):
                self._chosen.provider.start()
            return
        dialect = DIALECTS.get(self._chosen.dialect)
        if dialect is not None and find_spec(dialect.api.vendor) is not None:
            import_module(dialect.api.vendor)

    # -- input

    def take(self, text: str) -> bool:
        """Run what was typed; False when the user wants to leave."""
        self.failed = False
        try:
            if not self._as_command(text):
                self._turn(text)
        except (KeyboardInterrupt, Cancelled):
            self._agent.conversation.runtime.log.refresh()
            self._ui.note("Stopped; nothing was changed.")
        except LeporelloError as error:
            self.failed = True
            chosen = self._chosen
            self._ui.error(error_hint(error, chosen.model, chosen.provider_name, chosen.base_url))
        self._status = self._measured()
        return not self._leaving

    def _as_command(self, text: str) -> bool:
        text = WITHOUT_SLASH.get(text.strip().lower(), text)
        found = parse_known(text, self.commands)
        if found == ("context", ""):
            self._agent.measure()
            self._ui.window(window_use(self._agent.conversation))
            return True
        if found == ("help", ""):
            self._ui.say(help_text(self.commands, self._ui.width))
            return True
        if found is not None and found[0] == "compress":
            answer = self._fold(text)
        else:
            answer = run_command(self._agent.conversation, text, self.commands)
        if answer:
            self._ui.say(answer)
        return answer is not None

    def _fold(self, text: str) -> str | None:
        conversation = self._agent.conversation
        hooks = conversation.runtime.hooks
        hooks.cancel = CancelToken()
        try:
            with self._ui.working("Folding the conversation"), soft_interrupts(hooks.cancel, lambda: False):
                return run_command(conversation, text, self.commands)
        finally:
            hooks.cancel = None

    def _turn(self, text: str) -> None:
        token = CancelToken()
        self._in_turn = True
        if not self._agent.conversation.runtime.log.view.last:
            self._store.conversations.update(self._agent.conversation.id, title=title_of(text))
        try:
            with self._ui.turn() as view, soft_interrupts(token, lambda: view.uninterruptible):
                ended = self._agent.turn(text, view, token)
        except LeporelloError:
            self._agent.close_open_calls("Error: the turn ended before this call had a result")
            raise
        finally:
            self._in_turn = False
        if ended.reason in ENDINGS:
            self._ui.note(ENDINGS[ended.reason])

    def _watch(self, event: AgentEvent) -> None:
        if isinstance(event, ToolFinished):
            self._newest_output = event.message
        elif isinstance(event, Notice) and not self._in_turn:
            self._ui.warn(event.text)

    def _measured(self) -> ChatStatus:
        conversation = self._agent.conversation
        totals = conversation.usage
        used = self._agent.measure().tokens
        counted = totals.usage.prompt_tokens > 0
        priced = counted and totals.calls > totals.unpriced_calls
        return ChatStatus(
            self._chosen.model,
            used,
            conversation.runtime.sizes.limits.window,
            totals.cost if priced else None,
            totals.cache_hit_rate if counted else None,
            conversation.runtime.log.compactions,
            warning="see /plugins" if conversation.runtime.plugins.troubles else "",
            assumed=conversation.runtime.sizes.limits.window_assumed,
            outlook=tuple(conversation.runtime.compactor.brief(used)),
        )

    # -- commands of a terminal

    def _own_commands(self) -> dict[str, SlashCommand]:
        return {
            "expand": replace(COMMANDS["expand"], run=lambda _, argument: self._expand(argument)),
            "new": SlashCommand(
                "start another conversation; this one stays in /sessions",
                lambda _, __: self._new(),
                aliases=("clear", "reset"),
            ),
            "resume": SlashCommand(
                "continue an earlier conversation", lambda _, id: self._resume(id), "[id|number]", ("continue",)
            ),
            "model": SlashCommand(
                "show the model, or switch to another one", lambda _, name: self._model(name), "[name]", ("models",)
            ),
            "quit": SlashCommand(
                "leave; `leporello chat --continue` comes back", lambda _, __: self._quit(), aliases=("exit", "q")
            ),
        }

    def _expand(self, argument: str) -> str:
        if argument == "last":
            argument = self._newest_output or self._last_result()
            if not argument:
                return "No tool has run yet."
        return COMMANDS["expand"].run(self._agent.conversation, argument)

    def _last_result(self) -> str:
        conversation = self._agent.conversation
        newest = conversation.runtime.log.view.last
        stored = self._store.log.span(conversation.id, Span(max(1, newest - 50), newest)) if newest else []
        return next((entry.id for entry in reversed(stored) if is_result(entry.message)), "")

    def _new(self) -> str:
        earlier = self._agent.conversation
        kept = f" The one before is kept: /resume {earlier.id}" if self._store.log.count(earlier.id) else ""
        earlier.runtime.plugins.engine.on_session_reset()
        self._switch(None, "new")
        return f"A new conversation: {self._agent.conversation.id}.{kept}"

    def _resume(self, wanted: str) -> str:
        if not wanted:
            return COMMANDS["sessions"].run(self._agent.conversation, "") + "\nContinue one of them: /resume NUMBER"
        id = self._find(wanted)
        if id == self._agent.conversation.id:
            return "That is this conversation."
        self._switch(id, "exit")
        self.show_resume_summary()
        return ""

    def _model(self, name: str) -> str:
        if not name:
            chosen = self._chosen
            where = f" at {chosen.base_url}" if chosen.base_url else ""
            window = self._agent.conversation.runtime.sizes.limits.window_text
            return (
                f"{chosen.model} ({chosen.provider_name}{where}), window {window}. "
                "Another one from here on: /model NAME; for every chat: leporello setup"
            )
        self._chosen = choose_model(self._options.settings, name)
        conversation = self._agent.conversation
        conversation.close()
        self._agent = self._opened(conversation.id, self._agent.jobs)
        self._store.conversations.update(conversation.id, model=self._chosen.model)
        window = self._agent.conversation.runtime.sizes.limits.window_text
        return f"Continuing with {self._chosen.model}, window {window}."

    def _quit(self) -> str:
        self._leaving = True
        said = self._agent.conversation.runtime.log.view.last
        return "Come back with: leporello chat --continue" if said else ""

    # -- completion

    def command_names(self) -> dict[str, str]:
        """Every command with its line of help, then the aliases."""
        commands = self.commands
        return {
            **{name: command.help for name, command in commands.items()},
            **{alias: f"the same as /{name}" for alias, name in aliases(commands).items()},
        }

    def arguments(self, name: str) -> dict[str, str]:
        name = aliases(self.commands).get(name, name)
        if name == "context":
            return {"--explain": "limits and their sources"}
        if name == "resume":
            return {record.id: record.metadata.title for record in recent(self._store, LISTED)}
        if name == "model":
            return dict.fromkeys([self._options.model, "local"], "")
        if name == "expand":
            folds = self._store.views.folds(self._agent.conversation.id)[-LISTED:]
            return {fold.id: str(fold.covered) for fold in folds}
        return {}
