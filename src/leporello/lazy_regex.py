"""Regular expressions of modules: each is compiled when it is first used, so that a start pays for those it needs."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

from leporello.regex_cache import shared_cache

_CACHE = shared_cache()
_NAMES = [name for name in dir(re.Pattern) if not name.startswith("__")]


class LazyRegex(Generic[AnyStr]):
    """Stands for a pattern until it is used; from then on its methods are the pattern's own, found at no cost."""

    def __init__(self, source: AnyStr, options: int) -> None:
        self._source: AnyStr = source
        self._options = options

    def compiled(self) -> re.Pattern[AnyStr]:
        return _CACHE.compile(self._source, self._options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        pattern = self.compiled()
        vars(self).update({known: getattr(pattern, known) for known in _NAMES})
        return getattr(pattern, name)


def lazy_regex(source: AnyStr, options: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, for the level of a module; a mistake in the source shows when it is used."""
    return cast("re.Pattern[AnyStr]", LazyRegex(source, options))
