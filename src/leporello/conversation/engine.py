"""Which engine serves a conversation: the one the settings name, or the built-in compressor and a word about why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leporello.engines import BUILTIN, builtin_engine
from leporello.engines.base import CompactionEngine
from leporello.engines.lcm import LcmSettings, read_settings
from leporello.engines.plugin_engine import PluginEngine
from leporello.errors import PluginError
from leporello.events import Span
from leporello.messages import Message
from leporello.plugins.context import PluginExtras
from leporello.plugins.host import DEFAULT_ENGINE, EngineOffer, PluginHost
from leporello.store.records import View


def view_facts(view: View) -> dict[str, Any]:
    """Ids and sizes of a view, for hooks; no text."""
    numbers = [line.number for line in view.lines if line.number is not None]
    return {
        "conversation": view.conversation,
        "session_id": view.session,
        "generation": view.generation,
        "covered": str(Span(min(numbers), max(numbers))) if numbers else None,
        "messages": len(view.lines),
    }


class EngineSlot:
    """The one engine of a conversation. A plugin's instance lives as long as the conversation does."""

    def __init__(self, host: PluginHost, platform: str = "") -> None:
        self.host = host
        self._platform = platform
        self._noted: list[str] = []
        self._name: str = host.settings.get("context.engine")
        self._hosted = self._find(self._name)
        self.engine: CompactionEngine
        if self._hosted is None:
            self.engine = builtin_engine(self._name, self._lcm_settings())
        else:
            self._hosted.guest.guard.on_trouble = self.note
            self.engine = PluginEngine(self._hosted.guest)

    @property
    def troubles(self) -> list[str]:
        """What is wrong with plugins, oldest first; texts stay until it is mended."""
        return [*self.host.troubles, *self._noted]

    @property
    def extras(self) -> PluginExtras:
        """Tools, commands, hooks and summarisers of the plugins of this conversation."""
        return self.host.extras + (self._hosted.extras if self._hosted else PluginExtras())

    def note(self, text: str) -> None:
        """Something about plugins that the user should know."""
        if text not in self._noted:
            self._noted.append(text)

    def session_begins(self, view: View, model: str, **switch: str) -> None:
        """A session begins or, at a compression (`switch`), goes on under another id."""
        about = {"platform": self._platform, "model": model, "conversation_id": view.conversation}
        self.engine.on_session_start(view.session, **about, hermes_home=str(self.host.settings.home.path), **switch)
        if not switch:
            self.fire("session_start", **view_facts(view), **about)

    def session_ends(self, view: View, messages: list[Message], reason: str) -> None:
        """A real end: the program ends, the user begins anew, the conversation expired."""
        self.engine.on_session_end(view.session, messages)
        self.fire("session_end", **view_facts(view), reason=reason)

    def fire(self, hook: str, **facts: Any) -> None:
        """Tell the plugins; whatever they do, nothing changes."""
        for call in self.extras.hooks:
            if call.name == hook:
                call(facts)

    def close(self) -> None:
        if self._hosted is not None:
            self._hosted.guest.close()

    def _find(self, name: str) -> EngineOffer | None:
        if name == DEFAULT_ENGINE:
            return None
        try:
            hosted = self.host.guest(name)
        except PluginError as error:
            self._fall_back([str(error)])
            return None
        if hosted is None and name not in BUILTIN:
            self._fall_back([self.host.missing(name)])
        return hosted

    def _lcm_settings(self) -> LcmSettings | None:
        """The section `lcm` for the built-in engine; a plugin of that name reads it itself."""
        if self._name != "lcm":
            return None
        settings, warnings = read_settings(self.host.settings.free_sections.get("lcm", {}))
        self._noted += warnings
        return settings

    def _fall_back(self, reasons: Iterable[str]) -> None:
        self._name = self._name if self._name in BUILTIN else DEFAULT_ENGINE
        self._noted += [f"{reason.rstrip('.')}. The built-in {self._name} is used instead." for reason in reasons]
