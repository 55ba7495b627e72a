"""Putting an agent together from settings: conversation, tools, prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

from leporello.agent.agent import PROMPT_KEY, Agent
from leporello.agent.endpoints import Chosen, summariser_for
from leporello.agent.system_prompt import PromptSources, SystemPrompt, build_system_prompt
from leporello.cancel import CancelToken
from leporello.config import Settings
from leporello.config.sources import command_environment
from leporello.conversation import Conversation
from leporello.conversation.artifacts import StoredArtifacts, outputs_folder
from leporello.conversation.background import BackgroundCompactions, run_job
from leporello.conversation.compact import CompactionJob
from leporello.messages import parse_json
from leporello.plugins.context import PluginTool
from leporello.plugins.host import PluginHost
from leporello.recall.tools import SCHEMAS, TOOL_NAMES
from leporello.store import Store
from leporello.store.records import Metadata
from leporello.summaries.base import Summariser
from leporello.tokens import TokenCounter
from leporello.tools.approval import ApprovalAnswer, ApprovalMode, PolicyApprover
from leporello.tools.base import ApprovalRequest, Arguments, OutputLimits, Tool, ToolContext
from leporello.tools.budget import OutputBudget
from leporello.tools.confine import Confinement, find_confinement
from leporello.tools.schema import foreign_tool
from leporello.tools.terminal import BackgroundJobs
from leporello.tools.toolbox import Toolbox, builtin_toolbox

SEARCH = "lcm_grep"
Handler = Callable[[ToolContext, Arguments], object]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What a host chooses for its agents beside the settings and the model; each has a default."""

    workdir: Path | None = None
    """The program's own when it is not given."""
    ask: Callable[[ApprovalRequest], ApprovalAnswer] | None = None
    summariser: Summariser | None = None
    platform: str = "cli"
    today: date | None = None
    plugins: PluginHost | None = None
    jobs: BackgroundJobs | None = None
    background: bool = True
    """Whether a model's summary is waited for in a thread, while the conversation goes on."""


def open_agent(
    settings: Settings,
    chosen: Chosen,
    *,
    store: Store,
    id: str | None = None,
    options: AgentOptions | None = None,
    **more: Any,
) -> Agent:
    """An agent for a new or an existing conversation. `more` are fields of `AgentOptions`, given by name."""
    options = replace(options or AgentOptions(), **more)
    host = options.plugins or PluginHost(settings)
    counter = TokenCounter.for_model(chosen.model)
    conversation = Conversation.open(
        id,
        model=chosen.model,
        window=chosen.served_window,
        store=store,
        settings=settings,
        summariser=options.summariser or summariser_for(settings, chosen, counter, host),
        plugins=host,
        metadata=Metadata(model=chosen.model, platform=options.platform),
    )
    beside = _beside(settings, conversation, host) if options.background else None
    jobs = options.jobs or BackgroundJobs()
    toolbox = _toolbox(settings, chosen, conversation, jobs)
    context = _tool_context(settings, conversation, options, toolbox)
    limits = conversation.runtime.sizes.limits
    sources = PromptSources(
        workdir=context.workdir,
        memory=settings.home.memory_dir,
        today=options.today or date.today(),
        tools=toolbox.names,
        skills=context.readable,
        window=limits.window,
    )
    artifacts = StoredArtifacts(conversation.runtime.log.store, conversation.id)
    return Agent(
        conversation,
        chosen,
        toolbox,
        context,
        OutputBudget(context.outputs, context.limits, toolbox.names, artifacts),
        _prompt(conversation, sources),
        sources,
        max_output=min(settings.model.max_output or limits.output_reserve, limits.output_reserve),
        jobs=jobs,
        beside=beside,
    )


def _beside(settings: Settings, conversation: Conversation, host: PluginHost) -> BackgroundCompactions | None:
    """Compactions in a thread, where a model writes the summaries; without one they take no time worth speaking of."""
    runtime = conversation.runtime
    summariser = runtime.hooks.summariser
    if summariser is None:
        return None

    def run(job: CompactionJob, cancel: CancelToken) -> None:
        run_job(runtime.log.store, settings, job, lambda _: summariser, host, cancel, runtime.hooks.live)

    beside = BackgroundCompactions(run)
    runtime.hooks.later = beside.later
    runtime.hooks.closing.append(beside.close)
    return beside


