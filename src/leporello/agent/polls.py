"""Which calls only look whether something is done yet, and were told that it is not.

Both must be seen: a call that asks for a state, and a result that tells one. A file that holds the word "loading", a
search for it and a build that prints it are no look at anything, however often they are called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from leporello.lazy_regex import lazy_regex
from leporello.messages import ToolCall, parse_json
from leporello.tools.base import ToolResult

LONGEST_STATE = 2_000  # of characters: what tells a state is short
LONGEST_LOOK = 1_000  # of characters: so is a command that asks for one
_STATE = (
    r"(?:pending|queued|scheduled|waiting|running|processing|starting|activating|creating|building|deploying|rebooting"
    r"|provisioning|initiali[sz]ing|installing|downloading|uploading|pulling|loading|booting|syncing|in[ _-]?progress)"
)
_UNDER_WAY = lazy_regex(rf"(?<![\w/.\\-])(?:{_STATE}|0/\d+)(?![\w/\\]|[.-]\w)", re.IGNORECASE)
"""Something goes on; a name that holds the word says nothing."""
_SETTLED = lazy_regex(
    rf"(?:\b(?:not?|never|none|0)|n't|\bactive)\b(?: (?!yet)[a-z]{{1,20}})? \(?{_STATE}\b"
    rf"|\b{_STATE}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?0\b",
    re.IGNORECASE,
)
"""Nothing goes on: "not running", "active (running)", "pending: 0"."""
_NOT_YET = lazy_regex(
    r"\b(?:connection refused|no response|(?:not|n't) (?:yet )?(?:ready|available|up|running)|unavailable"
    r"|(?:is )?starting up|try again)\b",
    re.IGNORECASE,
)
_SEGMENT = lazy_regex(r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^'\"\\;|&\n])+", re.DOTALL)
"""What stands between the operators of a command line."""
_QUOTED = lazy_regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_NO_OUTPUT_FILE = lazy_regex(r"(?:[012]?>>?|&>)[ \t]*/dev/null|[12]?>&[12]")
_BEFORE = lazy_regex(r"(?:(?:\w+=\S*|sudo|time|nice|command|timeout(?:[ \t]+-\S+)*[ \t]+\S+|watch[ \t]+-\S+)[ \t]+)*")
"""What may stand before a program's name: variables, and programs that start others."""
_SLEEP = lazy_regex(r"(?:sleep|Start-Sleep)\b\D*(?!0+(?:\.0*)?(?:\D|$))\d")
_AROUND = frozenset(
    "sleep start-sleep echo printf cd date true : grep egrep jq yq awk cut sort uniq wc head tail tr column ls"
    " test [".split()
)
"""Programs that stand beside a look, or behind it in a pipe."""
_NO_LOOKS = frozenset(
    "cat less more bat git rg ag ack find fd locate tree sed perl ed vi vim nano emacs cp mv rm ln mkdir touch tee"
    " dd patch chmod chown python python3 node ruby make npm pip cargo go pytest diff strings xxd od".split()
)
"""Programs that read, search, change or work: behind a `sleep` too they look at no state."""
_LOOKS = lazy_regex(
    r"(?:kubectl|oc)(?: -\S+(?: [^\s-]\S*)?)*? (?:get|describe|rollout status|wait|logs|top)\b"
    r"|(?:docker|podman|nerdctl|docker-compose)(?: compose| container| service)?(?: -\S+ \S+)*"
    r" (?:ps|inspect|logs|stats|wait|top|ls)\b"
    r"|(?:gh|glab|az|aws|gcloud|doctl|flyctl|fly|heroku|vercel|railway|netlify|eb|cf|argocd|nomad|helm|pm2|hub|circleci)"
    r"(?: (?!cp\b|mv|rm|sync|create|delete|put|set|update)[a-z][\w:-]*){0,3}?"
    r" (?:view|list|ls|ps|watch|checks|show|status|logs|history|inspect|get|wait"
    r"|(?:get|list|describe|wait)-[\w-]+|describe)\b"
    r"|systemctl(?: -\S+)* (?:status|is-active|is-failed|show)\b|(?:service|rc-service) \S+ status\b"
    r"|(?:supervisorctl|initctl|launchctl) (?:status|list)\b|crm_mon\b"
    r"|(?:ps|pgrep|pidof|jobs|squeue|sacct|qstat|bjobs|condor_q|sinfo|nvidia-smi|uptime|journalctl|dmesg)\b"
    r"|(?:ping|nc|ncat|pg_isready|mysqladmin|ss|netstat|nslookup|dig|host|wait-for-it(?:\.sh)?)\b"
    r"|redis-cli (?:ping|info)\b",
    re.IGNORECASE,
)
_PROBES = frozenset("curl wget http httpie nc ncat ping pg_isready mysqladmin redis-cli nslookup dig host".split())
"""Programs that fail where something is not there yet."""
_STATES = frozenset(
    "status statuses state health healthz healthy healthcheck ready readyz readiness isready livez liveness progress"
    " poll ping wait watch await".split()
)
_SENDS = lazy_regex(r" (?:-d|-F|-T|--data\S*|--form|--json|--upload\S*|--post\S*)\b|\b(?:POST|PUT|PATCH|DELETE)\b")
_LOCAL = lazy_regex(r"(?:\w+://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])\b")
_ONE_JOB = lazy_regex(
    r"/(?:job|task|run|build|deployment|operation|pipeline|workflow|execution|batch(?:e)?)s?/[\w-]*\d"
)
_LOG = lazy_regex(r"\.(?:log|out|err)\b|\b(?:log|nohup|syslog|messages)\b|/logs?/", re.IGNORECASE)
_NAME_WORDS = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TOOL_LOOKS = _STATES | frozenset("check checks job jobs output monitor sleep receive listen".split())
_TOOL_WORKS = frozenset(
    "read write edit patch search find grep glob file files git create update set delete add start run list".split()
)
_TOOL_SHOWS = frozenset("get describe show view".split())
_TOOL_JOBS = frozenset("task run build deployment deploy pipeline operation execution workflow batch pod pods".split())


