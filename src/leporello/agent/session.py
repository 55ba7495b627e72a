"""Putting an agent together from settings: model, window, summary models, tools, prompt, conversation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from leporello.agent.agent import PROMPT_KEY, Agent
from leporello.agent.demo import PREFIX, SCRIPTED, demo_provider
from leporello.agent.endpoints import ModelAddress, endpoint, main_place, own_window, summary_place
from leporello.agent.system_prompt import PromptSources, SystemPrompt, build_system_prompt
from leporello.config import Settings
from leporello.config.environment import command_environment
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArtifacts, outputs_folder
from leporello.errors import NoModel
from leporello.local.provider import NAME as LOCAL
from leporello.local.provider import local_provider
from leporello.messages import parse_json
from leporello.models import LearnedLimits
from leporello.models.limits import limits_of
from leporello.plugins.context import PluginToolCall
from leporello.plugins.host import PluginHost
from leporello.providers.base import Provider
from leporello.providers.clients import (
    ADDRESSES,
    ProviderChoice,
    choose_dialect,
    choose_provider,
    make_provider,
)
from leporello.providers.windows import ask_window
from leporello.recall.tools import SCHEMAS
from leporello.store import Store
from leporello.store.records import Metadata
from leporello.summaries.base import Summariser
from leporello.summaries.model import ModelSummariser, SummaryModel
from leporello.tokens import TokenCounter
from leporello.tools.approval import ApprovalAnswer, ApprovalMode, PolicyApprover
from leporello.tools.base import ApprovalRequest, Arguments, OutputLimits, Tool, ToolContext
from leporello.tools.budget import OutputBudget
from leporello.tools.schema import foreign_tool
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import Toolbox, builtin_toolbox

RECALL = frozenset(str(schema["name"]) for schema in SCHEMAS)

Handler = Callable[[ToolContext, Arguments], object]


def with_plugin_tools(talk: Conversation, own: Toolbox) -> Toolbox:
    """The host's tools and those of the engine and of plugins. A name that is taken is refused, and that is said.

    An engine may bring recall tools of the same names as the host's: its summaries name them, so it is asked first, and
    the host answers what the engine does not know.
    """
    tools = {name: tool for name in own.names if (tool := own.get(name))}
    for schema in talk.runtime.plugins.engine.get_tool_schemas():
        name = str(schema["name"])
        if name in tools and name not in RECALL:
            talk.runtime.plugins.note(_taken(f"engine {talk.runtime.plugins.engine.name}", name))
        else:
            tools[name] = foreign_tool(schema, _ask_engine(talk, name, tools.get(name)))
    for call in talk.runtime.plugins.extras.tools:
        if call.tool.name in tools:
            talk.runtime.plugins.note(_taken(call.guard.who, call.tool.name))
        else:
            tools[call.tool.name] = foreign_tool(call.tool.schema, _ask_plugin(call))
    return Toolbox(tools.values())


def _taken(who: str, name: str) -> str:
    return f"{who}: its tool {name} is left out: there is one of that name already."


def _ask_engine(talk: Conversation, name: str, own: Tool | None) -> Handler:
    def handle(context: ToolContext, arguments: Arguments) -> object:
        answer = talk.runtime.plugins.engine.handle_tool_call(name, dict(arguments), messages=talk.messages)
        if own is None or not _is_error(answer):
            return answer
        return own.run(context, own.check(arguments))

    return handle


def _ask_plugin(call: PluginToolCall) -> Handler:
    return lambda _, arguments: call(dict(arguments))


def _is_error(answer: str) -> bool:
    value: Any = parse_json(answer)
    return isinstance(value, dict) and bool(value.get("error"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The model of a conversation: who serves it, and the window its endpoint states (None: the model table's)."""

    model: str
    provider: Provider
    provider_name: str
    base_url: str = ""
    served_window: int | None = None
    dialect: str = ""
    """The wire format, where the provider's name does not tell it."""
    small: bool = False
    """Too small a model to call tools or to write summaries: it is offered none and asked for none."""


def choose_model(settings: Settings, model: str | None = None) -> Chosen:
    """The main model and its provider."""
    name = model or settings.model.default
    if not name:
        raise NoModel(
            "No model is set. Set model.default in config.yaml or give --model NAME; for a server of your own also "
            "model.base_url. Without a key: leporello setup --local, then --model local."
        )
    if name == LOCAL:
        own = local_provider(settings.home.models_dir)
        return Chosen(LOCAL, own, LOCAL, served_window=own_window(name), small=True)
    if name.startswith(PREFIX):
        return Chosen(name, demo_provider(name), SCRIPTED, served_window=own_window(name))
    wanted = endpoint(settings, name, main_place(settings))
    provider = make_provider(wanted)
    who = choose_provider(wanted)
    window = _stated_window(settings, wanted, who)
    return Chosen(name, provider, who, wanted.base_url, window, choose_dialect(wanted, who).name)


def _stated_window(settings: Settings, wanted: ProviderChoice, who: str) -> int | None:
    """The smallest window the endpoint itself stated: in an earlier error, or now that it is asked.

    Only endpoints of the user's own are asked; the known vendors are in the model table.
    """
    now = time.time()
    book = LearnedLimits.load(settings.home.limits_file, now=now)
    stated = [book.window(wanted.model, who, wanted.base_url, now=now)]
    if wanted.base_url and who not in ADDRESSES:
        answer = ask_window(wanted.base_url, wanted.model, api_key=wanted.api_key)
        stated.append(answer.tokens if answer is not None else None)
    return min((tokens for tokens in stated if tokens), default=None)


