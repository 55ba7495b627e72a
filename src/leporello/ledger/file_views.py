"""Whether a call shows files, or the history of a repository, as they are: what it brought can be looked up again."""

from __future__ import annotations

import re
from functools import lru_cache

from leporello.lazy_regex import lazy_regex
from leporello.ledger.calls import CallFacts


def shows_files(call: CallFacts) -> bool:
    """Whether a call reads local files and does nothing else: no program's output, no page, nobody's mail, no log."""
    if call.work not in _VIEWS:
        return False
    if call.command:
        return _only_views(call.command)
    return _is_viewer(call.name) and not _PASSING.search(call.target)


@lru_cache(maxsize=256)
def _is_viewer(tool: str) -> bool:
    return _VIEWING_TOOL.fullmatch(tool.rpartition("__")[2]) is not None


@lru_cache(maxsize=1024)
def _only_views(command: str) -> bool:
    """Whether each step of a command line looks at files, or sorts and cuts what such a step shows."""
    if _PASSING.search(command) or "<<" in command or "system(" in command:
        return False
    steps = [step for step in _STEPS.split(_QUOTED.sub("''", command)) if step.strip()]
    return bool(steps) and all(_VIEW.match(step) for step in steps)


_VIEWS = ("read", "search", "list", "git_read")
"""Kinds of work that may be nothing else."""
_VIEWING_TOOL = lazy_regex(
    r"(?i)(?:read|view|open|cat|show)(?:[_-]?(?:many|multiple|text))?(?:[_-]?files?)?|ls|glob|grep|ripgrep"
    r"|(?:list|search|find|grep|glob)[_-]?(?:files?|dir(?:ectory|ectories)?|folders?|code(?:base)?|content|search|tool)"
    r"|(?:directory|file)[_-]?(?:tree|search)|(?:file|codebase|code)[_-]?search|(?:read|list)[_-]?(?:folder|dir(?:ectory)?)"
    r"|(?:read|view|glob|grep|ls)[_-]?tool|str_replace_(?:based_edit_tool|editor)"
)
"""Tools of coding agents; anything else that is called search, read or list may bring what changes, or mail."""
_PASSING = lazy_regex(
    r"(?i)://|\.(?:log|out|err)\b|\blogs?/|/proc/|/sys/|/dev/(?!null)|/tmp/[^/\s]*(?:\s|$)|\$\(|`|<\("
)
"""What is not the same tomorrow, or stands nowhere: pages, logs, what another command prints."""
_QUOTED = lazy_regex(r"'[^']{0,4000}'|\"[^\"]{0,4000}\"|\d?>&\d|&>|\\[\n;()|]")
_STEPS = lazy_regex(r"[;&|\n]+")
_VIEW = lazy_regex(
    r"""[\s(){}!]*(?:(?:do|then|else|if|while|until|time|command)\s+|[A-Z_]{1,40}=\S*\s+)*
    (?:(?:cat|bat|head|tail|nl|less|wc|ls|tree|fd|du|stat|file|rg|grep|egrep|fgrep|ag|ack|cd|pwd|echo|printf|sort
      |uniq|cut|tr|column|diff|true|basename|dirname|realpath|test|\[+|for|read|fi|done|set)(?![\w.:/-])
    | awk(?!\s+-f)\s
    | find\s(?!.{0,800}-(?:exec|ok)(?:dir)?\s+(?!cat|head|tail|rg|grep|ls|wc|sed\s+-n)|.{0,800}-(?:delete|fprint))
    | xargs\s+(?:-\S+\s+){0,6}(?:cat|head|tail|rg|grep|ls|wc|sed\s+-n)\s
    | sed\s+(?:-[nEr]+\s+)*''
    | sed\s+-[nEr]*n
    | git\s+(?:-C\s+\S+\s+|-\S+\s+){0,4}(?:log|show|diff|status|blame|grep|ls-files|ls-tree|cat-file|branch|shortlog)\b
    | \#|'')""",
    re.VERBOSE,
)