def is_under_way(call: ToolCall, result: ToolResult, *, failed: bool) -> bool:
    """Whether a call looks at something, and it goes on or is not there yet.

    What failed counts only where a program was to find out whether something is there.
    """
    if len(result.text) > LONGEST_STATE:
        return False
    if failed:
        command = _command(parse_json(call.arguments))
        return bool(command) and _looks(command, _PROBES) and _NOT_YET.search(result.text) is not None
    if not asks_state(call):
        return False
    told = result.status.partition("\n")[0] + "\n" + result.text
    return _UNDER_WAY.search(_SETTLED.sub(" ", told)) is not None


def asks_state(call: ToolCall) -> bool:
    """Whether a call asks for a state, or waits for one, and does nothing besides."""
    command = _command(parse_json(call.arguments))
    return _looks(command) if command else _is_status_tool(call.name)


def _command(given: Any) -> str:
    """The command line of a call, also of one that gives it word by word."""
    command = given.get("command") if isinstance(given, dict) else None
    if isinstance(command, list) and command:
        command = command[-1] if str(command[0]).endswith("sh") else " ".join(map(str, command))
    return command if isinstance(command, str) else ""


def _is_status_tool(name: str) -> bool:
    words = {word.lower() for word in _NAME_WORDS.findall(name)}
    if not words.isdisjoint(_TOOL_SHOWS) and not words.isdisjoint(_TOOL_JOBS):
        return True
    return not words.isdisjoint(_TOOL_LOOKS) and words.isdisjoint(_TOOL_WORKS)


def _looks(command: str, only: frozenset[str] = frozenset()) -> bool:
    """Whether a command line asks for a state and does nothing besides; with `only`, by one of these programs."""
    if len(command) > LONGEST_LOOK:
        return False
    line = _NO_OUTPUT_FILE.sub(" ", command)
    if ">" in _QUOTED.sub("", line):
        return False
    slept = looked = False
    for segment in _SEGMENT.findall(line):
        said = segment.strip()
        before = _BEFORE.match(said)
        words = said[before.end() if before else 0 :].split()
        if not words:
            continue
        program = words[0].rpartition("/")[2].lower()
        if _asks_state(program, words):
            looked = looked or not only or program in only
        elif _SLEEP.match(" ".join(words)):
            slept = True
        elif program not in _AROUND:
            # Behind a wait any program may be the look but those that do something else.
            if not slept or program in _NO_LOOKS:
                return False
            looked = looked or not only
    return looked


def _asks_state(program: str, words: Sequence[str]) -> bool:
    text = " ".join((program, *words[1:]))
    if program in ("curl", "wget", "http", "httpie"):
        return not _SENDS.search(text) and any(map(_is_state_address, words[1:]))
    if program in ("tail", "cat", "head", "less"):
        files = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
        of_state = [_has_state(word) or (program == "tail" and _LOG.search(word) is not None) for word in files]
        return bool(of_state) and all(of_state)
    if _LOOKS.match(text):
        return True
    return program not in _NO_LOOKS | _AROUND and any(map(_has_state, words[:3]))


def _is_state_address(word: str) -> bool:
    word = word.strip("'\"")
    return bool(_LOCAL.match(word) or _ONE_JOB.search(word) or ("/" in word and _has_state(word)))


def _has_state(word: str) -> bool:
    """Whether a word of a command names a state: `status`, `./deploy_status.sh`, but no source file."""
    return not _STATES.isdisjoint(part.lower() for part in _NAME_WORDS.findall(word)) and not _SOURCE.search(word)


_SOURCE = lazy_regex(r"\.(?:py|js|jsx|ts|tsx|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|md|rst|html|css|vue|swift|scala)\b")