def summariser_for(
    settings: Settings, main: Chosen, counter: TokenCounter, plugins: PluginHost | None = None
) -> Summariser:
    """Who writes summaries: a plugin's summariser first, then the models, then nobody (no model is needed)."""
    if main.provider_name == SCRIPTED:
        # It needs no key and no network, so neither do its summaries.
        return ModelSummariser([], counter, settings.compression.deadline)
    models = summary_models(settings, main)
    if plugins is None:
        return ModelSummariser(models, counter, settings.compression.deadline)
    plugins.use_summary_models(models)
    own = [summariser.as_model() for summariser in plugins.extras.summarisers]
    return ModelSummariser([*own, *models], counter, settings.compression.deadline)


def summary_models(settings: Settings, main: Chosen) -> list[SummaryModel]:
    """The models that can write summaries: the configured one first, then the main one."""
    ladder: list[SummaryModel] = []
    auxiliary = settings.summary_model
    if auxiliary.model:
        place = summary_place(settings, auxiliary.model, _place_of(settings, main))
        wanted = endpoint(settings, auxiliary.model, place)
        window = auxiliary.context_length or limits_of(settings, auxiliary.model).window
        ladder.append(SummaryModel(make_provider(wanted), auxiliary.model, window))
    if not main.small:
        window = limits_of(settings, main.model, served_window=main.served_window).window
        ladder.append(SummaryModel(main.provider, main.model, window))
    return ladder


def _place_of(settings: Settings, main: Chosen) -> ModelAddress:
    """Where the main model is; a name that told its provider does not tell the summary model's."""
    place = main_place(settings)
    told_by_name = place == ModelAddress() and main.provider_name in settings.provider_names
    return ModelAddress(main.provider_name) if told_by_name else place


def open_agent(
    settings: Settings,
    chosen: Chosen,
    *,
    store: Store,
    id: str | None = None,
    workdir: Path | None = None,
    ask: Callable[[ApprovalRequest], ApprovalAnswer] | None = None,
    summariser: Summariser | None = None,
    platform: str = "cli",
    today: date | None = None,
    plugins: PluginHost | None = None,
    jobs: BackgroundJobs | None = None,
) -> Agent:
    """An agent for a new or an existing conversation."""
    counter = TokenCounter.for_model(chosen.model)
    host = plugins or PluginHost(settings)
    conversation = Conversation.open(
        id,
        model=chosen.model,
        window=chosen.served_window,
        store=store,
        settings=settings,
        summariser=summariser or summariser_for(settings, chosen, counter, host),
        plugins=host,
        metadata=Metadata(model=chosen.model, platform=platform),
    )
    folder = (workdir or Path.cwd()).resolve()
    outputs = outputs_folder(settings.home, conversation.id)
    jobs = jobs or BackgroundJobs()
    names = () if chosen.small and settings.tools.names is None else settings.tools.names
    window, reserve = conversation.runtime.sizes.limits.window, conversation.runtime.sizes.limits.output_reserve
    own = builtin_toolbox(settings.home.memory_dir, jobs, _recall_tools(conversation)).select(names, window)
    toolbox = own if chosen.small else with_plugin_tools(conversation, own)
    limits = OutputLimits.for_window(window)
    artifacts = StoredArtifacts(conversation.runtime.log.store, conversation.id)
    sources = PromptSources(
        workdir=folder,
        memory=settings.home.memory_dir,
        today=today or date.today(),
        tools=toolbox.names,
        skills=(settings.home.skills_dir,),
        window=window,
    )
    return Agent(
        talk=conversation,
        provider=chosen.provider,
        toolbox=toolbox,
        context=ToolContext(
            workdir=folder,
            outputs=outputs,
            approver=PolicyApprover(ApprovalMode(settings.tools.approval), settings.tools.allow, ask),
            roots=tuple(Path(path).expanduser() for path in settings.tools.paths),
            readable=(settings.home.skills_dir,),
            limits=limits,
            env=command_environment(_key_variables(settings)),
        ),
        budget=OutputBudget(outputs, limits, toolbox.names, artifacts),
        prompt=_prompt(conversation, sources),
        sources=sources,
        learn=lambda window: _remember(settings, chosen, window),
        provider_name=chosen.provider_name,
        base_url=chosen.base_url,
        dialect=chosen.dialect,
        jobs=jobs,
        max_output=min(settings.model.max_output or reserve, reserve),
    )


def _prompt(talk: Conversation, sources: PromptSources) -> SystemPrompt:
    """The prompt the conversation was begun with, so that a resumed one sends the same bytes."""
    kept = talk.runtime.log.store.state.get(talk.id, PROMPT_KEY)
    if kept:
        return SystemPrompt.from_dict(kept)
    built = build_system_prompt(sources)
    talk.runtime.log.store.state.set(talk.id, PROMPT_KEY, built.as_dict())
    return built


def _recall_tools(talk: Conversation) -> list[Tool]:
    def handler(name: str) -> Callable[[ToolContext, dict[str, object]], object]:
        return lambda _, arguments: talk.runtime.recall_tools.handle(name, arguments)

    return [foreign_tool({"type": "function", "function": schema}, handler(schema["name"])) for schema in SCHEMAS]


def _key_variables(settings: Settings) -> Sequence[str]:
    return [settings.provider(name).key_env or "" for name in settings.provider_names]


def _remember(settings: Settings, chosen: Chosen, window: int) -> None:
    book = LearnedLimits.load(settings.home.limits_file, now=time.time())
    if book.learn(window, chosen.model, chosen.provider_name, chosen.base_url, now=time.time()):
        book.save(settings.home.limits_file)