def _toolbox(settings: Settings, chosen: Chosen, conversation: Conversation, jobs: BackgroundJobs) -> Toolbox:
    names = () if chosen.small and settings.tools.names is None else settings.tools.names
    own = builtin_toolbox(settings.home.memory_dir, jobs, _recall_tools(conversation))
    own = own.select(names, conversation.runtime.sizes.limits.window)
    return own if chosen.small else with_plugin_tools(conversation, own)


def _tool_context(
    settings: Settings, conversation: Conversation, options: AgentOptions, toolbox: Toolbox
) -> ToolContext:
    keys = [settings.provider(name).key_env or "" for name in settings.provider_names]
    workdir = (options.workdir or Path.cwd()).resolve()
    outputs = outputs_folder(settings.home, conversation.id)
    roots = tuple(Path(path).expanduser() for path in settings.tools.paths)
    env = command_environment(keys)
    return ToolContext(
        workdir=workdir,
        outputs=outputs,
        approver=PolicyApprover(ApprovalMode(settings.tools.approval), settings.tools.allow, options.ask),
        roots=roots,
        readable=(settings.home.skills_dir,),
        limits=OutputLimits.for_window(conversation.runtime.sizes.limits.window),
        env=env,
        # Looking through the folders and trying the sandbox out takes a while: done once, before the first command.
        confinement=cache(partial(_confinement, settings, workdir, roots, outputs, env))
        if "terminal" in toolbox
        else None,
    )


def _confinement(
    settings: Settings, workdir: Path, roots: tuple[Path, ...], outputs: Path, env: Mapping[str, str]
) -> Confinement:
    if settings.tools.sandbox == "off":
        return Confinement((workdir,), why_not="tools.sandbox is off")
    readable = (outputs, settings.home.skills_dir)
    return find_confinement(workdir, roots, readable, settings.home.path, env, settings.tools.network)


def _prompt(conversation: Conversation, sources: PromptSources) -> SystemPrompt:
    """The prompt the conversation was begun with, so that a resumed one sends the same bytes."""
    state = conversation.runtime.log.store.state
    kept = state.get(conversation.id, PROMPT_KEY)
    if kept:
        return SystemPrompt.from_dict(kept)
    built = build_system_prompt(sources)
    state.set(conversation.id, PROMPT_KEY, built.as_dict())
    return built


def _recall_tools(conversation: Conversation) -> list[Tool]:
    def handler(name: str) -> Handler:
        return lambda _, arguments: conversation.runtime.recall_tools.handle(name, arguments)

    return [foreign_tool(schema, handler(schema["name"])) for schema in SCHEMAS]


def with_plugin_tools(conversation: Conversation, own: Toolbox) -> Toolbox:
    """The host's tools and those of the engine and of plugins. A name that is taken is refused, and that is said.

    An engine may bring recall tools of the same names as the host's: its summaries name them, so it is asked first, and
    the host answers what the engine does not know. To a search it adds what it finds itself.
    """
    plugins = conversation.runtime.plugins
    tools = {name: own_tool for name in own.names if (own_tool := own.get(name))}
    for schema in plugins.engine.get_tool_schemas():
        name = str(schema["name"])
        if name in tools and name not in TOOL_NAMES:
            plugins.note(_taken(f"engine {plugins.engine.name}", name))
        else:
            tools[name] = foreign_tool(schema, _ask_engine(conversation, name, tools.get(name)))
    for tool in plugins.extras.tools:
        if tool.name in tools:
            plugins.note(_taken(tool.guard.who, tool.name))
        else:
            tools[tool.name] = foreign_tool(tool.schema, _ask_plugin(tool))
    return Toolbox(tools.values())


def _taken(who: str, name: str) -> str:
    return f"{who}: its tool {name} is left out: there is one of that name already."


def _ask_engine(conversation: Conversation, name: str, own: Tool | None) -> Handler:
    def handle(context: ToolContext, arguments: Arguments) -> object:
        engine = conversation.runtime.plugins.engine
        answer = engine.handle_tool_call(name, dict(arguments), messages=conversation.messages)
        parsed = parse_json(answer)
        if own is None or not isinstance(parsed, dict):
            return answer
        if parsed.get("error"):
            return own.run(context, own.check(arguments))
        if name != SEARCH:
            return answer
        # The engine may search less than the whole conversation; then the first hour would be out of reach.
        found = parse_json(str(own.run(context, {"query": str(arguments.get("query") or "")})))
        results = found.get("results") if isinstance(found, dict) else None
        return {**parsed, "whole_conversation": results} if results else answer

    return handle


def _ask_plugin(tool: PluginTool) -> Handler:
    return lambda _, arguments: tool(dict(arguments))
