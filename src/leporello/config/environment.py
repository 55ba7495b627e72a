"""What the environment says: settings (`LEPORELLO_COMPRESSION__THRESHOLD`.

Two underscores for a dot) and the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from leporello.config.catalogue import SETTINGS
from leporello.config.sources import RawValue, in_environment
from leporello.errors import ConfigError

PREFIX = "LEPORELLO_"


def variable_for(key: str) -> str:
    """The variable that sets a key."""
    return PREFIX + key.upper().replace(".", "__")


def read_environment(environ: Mapping[str, str]) -> Iterator[RawValue]:
    """Every variable that sets something. Variables with our prefix and no double underscore are not settings."""
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        rest = variable.removeprefix(PREFIX)
        if "__" in rest:
            yield RawValue(rest.lower().replace("__", "."), environ[variable], in_environment(variable), is_text=True)
        elif rest in _RUN_TOGETHER:
            right = variable_for(_RUN_TOGETHER[rest])
            raise ConfigError(f"{variable} sets nothing: a dot is written as two underscores. Use {right}.")


def command_environment(hidden: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for commands an agent runs: the program's own, without the variables that hold keys."""
    own = os.environ if environ is None else environ
    left_out = {name for name in hidden if name}
    return {name: value for name, value in own.items() if name not in left_out}


_RUN_TOGETHER = {
    setting.name.upper().replace(".", "_"): setting.name
    for setting in SETTINGS
    if "." in setting.name and not setting.is_pattern
}


def colours_wanted(environ: Mapping[str, str] | None = None) -> bool:
    """False when `NO_COLOR` is set or the terminal is dumb; whether there is a terminal is for the caller to ask."""
    variables = os.environ if environ is None else environ
    return not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"


def can_redraw(environ: Mapping[str, str] | None = None) -> bool:
    """False for a terminal that only prints lines; whether there is a terminal is for the caller to ask."""
    variables = os.environ if environ is None else environ
    return variables.get("TERM", "") not in ("dumb", "unknown")
