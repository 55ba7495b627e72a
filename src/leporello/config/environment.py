"""Settings in environment variables: `LEPORELLO_COMPRESSION__THRESHOLD`, two underscores for a dot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leporello.config.catalogue import SETTINGS
from leporello.config.sources import Given, in_environment
from leporello.errors import ConfigError

PREFIX = "LEPORELLO_"


def variable_for(key: str) -> str:
    """The variable that sets a key."""
    return PREFIX + key.upper().replace(".", "__")


def read_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    """Every variable that sets something. Variables with our prefix and no double underscore are not settings."""
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        rest = variable.removeprefix(PREFIX)
        if "__" in rest:
            yield Given(rest.lower().replace("__", "."), environ[variable], in_environment(variable), is_text=True)
        elif rest in _RUN_TOGETHER:
            right = variable_for(_RUN_TOGETHER[rest])
            raise ConfigError(f"{variable} sets nothing: a dot is written as two underscores. Use {right}.")


_RUN_TOGETHER = {
    setting.name.upper().replace(".", "_"): setting.name
    for setting in SETTINGS
    if "." in setting.name and not setting.is_pattern
}
